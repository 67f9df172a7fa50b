"""How far a long job is, on a terminal and in a log."""

from __future__ import annotations

import io
from dataclasses import dataclass

import pytest

from pytest_failgain.progress import NoProgress, StderrProgress, duration, job


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def test_terminal_gets_one_line_that_is_rewritten() -> None:
    terminal, clock = Terminal(), Clock()
    progress = StderrProgress(terminal, clock)
    progress.start("downloading", 200)
    for clock.now, done in ((0.5, 20), (2, 50), (4, 100), (4.01, 199)):
        progress.advance(done)
    clock.now = 8
    progress.finish()
    shown = [line.rstrip() for line in terminal.getvalue().split("\r")]
    assert shown == [
        "",
        "downloading ...",
        "downloading: 10%",
        "downloading: 25%, 6 s left",
        "downloading: 50%, 4 s left",
        "downloading: done in 8 s",
    ]
    assert terminal.getvalue().endswith("\n")


def test_shorter_line_covers_the_longer_one_before_it() -> None:
    terminal, clock = Terminal(), Clock()
    progress = StderrProgress(terminal, clock)
    progress.start("a", 100)
    clock.now = 2
    progress.advance(1)
    clock.now = 4
    progress.advance(100)
    lines = terminal.getvalue().split("\r")
    assert lines[-2:] == ["a: 1%, 3 min 18 s left", "a: 100%, 0 s left".ljust(22)]


def test_line_is_cut_to_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "10")
    terminal = Terminal()
    StderrProgress(terminal).start("a long label")
    assert terminal.getvalue() == "\ra long la"


def test_time_is_shown_where_no_total_is_known() -> None:
    terminal, clock = Terminal(), Clock()
    progress = StderrProgress(terminal, clock)
    progress.start("waiting")
    clock.now = 7
    progress.advance(0)
    assert terminal.getvalue().endswith("waiting: 7 s")


def test_total_that_was_too_low_is_not_overshot() -> None:
    terminal, clock = Terminal(), Clock()
    progress = StderrProgress(terminal, clock)
    progress.start("downloading", 100)
    clock.now = 2
    progress.advance(150)
    assert terminal.getvalue().endswith("downloading: 100%, 0 s left")


def test_log_gets_a_line_at_the_start_and_one_at_the_end() -> None:
    log, clock = io.StringIO(), Clock()
    with job(StderrProgress(log, clock), "converting", 3) as advance:
        for clock.now in (1, 2, 3):
            advance(int(clock.now))
    assert log.getvalue() == "converting ...\nconverting: done in 3 s\n"


def test_job_that_fails_is_not_called_done() -> None:
    log = io.StringIO()
    with pytest.raises(KeyboardInterrupt), job(StderrProgress(log), "converting"):
        raise KeyboardInterrupt
    assert log.getvalue() == "converting ...\nconverting: broke off after 0 s\n"


def test_standard_error_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    with job(StderrProgress(), "converting"):
        pass
    assert capsys.readouterr().err == "converting ...\nconverting: done in 0 s\n"


def test_no_progress_shows_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with job(NoProgress(), "converting", 1) as advance:
        advance(1)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (200, "3 min 20 s"), (3900, "1 h 5 min")],
)
def test_durations_read_as_people_say_them(seconds: float, words: str) -> None:
    assert duration(seconds) == words
