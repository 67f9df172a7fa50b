"""The three ways in which an agent of the office may write a call."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from pytest_failgain.call_text import (
    Call,
    read_arguments,
    read_json,
    read_python,
    write_json,
    write_python,
)
from pytest_failgain.environments.tool_calls.failures import CallError, parse_error
from pytest_failgain.trajectory import Action, ToolCall


@dataclass(frozen=True, slots=True)
class ActionFormat:
    """A way to write calls as actions and to read them back.

    `read` raises CallError for an action that is not one call in this format. `instruction` tells
    an agent how to write, and is None where the chat template does that.
    """

    name: str
    write: Callable[[Call], Action]
    read: Callable[[Action], Call]
    instruction: str | None


def _write_python(call: Call) -> Action:
    return Action(write_python(call))


def _write_json(call: Call) -> Action:
    return Action(write_json(call))


def _write_native(call: Call) -> Action:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return Action(calls=(ToolCall(call.tool, arguments),))


def _read_python(action: Action) -> Call:
    try:
        return read_python(action.text)
    except ValueError:
        raise CallError(parse_error("tool(argument=value)")) from None


def _read_json(action: Action) -> Call:
    try:
        return read_json(action.text)
    except ValueError:
        raise CallError(parse_error('{"name": tool, "arguments": {argument: value}}')) from None


def _read_native(action: Action) -> Call:
    try:
        (call,) = action.calls
        return Call(call.name, read_arguments(call.arguments))
    except (ValueError, TypeError, RecursionError):
        raise CallError(parse_error("as one tool call with a JSON object of arguments")) from None


PYTHON = ActionFormat(
    "python",
    _write_python,
    _read_python,
    "Write the call as tool(argument=value), with every argument named.",
)
JSON = ActionFormat(
    "json",
    _write_json,
    _read_json,
    'Write the call on one line as {"name": "tool", "arguments": {"argument": value}}.',
)
NATIVE = ActionFormat("native", _write_native, _read_native, None)

ACTION_FORMATS = {form.name: form for form in (PYTHON, JSON, NATIVE)}
