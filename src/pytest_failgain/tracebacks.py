"""Our own errors shown at the line of the user's that met them, without our frames."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_failgain.errors import FailgainError, HarnessError

_PACKAGE = Path(__file__).parent


def shorten(excinfo: pytest.ExceptionInfo[BaseException]) -> None:
    """Hide this package's frames of a `FailgainError`, and what lies behind its message.

    A harness's own exception stays visible: it is the user's code that has to be mended.
    """
    error = excinfo.value
    if not isinstance(error, FailgainError):
        return
    excinfo.traceback = excinfo.traceback.filter(
        lambda entry: _PACKAGE not in Path(entry.path).parents
    )
    if not isinstance(error, HarnessError):
        error.__cause__ = None
        error.__suppress_context__ = True
