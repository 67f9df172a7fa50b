"""Messages of Anthropic's API, a request's body around them or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_failgain.transcripts.anthropic_blocks import BlockTurns, is_block
from pytest_failgain.transcripts.beginnings import joined
from pytest_failgain.transcripts.chat_logs import LEFT_OUT, ChatLog, chat_logs
from pytest_failgain.transcripts.conversation import Conversation, tool_from
from pytest_failgain.transcripts.document import Document
from pytest_failgain.transcripts.draft import text_in
from pytest_failgain.transcripts.members import as_dict, as_dicts

TOLD = "messages of Anthropic's API told as chat messages"


class AnthropicReader:
    """A list of messages, a request's body, or JSON Lines of one or the other.

    The messages of Bedrock's Converse API, whose blocks are alike, are read as well.
    """

    name = "anthropic"

    def recognises(self, document: Document) -> bool:
        return any(map(_is_anthropic, chat_logs(document)))

    def read(self, document: Document) -> Sequence[Conversation]:
        return joined([_conversation(log) for log in chat_logs(document)])


def _is_anthropic(log: ChatLog) -> bool:
    if any("tool_calls" in message or message["role"] == "tool" for message in log.messages):
        return False
    if any(True for message in log.messages for _ in _blocks(message)):
        return True
    if any(message["role"] in ("system", "developer") for message in log.messages):
        return False
    tools = as_dicts(log.body.get("tools"))
    return bool(
        isinstance(log.body.get("system"), str | list)
        or "anthropic_version" in log.body
        or any("input_schema" in tool for tool in tools)
    )


def _blocks(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (part for part in as_dicts(message.get("content")) if is_block(part))


def _conversation(log: ChatLog) -> Conversation:
    turns = BlockTurns()
    turns.draft.note(TOLD)
    if log.left_out:
        turns.draft.note(LEFT_OUT)
    turns.draft.say("system", text_in(log.body.get("system"), turns.draft))
    for message in log.messages:
        turns.add(str(message["role"]), message.get("content"))
        if message.get("stop_reason") in ("max_tokens", "maxTokens"):
            turns.cut_off()
    offered = as_dicts(log.body.get("tools")) or _converse_tools(log.body)
    return turns.draft.conversation([tool_from(tool) for tool in offered])


def _converse_tools(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    specs = (
        as_dict(tool.get("toolSpec"))
        for tool in as_dicts(as_dict(body.get("toolConfig")).get("tools"))
    )
    return [
        {**spec, "input_schema": as_dict(spec.get("inputSchema")).get("json")} for spec in specs
    ]
