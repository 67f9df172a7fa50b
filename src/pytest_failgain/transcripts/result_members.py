"""What the members of a result that is JSON say about whether its call failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ERRORS = ("error", "errors", "exception", "error_message", "errorMessage")
_FAULTS = ("isError", "is_error")
_SUCCESSES = ("success", "ok", "succeeded", "successful")
_EXIT_CODES = ("exit_code", "exitCode", "exit_status", "returncode", "return_code", "exitcode")
_STATUSES = ("status", "statusCode", "status_code", "http_status", "code")
_SPOKEN = ("message", "detail", "result", "output", "content", "text", "stderr")

_BAD: tuple[str, ...] = (
    "error",
    "errored",
    "failed",
    "failure",
    "fail",
    "rejected",
    "denied",
    "timeout",
)
_BAD += ("timed_out", "invalid", "not_found", "unauthorized", "forbidden", "exception")
_GOOD = ("success", "succeeded", "ok", "done", "completed", "passed", "created", "updated")
_NOTHING = ("", "none", "null", "no", "0", "false", "n/a")


def members_failed(value: Mapping[str, Any]) -> bool | None:
    """Whether an object tells of a failure; None where it says nothing of it."""
    told = (_by_flag(value), _by_exit_code(value), _by_status(value))
    if True in told or any(_is_error(value.get(key)) for key in _ERRORS):
        return True
    return False if False in told else None


def spoken(value: Any) -> list[str]:
    """The texts in a JSON value that may tell of a failure in words."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        # The content of an MCP result is a list of typed parts.
        parts = (one.get("text") for one in value[:3] if isinstance(one, dict) and "type" in one)
        return [part for part in parts if isinstance(part, str)]
    if isinstance(value, dict):
        texts = (value.get(key) for key in _SPOKEN)
        return [text for text in texts if isinstance(text, str)]
    return []


def _is_error(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().lower() not in _NOTHING
    # A number of errors is a count or a code, and either tells of one.
    return bool(value)


def _by_flag(value: Mapping[str, Any]) -> bool | None:
    if any(value.get(key) is True for key in _FAULTS) or value.get("type") == "error":
        return True
    flags = [value.get(key) for key in _SUCCESSES]
    if any(flag is False or flag == "false" for flag in flags):
        return True
    return False if any(flag is True for flag in flags) else None


def _by_exit_code(value: Mapping[str, Any]) -> bool | None:
    inner = value.get("metadata")
    for holder in (value, inner if isinstance(inner, dict) else {}):
        for key in _EXIT_CODES:
            code = holder.get(key)
            if isinstance(code, int) and not isinstance(code, bool):
                return code != 0
    return None


def _by_status(value: Mapping[str, Any]) -> bool | None:
    for key in _STATUSES:
        status = value.get(key)
        if isinstance(status, int) and not isinstance(status, bool) and 400 <= status < 600:
            return True
        if isinstance(status, str) and key != "code":
            word = status.lower().replace(" ", "_")
            if word in _BAD or word in _GOOD:
                return word in _BAD
    return None
