"""A client's request and the model's answer, the same for every API that a client speaks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_failgain.prompt import Message
from pytest_failgain.trajectory import Tool, ToolCall
from pytest_failgain.transcripts.content import content_text


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asks.

    `api` is "chat" or "responses". `messages` are chat messages in either; of the Responses API
    with what was said before an earlier response. `tool_choice` and `body` are as they were sent.
    `earlier` are the requests that this endpoint answered before, oldest first.
    """

    api: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: Any = None
    stop: tuple[str, ...] = ()
    stream: bool = False
    body: Mapping[str, Any] = field(default_factory=dict)
    earlier: tuple[Request, ...] = field(default=(), repr=False)

    @property
    def text(self) -> str:
        """All that its messages say, calls and their ids with it."""
        return "\n".join(map(message_text, self.messages))

    @property
    def named_tool(self) -> str | None:
        """The one tool that must be called, None where there is none."""
        if not isinstance(self.tool_choice, dict):
            return None
        inner = self.tool_choice.get("function")
        name = (inner if isinstance(inner, dict) else self.tool_choice).get("name")
        return name if isinstance(name, str) else None

    @property
    def demands_call(self) -> bool:
        """Whether an answer without a call is not allowed."""
        choice = self.tool_choice
        if isinstance(choice, dict):
            # {"type": "allowed_tools", "mode": …}, in chat completions one level deeper.
            allowed = choice.get("allowed_tools", choice)
            if isinstance(allowed, dict) and "mode" in allowed:
                return bool(allowed["mode"] == "required")
        return self.named_tool is not None or choice in ("required", "any")

    @property
    def forbids_calls(self) -> bool:
        """Whether the client wants text alone."""
        return bool(self.tool_choice == "none")

    @property
    def demanded_schema(self) -> dict[str, Any] | None:
        """The JSON Schema that text must fit; {} for any object, None where it is free."""
        wanted = self.body.get("response_format")
        if self.api == "responses":
            text = self.body.get("text")
            wanted = text.get("format") if isinstance(text, dict) else None
        if not isinstance(wanted, dict):
            return None
        inner = wanted.get("json_schema")
        schema = (inner if isinstance(inner, dict) else wanted).get("schema")
        if wanted.get("type") == "json_schema" and isinstance(schema, dict):
            return schema
        return {"type": "object"} if wanted.get("type") in ("json_schema", "json_object") else None


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model says: text, calls, or both.

    None as `content` is sent as null, which some clients tell from "". `call_ids` are the ids of
    the calls, made up where there are none.
    """

    content: str | None = None
    calls: tuple[ToolCall, ...] = ()
    call_ids: tuple[str, ...] = ()


def message_text(message: Mapping[str, Any]) -> str:
    """What a chat message says, the calls that it makes and the ids in it with it."""
    parts = [content_text(message.get("content"))]
    for key in ("tool_calls", "function_call", "tool_call_id"):
        value = message.get(key)
        if value:
            parts.append(value if isinstance(value, str) else json.dumps(value, sort_keys=True))
    return "\n".join(parts)


def extends(later: Request, earlier: Request) -> bool:
    """Whether `later` says all that `earlier` does, in the same places, and something more."""
    new, old = later.messages, earlier.messages
    if not old or len(new) < len(old):
        return False
    more = len(new) > len(old)
    for message, before in zip(new, old, strict=False):
        text, said = message_text(message), message_text(before)
        if message.get("role") != before.get("role") or said not in text:
            return False
        more = more or text != said
    return more


def cut_at_stop(text: str, stop: tuple[str, ...]) -> str:
    """`text` up to the first of the stop strings, as a model that is given them says it."""
    places = (text.find(one) for one in stop if one)
    return text[: min((place for place in places if place >= 0), default=len(text))]
