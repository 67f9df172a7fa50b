"""The pytest hooks. Each guards, then calls one function elsewhere."""

from __future__ import annotations

import os
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
from pytest_failgain.stash import FINDINGS, OUTCOME, SETTINGS, Findings

__all__ = [
    "failgain",
    "failgain_environment",
    "failgain_harness",
    "failgain_model",
    "failgain_remedy",
    "failgain_transcript",
]

_WORKER_KEY = "failgain_findings"
_NOTHING_FAILED = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SETTINGS] = read_settings(config, os.environ)
    config.stash[FINDINGS] = Findings([], [], [], {})


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
    sent = getattr(node, "workeroutput", {}).get(_WORKER_KEY)
    if sent is not None:
        from pytest_failgain.transport import unpacked

        node.config.stash[FINDINGS].extend(unpacked(sent))


def pytest_sessionfinish(session: pytest.Session) -> None:
    findings = session.config.stash[FINDINGS]
    workeroutput = getattr(session.config, "workeroutput", None)
    if workeroutput is not None:
        if any(findings):
            from pytest_failgain.transport import packed

            workeroutput[_WORKER_KEY] = packed(findings)
        return
    settings = session.config.stash[SETTINGS]
    if any(findings) or settings.writes_files:
        from pytest_failgain.closing import close

        outcome = close(findings, settings, session.config.rootpath, os.environ)
        session.config.stash[OUTCOME] = outcome
        if outcome.problems and session.exitstatus in _NOTHING_FAILED:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    stash = terminalreporter.config.stash
    findings, outcome = stash[FINDINGS], stash.get(OUTCOME, None)
    if any(findings) or outcome:
        from pytest_failgain.report.terminal import write_summary

        try:
            write_summary(terminalreporter, findings, outcome)
        except Exception as error:  # a summary must not take the run's own results with it
            terminalreporter.write_line(
                f"failgain: the summary broke off ({type(error).__name__}: {error}); the tests' "
                "results stand. Please report this.",
                red=True,
            )
