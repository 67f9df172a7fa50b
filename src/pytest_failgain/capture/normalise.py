"""Takes out of a record what differs from run to run and from machine to machine."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar, cast

_T = TypeVar("_T")

# The whole name of a folder, and what is in it.
_REST = r"(?![\w@+~-])(?:[/\\][\w.@+~-]+)*"
_TEMPORARY = (
    r"/tmp",
    r"(?:/private)?/var/folders",
    r"(?:/private)?/var/tmp",
    r"[A-Za-z]:(?:\\[\w.~-]+)*\\Temp",
)
_HOME = r"(?:/home/[\w.-]+|/Users/[\w.-]+|/root|[A-Za-z]:\\Users\\[\w.~-]+)(?=[/\\]|$|[^\w.@+~-])"
# In this order: what an earlier rule puts in is left alone by later ones.
_RULES = (
    (
        re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.I),
        "<uuid>",
    ),
    (re.compile(r"\b0x[0-9a-f]{4,}\b", re.I), "<address>"),
    (
        re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"),
        "<time>",
    ),
    (re.compile(r"(?<![\d:])\d\d:\d\d:\d\d(?:[.,]\d+)?(?![\d:])"), "<time>"),
    # Of a traceback's files the last part of the path says enough.
    (re.compile(r'(File ")(?:[A-Za-z]:)?[/\\](?:[^"\n]*[/\\])?([^"/\\\n]+")'), r"\1<path>/\2"),
    (re.compile(r'(File "[^"\n]*", line )\d+'), r"\1<n>"),
    (re.compile(r"(?<![\w.])[\w.@+~:/\\-]*[/\\](?:site|dist)-packages(?=[/\\])"), "<packages>"),
    (re.compile(rf"(?<![\w.])(?:{'|'.join(_TEMPORARY)}){_REST}"), "<temp>"),
    (re.compile(rf"(?<![\w.]){_HOME}"), "<home>"),
    (re.compile(r"(\.(?:py|m?js|ts)):\d+(?::\d+)?"), r"\1:<n>"),
    (re.compile(r"\b(127\.0\.0\.1|localhost):\d+"), r"\1:<port>"),
    (re.compile(r"\b\d+(?:\.\d+)?(?= ?(?:ms|seconds|secs|s)\b)"), "<n>"),
)
# A digit tells an id from a name such as "run_command".
_ID = r"\b(?:call|chatcmpl|msg|resp|fc|run|toolu)[_-](?=[\w-]*\d)[\w-]{4,}"
# What is shorter may stand in any text.
_SHORTEST_ID = 6
_ID_KEYS = ("id", "call_id", "tool_call_id", "item_id", "previous_response_id")


def normalised(value: _T) -> _T:
    """`value` with placeholders for random ids, addresses, times, line numbers and local paths.

    It is a text, or messages or other JSON with texts in it; keys stay as they are. Local paths are
    those in a home or temporary folder, and of installed packages. The same id gets the same number
    wherever it stands: one that looks like an id of a call, or that a message names as its id.
    A date without a time stays, since it belongs to what an agent works on.
    """
    named = sorted({re.escape(one) for one in _named_ids(value)}, key=len, reverse=True)
    ids = re.compile("|".join([*(rf"(?<!\w){one}(?!\w)" for one in named), _ID]))
    # A folder that this machine was told to use has no name that would tell it.
    local = re.compile(rf"(?<![\w.]){re.escape(tempfile.gettempdir())}{_REST}")
    return cast("_T", _put(value, partial(_text, ids, local, {})))


def _text(ids: re.Pattern[str], local: re.Pattern[str], numbers: dict[str, int], text: str) -> str:
    text = ids.sub(lambda found: f"<id {numbers.setdefault(found[0], len(numbers))}>", text)
    for pattern, put in _RULES:
        text = pattern.sub(put, text)
    return local.sub("<temp>", text)


def _put(value: Any, text: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, Mapping):
        return {key: _put(inner, text) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([_put(inner, text) for inner in value])
    return value


def _named_ids(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        given = map(value.get, _ID_KEYS)
        yield from (one for one in given if isinstance(one, str) and len(one) >= _SHORTEST_ID)
        for inner in value.values():
            yield from _named_ids(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _named_ids(inner)
