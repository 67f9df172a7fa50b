"""Progress inside a pytest run: on a person's terminal, and nowhere else."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TextIO, cast

import pytest

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

    from pytest_failgain.progress import Progress


def pytest_progress(config: pytest.Config) -> Progress:
    """Progress on pytest's own terminal; none under -q, in CI, in a pipe or in an xdist worker."""
    from pytest_failgain.progress import NoProgress, StderrProgress

    reporter: TerminalReporter | None = config.pluginmanager.get_plugin("terminalreporter")
    if (
        reporter is None
        or not reporter.isatty()
        or config.get_verbosity() < 0
        or os.environ.get("CI")
    ):
        return NoProgress()
    return StderrProgress(cast(TextIO, _ReporterStream(reporter)))


class _ReporterStream:
    """Pytest's terminal as a stream. Its writer is not captured while a test runs."""

    def __init__(self, reporter: TerminalReporter) -> None:
        self._reporter = reporter

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        # pytest is in mid-line after "tests/test_x.py "; it begins that line anew afterwards.
        self._reporter.ensure_newline()
        self._reporter.write(text)
        return len(text)

    def flush(self) -> None:
        self._reporter.flush()
