"""Errors of this package as a project's tests show them: one line, at the user's own line."""

from __future__ import annotations

from pathlib import Path

import pytest
from agent_projects import CONFTEST, options_for

import pytest_failgain

PACKAGE = Path(pytest_failgain.__file__).parent
NO_MODEL_THERE = "there is no directory or file /no/such/model: check the path"


def failures(project: pytest.Pytester, source: str, *args: str) -> pytest.RunResult:
    """The result of a test module, all of whose tests fail."""
    project.makeconftest(CONFTEST)
    project.makepyfile(test_it=source)
    result = project.runpytest(*args)
    assert set(result.parseoutcomes()) <= {"failed", "errors", "deselected"}
    return result


def shows_our_code(result: pytest.RunResult) -> bool:
    return any(str(PACKAGE) in line for line in result.outlines)


def test_error_in_a_fixture_of_ours_is_its_message_alone(project: pytest.Pytester) -> None:
    result = failures(
        project,
        "def test_it(failgain_model):\n    pass",
        "--failgain-model=/no/such/model",
    )
    result.stdout.fnmatch_lines(
        ["*_ ERROR at setup of test_it _*", NO_MODEL_THERE, "*= short test summary info =*"],
        consecutive=True,
    )
    result.stdout.fnmatch_lines(["ERROR test_it.py::test_it - pytest_failgain.errors.ModelError*"])


def test_error_in_a_fixture_of_ours_is_its_message_alone_beside_other_plugins(
    project: pytest.Pytester,
) -> None:
    project.makepyfile(
        other_plugin="""
        import pytest

        @pytest.hookimpl(wrapper=True)
        def pytest_fixture_setup():
            return (yield)
        """
    )
    project.syspathinsert()
    source = "def test_it(failgain_model):\n    pass"
    options = ["-p", "other_plugin", "--failgain-model=/no/such/model"]
    result = failures(project, source, *options)
    result.stdout.fnmatch_lines(
        ["*_ ERROR at setup of test_it _*", NO_MODEL_THERE, "*= short test summary info =*"],
        consecutive=True,
    )


@pytest.mark.parametrize("style", ["auto", "long", "short", "line", "native"])
def test_error_in_a_test_ends_at_the_users_line(project: pytest.Pytester, style: str) -> None:
    result = failures(
        project,
        "def test_it(failgain, cases):\n    failgain.measure(failgain.remedy('dropped'), cases)",
        "--failgain-model=/no/such/model",
        f"--tb={style}",
    )
    assert not shows_our_code(result)
    result.stdout.fnmatch_lines([f"*ModelError: {NO_MODEL_THERE}"])
    if style != "line":
        result.stdout.fnmatch_lines(["*    failgain.measure(failgain.remedy('dropped'), cases)"])
    if style in ("auto", "long"):
        result.stdout.fnmatch_lines(
            [
                ">       failgain.measure(failgain.remedy('dropped'), cases)",
                f"E       pytest_failgain.errors.ModelError: {NO_MODEL_THERE}",
                "",
                "test_it.py:2: ModelError",
            ],
            consecutive=True,
        )


def test_error_in_a_fixture_of_the_users_ends_at_the_users_line(project: pytest.Pytester) -> None:
    result = failures(
        project,
        """
        import pytest

        @pytest.fixture
        def office(failgain):
            return failgain.environment("tool_call")

        def test_it(office):
            pass
        """,
        "--failgain-model=any",
    )
    result.stdout.fnmatch_lines(
        [
            ">       return failgain.environment(*tool_call*)",
            "*^^^^^*",
            "E       *UsageError: there is no environment 'tool_call'; *",
            "",
            "test_it.py:5: UsageError",
        ],
        consecutive=True,
    )
    assert not shows_our_code(result)


def test_error_in_a_data_class_shows_no_generated_code(project: pytest.Pytester) -> None:
    result = failures(
        project,
        """
        from pytest_failgain import Action

        def test_it():
            Action(" ")
        """,
    )
    result.stdout.fnmatch_lines(
        ['>       Action(" ")', "E       *CaseError: the action ' ' is empty *"], consecutive=True
    )
    result.stdout.no_fnmatch_line("*<string>*")
    assert not shows_our_code(result)


def test_exception_of_a_harness_is_shown_at_its_own_line(
    project: pytest.Pytester, tiny_model_folder: Path
) -> None:
    project.makepyfile(
        history="""
        def render(trajectory):
            return write(trajectory.steps)

        def write(steps):
            return [{"role": "user", "content": steps[0].text}]
        """
    )
    project.syspathinsert()
    result = failures(
        project,
        """
        from history import render

        def test_it(failgain, cases):
            failgain.measure(failgain.remedy("described", render), cases)
        """,
        *options_for(tiny_model_folder, project.path / "cache"),
    )
    result.stdout.fnmatch_lines(
        [
            "    def render(trajectory):",
            ">       return write(trajectory.steps)",
            "    def write(steps):",
            ">       return [[]{*}[]]",
            "E       IndexError: tuple index out of range",
            "history.py:5: IndexError",
            "The above exception was the direct cause of the following exception:",
            '>       failgain.measure(failgain.remedy("described", render), cases)',
            (
                "E       *HarnessError: harness 'render+described', case 'room-1': it raised at "
                "*history.py:5: IndexError: tuple index out of range"
            ),
            "test_it.py:4: HarnessError",
        ]
    )
    assert not shows_our_code(result)


def test_harness_that_can_not_be_called_shows_no_code_of_ours(
    project: pytest.Pytester, tiny_model_folder: Path
) -> None:
    result = failures(
        project,
        "def test_it(failgain, cases):\n    failgain.measure(lambda: [], cases)",
        *options_for(tiny_model_folder, project.path / "cache"),
    )
    result.stdout.fnmatch_lines(
        [
            ">       failgain.measure(lambda: [[]], cases)",
            "E       *HarnessError: * it can't be called with one trajectory as its only *",
        ],
        consecutive=True,
    )
    result.stdout.no_fnmatch_line("The above exception*")
    assert not shows_our_code(result)


def test_error_of_a_scorer_of_the_users_is_shown_in_it(project: pytest.Pytester) -> None:
    result = failures(
        project,
        """
        from pytest_failgain import Failgain, ScoringError

        class Scorer:
            def score(self, pairs):
                raise ScoringError("the server is down")

        def test_it(cases, failgain_harness):
            Failgain(Scorer()).measure(failgain_harness, cases)
        """,
    )
    result.stdout.fnmatch_lines(
        [
            ">       Failgain(Scorer()).measure(failgain_harness, cases)",
            '>       raise ScoringError("the server is down")',
            "test_it.py:5: ScoringError",
        ]
    )
    assert not shows_our_code(result)


def test_full_trace_shows_everything(project: pytest.Pytester, tiny_model_folder: Path) -> None:
    source = """
        def test_model(failgain_model):
            pass

        def test_measuring(failgain, cases):
            failgain.measure(lambda trajectory: 1 / 0, cases)
        """
    result = failures(project, source, "--failgain-model=/no/such/model", "--full-trace")
    assert shows_our_code(result)
    result.stdout.fnmatch_lines(["*resolver.py:*: ModelError"])
    model = options_for(tiny_model_folder, project.path / "cache")
    result = failures(project, source, *model, "--full-trace", "-k", "measuring")
    result.stdout.fnmatch_lines(["*harness_checks.py:*: HarnessError"])


def test_errors_of_others_are_left_as_they_are(project: pytest.Pytester) -> None:
    source = """
        def test_it():
            try:
                {}[1]
            except KeyError as error:
                raise OSError from error
        """
    ours = failures(project, source)
    others = failures(project, source, "-p", "no:failgain", "--noconftest")
    start, end = "*= FAILURES =*", "*= short test summary info =*"
    assert _between(ours, start, end) == _between(others, start, end)


def test_expected_failure_can_name_an_error_of_ours(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import pytest
        from pytest_failgain import ModelError

        @pytest.mark.xfail(raises=ModelError, strict=True)
        def test_it(failgain_model):
            pass
        """
    )
    project.runpytest("--failgain-model=/no/such/model").assert_outcomes(xfailed=1)


def _between(result: pytest.RunResult, start: str, end: str) -> list[str]:
    from fnmatch import fnmatch

    first = next(i for i, line in enumerate(result.outlines) if fnmatch(line, start))
    last = next(i for i, line in enumerate(result.outlines) if fnmatch(line, end))
    return result.outlines[first:last]
