"""Suites as pytest collects and selects them."""

from __future__ import annotations

from pathlib import Path

import pytest
from suite_projects import CONFTEST, MET, collected_ids, suite, write

from pytest_failgain.fixtures import NO_MODEL

TWO = suite(
    "environment: tool_calls",
    "cases: 2",
    "harness: verbatim",
    "remedies: [none, described]",
    "thresholds: {n: {at_least: 1}}",
    "marks: [slow]",
)
IDS = [
    "failgain.yaml::record::tool_calls-verbatim-none",
    "failgain.yaml::record::tool_calls-verbatim-described",
]
# Only what is measured with the remedy fails.
HALF_MET = TWO.replace("{n: {at_least: 1}}", "{record_tokens: {at_least: 60}}")


@pytest.fixture
def two(project: pytest.Pytester) -> pytest.Pytester:
    """A project with a suite of two tests."""
    project.makeini("[pytest]\nmarkers = slow")
    project.makeconftest(CONFTEST)
    write(project, TWO)
    return project


def test_suites_are_collected_without_naming_the_file(two: pytest.Pytester) -> None:
    result = two.runpytest("--collect-only", "-q")
    assert collected_ids(result) == IDS
    assert two.runpytest().parseoutcomes() == {"passed": 2}


def test_tree_shows_the_file_and_its_tests(two: pytest.Pytester) -> None:
    lines = two.runpytest("--collect-only").outlines
    assert "  <SuiteFile failgain.yaml>" in lines
    assert "    <SuiteCollector record>" in lines
    assert "      <SuiteItem tool_calls-verbatim-none>" in lines


@pytest.mark.parametrize(
    ("arguments", "chosen"),
    [
        (["failgain.yaml"], [0, 1]),
        (["."], [0, 1]),
        ([IDS[1]], [1]),
        (["failgain.yaml::record"], [0, 1]),
        (["-k", "described"], [1]),
        (["-k", "not described"], [0]),
        (["-k", "record and tool_calls"], [0, 1]),
        (["-m", "slow"], [0, 1]),
        (["-m", "not slow"], []),
        (["--deselect", IDS[0]], [1]),
        (["-p", "no:xdist"], [0, 1]),
        (["-p", "no:failgain", "--noconftest"], []),
        (["--ignore", "failgain.yaml"], []),
    ],
    ids=lambda value: " ".join(value) if value and isinstance(value[0], str) else None,
)
def test_tests_are_chosen_as_others_are(
    two: pytest.Pytester, arguments: list[str], chosen: list[int]
) -> None:
    result = two.runpytest("--collect-only", "-q", *arguments)
    assert collected_ids(result) == [IDS[one] for one in chosen]


@pytest.mark.parametrize("name", ["failgain.yml", "failgain_more.yaml", "failgain-a.b.yml"])
def test_names_of_files_of_suites(project: pytest.Pytester, name: str) -> None:
    write(project, TWO, f"tests/{name}")
    result = project.runpytest("--collect-only", "-q", "-W", "ignore")
    assert len(collected_ids(result)) == 2


@pytest.mark.parametrize("name", ["suites.yaml", "my-failgain.yaml", "failgain.json", "venv/x.yml"])
def test_other_files_are_left_alone(project: pytest.Pytester, name: str) -> None:
    write(project, "]", name)
    result = project.runpytest("--collect-only", "-q")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_folders_that_are_not_searched_are_not(project: pytest.Pytester) -> None:
    write(project, "]", "node_modules/failgain.yaml")
    write(project, "]", ".hidden/failgain.yaml")
    assert project.runpytest().ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_failed_tests_are_run_again_alone(two: pytest.Pytester) -> None:
    write(two, HALF_MET)
    first = two.runpytest()
    first.assert_outcomes(passed=1, failed=1)
    again = two.runpytest("--lf", "-v")
    again.assert_outcomes(failed=1)
    again.stdout.fnmatch_lines([f"{IDS[1]} FAILED*"])
    ordered = two.runpytest("--ff", "-v")
    ordered.stdout.fnmatch_lines([f"{IDS[1]} FAILED*", f"{IDS[0]} PASSED*"])


def test_file_is_wrong_at_collection_with_all_that_is_wrong_and_no_traceback(
    project: pytest.Pytester,
) -> None:
    write(
        project,
        "failgain: 1\nsuites:\n  a: {environment: tool_call, threshold: {}}",
        "t/failgain.yml",
    )
    result = project.runpytest()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "*_ ERROR collecting t/failgain.yml _*",
            "t/failgain.yml:3: there is no key 'threshold'; did you mean 'thresholds'?",
            "t/failgain.yml:3: there is no environment 'tool_call'; did you mean 'tool_calls'?",
            "*= short test summary info =*",
            "ERROR t/failgain.yml",
        ],
        consecutive=True,
    )


def test_file_that_can_not_be_read_is_told_without_a_traceback(project: pytest.Pytester) -> None:
    project.makeconftest(
        """
        def pytest_collectstart(collector):
            if collector.name == "failgain.yaml":
                collector.path.unlink()
        """
    )
    write(project, TWO)
    result = project.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*_ ERROR collecting failgain.yaml _*", "can't read failgain.yaml: No such file or dir*"],
        consecutive=True,
    )


# pytest remembers the names that are registered in the run outside.
NOT_REGISTERED = TWO.replace("slow", "not_registered")


def test_mark_that_is_not_registered_is_told_at_its_line(project: pytest.Pytester) -> None:
    write(project, NOT_REGISTERED)
    result = project.runpytest("--collect-only", "-W", "default")
    result.stdout.fnmatch_lines(
        [
            "*failgain.yaml:9: PytestUnknownMarkWarning: unknown mark 'not_registered': *",
            "    marks: [[]not_registered[]]",
        ]
    )
    assert "2 tests collected" in result.stdout.str()


def test_mark_that_is_not_registered_is_an_error_where_marks_are_strict(
    project: pytest.Pytester,
) -> None:
    write(project, NOT_REGISTERED)
    result = project.runpytest("--strict-markers")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["failgain.yaml:9: 'not_registered' not found in `markers` configuration option"]
    )
    result = project.runpytest("-W", "error")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["failgain.yaml:9: unknown mark 'not_registered': *"])


def test_marks_act_with_their_arguments(project: pytest.Pytester) -> None:
    project.makeconftest(CONFTEST)
    marks = {
        "skipped": "skip: {reason: not today}",
        "expected": "xfail: {reason: known, strict: true}",
        "fixture": "usefixtures: [tmp_path, mine]",
    }
    for name, mark in marks.items():
        lines = ("environment: tool_calls", "cases: 2", "thresholds: {n: {at_least: 3}}")
        write(project, suite(*lines, f"marks: [{mark}]"), f"failgain-{name}.yaml")
    with project.path.joinpath("conftest.py").open("a") as conftest:
        conftest.write("\n@pytest.fixture\ndef mine():\n    pytest.skip('the fixture ran')\n")
    result = project.runpytest("-rsx")
    result.assert_outcomes(skipped=2, xfailed=1)
    said = [line for line in result.outlines if line.startswith("SKIPPED")]
    assert sorted(line.rpartition("] ")[2] for line in said) == [
        "failgain-fixture.yaml:3: the fixture ran",
        "failgain-skipped.yaml:3: not today",
    ]


def test_without_a_model_tests_are_skipped_for_the_usual_reason(project: pytest.Pytester) -> None:
    write(project, suite("environment: tool_calls", MET))
    result = project.runpytest("-rs")
    result.assert_outcomes(skipped=1)
    assert NO_MODEL in result.stdout.str()


def test_without_a_model_tests_fail_where_one_is_required(project: pytest.Pytester) -> None:
    write(project, suite("environment: tool_calls", MET))
    result = project.runpytest("--failgain-require-model")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["no model to measure with: *"])


def test_real_model_measures(project: pytest.Pytester, tiny_model_folder: Path) -> None:
    write(project, suite("environment: tool_calls", "cases: 2", MET, "regression: true"))
    options = [f"--failgain-model={tiny_model_folder}", "--failgain-no-cache"]
    result = project.runpytest(*options, "--failgain-update-baseline")
    result.assert_outcomes(passed=1)
    assert project.path.joinpath("failgain-baseline.json").is_file()
    project.runpytest(*options).assert_outcomes(passed=1)
