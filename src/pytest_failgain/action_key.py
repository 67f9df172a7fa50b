"""Which actions are the same: compared by what they mean, not by how they are written."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from typing import Any

from pytest_failgain.call_text import Call, read_json, read_python
from pytest_failgain.trajectory import Action, ToolCall


def action_key(action: Action) -> Hashable:
    """Equal for actions that mean the same, however they are written."""
    if action.calls:
        keys = tuple(_structured_key(call) for call in action.calls)
        return keys[0] if len(keys) == 1 else keys
    for read in (read_json, read_python):
        try:
            call = read(action.text)
        except ValueError:
            continue
        return _of_call(call.tool, call.arguments, call.positional)
    try:
        value = json.loads(action.text)
    except (ValueError, RecursionError):
        value = None
    # A call in a dialect of its own, whose members may stand in any order as well.
    return _of_call("", value) if isinstance(value, dict) else action.text.strip()


def _structured_key(call: ToolCall) -> Hashable:
    try:
        value = json.loads(call.arguments) if call.arguments.strip() else {}
        if isinstance(value, str):
            value = json.loads(value)  # written as JSON inside a JSON string
    except (ValueError, RecursionError):
        return call.name, call.arguments.strip()
    if value is None or isinstance(value, dict):
        return _of_call(call.name, value or {})
    return _of_call(call.name, {}, (value,))


def _of_call(tool: str, arguments: dict[str, Any], positional: Sequence[object] = ()) -> Hashable:
    try:
        named = tuple((name, _plain_number(value)) for name, value in arguments.items())
        return Call(tool, named, tuple(map(_plain_number, positional))).canonical
    except RecursionError:
        return tool, repr(sorted(arguments))


def _plain_number(value: Any) -> Any:
    """`value` with 1.0 as 1 everywhere in it: JSON knows one kind of number."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _plain_number(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_number(inner) for inner in value]
    return value
