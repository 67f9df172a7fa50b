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
from pytest_failgain.stash import MEASUREMENTS, SETTINGS

__all__ = [
    "failgain",
    "failgain_environment",
    "failgain_harness",
    "failgain_model",
    "failgain_remedy",
    "failgain_transcript",
]

_WORKER_KEY = "failgain_measurements"


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SETTINGS] = read_settings(config, os.environ)
    config.stash[MEASUREMENTS] = []


def pytest_report_header(config: pytest.Config) -> str | None:
    settings = config.stash[SETTINGS]
    given = [
        f"{option.name} {getattr(settings, option.name)} ({settings.source(option.name)})"
        for option in OPTIONS
        if settings.source(option.name)
    ]
    return f"failgain: {', '.join(given)}" if given else None


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
    """Under xdist: the controller takes in what a worker measured."""
    pickled = getattr(node, "workeroutput", {}).get(_WORKER_KEY)
    if pickled is not None:
        # Our own worker process wrote these bytes.
        node.config.stash[MEASUREMENTS].extend(pickle.loads(pickled))


def pytest_sessionfinish(session: pytest.Session) -> None:
    workeroutput = getattr(session.config, "workeroutput", None)
    if workeroutput is not None and session.config.stash[MEASUREMENTS]:
        workeroutput[_WORKER_KEY] = pickle.dumps(session.config.stash[MEASUREMENTS])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    measurements = terminalreporter.config.stash[MEASUREMENTS]
    if measurements:
        from pytest_failgain.report.terminal import write_summary

        try:
            write_summary(terminalreporter, measurements)
        except Exception as error:  # a summary must not take the run's own results with it
            terminalreporter.write_line(
                f"failgain: the summary broke off ({type(error).__name__}: {error}); the tests' "
                "results stand. Please report this.",
                red=True,
            )
