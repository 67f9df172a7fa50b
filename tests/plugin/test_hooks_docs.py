"""The examples of docs/extending.md, each of which has to be known where the page says so."""

from __future__ import annotations

import re

import pytest
from agent_projects import measured_names

from pytest_failgain.hookspecs import HOOKS
from test_docs import PROJECT, blocks

PAGE = PROJECT / "docs" / "extending.md"


@pytest.fixture
def examples(project: pytest.Pytester) -> pytest.Pytester:
    """A project of the page's files."""
    for name, text in blocks(PAGE)[0].items():
        (project.path / name).write_text(text, "utf-8")
    return project


def test_examples_work_together(examples: pytest.Pytester) -> None:
    result = examples.runpytest("--failgain-model=copying:0.9")
    result.assert_outcomes(passed=1)
    assert measured_names(result) == ["apologised+described", "as"]  # "as recorded"


def test_examples_are_parameters_and_stand_in_suites(examples: pytest.Pytester) -> None:
    examples.makepyfile(
        """
        import pytest

        def test_cases(failgain_environment, failgain_remedy):
            if failgain_environment.name == "rooms":
                cases = failgain_environment.cases()
                assert len({case.case_id for case in cases}) == len(cases) == 12
                assert cases[:3] == failgain_environment.cases(3)
                failgain_remedy(cases[0].trajectory.then(cases[0].failed))

        def test_too_many(failgain_environment):
            if failgain_environment.name == "rooms":
                with pytest.raises(Exception, match="^rooms can't give 13 cases: there are 12"):
                    failgain_environment.cases(13)
        """
    )
    demands = "remedies: [apologised], thresholds: {n: {at_least: 1}}"
    suite = f"{{harness: verbatim, environment: rooms, cases: 4, {demands}}}"
    examples.makefile(".yaml", failgain=f"failgain: 1\nsuites: {{mine: {suite}}}")
    result = examples.runpytest("-k", "rooms or mine", "--failgain-model=copying")
    result.assert_outcomes(passed=12, deselected=23)


@pytest.mark.parametrize("model", ["copying:much", "copying:1", "copying:-0.5"])
def test_what_the_example_of_a_scorer_does_not_take_is_told(
    examples: pytest.Pytester, model: str
) -> None:
    result = examples.runpytest(f"--failgain-model={model}")
    said = f"copying takes a chance of 0 to under 1, not {model.partition(':')[2]!r}"
    result.stdout.fnmatch_lines([f"E *{said}"])


def test_torn_page_of_the_example_of_a_reader_is_told(examples: pytest.Pytester) -> None:
    examples.makepyfile(
        r"""
        import pytest
        from pytest_failgain import TranscriptError, read_transcript

        def test_torn(failgain_extensions):
            with pytest.raises(TranscriptError, match="has no task on its second line"):
                read_transcript("Dear diary\n", readers=failgain_extensions.readers)
        """
    )
    examples.runpytest("-k", "torn").assert_outcomes(passed=1, deselected=1)


def test_every_hook_has_an_example_and_a_row() -> None:
    text = PAGE.read_text("utf-8")
    for hook in HOOKS:
        assert re.search(rf"^def {hook}\(\):$", text, re.MULTILINE)
        assert f"| `{hook}(config)` |" in text
        assert f"| `{hook}(config)` |" in (PROJECT / "docs" / "reference.md").read_text("utf-8")
