"""Blocks of Anthropic's messages, which Claude Code logs as well, as turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_failgain.transcripts.arguments import as_json
from pytest_failgain.transcripts.conversation import Call, Result, Turn
from pytest_failgain.transcripts.draft import Draft, text_in
from pytest_failgain.transcripts.heuristics import cancelled_by
from pytest_failgain.transcripts.members import as_dict, as_dicts, as_text

CUT_OFF = "a reply that the output limit cut off"

_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
_THOUGHTS = ("thinking", "redacted_thinking")
_RESULT = "tool_result"

Cancelled = Callable[[Mapping[str, Any], str], bool]
"""Whether a result's block and text are those of a call that was rejected or never ran."""


def is_block(part: Mapping[str, Any]) -> bool:
    """Whether a part of a message's content is one that only Anthropic's messages have."""
    return _kind(_plain(part)) in (*_CALLS, *_THOUGHTS, _RESULT) or _is_result(_plain(part))


def marked_cancelled(block: Mapping[str, Any], text: str) -> bool:
    """Whether the text of an error is that of a call that was rejected or never ran."""
    return block.get("is_error") is True and cancelled_by(text) is not None


@dataclass(slots=True)
class BlockTurns:
    """Turns that are made of messages whose content may be blocks.

    `unmarked` is whether a result without a mark failed, None where that says nothing.
    """

    draft: Draft = field(default_factory=Draft)
    cancelled: Cancelled = marked_cancelled
    unmarked: bool | None = None

    def add(self, role: str, content: Any) -> None:
        """Add a message: the results in it first, each told to the model as a tool's."""
        listed = content if isinstance(content, list) else [content]
        blocks = [_plain(part) if isinstance(part, dict) else part for part in listed]
        calls = [call for block in as_dicts(blocks) if (call := self._call(block)) is not None]
        results = tuple(self._result(block) for block in as_dicts(blocks) if _is_result(block))
        said = [one for one in blocks if not _is_tool_block(one)]
        text = text_in(said, self.draft)
        if role != "assistant":
            self.draft.answer(*results)
            self.draft.say("system" if role in ("system", "developer") else "user", text)
        elif results:
            # What the API ran by itself is answered in the same message.
            self.draft.turns.append(Turn(role, text, tuple(calls), results))
        else:
            self.draft.reply(text, calls)

    def cut_off(self) -> None:
        """Note that the last reply is not whole."""
        self.draft.remark(CUT_OFF)

    def _call(self, block: Mapping[str, Any]) -> Call | None:
        if _kind(block) not in _CALLS:
            return None
        return self.draft.call(block.get("name"), block.get("input"), block.get("id"))

    def _result(self, block: Mapping[str, Any]) -> Result:
        content, call_id = block.get("content"), as_text(block.get("tool_use_id"))
        inner = as_dict(content)
        text = text_in(content, self.draft)
        if isinstance(inner.get("type"), str) and inner["type"].endswith("_error"):
            return Result(as_json(inner), call_id, True, "error_code")
        if isinstance(inner.get("return_code"), int):
            output = f"{inner.get('stdout') or ''}{inner.get('stderr') or ''}"
            return Result(output, call_id, inner["return_code"] != 0, "return_code")
        if self.cancelled(block, text):
            return Result(text, call_id, cancelled=True)
        failed = block.get("is_error")
        if isinstance(failed, bool):
            return Result(text, call_id, failed, "is_error")
        return Result(text, call_id, self.unmarked)


def _kind(block: Mapping[str, Any]) -> str:
    kind = block.get("type")
    return kind if isinstance(kind, str) else ""


def _is_result(block: Mapping[str, Any]) -> bool:
    return _kind(block).endswith(_RESULT)


def _is_tool_block(block: Any) -> bool:
    return isinstance(block, dict) and (_kind(block) in _CALLS or _is_result(block))


def _plain(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """A block of the Converse API as one of the Messages API."""
    use, result = block.get("toolUse"), block.get("toolResult")
    if isinstance(use, dict):
        return {**use, "type": "tool_use", "id": use.get("toolUseId")}
    if isinstance(result, dict):
        marked = {"is_error": result["status"] == "error"} if "status" in result else {}
        content = [_spoken(part) for part in as_dicts(result.get("content"))]
        told = {"type": _RESULT, "tool_use_id": result.get("toolUseId"), "content": content}
        return {**told, **marked}
    return block


def _spoken(part: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"type": "text", "text": as_json(part["json"])} if "json" in part else part
