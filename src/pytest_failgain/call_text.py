"""Calls as models write them: Python calls and JSON objects, in the dressing that models put on."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Hashable
from dataclasses import dataclass, replace

# Longer than any call that an agent makes in one line, and short enough for Python's parser to take
# whatever nests inside it.
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

    @property
    def canonical(self) -> Hashable:
        """Equal for calls that differ only in how they are written, as in their arguments' order.

        Of an argument that is written twice the last counts, as for Python's and JSON's parsers.
        """
        named = sorted((name, _frozen(value)) for name, value in self.arguments.items())
        return self.tool, tuple(map(_frozen, self.positional)), tuple(named)

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


def _frozen(value: object) -> str:
    """A text that is equal for equal values of one type, whatever the order of an object's keys.

    The order of a set's members does not count either.
    """
    if isinstance(value, dict):
        return (
            f"{{{', '.join(sorted(f'{key!r}: {_frozen(inner)}' for key, inner in value.items()))}}}"
        )
    if isinstance(value, list | tuple | set):
        members = map(_frozen, value)
        ordered = sorted(members) if isinstance(value, set) else members
        return f"{type(value).__name__}({', '.join(ordered)})"
    return repr(value)


def write_python(call: Call) -> str:
    """The call as `tool(argument=value)`."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in call.keywords)
    return f"{call.tool}({arguments})"


def write_json(call: Call) -> str:
    """The call as `{"name": tool, "arguments": {argument: value}}`."""
    payload = {"name": call.tool, "arguments": call.arguments}
    return json.dumps(payload, ensure_ascii=False)


def read_python(text: str) -> Call:
    """The Python call that `text`, without its dressing, is.

    Raises:
        ValueError: when it is not one call with literal arguments.
    """
    try:
        text = _bounded(bare(text))
        # A stray backslash in a reply makes the parser warn, which is no concern of the user.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            node = ast.parse(text, mode="eval").body
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            positional = tuple(ast.literal_eval(value) for value in node.args)
            keywords = tuple(_keyword(keyword) for keyword in node.keywords)
            return Call(node.func.id, keywords, positional)
    except (SyntaxError, TypeError, MemoryError, RecursionError):
        pass
    raise ValueError("the text is not one Python call")


def _keyword(keyword: ast.keyword) -> tuple[str, object]:
    if keyword.arg is None:
        raise ValueError("a call with **mapping does not show its arguments")
    return keyword.arg, ast.literal_eval(keyword.value)


def read_json(text: str) -> Call:
    """The call that the JSON object in `text`, without its dressing, is.

    Raises:
        ValueError: when it is not one object with `name` and `arguments` alone.
    """
    try:
        members = dict(_members(bare(text)))
        name, arguments = members.pop("name"), members.pop("arguments")
        if isinstance(name, str) and not members:
            return Call(name, read_arguments(arguments))
    except (TypeError, KeyError, RecursionError):
        pass
    raise ValueError("the text is not one call in JSON")


def read_arguments(arguments: object) -> tuple[tuple[str, object], ...]:
    """A call's arguments from JSON text, or from what `_members` made of an object.

    Raises:
        ValueError, TypeError: when they are no object.
    """
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


LABELS = ("action", "answer", "assistant", "call", "reply", "response", "tool", "user")
_LABELS = re.compile(rf"(?:(?:{'|'.join(LABELS)})\s*:\s*)+", re.I)
_FENCE = re.compile(r"```(?:\w*\s*\n|(?:json|py|python)\s)?(.*?)(?:```)?", re.DOTALL)


def bare(text: str) -> str:
    """The reply without the dressing that models like to put around a call."""
    # Labels and fences may stand inside one another, and what is bare must stay as it is.
    while (undressed := _undressed(text)) != text:
        text = undressed
    return text


def _undressed(text: str) -> str:
    text = text.strip()
    text = text[label.end() :] if (label := _LABELS.match(text)) else text
    text = fence.group(1) if (fence := _FENCE.fullmatch(text)) else text
    return text.strip().strip("`").strip()
