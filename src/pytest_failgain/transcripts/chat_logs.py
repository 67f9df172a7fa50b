"""Lists of chat messages in a document, and what stands around them: a request's body, a log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_failgain.transcripts.document import Document
from pytest_failgain.transcripts.members import as_dict, as_dicts

ROLES = ("system", "developer", "user", "assistant", "tool", "function")

LEFT_OUT = "entries that are no chat messages left out"

# Where loggers and batch files put a request's body.
_BODIES = ("body", "request", "request_body", "payload", "kwargs", "params", "input", "inputs")
_ANSWERS = ("response", "response_body", "completion", "output", "outputs", "result")


@dataclass(frozen=True, slots=True)
class ChatLog:
    """The messages of one conversation, the body that they stand in, and how many others do."""

    messages: Sequence[Mapping[str, Any]]
    body: Mapping[str, Any] = field(default_factory=dict)
    left_out: int = 0


def chat_logs(document: Document) -> Iterator[ChatLog]:
    """The conversations that a document has as lists of messages with a role.

    It is such a list, or JSON Lines of messages; or it holds requests' bodies, whose answers are
    their last messages where they are logged beside them.
    """
    entries = document.entries
    messages = [message for message in map(_message, entries) if message is not None]
    if len(messages) * 2 > len(entries):
        yield ChatLog(messages, left_out=len(entries) - len(messages))
        return
    for entry in entries:
        if isinstance(entry, list):
            entry = {"messages": entry}
        if isinstance(entry, dict):
            yield from _logged(entry)


def is_message(value: Any) -> bool:
    """Whether a value is a chat message."""
    return isinstance(value, dict) and value.get("role") in ROLES


def _message(entry: Any) -> Mapping[str, Any] | None:
    """The message that an entry of a log is, or that it has beside the time and the like."""
    if is_message(entry):
        return entry  # type: ignore[no-any-return]
    inner = entry.get("message") if isinstance(entry, dict) else None
    return inner if isinstance(inner, dict) and is_message(inner) else None


def _logged(entry: Mapping[str, Any]) -> Iterator[ChatLog]:
    answer = _answer(entry)
    for body in _bodies(entry):
        # Some log what they send a list of at once.
        listed = body["messages"]
        nested = [one for one in listed if isinstance(one, list)]
        for messages in nested if len(nested) == len(listed) else [listed]:
            known = [message for message in messages if is_message(message)]
            if len(known) * 2 > len(messages):
                told = [*known, *([answer] if answer is not None else [])]
                yield ChatLog(told, body, len(messages) - len(known))
        return
    if answer is not None:
        yield ChatLog([answer], entry)


def _bodies(entry: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The first body with messages that an entry is, or holds one or two levels down."""
    held = [as_dict(entry.get(key)) for key in _BODIES]
    deeper = [as_dict(one.get(key)) for one in held for key in _BODIES]
    for body in (entry, *held, *deeper):
        if isinstance(body.get("messages"), list) and body["messages"]:
            yield body
            return


def _answer(entry: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The message that answers the request of an entry, where it is logged."""
    held = [as_dict(entry.get(key)) for key in _ANSWERS]
    inner = [as_dict(one.get("body")) for one in held]
    for answer in (entry, *held, *inner):
        for choice in as_dicts(answer.get("choices")):
            if is_message(choice.get("message")):
                return as_dict(choice["message"])
        if answer.get("role") == "assistant" and "content" in answer:
            return answer
    return None
