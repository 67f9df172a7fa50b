"""Messages of OpenAI's chat completions, a request's body around them or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_failgain.trajectory import Action, ToolCall
from pytest_failgain.transcripts.content import content_text
from pytest_failgain.transcripts.conversation import Call, Conversation, Result, Turn, tool_from
from pytest_failgain.transcripts.document import Document

ROLES = ("system", "developer", "user", "assistant", "tool", "function")


class OpenAIChatReader:
    """A list of messages, a request's body, or JSON Lines of one or the other."""

    name = "openai-chat"

    def recognises(self, document: Document) -> bool:
        return any(_messages_in(document))

    def read(self, document: Document) -> Sequence[Conversation]:
        return [
            Conversation(
                tuple(turn for message in messages for turn in _turns(message)),
                tuple(filter(None, map(tool_from, tools))),
            )
            for messages, tools in _messages_in(document)
        ]


def _messages_in(document: Document) -> list[tuple[list[Any], list[Any]]]:
    """The lists of messages, each with the tools that are offered beside it."""
    if _are_messages(list(document.entries)):
        return [(list(document.entries), [])]
    found = []
    for value in document.entries:
        inner = value.get("messages") if isinstance(value, dict) else value
        if isinstance(inner, list) and _are_messages(inner):
            tools = value.get("tools") if isinstance(value, dict) else None
            found.append((inner, tools if isinstance(tools, list) else []))
    return found


def _are_messages(value: list[Any]) -> bool:
    return bool(value) and all(
        isinstance(entry, dict) and entry.get("role") in ROLES for entry in value
    )


def _turns(message: dict[str, Any]) -> list[Turn]:
    role, text = message["role"], content_text(message.get("content"))
    if role in ("tool", "function"):
        call_id = message.get("tool_call_id")
        result = Result(text, call_id if isinstance(call_id, str) else None)
        return [Turn("tool", text, results=(result,), message=message)]
    if role == "assistant":
        return [Turn("assistant", text, _calls(message.get("tool_calls")), message=message)]
    return [Turn("system" if role == "developer" else role, text, message=message)]


def _calls(value: Any) -> tuple[Call, ...]:
    calls = []
    for call in value if isinstance(value, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            arguments = function.get("arguments")
            text = arguments if isinstance(arguments, str) else "{}"
            call_id = call.get("id")
            calls.append(
                Call(
                    Action(calls=(ToolCall(function["name"], text),)),
                    call_id if isinstance(call_id, str) else None,
                )
            )
    return tuple(calls)
