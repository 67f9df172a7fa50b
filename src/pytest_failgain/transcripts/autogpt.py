"""AutoGPT classic: the next command in a JSON reply, its result in a system message."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_failgain.trajectory import Action
from pytest_failgain.transcripts.conversation import Call, Conversation, Result, Turn
from pytest_failgain.transcripts.document import Document
from pytest_failgain.transcripts.messages import (
    MessageList,
    message_lists,
    native_calls,
    plain_turn,
    role_of,
    text_of,
)

_COMMANDS = ("command", "use_tool", "ability")
_THOUGHTS = ("thoughts", "thought")
_SPACE = re.compile(r"[ \t\r\n]*")
_COMMAND = re.compile(r"\"(?:command|use_tool|ability)\"\s*:\s*(?=\{)")

# System messages that only tell of the state of things.
_NO_RESULT = re.compile(
    r"\A\s*(?:The current time and date|This reminds you|Relevant memory|Your (?:remaining )?budget"
    r"|Remaining budget|## Progress|You are )",
    re.I,
)
_RESULT = re.compile(
    r"\A\s*(?:Command\b|Action (?:failed|succeeded)|Result\b|Error\b|Human feedback:|The user "
    r"interrupted|Unable to execute command|Executed `)"
)
_CANCELLED = re.compile(
    r"\A\s*(?:Human feedback:|The user interrupted the action|Command human_feedback\b)"
)
_MARKED = re.compile(
    r"\A\s*(?:Command .{1,200}? (?:threw the following error|failed)\b|Action failed:"
    r"|Command Error:)",
    re.S,
)


class AutoGPTReader:
    """A list of messages, such as a `full_message_history.json`."""

    name = "autogpt"

    def recognises(self, document: Document) -> bool:
        return any(map(_is_run, message_lists(document)))

    def read(self, document: Document) -> Sequence[Conversation]:
        return [_conversation(run.messages) for run in message_lists(document)]


def _is_run(run: MessageList) -> bool:
    for message in run.messages:
        if role_of(message) == "assistant" and not message.get("tool_calls"):
            members = _members(text_of(message))
            if members.keys() & set(_THOUGHTS) and members.keys() & set(_COMMANDS):
                return True
    return False


def _conversation(messages: Sequence[Mapping[str, Any]]) -> Conversation:
    turns: list[Turn] = []
    for message in messages:
        text = text_of(message)
        if role_of(message) == "assistant":
            calls = native_calls(message)
            command = None if calls else _command(text)
            if command is not None:
                calls = (Call(Action(command)),)
            turns.append(Turn("assistant", text, calls, message=message))
        elif turns and _is_open(turns) and _is_result(message):
            turns.append(Turn(role_of(message), text, results=(_result(text),), message=message))
        else:
            turns.append(plain_turn(message))
    return Conversation(tuple(turns))


def _is_open(turns: Sequence[Turn]) -> bool:
    """Whether the last reply has a command that nothing has answered yet."""
    for turn in reversed(turns[-4:]):
        if turn.role == "assistant":
            return bool(turn.calls) and not turn.calls[0].action.calls
        if turn.results:
            return False
    return False


def _is_result(message: Mapping[str, Any]) -> bool:
    text = text_of(message)
    if role_of(message) == "user":
        return bool(_RESULT.match(text))
    return role_of(message) != "tool" and not _NO_RESULT.match(text)


def _result(text: str) -> Result:
    if _CANCELLED.match(text):
        return Result(text, cancelled=True)
    if _MARKED.match(text):
        return Result(text, failed=True, mark="a command's error")
    return Result(text)


def _command(reply: str) -> str | None:
    """The command in a reply, as the model wrote it; from a broken reply, too."""
    members = _members(reply)
    for name in _COMMANDS:
        if name in members:
            start, end = members[name]
            return reply[start:end] if reply[start] == "{" else None
    found = None if members else _COMMAND.search(reply)
    if found is None:
        return None
    whole = _value_end(reply, found.end())
    return reply[found.end() : len(reply) if whole is None else whole].strip()


def _members(reply: str) -> dict[str, tuple[int, int]]:
    """Where the values stand of the first JSON object in a reply; empty where it is broken."""
    at = reply.find("{")
    if at < 0:
        return {}
    members: dict[str, tuple[int, int]] = {}
    at += 1
    while True:
        at = _behind_space(reply, at)
        if reply[at : at + 1] != '"':
            return members if reply[at : at + 1] == "}" else {}
        key_end = _value_end(reply, at)
        if key_end is None:
            return {}
        key = reply[at + 1 : key_end - 1]
        at = _behind_space(reply, key_end)
        if reply[at : at + 1] != ":":
            return {}
        start = _behind_space(reply, at + 1)
        value_end = _value_end(reply, start)
        if value_end is None:
            return {}
        members[key] = (start, value_end)
        at = _behind_space(reply, value_end)
        if reply[at : at + 1] == ",":
            at += 1


def _behind_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _value_end(text: str, at: int) -> int | None:
    """Where the JSON value ends that begins at a place; None where there is none."""
    try:
        return _DECODER.raw_decode(text, at)[1]
    except (ValueError, RecursionError):
        return None


_DECODER = json.JSONDecoder(strict=False)
