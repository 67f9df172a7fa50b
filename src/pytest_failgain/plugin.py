"""The pytest hooks. Each guards, then calls one function elsewhere."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from pytest_failgain import hookspecs
from pytest_failgain.fixtures import (
    failgain,
    failgain_endpoint,
    failgain_environment,
    failgain_extensions,
    failgain_harness,
    failgain_model,
    failgain_remedy,
    failgain_transcript,
)
from pytest_failgain.options import OPTIONS, add_options, read_settings
from pytest_failgain.stash import (
    FINDINGS,
    OUTCOME,
    RUNS_TESTS,
    SETTINGS,
    UNREPORTED,
    Findings,
    Reader,
)

__all__ = [
    "failgain",
    "failgain_endpoint",
    "failgain_environment",
    "failgain_extensions",
    "failgain_harness",
    "failgain_model",
    "failgain_remedy",
    "failgain_transcript",
]

RECORD_MARKER = "failgain_record: checks a failure record without a model, as pre-commit does"


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.add_hookspecs(hookspecs)


def pytest_plugin_registered(plugin_name: str, manager: pytest.PytestPluginManager) -> None:
    # What comes before the session is all looked at when that starts.
    if plugin_name.endswith("conftest.py") and manager.has_plugin("session"):
        _check_hooks(manager, pytest.Collector.CollectError)


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", RECORD_MARKER)
    config.stash[SETTINGS] = settings = read_settings(config, os.environ)
    config.stash[FINDINGS] = findings = Findings([], [], [], {})
    config.stash[UNREPORTED] = Reader(findings)
    output = _worker_output(config)
    if output is not None:
        from pytest_failgain.transport import Sender

        config.pluginmanager.register(Sender(findings, output))
    elif settings.writes_files:
        from pytest_failgain.report.outputs import check_outputs

        check_outputs(settings, config.rootpath)


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


# First, since xdist's own starts the workers.
@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    _check_hooks(session.config.pluginmanager, pytest.UsageError)
    hook = session.config.hook
    if any(getattr(hook, name).get_hookimpls() for name in hookspecs.HOOKS):
        from pytest_failgain.hooks import check_answers

        check_answers(session.config)


# First, since pytest's own reads the parameters.
@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if not {"failgain_environment", "failgain_remedy"}.isdisjoint(metafunc.fixturenames):
        from pytest_failgain.hooks import add_parameters

        add_parameters(metafunc)


# First, since xdist's own takes the groups down.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("loadgroup", False):  # in a worker of xdist, with --dist loadgroup
        from pytest_failgain.grouping import keep_together

        keep_together(items)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    # Where pytest only tells of something, as with --fixtures, it does not come here at all.
    only_shows = (session.config.getoption(name, False) for name in ("collectonly", "setuponly"))
    session.config.stash[RUNS_TESTS] = not any(only_shows)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if not file_path.name.startswith("failgain") or file_path.suffix not in (".yaml", ".yml"):
        return None
    from pytest_failgain.collector import SuiteFile

    return SuiteFile.from_parent(parent, path=file_path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    if call.excinfo is None or item.config.getoption("fulltrace", False):
        return (yield)
    from pytest_failgain.tracebacks import report_briefly

    return (yield from report_briefly(call.excinfo))


# A hook of its own; pytest looks at no name that begins otherwise.
@pytest.hookimpl(wrapper=True, specname="pytest_runtest_makereport")
def pytest_runtest_makereport_with_properties(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    findings = item.config.stash[FINDINGS]
    if any(findings):
        from pytest_failgain.junit import add_properties

        add_properties(item.user_properties, item.config.stash[UNREPORTED].new())
    return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """In the controller of xdist: take in what a worker found, before others see the report."""
    node = getattr(report, "node", None)
    if node is not None:
        from pytest_failgain.transport import take_from_report

        take_from_report(report, node.config.stash[FINDINGS])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """In the controller of xdist: take in what a worker found after its last report."""
    from pytest_failgain.transport import take_from_output

    take_from_output(getattr(node, "workeroutput", {}), node.config.stash[FINDINGS])


# Around all others and before the summary: fixtures are finalised in here, and may measure.
@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_sessionfinish(
    session: pytest.Session, exitstatus: int
) -> Generator[None, object, object]:
    try:
        return (yield)
    finally:
        findings, settings = session.config.stash[FINDINGS], session.config.stash[SETTINGS]
        in_worker = _worker_output(session.config) is not None
        if (any(findings) or settings.writes_files) and not in_worker:
            from pytest_failgain.finishing import finish

            finish(session, exitstatus)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    stash = terminalreporter.config.stash
    findings, outcome = stash[FINDINGS], stash.get(OUTCOME, None)
    in_worker = _worker_output(terminalreporter.config) is not None  # which nobody reads
    if (any(findings) or outcome) and not in_worker:
        from pytest_failgain.report.terminal import write_summary

        try:
            write_summary(terminalreporter, findings, outcome)
        except Exception as error:  # a summary must not take the run's own results with it
            terminalreporter.write_line(
                f"failgain: the summary broke off ({type(error).__name__}: {error}); the tests' "
                "results stand. Please report this.",
                red=True,
            )


def _check_hooks(manager: pytest.PytestPluginManager, error: type[Exception]) -> None:
    """Refuse, with that error, what implements a hook of ours that there is not."""
    for name in [*vars(manager.hook)]:
        if name.startswith(hookspecs.PREFIX) and name not in hookspecs.HOOKS:
            from pytest_failgain.hooks import check_implemented

            check_implemented(manager, name, error)


def _worker_output(config: pytest.Config) -> dict[str, Any] | None:
    """What a worker of xdist sends when it is done; None in any other process."""
    return getattr(config, "workeroutput", None)
