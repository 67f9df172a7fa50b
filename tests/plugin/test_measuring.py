"""Measurements with a real, tiny model in a project's tests, and what is shown of them."""

from __future__ import annotations

import re
from pathlib import Path
from unittest.mock import Mock
from xml.etree import ElementTree

import pytest
from agent_projects import (
    CONFTEST,
    MEASURES_MINE,
    MEASURES_VERBATIM,
    USES_NOTHING,
    measured_names,
    options_for,
    section,
)

from fake_scorer import measured
from pytest_failgain.fixtures import REMEDY_NAMES
from pytest_failgain.report.terminal import write_summary
from pytest_failgain.scoring import score_store
from pytest_failgain.stash import Findings

FAILS = """
from pytest_failgain import assert_corrective_gain_at_least

def test_mine(failgain, failgain_harness, cases):
    result = failgain.measure(failgain_harness, cases)
    assert_corrective_gain_at_least(result, 100)
"""


@pytest.fixture
def with_model(project: pytest.Pytester, tiny_model_folder: Path) -> list[str]:
    """A project with cases and a harness, and the options that give it a model."""
    project.makeconftest(CONFTEST)
    return options_for(tiny_model_folder, project.path / "cache")


def test_harness_of_the_project_is_measured(
    project: pytest.Pytester, with_model: list[str], tiny_model_folder: Path
) -> None:
    project.makepyfile(MEASURES_MINE)
    result = project.runpytest(*with_model)
    result.assert_outcomes(passed=1)
    heading, titles, row, *_ = section(result)
    assert heading == f"own cases: 3 cases of 3 tasks, {tiny_model_folder} (directory, float32)"
    assert titles.split()[:4] == ["harness", "n", "gain/token", "[95%]"]
    assert re.match(r"render_mine +3 +[+-]\d\.\d{3} \[[+-]\d\.\d{3}, [+-]\d\.\d{3}\] ", row)


def test_failing_assertion_ends_at_the_users_line_with_the_figure_first(
    project: pytest.Pytester, with_model: list[str]
) -> None:
    project.makepyfile(test_it=FAILS)
    result = project.runpytest(*with_model)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "        result = failgain.measure(failgain_harness, cases)",
            ">       assert_corrective_gain_at_least(result, 100)",
            (
                "E       AssertionError: render_mine on own cases: corrective gain * "
                "nats per token, at least +100.000 wanted, n = 3"
            ),
            "E       worst cases:  gain/token  greedy  failed action",
            "E       *  book(room='*')  (room-*)",
            "E       *  book(room='*')  (room-*)",
            "E       *  book(room='*')  (room-*)",
            "E       note: only 3 tasks: *",
            "E       try: *",
            "",
            "test_it.py:5: AssertionError",
            "*= failgain =*",
        ],
        consecutive=True,
    )


def test_summary_stands_once_with_a_row_for_each_harness(
    project: pytest.Pytester, with_model: list[str]
) -> None:
    project.makepyfile(
        test_one=MEASURES_MINE + MEASURES_VERBATIM,
        # The same cases and harness in another module are no second row.
        test_two=MEASURES_VERBATIM
        + """
def test_remedy(failgain, failgain_remedy, cases):
    failgain.measure(failgain_remedy, cases)
""",
    )
    result = project.runpytest(*with_model, "-q")
    result.assert_outcomes(passed=12)
    assert measured_names(result) == ["render_mine", "verbatim", *REMEDY_NAMES]
    said = [line for line in section(result) if line.startswith("dropped: by construction")]
    assert said == [
        "dropped: by construction, gain 0: the retry's context is the one before the attempt"
    ]


def test_cases_of_the_environment_are_measured(
    project: pytest.Pytester, with_model: list[str]
) -> None:
    project.makepyfile(
        """
        def test_it(failgain, failgain_harness, failgain_environment):
            result = failgain.measure(failgain_harness, failgain_environment.cases(30))
            assert result.summary()["n"] == 2
            assert result.environment == failgain_environment.name
        """
    )
    result = project.runpytest(*with_model, "--failgain-cases", "2")
    result.assert_outcomes(passed=2)
    headings = [line.partition(",")[0] for line in section(result) if " of 2 tasks, " in line]
    assert headings == [
        "tool_calls: 2 cases of 2 tasks",
        "program_repair: 2 cases of 2 tasks",
    ]


def test_failed_measurement_leaves_no_row(project: pytest.Pytester, with_model: list[str]) -> None:
    project.makepyfile(
        """
        def test_it(failgain, failgain_harness, cases):
            failgain.measure(failgain_harness, [*cases, *cases])
        """
        + MEASURES_VERBATIM
    )
    result = project.runpytest(*with_model)
    result.assert_outcomes(passed=1, failed=1)
    assert measured_names(result) == ["verbatim"]


def test_run_without_a_cache_of_pytests_works(
    project: pytest.Pytester, with_model: list[str]
) -> None:
    project.makepyfile(MEASURES_MINE)
    result = project.runpytest(*with_model, "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)
    assert measured_names(result) == ["render_mine"]


def test_run_without_a_terminal_works(project: pytest.Pytester, with_model: list[str]) -> None:
    project.makepyfile(FAILS + MEASURES_VERBATIM)
    for others in ([], ["-p", "no:xdist"]):
        result = project.runpytest(*with_model, "-p", "no:terminal", *others)
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        assert result.outlines == result.errlines == []


def test_run_without_xdist_works(project: pytest.Pytester, with_model: list[str]) -> None:
    project.makepyfile(MEASURES_MINE)
    result = project.runpytest(*with_model, "-p", "no:xdist")
    result.assert_outcomes(passed=1)
    assert measured_names(result) == ["render_mine"]


def test_failure_stands_in_the_junit_report(
    project: pytest.Pytester, with_model: list[str]
) -> None:
    project.makepyfile(FAILS + USES_NOTHING)
    result = project.runpytest(*with_model, "--junitxml", "report.xml")
    result.assert_outcomes(passed=1, failed=1)
    (failure,) = ElementTree.parse(project.path / "report.xml").iter("failure")
    assert failure.attrib["message"].startswith(
        "AssertionError: render_mine on own cases: corrective gain "
    )


def test_last_digits_that_differ_between_workers_make_no_second_row() -> None:
    # What else is in a forward pass changes them.
    reporter = Mock()
    write_summary(
        reporter, Findings([measured({"a": -1.0}), measured({"a": -1.0 + 1e-6})], [], [], {})
    )
    lines = [call.args[0] for call in reporter.write_line.call_args_list]
    assert sum(line.startswith("verbatim  ") for line in lines) == 1


def test_the_last_note_on_a_subject_is_shown(
    project: pytest.Pytester, with_model: list[str]
) -> None:
    project.makepyfile(
        """
        from pytest_failgain.stash import FINDINGS

        def test_it(request, failgain, cases):
            failgain.measure(failgain.remedy("verbatim"), cases)
            request.config.stash[FINDINGS].notes["oddity"] = "one case is odd"
            request.config.stash[FINDINGS].notes["oddity"] = "two cases are odd"
        """
    )
    result = project.runpytest(*with_model)
    notes = [line for line in section(result) if line.startswith("note: ")]
    assert notes == ["note: two cases are odd"]


def test_a_cache_folder_of_no_use_is_said_in_the_summary(
    project: pytest.Pytester, with_model: list[str]
) -> None:
    project.makepyfile(MEASURES_VERBATIM)
    project.path.joinpath("cache", f"scores-{score_store.FORMAT}.sqlite3").mkdir(parents=True)
    result = project.runpytest(*with_model)
    result.assert_outcomes(passed=1)
    (note,) = [line for line in section(result) if line.startswith("note: ")]
    assert "scores can't be opened" in note
    assert "--failgain-cache-dir" in note
