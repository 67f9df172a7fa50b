"""The texts that a prompt is made of, and where each stands."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_failgain.prompt import Message, Prompt

# They name things, and are no text that a model reads as such.
_NAMES = ("role", "id", "tool_call_id", "type")


@dataclass(frozen=True, slots=True)
class Part:
    """A text, and where it stands: `messages[2]['content']`, `the text`, …

    `role` is the message's. Of a structured call the text is `name(arguments)`.
    """

    text: str
    at: str
    role: str = ""
    is_call: bool = False

    @property
    def place(self) -> str:
        """Where it stands, for people."""
        return f"{self.at} ({self.role})" if self.role else self.at


def parts(prompt: Prompt) -> list[Part]:
    """All texts of `prompt` in their order: of messages or the text, of tools, and the lead."""
    if prompt.text is not None:
        found = [Part(prompt.text, "the text")]
    else:
        found = [
            part
            for index, message in enumerate(prompt.messages or ())
            for part in _of_message(message, f"messages[{index}]")
        ]
    found += [
        Part(_as_json(tool.as_function()), f"tools[{index}]")
        for index, tool in enumerate(prompt.tools)
    ]
    if prompt.lead:
        found.append(Part(prompt.lead, "the beginning of the reply"))
    return found


def lines(prompt: Prompt) -> list[Part]:
    """The same line by line, without blank lines; calls and tools whole."""
    return [line for part in parts(prompt) for line in _lines_of(part)]


def _lines_of(part: Part) -> Iterator[Part]:
    split = [part.text] if part.is_call else part.text.splitlines()
    for number, line in enumerate(split, start=1):
        if line.strip():
            at = part.at if len(split) == 1 else f"{part.at}, line {number}"
            yield replace(part, text=line, at=at)


def _of_message(message: Message, at: str) -> Iterator[Part]:
    role = str(message["role"])
    for key, value in message.items():
        if key in _NAMES or not value:
            continue
        place = f"{at}[{key!r}]"
        if isinstance(value, list):
            for index, entry in enumerate(value):
                yield _of_value(entry, f"{place}[{index}]", role)
        else:
            yield _of_value(value, place, role)


def _of_value(value: Any, at: str, role: str) -> Part:
    if isinstance(value, str):
        return Part(value, at, role)
    if isinstance(value, Mapping):
        call = _call(value)
        if call is not None:
            return Part(call, at, role, is_call=True)
        if isinstance(value.get("text"), str):
            return Part(value["text"], at, role)
    return Part(_as_json(value), at, role)


def _call(value: Mapping[str, Any]) -> str | None:
    """The call in one of the shapes of chat APIs; None where there is none."""
    inner = value.get("function")
    function = inner if isinstance(inner, Mapping) else value
    name, arguments = function.get("name"), function.get("arguments", function.get("input"))
    if not isinstance(name, str) or arguments is None:
        return None
    return written_call(name, arguments if isinstance(arguments, str) else _as_json(arguments))


def written_call(name: str, arguments: str) -> str:
    """A structured call as one text."""
    return f"{name}({arguments})"


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def surplus(parts: Sequence[Part], others: Sequence[Part]) -> list[Part]:
    """Those of `parts` that `others` have not, by their texts; of equal ones the last."""
    remaining = Counter(part.text for part in others)
    found = []
    for part in parts:
        if remaining[part.text] > 0:
            remaining[part.text] -= 1
        else:
            found.append(part)
    return found


def common(parts: Sequence[Part], others: Sequence[Part]) -> list[Part]:
    """Those of `parts` that `others` have as well, by their texts; of equal ones the first."""
    remaining = Counter(part.text for part in others)
    found = []
    for part in parts:
        if remaining[part.text] > 0:
            remaining[part.text] -= 1
            found.append(part)
    return found
