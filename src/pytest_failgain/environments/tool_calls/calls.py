"""Calls of the office's tools, and the three ways in which an agent may write one."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

from pytest_failgain.environments.tool_calls.failures import CallError, parse_error
from pytest_failgain.trajectory import Action, ToolCall

# Longer than any call of this office, and short enough for Python's parser to take whatever nests
# inside it.
LONGEST_CALL = 10_000


@dataclass(frozen=True, slots=True)
class Call:
    """A tool's name and its arguments in the order in which they are written.

    A call that was read may hold what no tool takes: positional values, a keyword twice.
    """

    tool: str
    keywords: tuple[tuple[str, object], ...] = ()
    positional: tuple[object, ...] = ()

    @staticmethod
    def of(tool: str, **arguments: object) -> Call:
        """The call `tool(**arguments)`."""
        return Call(tool, tuple(arguments.items()))

    @property
    def arguments(self) -> dict[str, object]:
        """The keyword arguments by name."""
        return dict(self.keywords)

    def of_tool(self, tool: str) -> Call:
        """The same arguments for another tool."""
        return replace(self, tool=tool)

    def without(self, name: str) -> Call:
        """The call with the argument `name` left out."""
        return replace(self, keywords=tuple(pair for pair in self.keywords if pair[0] != name))

    def renamed(self, name: str, other: str) -> Call:
        """The call with the argument `name` called `other`, in the same place."""
        pairs = ((other if key == name else key, value) for key, value in self.keywords)
        return replace(self, keywords=tuple(pairs))

    def with_value(self, name: str, value: object) -> Call:
        """The call with another value for the argument `name`."""
        pairs = ((key, value if key == name else old) for key, old in self.keywords)
        return replace(self, keywords=tuple(pairs))


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
    arguments = ", ".join(f"{name}={value!r}" for name, value in call.keywords)
    return Action(f"{call.tool}({arguments})")


def _write_json(call: Call) -> Action:
    payload = {"name": call.tool, "arguments": call.arguments}
    return Action(json.dumps(payload, ensure_ascii=False))


def _write_native(call: Call) -> Action:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return Action(calls=(ToolCall(call.tool, arguments),))


def _read_python(action: Action) -> Call:
    try:
        text = _bounded(_bare(action.text))
        # A stray backslash in a reply makes the parser warn, which is no concern of the user.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            node = ast.parse(text, mode="eval").body
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            positional = tuple(ast.literal_eval(value) for value in node.args)
            keywords = tuple(_keyword(keyword) for keyword in node.keywords)
            return Call(node.func.id, keywords, positional)
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        pass
    raise CallError(parse_error("tool(argument=value)"))


def _keyword(keyword: ast.keyword) -> tuple[str, object]:
    if keyword.arg is None:
        raise ValueError("a call with **mapping does not show its arguments")
    return keyword.arg, ast.literal_eval(keyword.value)


def _read_json(action: Action) -> Call:
    try:
        members = dict(_members(_bare(action.text)))
        name, arguments = members.pop("name"), members.pop("arguments")
        if isinstance(name, str) and not members:
            return Call(name, _keywords(arguments))
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    raise CallError(parse_error('{"name": tool, "arguments": {argument: value}}'))


def _read_native(action: Action) -> Call:
    try:
        (call,) = action.calls
        return Call(call.name, _keywords(call.arguments))
    except (ValueError, TypeError, RecursionError):
        raise CallError(parse_error("as one tool call with a JSON object of arguments")) from None


def _keywords(arguments: object) -> tuple[tuple[str, object], ...]:
    # Some models write the arguments as JSON inside a JSON string.
    pairs = _members(arguments) if isinstance(arguments, str) else arguments
    if not isinstance(pairs, tuple):
        raise TypeError("the arguments are not an object")
    return tuple((name, _plain(value)) for name, value in pairs)


def _members(text: str) -> tuple[tuple[str, object], ...]:
    # Objects are read as tuples of pairs, which nothing else in JSON becomes: a dict would drop
    # the first of two arguments of the same name without a word.
    members = json.loads(_bounded(text), object_pairs_hook=tuple)
    if not isinstance(members, tuple):
        raise TypeError("the text is not an object")
    return members


def _bounded(text: str) -> str:
    if len(text) > LONGEST_CALL:
        raise ValueError("the text is too long for a call")
    return text


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return {name: _plain(inner) for name, inner in value}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value


_LABELS = re.compile(r"(?:(?:action|answer|assistant|call|reply|response|tool|user)\s*:\s*)+", re.I)
_FENCE = re.compile(r"```(?:\w*\s*\n|(?:json|py|python)\s)?(.*?)(?:```)?", re.DOTALL)


def _bare(text: str) -> str:
    """The reply without the dressing that models like to put around a call."""
    text = text.strip()
    for _ in range(2):
        # A label may stand before a fence or inside it.
        text = text[label.end() :] if (label := _LABELS.match(text)) else text
        text = fence.group(1).strip() if (fence := _FENCE.fullmatch(text)) else text
    return text.strip("`").strip()


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
