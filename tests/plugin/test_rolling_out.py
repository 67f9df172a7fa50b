"""Rollouts in a project's tests, and what is shown of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from agent_projects import CONFTEST, MEASURES_VERBATIM, options_for, section

DRIVES = """
import pytest

@pytest.mark.parametrize("name", ["verbatim", "dropped"])
def test_it(failgain, name):
    office = failgain.environment("tool_calls")
    result = failgain.rollout(
        failgain.remedy(name), office, tasks=3, max_steps=2, demonstrations=0
    )
    assert result.environment == "tool_calls"
"""

REPAIRS = """
def test_it(failgain):
    result = failgain.rollout(
        failgain.remedy("verbatim"), failgain.environment("program_repair"),
        tasks=2, max_steps=1, demonstrations=0,
    )
    assert result.outcomes["quit"] == 0
"""

# All but the model is as it is.
SCRIPTED = f"""
import sys

sys.path.insert(0, {str(Path(__file__).parents[1])!r})

from fake_scorer import ScriptedDecoder
from pytest_failgain.scoring import loading

def script(request):
    with open("asked.txt", "a") as file:
        file.write("asked\\n")
    return "list_team(team='nobody')"

loading.load_scorer = lambda name, **settings: ScriptedDecoder(script)
"""


@pytest.fixture
def _scripted(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project whose model writes the same call all the time, and notes that it was asked."""
    from pytest_failgain.scoring import loading

    # The conftest runs in this process too, and must not outlive the test.
    monkeypatch.setattr(loading, "load_scorer", loading.load_scorer)
    project.makeconftest(SCRIPTED + CONFTEST)


def rows(result: pytest.RunResult) -> list[list[str]]:
    """The cells of the rollouts' table, without headings."""
    lines = section(result)
    start = next(i for i, line in enumerate(lines) if "rollouts of" in line)
    table = [re.split(" {2,}", line) for line in lines[start + 2 :]]
    return [cells for cells in table if len(cells) > 3]


def test_rollouts_with_a_real_model_are_shown(
    project: pytest.Pytester, tiny_model_folder: Path
) -> None:
    project.makepyfile(DRIVES)
    options = options_for(tiny_model_folder, project.path / "cache")
    result = project.runpytest(*options, "--failgain-cases", "1")
    result.assert_outcomes(passed=2)
    heading, titles, *_, last = section(result)
    assert heading == (
        "tool_calls: free rollouts of 1 task, 2 steps at most, greedy, 0 demonstrations, "
        f"python calls, standard errors, seed 0, {tiny_model_folder} (directory, float32)"
    )
    assert titles.split()[:4] == ["harness", "n", "solved", "[95%]"]
    assert [cells[:2] for cells in rows(result)] == [["verbatim", "1"], ["dropped", "1"]]
    assert last.startswith("Repeating less is not succeeding more")
    # Kept, so that a run that is killed goes on.
    assert [*project.path.joinpath("cache").glob("replies-*.sqlite3")]


@pytest.mark.usefixtures("_scripted")
def test_the_number_of_cases_is_one_of_tasks_too(project: pytest.Pytester) -> None:
    project.makepyfile(DRIVES)
    result = project.runpytest("--failgain-model", "fake", "--failgain-cases", "2")
    result.assert_outcomes(passed=2)
    assert [cells[:2] for cells in rows(result)] == [["verbatim", "2"], ["dropped", "2"]]
    assert "rollouts of 2 tasks, 2 steps at most" in section(result)[0]
    result = project.runpytest("--failgain-model", "fake")
    assert [cells[:2] for cells in rows(result)] == [["verbatim", "3"], ["dropped", "3"]]


@pytest.mark.usefixtures("_scripted")
def test_measurements_and_rollouts_are_shown_in_one_section(project: pytest.Pytester) -> None:
    project.makepyfile(test_one=DRIVES, test_two=MEASURES_VERBATIM)
    result = project.runpytest("--failgain-model", "fake")
    result.assert_outcomes(passed=3)
    starts = [line.partition(":")[0] for line in section(result)]
    order = [starts.index(start) for start in ("own cases", "gain", "tool_calls", "solved")]
    assert order == sorted(order)
    assert len([start for start in starts if start == "solved"]) == 1


@pytest.mark.usefixtures("_scripted")
def test_a_failing_assertion_ends_at_the_users_line_with_the_figure_first(
    project: pytest.Pytester,
) -> None:
    project.makepyfile(
        test_it="""
        from pytest_failgain import assert_not_stuck

        def test_it(failgain):
            office = failgain.environment("tool_calls")
            result = failgain.rollout(failgain.remedy("verbatim"), office, tasks=2, max_steps=3)
            assert_not_stuck(result)
        """
    )
    result = project.runpytest("--failgain-model", "fake")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            ">       assert_not_stuck(result)",
            "E       AssertionError: verbatim on tool_calls: stuck in 100% *, n = 2",
            "E       worst rollouts:  repeats  ended    last action",
            "E       *67%  limit    list_team(team='nobody')  (office-0-*)",
            "E       *67%  limit    list_team(team='nobody')  (office-0-*)",
            "E       note: only 2 tasks: *",
            "E       try: *",
            "",
            "test_it.py:6: AssertionError",
        ],
        consecutive=True,
    )


@pytest.mark.usefixtures("_scripted")
def test_a_model_s_programs_are_not_run_unless_that_is_allowed(project: pytest.Pytester) -> None:
    project.makepyfile(REPAIRS)
    result = project.runpytest("--failgain-model", "fake")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["E *a program that a model wrote is not run unless *--failgain-allow-code-execution"]
    )
    assert not project.path.joinpath("asked.txt").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("_scripted")
def test_a_model_s_programs_are_run_when_that_is_allowed(project: pytest.Pytester) -> None:
    project.makepyfile(REPAIRS)
    result = project.runpytest(
        "--failgain-model", "fake", "--failgain-allow-code-execution", "--failgain-no-cache"
    )
    result.assert_outcomes(passed=1)
    assert [cells[:3] for cells in rows(result)] == [["verbatim", "2", "0% [0%, 0%]"]]
    assert project.path.joinpath("asked.txt").read_text() == "asked\n" * 2


@pytest.mark.usefixtures("_scripted")
def test_the_controller_shows_what_all_workers_ran_and_each_thing_once(
    project: pytest.Pytester,
) -> None:
    pytest.importorskip("xdist")
    # One module a worker; both drive the same harnesses, and one drives one more.
    project.makepyfile(
        test_one=DRIVES,
        test_two=DRIVES.replace('"dropped"', '"dropped", "described"'),
    )
    result = project.runpytest("-n", "2", "--dist", "loadfile", "--failgain-model", "fake")
    result.assert_outcomes(passed=5)
    assert sorted(cells[0] for cells in rows(result)) == ["described", "dropped", "verbatim"]
    assert sum("rollouts of" in line for line in section(result)) == 1
