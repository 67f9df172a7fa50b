"""Which part of an action's text is its arguments, which its name, and which mere wrapping.

Wrapper tokens, such as `<tool_call>`, can carry most of an action's log-probability where the model
would rather write the call in another format; the gain on the argument span does not mind them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

Span = tuple[int, int]

_PYTHON_CALL = re.compile(r"\s*(?P<name>[A-Za-z_][\w.]*)\((?P<arguments>.*)\)\s*\Z", re.DOTALL)
_JSON_ARGUMENTS = re.compile(r'"(?:arguments|parameters|args)"\s*:\s*')
_JSON_NAME = re.compile(r'"(?:name|function)"\s*:\s*(?P<name>"(?:[^"\\]|\\.)*")')


@dataclass(frozen=True, slots=True)
class ActionSpans:
    """Character ranges in an action's text.

    `arguments` is the whole text where no call was recognised, as in a program; then nothing is
    wrapping.
    """

    arguments: Span
    name: Span | None
    recognised: bool

    def in_arguments(self, token: Span) -> bool:
        return _overlap(token, self.arguments)

    def in_wrapper(self, token: Span) -> bool:
        """Whether the token is neither of the name nor of the arguments."""
        named = self.name is not None and _overlap(token, self.name)
        return self.recognised and not named and not self.in_arguments(token)


def _overlap(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def action_spans(text: str) -> ActionSpans:
    """The spans of `text`, which is a Python call, a JSON call in any wrapping, or anything else.

    A call without arguments has an empty argument span, which no token is in.
    """
    python = _PYTHON_CALL.match(text)
    if python:
        return ActionSpans(python.span("arguments"), python.span("name"), recognised=True)
    key = _JSON_ARGUMENTS.search(text)
    if key:
        name = _JSON_NAME.search(text)
        return ActionSpans(
            (key.end(), _json_value_end(text, key.end())),
            name.span("name") if name else None,
            recognised=True,
        )
    return ActionSpans((0, len(text)), None, recognised=False)


def _json_value_end(text: str, start: int) -> int:
    try:
        _, end = json.JSONDecoder().raw_decode(text, start)
    except ValueError:
        # Cut short or badly written: all that follows is what the model wrote as arguments.
        return len(text)
    return end
