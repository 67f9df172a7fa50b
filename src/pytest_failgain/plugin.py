"""The pytest hooks. Each guards, then calls one function elsewhere."""

from __future__ import annotations

import os
import pickle
from collections.abc import Generator
from typing import Any

import pytest

from pytest_failgain.fixtures import (
    failgain,
    failgain_environment,
    failgain_harness,
    failgain_model,
    failgain_remedy,
    failgain_transcript,
)
from pytest_failgain.options import OPTIONS, add_options, read_settings
from pytest_failgain.stash import MEASUREMENTS, NOTES, ROLLOUTS, SETTINGS

__all__ = [
    "failgain",
    "failgain_environment",
    "failgain_harness",
    "failgain_model",
    "failgain_remedy",
    "failgain_transcript",
]

_WORKER_KEY = "failgain_findings"


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SETTINGS] = read_settings(config, os.environ)
    config.stash[MEASUREMENTS] = []
    config.stash[ROLLOUTS] = []
    config.stash[NOTES] = {}


def pytest_report_header(config: pytest.Config) -> list[str]:
    settings = config.stash[SETTINGS]
    given = [
        f"{option.name} {getattr(settings, option.name)} ({settings.source(option.name)})"
        for option in OPTIONS
        if settings.source(option.name)
    ]
    if not given:
        return []
    from pytest_failgain.report.header import containment_lines

    return [f"failgain: {', '.join(given)}", *containment_lines(settings)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    if call.excinfo is None or item.config.getoption("fulltrace", False):
        return (yield)
    from pytest_failgain.tracebacks import report_briefly

    return (yield from report_briefly(call.excinfo))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Under xdist: the controller takes in what a worker found and noted."""
    pickled = getattr(node, "workeroutput", {}).get(_WORKER_KEY)
    if pickled is not None:
        # Our own worker process wrote these bytes.
        measurements, rollouts, notes = pickle.loads(pickled)
        node.config.stash[MEASUREMENTS].extend(measurements)
        node.config.stash[ROLLOUTS].extend(rollouts)
        node.config.stash[NOTES].update(notes)


def pytest_sessionfinish(session: pytest.Session) -> None:
    workeroutput = getattr(session.config, "workeroutput", None)
    stash = session.config.stash
    found = stash[MEASUREMENTS], stash[ROLLOUTS], stash[NOTES]
    if workeroutput is not None and any(found):
        workeroutput[_WORKER_KEY] = pickle.dumps(found)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    stash = terminalreporter.config.stash
    measurements, rollouts = stash[MEASUREMENTS], stash[ROLLOUTS]
    notes = [*stash[NOTES].values()]
    if measurements or rollouts or notes:
        from pytest_failgain.report.terminal import write_summary

        try:
            write_summary(terminalreporter, measurements, rollouts, notes)
        except Exception as error:  # a summary must not take the run's own results with it
            terminalreporter.write_line(
                f"failgain: the summary broke off ({type(error).__name__}: {error}); the tests' "
                "results stand. Please report this.",
                red=True,
            )
