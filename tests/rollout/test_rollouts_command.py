"""`python -m pytest_failgain rollouts`, with a tiny random model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_failgain.__main__ import main
from pytest_failgain.errors import ScoringError
from pytest_failgain.failgain import Failgain
from pytest_failgain.harnesses import RemediedHarness
from pytest_failgain.rollout.command import DEFAULT_HARNESSES
from pytest_failgain.rollout.results import Rollouts


@pytest.fixture
def rollouts(tiny_model_folder: Path, tmp_path: Path) -> list[str]:
    """The command, for one task and step, with a cache of its own."""
    few = ["--tasks", "1", "--max-steps", "1", "--demonstrations", "0", "--threads", "1"]
    cache = ["--cache-dir", str(tmp_path / "cache"), "--offline"]
    return ["rollouts", str(tiny_model_folder), *few, *cache]


def test_each_harness_has_a_row_for_free_and_for_primed_rollouts(
    rollouts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(rollouts) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line.split()[0] for line in lines if "/" in line and "[" in line]
    harnesses = DEFAULT_HARNESSES.split(",")
    assert [name for name in names if name in harnesses] == harnesses * 2
    assert [line.partition(" rollouts")[0] for line in lines if " rollouts of 1 task" in line] == [
        "tool_calls: free",
        "tool_calls: primed",
    ]
    assert lines[-1].startswith("Repeating less is not succeeding more")


def test_the_page_holds_what_was_printed(
    rollouts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "page.md"
    command = [*rollouts, "--harnesses", "verbatim, described", "--start", "free"]
    assert main([*command, "--out", str(out)]) == 0
    page = out.read_text("utf-8")
    printed = capsys.readouterr().out
    assert f"## {printed.splitlines()[0]}" in page
    for name in ("verbatim", "described"):
        assert page.count(f"\n| {name} | ") == 2


def test_a_page_that_cannot_be_written_is_told_before_anything_is_run(
    rollouts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "missing" / "page.md"
    assert main([*rollouts, "--out", str(out)]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert f"error: {out} can't be written (No such file or directory)" in told.err
    assert not (tmp_path / "cache").exists()


def test_what_was_run_is_kept_when_a_later_harness_fails(
    rollouts: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Failgain.rollout

    def breaks(failgain: Failgain, harness: RemediedHarness, *rest: Any, **more: Any) -> Rollouts:
        if harness.name == "described":
            raise ScoringError("the numbers are impossible")
        return run(failgain, harness, *rest, **more)

    monkeypatch.setattr(Failgain, "rollout", breaks)
    out = tmp_path / "page.md"
    command = [*rollouts, "--harnesses", "verbatim,described", "--start", "free"]
    assert main([*command, "--out", str(out)]) == 1
    told = capsys.readouterr()
    assert "\nverbatim " in told.out
    assert "\n| verbatim | 1 |" in out.read_text("utf-8")
    assert told.err.splitlines()[-1] == "error: the numbers are impossible"


def test_programs_of_a_model_need_to_be_allowed(
    rollouts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    command = [*rollouts, "--harnesses", "verbatim", "--environment", "program_repair"]
    assert main(command) == 1
    assert "allow it with --allow-code-execution" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (["--harnesses", "verbatim,descibed"], "there is no remedy 'descibed'"),
        (["--environment", "office"], "there is no environment 'office'"),
        (["--tasks", "0"], "cannot give 0 tasks"),
        (["--demonstrations", "99"], "cannot give 99 demonstrations"),
        (["--max-steps", "0"], "max_steps must be 1 or more, not 0"),
        (["--samples", "2"], "give a temperature"),
        (["--temperature", "-1"], "temperature must be 0 (greedy) or more, not -1.0"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(
    rollouts: list[str], wrong: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*rollouts, *wrong]) == 1
    *_, error = capsys.readouterr().err.splitlines()
    assert error.startswith("error: ")
    assert told in error
