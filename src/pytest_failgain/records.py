"""The text that a failed step adds to the prompt."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import takewhile

from pytest_failgain.prompt import Message, Prompt


def record_text(before: str, after: str) -> str:
    """What `after` has beyond `before`: the record, where they are a case's two prompts.

    Whole lines first, the common end before the common beginning, so that a record begins where its
    turn does and not inside the generation prompt. What is left of two lines that both differ is
    cut to where they differ.
    """
    lines, others = after.splitlines(keepends=True), before.splitlines(keepends=True)
    end = _shared(lines[::-1], others[::-1])
    lines, others = lines[: len(lines) - end], others[: len(others) - end]
    start = _shared(lines, others)
    text, other = "".join(lines[start:]), "".join(others[start:])
    if not other:
        return text
    start = _shared(text, other)
    text, other = text[start:], other[start:]
    return text[: len(text) - _shared(text[::-1], other[::-1])]


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """How many entries the two have in common at their beginning."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def prompt_text(prompt: Prompt) -> str:
    """`prompt` to be read by people, where the scorer does not tell what the model was given."""
    if prompt.messages is None:
        return prompt.text or ""
    return "".join(f"{message['role']}: {_content(message)}\n" for message in prompt.messages)


def _content(message: Message) -> str:
    content, calls = message.get("content"), message.get("tool_calls")
    parts = [content if isinstance(content, str) else json.dumps(content)] if content else []
    parts += [json.dumps(call["function"]) for call in calls or ()]
    return " ".join(parts)
