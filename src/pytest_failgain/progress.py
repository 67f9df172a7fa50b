"""Saying how far a long job is: what the rest of the package reports, and ways to show it."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO


class Progress(Protocol):
    """Is told about one job at a time: `start`, any number of `advance`, `finish`."""

    def start(self, label: str, total: int | None = None) -> None:
        """A job begins. `total` is what `advance` will reach, None where nobody can know."""

    def advance(self, done: int) -> None:
        """So much is done: the whole since `start`, in the units of `total`, not the last step."""

    def finish(self, *, completed: bool = True) -> None:
        """The job is over; `completed` is False when it broke off."""


@contextmanager
def job(
    progress: Progress, label: str, total: int | None = None
) -> Iterator[Callable[[int], None]]:
    """Report the body of a `with` block as one job, and hand it the function to advance with."""
    progress.start(label, total)
    try:
        yield progress.advance
    except BaseException:
        progress.finish(completed=False)
        raise
    progress.finish()


class NoProgress:
    """Shows nothing."""

    def start(self, label: str, total: int | None = None) -> None:
        """Show nothing."""

    def advance(self, done: int) -> None:
        """Show nothing."""

    def finish(self, *, completed: bool = True) -> None:
        """Show nothing."""


class StderrProgress:
    """Shows a job on standard error.

    A terminal gets one line that is rewritten, with percent and time left. Anything else, such as
    the log of a CI job, gets a line at the start, one every minute, and one at the end.
    """

    def __init__(
        self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._rewrites = self._stream.isatty()
        self._label = ""
        self._total: int | None = None
        self._started = 0.0
        self._drawn_at = 0.0
        self._drawn_width = 0

    def start(self, label: str, total: int | None = None) -> None:
        """Show the label."""
        self._label, self._total = label, total
        self._started = self._drawn_at = self._clock()
        if self._rewrites:
            self._draw(f"{label} ...")
        else:
            self._write(f"{label} ...\n")

    def advance(self, done: int) -> None:
        """Say how far the job is, at most ten times a second or, off a terminal, once a minute."""
        now = self._clock()
        if now - self._drawn_at < (0.1 if self._rewrites else 60):
            return
        self._drawn_at = now
        line = f"{self._label}: {self._standing(done, now - self._started)}"
        if self._rewrites:
            self._draw(line)
        else:
            self._write(f"{line}\n")

    def finish(self, *, completed: bool = True) -> None:
        """Say how long the job took, and leave the line."""
        outcome = "done in" if completed else "broke off after"
        last = f"{self._label}: {outcome} {duration(self._clock() - self._started)}"
        if self._rewrites:
            self._draw(last)
            self._write("\n")
            self._drawn_width = 0
        else:
            self._write(f"{last}\n")

    def _standing(self, done: int, elapsed: float) -> str:
        if not self._total:
            return duration(elapsed)
        # A total can be an estimate, and a job that overshoots it has still not passed its end.
        done = min(done, self._total)
        percent = f"{100 * done // self._total}%"
        if done == 0 or elapsed < 1:
            return percent
        return f"{percent}, {duration(elapsed / done * (self._total - done))} left"

    def _draw(self, line: str) -> None:
        # A line that wraps can't be rewritten, so it is cut to the terminal.
        line = line[: shutil.get_terminal_size().columns - 1]
        self._write("\r" + line.ljust(self._drawn_width))
        self._drawn_width = len(line)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def duration(seconds: float) -> str:
    """Seconds as people say them: `8 s`, `3 min 20 s`, `1 h 5 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
