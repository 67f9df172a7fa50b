"""What the fixtures give, with a model and without one."""

from __future__ import annotations

from pathlib import Path

import pytest
from agent_projects import CONFTEST, MEASURES_MINE, USES_NOTHING, has_section, options_for

from pytest_failgain.environments import ENVIRONMENTS
from pytest_failgain.fixtures import ENVIRONMENT_NAMES, NO_MODEL, REMEDY_NAMES
from pytest_failgain.remedies import REMEDIES

NEEDS_A_MODEL = """
def test_measures(failgain):
    raise AssertionError("was run")

def test_scores(failgain_model):
    raise AssertionError("was run")
"""


def test_written_out_names_are_those_of_the_registries() -> None:
    assert tuple(ENVIRONMENTS) == ENVIRONMENT_NAMES
    assert tuple(REMEDIES) == REMEDY_NAMES


def test_test_that_needs_a_model_is_skipped_and_tells_how_to_give_one(
    project: pytest.Pytester,
) -> None:
    project.makepyfile(NEEDS_A_MODEL + USES_NOTHING)
    result = project.runpytest("-rs")
    result.assert_outcomes(passed=1, skipped=2)
    result.stdout.fnmatch_lines([f"SKIPPED * {NO_MODEL}"])
    assert "--failgain-model smollm2-135m" in NO_MODEL


def test_run_that_measures_nothing_says_nothing(project: pytest.Pytester) -> None:
    project.makepyfile(NEEDS_A_MODEL + USES_NOTHING)
    result = project.runpytest()
    result.stdout.no_fnmatch_line("failgain:*")
    assert not has_section(result)


@pytest.mark.parametrize("way", ["command line", "environment", "ini"])
def test_missing_model_is_an_error_of_one_line_where_one_is_required(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    project.makepyfile(NEEDS_A_MODEL + USES_NOTHING)
    if way == "environment":
        monkeypatch.setenv("FAILGAIN_REQUIRE_MODEL", "1")
    if way == "ini":
        project.makepyprojecttoml("[tool.pytest]\nfailgain_require_model = true")
    result = project.runpytest(*["--failgain-require-model"] * (way == "command line"))
    result.assert_outcomes(passed=1, errors=2)
    result.stdout.fnmatch_lines(
        [
            "___* ERROR at setup of test_measures *___",
            f"{NO_MODEL} (failgain_require_model is on)",
            "___* ERROR at setup of test_scores *___",
            f"{NO_MODEL} (failgain_require_model is on)",
            "*= short test summary info =*",
        ],
        consecutive=True,
    )


def test_required_model_does_not_matter_to_tests_that_need_none(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        def test_cases(failgain_environment, failgain_remedy, failgain_harness):
            (case,) = failgain_environment.cases(1)
            assert failgain_remedy(case.trajectory) == failgain_harness(case.trajectory)

        def test_by_hand(failgain_transcript):
            failgain_transcript()
        """
    )
    result = project.runpytest("--failgain-require-model")
    result.assert_outcomes(passed=len(ENVIRONMENT_NAMES) * len(REMEDY_NAMES) + 1)


def test_parameters_are_named_after_environments_and_remedies(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        def test_it(failgain_environment): pass
        def test_both(failgain_environment, failgain_remedy): pass
        """
    )
    result = project.runpytest("--collect-only", "-q")
    collected = {line.partition("::")[2] for line in result.outlines if "::" in line}
    assert collected == {
        *(f"test_it[{name}]" for name in ENVIRONMENT_NAMES),
        *(
            f"test_both[{name}-{remedy}]"
            for name in ("tool_calls", "program_repair")
            for remedy in REMEDIES
        ),
    }


def test_number_and_seed_of_the_cases_can_be_given_for_all_tests(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        from pytest_failgain.environments import build_environment
        from pytest_failgain.environments.settings import EnvironmentSettings

        def test_it(failgain_environment):
            same = build_environment(failgain_environment.name, EnvironmentSettings(seed=3))
            expected = same.cases(4)
            assert failgain_environment.cases(30) == failgain_environment.cases() == expected
        """
    )
    result = project.runpytest("--failgain-cases", "4", "--failgain-seed", "3")
    result.assert_outcomes(passed=len(ENVIRONMENT_NAMES))


def test_more_cases_than_there_are_is_an_error_at_the_users_line(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("failgain_environment", ["tool_calls"], indirect=True)
        def test_it(failgain_environment):
            failgain_environment.cases(30)
        """
    )
    result = project.runpytest("--failgain-cases", "100000")
    result.stdout.fnmatch_lines(
        [
            ">       failgain_environment.cases(30)",
            "E       *UsageError: tool_calls cannot give 100000 cases: a seed has *",
            "",
            "*.py:5: UsageError",
        ],
        consecutive=True,
    )


def test_transcript_is_named_after_the_test_unless_told_otherwise(
    project: pytest.Pytester,
) -> None:
    project.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("n", [1])
        def test_refund(failgain_transcript, n):
            assert failgain_transcript().case_id == "test_refund[1]"
            assert failgain_transcript("mine").case_id == "mine"
        """
    )
    project.runpytest().assert_outcomes(passed=1)


def test_harness_is_the_reference_until_the_project_has_its_own(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        def test_it(failgain_harness):
            assert failgain_harness.name == "verbatim"
        """
    )
    project.runpytest().assert_outcomes(passed=1)
    project.makeconftest("import pytest\n\n@pytest.fixture\ndef failgain_harness():\n    return 7")
    project.runpytest().assert_outcomes(failed=1)


def test_model_is_loaded_once_with_the_options(
    project: pytest.Pytester, tiny_model_folder: Path
) -> None:
    project.makeconftest(CONFTEST)
    project.makepyfile(
        test_one=MEASURES_MINE,
        test_two="""
        import torch
        from pytest_failgain.scoring import loading

        def test_scorer(failgain, failgain_model, monkeypatch):
            assert failgain.scorer is failgain_model
            assert failgain_model.identity.dtype == "bfloat16"
            assert failgain_model.fold_system
            assert failgain_model.prompt_format == "auto"
            assert torch.get_num_threads() == 1
            monkeypatch.delattr(loading, "load_files")

        def test_again(failgain, failgain_model):
            assert failgain.scorer is failgain_model
        """,
    )
    model = options_for(tiny_model_folder, project.path / "cache")
    given = ("--failgain-dtype=bfloat16", "--failgain-fold-system", "--failgain-prompt-format=auto")
    result = project.runpytest(*model, *given)
    result.assert_outcomes(passed=3)
