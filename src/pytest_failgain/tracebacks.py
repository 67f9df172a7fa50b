"""Our own errors shown at the line of the user's that met them, without our frames."""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from types import TracebackType
from typing import Any

import pytest

from pytest_failgain.errors import ExtensionError, FailgainError, HarnessError

_OURS = "pytest_failgain"
_PYTEST = ("_pytest", "pytest", "pluggy")


def report_briefly(
    excinfo: pytest.ExceptionInfo[BaseException],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Around the making of a report: a `FailgainError` loses our frames, and what lies behind it.

    Where no line of the user's met it, as in a fixture of ours, its message is all that is shown.
    The exception of a harness, or of what a conftest or plugin added, stays visible: it is the
    user's code that has to be mended.
    """
    error = excinfo.value
    if not isinstance(error, FailgainError):
        return (yield)
    cause = error.__cause__
    is_users = isinstance(error, HarnessError | ExtensionError)
    behind = _from_harness(cause) if is_users else None
    if cause is None or behind is None:
        error.__cause__ = None
        error.__suppress_context__ = True
    else:
        cause.__traceback__ = behind
    met = _to_users_line(error.__traceback__)
    if met is not None:
        # The entries are linked behind pytest's view of them, so filtering that view is not enough.
        linked = pytest.ExceptionInfo.from_exc_info((type(error), error, met))
        excinfo.traceback = linked.traceback
    report = yield
    if met is None:
        alone = excinfo.getrepr(style="value", chain=False)
        report.longrepr = alone if behind is None else _below_its_cause(report.longrepr, alone)
    return report


def _below_its_cause(whole: Any, alone: Any) -> Any:
    """The message alone, below the user's own exception as pytest shows it."""
    chain = getattr(whole, "chain", None)
    # Where a chain is shown in one piece, it is in the style of Python's own tracebacks.
    return whole if chain is None else type(whole)([*chain[:-1], *alone.chain])


def _to_users_line(first: TracebackType | None) -> TracebackType | None:
    """The entries down to the last of the user's, without ours; None where pytest called us."""
    entries = _entries(first)
    while entries and not _is_users(entries[-1]):
        if _package(entries.pop()) in _PYTEST:
            return None
    return _linked([entry for entry in entries if _package(entry) != _OURS])


def _from_harness(cause: BaseException | None) -> TracebackType | None:
    """The entries of a harness's exception from its own code on."""
    first = cause.__traceback__ if cause is not None else None
    while first is not None and _package(first) == _OURS:
        first = first.tb_next
    return first


def _is_users(entry: TracebackType) -> bool:
    package = _package(entry)
    return package != _OURS and package not in _PYTEST and package not in sys.stdlib_module_names


def _package(entry: TracebackType) -> str:
    # Not by file name: methods that a dataclass generates have none.
    name: str = entry.tb_frame.f_globals.get("__name__", "")
    return name.partition(".")[0]


def _entries(first: TracebackType | None) -> list[TracebackType]:
    entries = []
    while first is not None:
        entries.append(first)
        first = first.tb_next
    return entries


def _linked(entries: Sequence[TracebackType]) -> TracebackType | None:
    first = None
    for entry in reversed(entries):
        first = TracebackType(first, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return first
