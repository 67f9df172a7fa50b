"""Which part of an action's text is its arguments, which its name, and which mere wrapping.

Wrapper tokens, such as `<tool_call>`, can carry most of an action's log-probability where the model
would rather write the call in another format; the gain on the argument span does not mind them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

Span = tuple[int, int]

_PYTHON_CALL = re.compile(r"\s*(?P<name>[A-Za-z_][\w.]*)\((?P<arguments>.*)\)\s*\Z", re.DOTALL)
_FENCED = re.compile(r"\s*```[\w+-]*[ \t]*\n(?P<arguments>.*?)\n?```\s*\Z", re.DOTALL)
_JSON_ARGUMENTS = re.compile(r'"(?:arguments|parameters|args)"\s*:\s*')
_JSON_NAME = re.compile(r'"(?:name|function)"\s*:\s*(?P<name>"(?:[^"\\]|\\.)*")')
_CLOSING_TAG = re.compile(r"\s*(?:</[\w.-]+>|<\|[\w/.-]+\|>|```)\s*\Z")
# Models write line breaks into strings as they are; that does not end the arguments.
_LENIENT = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class ActionSpans:
    """Character ranges in an action's text, one a call where it makes several.

    `arguments` is what is between the fences of a fenced program, and the whole text where nothing
    was recognised, as in a bare program; then nothing is wrapping.
    """

    arguments: tuple[Span, ...]
    names: tuple[Span, ...]
    recognised: bool

    def in_arguments(self, token: Span) -> bool:
        return any(_overlap(token, span) for span in self.arguments)

    def in_wrapper(self, token: Span) -> bool:
        """Whether the token is neither of a name nor of arguments."""
        named = any(_overlap(token, span) for span in self.names)
        return self.recognised and not named and not self.in_arguments(token)


def _overlap(token: Span, part: Span) -> bool:
    # A token may be empty, where a tokenizer gives no characters to white space.
    return part[0] < part[1] and token[0] < part[1] and part[0] < token[1]


def action_spans(text: str) -> ActionSpans:
    """The spans of `text`: a Python call, a fenced program, JSON calls in any wrapping, or else.

    A call without arguments has an empty argument span, which no token is in.
    """
    python = _PYTHON_CALL.match(text)
    if python:
        return ActionSpans((python.span("arguments"),), (python.span("name"),), recognised=True)
    fenced = _FENCED.match(text)
    if fenced and not _JSON_ARGUMENTS.search(text):
        return ActionSpans((fenced.span("arguments"),), (), recognised=True)
    arguments = tuple(_json_arguments(text))
    if arguments:
        names = (match.span("name") for match in _JSON_NAME.finditer(text))
        # An argument may be called "name", too.
        outside = (name for name in names if not any(_overlap(name, part) for part in arguments))
        return ActionSpans(arguments, tuple(outside), recognised=True)
    return ActionSpans(((0, len(text)),), (), recognised=False)


def _json_arguments(text: str) -> Iterator[Span]:
    end = 0
    while key := _JSON_ARGUMENTS.search(text, end):
        end = _json_value_end(text, key.end())
        yield key.end(), end


def _json_value_end(text: str, start: int) -> int:
    try:
        _, end = _LENIENT.raw_decode(text, start)
    except (ValueError, RecursionError):
        # Cut short or badly written: what follows is what the model wrote as arguments.
        closing = _CLOSING_TAG.search(text, start)
        return closing.start() if closing else len(text)
    return end
