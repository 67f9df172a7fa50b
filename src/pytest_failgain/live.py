"""Progress inside a pytest run: on a person's terminal, and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TextIO, cast

import pytest

from pytest_failgain.progress import NoProgress, Progress, StderrProgress
from pytest_failgain.stash import PROGRESS

if TYPE_CHECKING:
    from _pytest.capture import CaptureManager
    from _pytest.terminal import TerminalReporter


def pytest_progress(config: pytest.Config) -> Progress:
    """Progress on pytest's own terminal; none under -q, in CI, in a pipe or in an xdist worker."""
    if PROGRESS not in config.stash:
        config.stash[PROGRESS] = _made_for(config)
    return config.stash[PROGRESS]


def _made_for(config: pytest.Config) -> Progress:
    reporter: TerminalReporter | None = config.pluginmanager.get_plugin("terminalreporter")
    if (
        reporter is None
        or not reporter.isatty()
        or config.get_verbosity() < 0
        or os.environ.get("CI")
    ):
        return NoProgress()
    stream = _ReporterStream(reporter)
    capture: CaptureManager | None = config.pluginmanager.get_plugin("capturemanager")
    if capture is None or config.getoption("capture") == "no":
        return StderrProgress(cast(TextIO, stream))
    config.pluginmanager.register(_ResultLines(config, stream))
    return _UncapturedProgress(stream, capture.global_and_fixture_disabled)


class _ReporterStream:
    """Pytest's terminal as a stream, for jobs that begin where pytest has left a line unfinished.

    With `holds_line_end` the end of a job's line is kept back until something follows, since pytest
    begins a line of its own before what it writes next.
    """

    def __init__(self, reporter: TerminalReporter) -> None:
        self.reporter = reporter
        self.holds_line_end = False
        self.line_is_open = False

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self.holds_line_end and text == "\n":
            self.line_is_open = True
            return len(text)
        if self.reporter.currentfspath is not None:
            self.reporter.ensure_newline()
        elif self.line_is_open:
            self.reporter.write("\n")
        self.line_is_open = False
        self.reporter.write(text)
        return len(text)

    def flush(self) -> None:
        self.reporter.flush()


class _UncapturedProgress(StderrProgress):
    """Shows jobs while a test's output is captured: capturing pauses for each line drawn."""

    def __init__(
        self, stream: _ReporterStream, uncaptured: Callable[[], AbstractContextManager[None]]
    ) -> None:
        super().__init__(cast(TextIO, stream))
        stream.holds_line_end = True
        self._uncaptured = uncaptured

    def start(self, label: str, total: int | None = None) -> None:
        with self._uncaptured():
            super().start(label, total)

    def advance(self, done: int) -> None:
        with self._uncaptured():
            super().advance(done)

    def finish(self, *, completed: bool = True) -> None:
        with self._uncaptured():
            super().finish(completed=completed)


class _ResultLines:
    """A plugin that puts a test's letter behind its file's name, and not behind a job's end."""

    def __init__(self, config: pytest.Config, stream: _ReporterStream) -> None:
        # With -v pytest writes the whole line anew by itself.
        self._letters = config.get_verbosity(pytest.Config.VERBOSITY_TEST_CASES) == 0
        self._stream = stream

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        writes_letter = report.when == "call" or not report.passed
        if self._letters and self._stream.line_is_open and writes_letter:
            self._stream.reporter.write_fspath_result(report.nodeid, "")
            self._stream.line_is_open = False
