"""Tools, calls of them, actions, and the errors that they end in."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from pytest_failgain.call_text import Call, write_python
from pytest_failgain.errors import UsageError
from pytest_failgain.strategies.schemas import misfits, schema_values, schemas
from pytest_failgain.strategies.texts import LONG_TEXTS, TEXTS, WORDS
from pytest_failgain.trajectory import Action, Tool, ToolCall
from pytest_failgain.transcripts.conversation import tool_from

_LIST_OF_TEXTS = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_NAMES = ("look", "send_email", "refund", "orders.find", "search-web", "Bash")


def _object(**properties: Any) -> dict[str, Any]:
    first = next(iter(properties))
    return {"type": "object", "properties": properties, "required": [first]}


def tools(max_properties: int = 3) -> st.SearchStrategy[Tool]:
    """Tools with a schema of their arguments."""
    return st.builds(Tool, st.sampled_from(_NAMES), TEXTS, schemas(max_properties))


def tool_calls(
    tool: Tool | Mapping[str, Any] | None = None, *, valid: bool = True
) -> st.SearchStrategy[ToolCall]:
    """Calls that `tool` takes; with `valid=False` such as it does not take, each with one slip.

    `tool` is a `Tool`, the schema of one as chat APIs take it, or the JSON schema of the arguments,
    whose tool is called "call"; any tool if it is not given. The slip is an argument that is
    missing, too many, or has a value that does not fit; arguments that are broken off; or another
    tool's name.

    Raises:
        UsageError: when its schema asks for what is not understood (see `schema_values`).
    """
    if tool is None:
        return tools().flatmap(lambda drawn: tool_calls(drawn, valid=valid))
    known = _tool(tool)
    schema = known.parameters or {"type": "object", "properties": {}}
    calls = st.builds(_written, st.just(known.name), schema_values(schema), st.booleans())
    if valid:
        return calls
    return _slipped(known, schema)


def _tool(tool: Tool | Mapping[str, Any]) -> Tool:
    if isinstance(tool, Tool):
        return tool
    if not isinstance(tool, Mapping):
        raise UsageError(
            f"tool_calls takes a Tool or a schema, not a {type(tool).__name__}: {tool!r}"
        )
    return tool_from(tool) or Tool("call", parameters=tool)


@st.composite
def _slipped(draw: st.DrawFn, tool: Tool, schema: Mapping[str, Any]) -> ToolCall:
    arguments, ascii = draw(schema_values(schema)), draw(st.booleans())
    right = _written(tool.name, arguments, ascii)
    wrong = [_written(tool.name, slip, ascii) for slip in misfits(arguments, schema)]
    cut = ToolCall(tool.name, right.arguments[:-1])
    return draw(st.sampled_from([*wrong, cut, ToolCall(f"{tool.name}_unknown", right.arguments)]))


def _written(name: str, arguments: Any, ascii: bool) -> ToolCall:
    return ToolCall(name, json.dumps(arguments, ensure_ascii=ascii))


def text_actions() -> st.SearchStrategy[Action]:
    """Actions in text: calls in Python or JSON, commands, programs, and any words."""
    return st.builds(Action, st.builds(_applied, st.sampled_from(_FORMS), WORDS))


def structured_actions(tools: Sequence[Tool] | None = None) -> st.SearchStrategy[Action]:
    """Actions of one or two calls of `tools`, with or without words beside them.

    Some calls have arguments that are long or no JSON, as models write them.
    """
    names = [tool.name for tool in tools] if tools else _NAMES
    odd = st.builds(ToolCall, st.sampled_from(names), _ODD_ARGUMENTS)
    calls = st.one_of([*map(tool_calls, KNOWN_TOOLS if tools is None else tools), odd])
    return st.builds(Action, st.just("") | TEXTS, _few(calls))


def _few(calls: st.SearchStrategy[ToolCall]) -> st.SearchStrategy[tuple[ToolCall, ...]]:
    return st.lists(calls, min_size=1, max_size=2).map(tuple)


def actions(tools: Sequence[Tool] | None = None) -> st.SearchStrategy[Action]:
    """Actions in text and structured ones; see `text_actions` and `structured_actions`."""
    return text_actions() | structured_actions(tools)


def replies(action: Action) -> st.SearchStrategy[str]:
    """Whole turns that `action` may be a part of; the empty one, where it is all, among them."""
    return st.just("") | _AROUND.map(lambda ends: f"{ends[0]}{action.text}{ends[1]}")


def error_texts(action: Action | None = None) -> st.SearchStrategy[str]:
    """Errors as runtimes answer them, empty ones too; some quote `action`, if it is given.

    Tracebacks, messages of validation and of JSON parsers, JSON objects, statuses of processes,
    and errors in any script.
    """
    if action is None:
        return _ANY_ERRORS
    call = str(action)
    return _ANY_ERRORS | st.sampled_from(_QUOTES).map(lambda quote: quote(call))


def _in_json(what: str) -> str:
    return json.dumps({"name": "look", "arguments": {"at": what, "deep": {"n": [1, 2.5]}}})


def _applied(write: Callable[[str], str], what: str) -> str:
    return write(what)


_ERRORS: tuple[Callable[[str], str], ...] = (
    lambda what: f"ValueError: {what}",
    lambda what: f"Error: {what}\nExit code: 1",
    lambda what: json.dumps({"error": {"code": 422, "message": what}}),
    lambda what: f"Expecting property name enclosed in double quotes: line 1 column 2: {what}",
    lambda what: (
        "1 validation error for call\nid\n  Input should be a valid integer, unable to parse "
        f"string as an integer [type=int_parsing, input_value={what!r}, input_type=str]"
    ),
    lambda what: (
        'Traceback (most recent call last):\n  File "/app/tools.py", line 7, in run\n'
        f"    return call()\n           ^^^^^^\nRuntimeError: {what}\n"
    ),
)
_QUOTES: tuple[Callable[[str], str], ...] = (
    lambda call: f"Error in {call}",
    lambda call: f"Error invoking {call!r}: it failed.",
    lambda call: json.dumps({"error": "bad call", "call": call}),
    lambda call: json.dumps(json.dumps({"call": call})),
    lambda call: "Failed:\n" + "\n".join(f"> {line}" for line in call.splitlines()),
    lambda call: f"Failed: {call[: len(call) // 2]}…",
)


_FORMS: tuple[Callable[[str], str], ...] = (
    str,
    lambda what: write_python(Call.of("look", at=what)),
    _in_json,
    lambda what: f"<tool_call>\n{_in_json(what)}\n</tool_call>",
    lambda what: f"grep -rn -- {what!r} src | head",
    lambda what: f"Action: look\nAction Input: {what}",
    lambda what: f"```python\ndef solve(x):\n    # {what}\n    return x + 1\n```",
)
_ANY_ERRORS = (
    st.sampled_from(("Error", "TypeError: id must be int"))
    # One alternative, and not as many as it has itself, which real errors would be rare among.
    | TEXTS.map(str)
    | st.builds(_applied, st.sampled_from(_ERRORS), WORDS)
)
_AROUND = st.tuples(TEXTS, TEXTS)
_ODD_ARGUMENTS = st.sampled_from(("{}", "", '{"id": 1', '"{\\"id\\": 1}"')) | WORDS | LONG_TEXTS

KNOWN_TOOLS = (
    Tool("look"),
    Tool("refund", "Pays back.", _object(order_id={"type": "integer"}, note={"type": "string"})),
    Tool("send_email", "", _object(to=_LIST_OF_TEXTS, urgent={"type": "boolean"}, body={})),
    Tool("größe_ändern", "Ändert die Größe.", _object(größe={"enum": ["klein", "groß"]})),
)
