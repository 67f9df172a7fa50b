"""Rollouts of Codex: lines of items that were sent, and of events beside them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_failgain.transcripts.conversation import Conversation, Result
from pytest_failgain.transcripts.document import Document
from pytest_failgain.transcripts.heuristics import cancelled_by
from pytest_failgain.transcripts.members import as_dict, as_dicts, as_text
from pytest_failgain.transcripts.response_items import (
    ItemTurns,
    identity,
    is_call_item,
    plain_result,
)

TOLD = "items of a Codex rollout told as chat messages"
NO_TOOLS = "the tools of the session are not in its log"
COMPACTED = "a summary in the place of what was said before it"

_LINES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")

# What is said of a command that goes on in the background.
_RUNNING = "Process running with session ID"
_EXIT_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,10})\b", re.M)
# How Codex begins what it says of a call that it could not make.
_ERROR = re.compile(
    r"\s*(?:unsupported (?:custom tool )?call\b|tool call error:|failed to parse function arguments"
    r"|apply_patch verification failed|(?:exec_command|write_stdin) failed|execution error:"
    r"|failed in sandbox|command timed out after)",
    re.I,
)
_CANCELLED = re.compile(
    r"\s*(?:(?:(?:exec )?command|patch|tool call|request)? ?rejected(?: by|: rejected by) user"
    r"|user (?:rejected|cancell?ed|declined)|aborted(?: by user)?\b|turn aborted)",
    re.I,
)


class CodexReader:
    """The lines of a rollout, or those of older versions, which are items under a header."""

    name = "codex"

    def recognises(self, document: Document) -> bool:
        return any(map(_is_line, document.entries)) or _is_old(document.entries)

    def read(self, document: Document) -> Sequence[Conversation]:
        lines = [line for line in document.entries if isinstance(line, dict)]
        return list(_conversations(lines))


def _is_line(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.get("type") in _LINES
        and isinstance(value.get("payload"), dict)
    )


def _is_old(entries: Sequence[Any]) -> bool:
    lines = as_dicts(entries)
    states = any(line.get("record_type") == "state" for line in lines)
    header = bool(lines) and "id" in lines[0] and "timestamp" in lines[0] and "type" not in lines[0]
    return (states or header) and any(map(is_call_item, lines))


@dataclass(frozen=True, slots=True)
class _Marks:
    """What the events tell of calls, by their ids: whether each failed, and by which mark."""

    by_call: Mapping[str, tuple[bool, str]]

    def result(self, item: Mapping[str, Any], text: str) -> Result:
        call_id = identity(item)
        if _CANCELLED.match(text) or cancelled_by(text):
            return Result(text, call_id, cancelled=True)
        told = self.by_call.get(call_id or "") or _told(text)
        if told is not None:
            return Result(text, call_id, *told)
        return plain_result(item, text)


def _told(text: str) -> tuple[bool, str] | None:
    """Whether a call failed by what Codex writes around an output."""
    if text.startswith("{"):
        try:
            code = as_dict(as_dict(json.loads(text)).get("metadata")).get("exit_code")
        except (ValueError, RecursionError):
            return None
        return None if not isinstance(code, int) else (code != 0, "metadata.exit_code")
    if _ERROR.match(text):
        return True, "error text"
    head = text[:400].partition("\nOutput:")[0]
    if _RUNNING in head:
        return False, "exit code"
    found = _EXIT_CODE.search(head)
    return None if found is None else (int(found.group(1)) != 0, "exit code")


def _conversations(lines: Sequence[Mapping[str, Any]]) -> Iterator[Conversation]:
    marks = _Marks(dict(_marked(lines)))
    turns = _begun(marks)
    for line in lines:
        kind, payload = line.get("type"), as_dict(line.get("payload"))
        if kind == "session_meta":
            turns.draft.say("system", _instructions(payload))
        elif kind == "response_item":
            turns.add([payload])
        elif kind == "compacted":
            turns.end_of_turn()
            yield turns.draft.conversation()
            turns = _begun(marks)
            turns.draft.note(COMPACTED)
            turns.add(_replacement(payload))
        elif kind not in _LINES and "record_type" not in line and _is_item(line):
            turns.add([line])
    turns.end_of_turn()
    yield turns.draft.conversation()


def _begun(marks: _Marks) -> ItemTurns:
    turns = ItemTurns(judge=marks.result)
    for note in (TOLD, NO_TOOLS):
        turns.draft.note(note)
    return turns


def _is_item(line: Mapping[str, Any]) -> bool:
    return is_call_item(line) or line.get("type") in ("message", "reasoning")


def _instructions(meta: Mapping[str, Any]) -> str:
    given = meta.get("instructions") or as_dict(meta.get("base_instructions")).get("text")
    return given if isinstance(given, str) else ""


def _replacement(payload: Mapping[str, Any]) -> list[Any]:
    history = payload.get("replacement_history")
    if isinstance(history, list) and history:
        return history
    return [{"type": "message", "role": "user", "content": payload.get("message")}]


def _marked(lines: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, tuple[bool, str]]]:
    for line in lines:
        event = as_dict(line.get("payload")) if line.get("type") == "event_msg" else {}
        call_id, kind = as_text(event.get("call_id")), event.get("type")
        if call_id is None:
            continue
        if kind == "exec_command_end" and isinstance(event.get("exit_code"), int):
            yield call_id, (event["exit_code"] != 0, "exit_code")
        elif kind == "patch_apply_end" and isinstance(event.get("success"), bool):
            yield call_id, (not event["success"], "success")
        elif kind == "mcp_tool_call_end" and isinstance(event.get("result"), dict):
            done = as_dict(event["result"].get("Ok"))
            failed = "Err" in event["result"] or True in (done.get("is_error"), done.get("isError"))
            yield call_id, (failed, "mcp result")
