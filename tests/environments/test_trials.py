from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from progress_recorder import Recorder
from pytest_failgain.environments.sandbox import Limits, Trial, Verdict, run_program
from pytest_failgain.environments.sandbox import trials as trials_module
from pytest_failgain.environments.sandbox.trials import TrialRunner
from pytest_failgain.environments.sandbox.verdict import Frame
from pytest_failgain.errors import UsageError

TESTS = ("assert f(1) == 2",)
RIGHT = Trial("def f(x):\n    return x + 1", TESTS)
WRONG = Trial("def f(x):\n    return x", TESTS)
BROKEN = Trial("def f(x):\n    return y", TESTS)


def test_verdicts_come_in_the_order_of_the_trials() -> None:
    verdicts = TrialRunner().run([RIGHT, WRONG, BROKEN, RIGHT], "Running")
    outcomes = [verdict.outcome for verdict in verdicts]
    assert outcomes == ["passed", "test_failure", "runtime_error", "passed"]


def test_a_trial_is_executed_once() -> None:
    runner = TrialRunner()
    first = runner.run([RIGHT, RIGHT, WRONG], "Running")
    assert runner.executed == 2
    assert runner.run([WRONG, RIGHT], "Running") == [first[2], first[0]]
    assert runner.executed == 2


def test_kept_verdicts_are_the_same_in_the_next_run(tmp_path: Path) -> None:
    first = TrialRunner(tmp_path)
    found = first.run([RIGHT, WRONG, BROKEN], "Running")
    again = TrialRunner(tmp_path)
    assert again.run([RIGHT, WRONG, BROKEN], "Running") == found
    assert (first.executed, again.executed) == (3, 0)


@pytest.mark.parametrize(
    "other",
    [
        Trial(f"{RIGHT.program}\n", RIGHT.tests),
        Trial(RIGHT.program, (*RIGHT.tests, *RIGHT.tests)),
        Trial(RIGHT.program, RIGHT.tests, Limits(cpu_seconds=2)),
        Trial(RIGHT.program, RIGHT.tests, hash_seed=1),
    ],
    ids=["program", "tests", "limits", "seed"],
)
def test_whatever_differs_is_executed_anew(tmp_path: Path, other: Trial) -> None:
    TrialRunner(tmp_path).run([RIGHT], "Running")
    runner = TrialRunner(tmp_path)
    runner.run([other], "Running")
    assert runner.executed == 1


def test_another_python_executes_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    TrialRunner(tmp_path).run([RIGHT], "Running")
    monkeypatch.setattr("sys.version", "4.0")
    runner = TrialRunner(tmp_path)
    runner.run([RIGHT], "Running")
    assert runner.executed == 1


def test_a_job_is_reported_while_programs_run_and_not_otherwise(tmp_path: Path) -> None:
    progress = Recorder()
    runner = TrialRunner(tmp_path, progress)
    runner.run([RIGHT, WRONG, WRONG], "Running programs")
    assert progress.told == [("Running programs", 2), 1, 2, True]
    runner.run([RIGHT, WRONG], "Running programs")
    assert len(progress.told) == 4


def test_what_was_finished_survives_an_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(trial: Trial) -> Verdict:
        if trial == WRONG:
            raise KeyboardInterrupt
        return run_program(trial)

    monkeypatch.setattr(trials_module, "run_program", interrupted)
    monkeypatch.setattr(trials_module, "thread_count", lambda: 1)
    with pytest.raises(KeyboardInterrupt):
        TrialRunner(tmp_path).run([RIGHT, WRONG, BROKEN], "Running")
    monkeypatch.undo()
    runner = TrialRunner(tmp_path)
    runner.run([RIGHT, WRONG, BROKEN], "Running")
    assert runner.executed < 3


def test_a_time_out_of_a_busy_machine_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = Verdict("timeout", 1, 0, "TimeoutError", cpu_seconds=None)
    monkeypatch.setattr(trials_module, "run_program", lambda trial: busy)
    assert TrialRunner(tmp_path).run([RIGHT], "Running") == [busy]
    monkeypatch.undo()
    assert TrialRunner(tmp_path).run([RIGHT], "Running")[0].passed


def test_a_platform_without_a_sandbox_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.fork")
    with pytest.raises(UsageError, match=r"programs can't be executed on .*: the sandbox needs"):
        TrialRunner().run([RIGHT], "Running")


def test_a_damaged_store_costs_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / f"verdicts-{trials_module.FORMAT}.sqlite3"
    path.write_bytes(b"no database" * 100)
    assert TrialRunner(tmp_path).run([RIGHT], "Running")[0].passed
    assert "is damaged" in caplog.text
    anew = path.with_suffix(".1.sqlite3")
    with sqlite3.connect(anew) as connection:
        assert connection.execute("SELECT count(*) FROM verdicts").fetchone() == (1,)
    connection.close()


def test_a_verdict_survives_being_written_down() -> None:
    verdict = Verdict(
        "runtime_error", 3, 1, "KeyError: 1", (Frame("tests.py", 1, "f", "x"),), 0.1, 5,
        frozenset({"files"}),
    )  # fmt: skip
    again = Verdict.from_dict(verdict.as_dict())
    assert again == verdict
    assert again.walls == verdict.walls
