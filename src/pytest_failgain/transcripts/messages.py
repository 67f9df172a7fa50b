"""Lists of chat messages in a document, for formats whose actions are text in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_failgain.trajectory import Action, ToolCall
from pytest_failgain.transcripts.content import content_text
from pytest_failgain.transcripts.conversation import Call, Result, Turn
from pytest_failgain.transcripts.document import Document

_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "tool": "tool",
    "function": "tool",
}


@dataclass(frozen=True, slots=True)
class MessageList:
    """The messages of one conversation, and the object that they are a member of, if any."""

    messages: Sequence[Mapping[str, Any]]
    around: Mapping[str, Any] = field(default_factory=dict)


def message_lists(document: Document, key: str = "messages") -> Iterator[MessageList]:
    """The lists of messages in a document: it is one, or has them under `key`.

    A message is an object with a role, or with a type as objects of the Responses API have.
    """
    entries = document.entries
    if _are_messages(entries):
        yield MessageList(entries)
        return
    for entry in entries:
        inner = entry.get(key) if isinstance(entry, dict) else entry
        if isinstance(inner, list) and _are_messages(inner):
            yield MessageList(inner, entry if isinstance(entry, dict) else {})


def _are_messages(entries: Sequence[Any]) -> bool:
    return bool(entries) and all(
        isinstance(entry, dict)
        and any(isinstance(entry.get(key), str) for key in ("role", "type", "object"))
        for entry in entries
    )


def role_of(message: Mapping[str, Any]) -> str:
    """The role in the words of chat completions; what is unknown is a user's."""
    role = message.get("role")
    return _ROLES.get(role, "user") if isinstance(role, str) else "user"


def text_of(message: Mapping[str, Any]) -> str:
    """All that a message says."""
    return content_text(message.get("content"))


def without(message: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """A message without what was only noted beside it, and never sent to the model."""
    return {key: value for key, value in message.items() if key not in keys}


def plain_turn(message: Mapping[str, Any], sent: Mapping[str, Any] | None = None) -> Turn:
    """The turn of a message as chat completions have it, its structured calls and results told."""
    role, text = role_of(message), text_of(message)
    sent = message if sent is None else sent
    if role == "tool":
        return Turn(role, text, results=(Result(text, call_id_of(message)),), message=sent)
    calls = native_calls(message) if role == "assistant" else ()
    return Turn(role, text, calls, message=sent)


def native_calls(message: Mapping[str, Any]) -> tuple[Call, ...]:
    """The structured calls of an assistant's message."""
    made = message.get("tool_calls")
    return tuple(filter(None, map(_native_call, made if isinstance(made, list) else ())))


def call_id_of(message: Mapping[str, Any]) -> str | None:
    """The id of the call that a message answers."""
    ids = message.get("tool_call_ids")
    first = ids[0] if isinstance(ids, list) and ids else None
    found = message.get("tool_call_id") or first
    return found if isinstance(found, str) else None


def _native_call(call: Any) -> Call | None:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return None
    arguments, call_id = function.get("arguments"), call.get("id")
    made = ToolCall(function["name"], arguments if isinstance(arguments, str) else "{}")
    return Call(Action(calls=(made,)), call_id if isinstance(call_id, str) else None)
