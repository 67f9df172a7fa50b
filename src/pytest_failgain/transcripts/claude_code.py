"""Sessions of Claude Code: a tree of lines, or what `--output-format stream-json` prints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_failgain.transcripts.anthropic_blocks import BlockTurns
from pytest_failgain.transcripts.conversation import Conversation, Turn
from pytest_failgain.transcripts.document import Document
from pytest_failgain.transcripts.members import as_dict, as_text
from pytest_failgain.transcripts.session_tree import SHORTENED, ways

TOLD = "lines of a Claude Code session told as chat messages"
NO_SYSTEM = "the system prompt and the tools of the session are not in its log"
COMPACTED = "a summary in the place of what was said before it"
NOT_A_REPLY = "a notice of the program's in the place of a reply left out"

_RESULT = "tool_result"
_OWN_KEYS = ("uuid", "parentUuid", "sessionId", "session_id", "isSidechain", "parent_tool_use_id")

# What stands in the place of a result where the call was turned down or never ran.
_CANCELLED = re.compile(
    r"\s*(?:<tool_use_error>)?\s*(?:"
    r"The user doesn't want to (?:proceed|take)|"
    r"\[Request interrupted by user|"
    r"Cancell?ed\b|Sibling tool call|"
    r"(?:The )?tool use was (?:rejected|interrupted|cancell?ed)|"
    r"(?:The )?user (?:rejected|declined|denied|aborted|interrupted|cancell?ed)|"
    r"Permission to use [^\n]{0,300}(?:has been|was) denied|"
    r"Claude requested permissions? to [^\n]{0,300}you haven't granted)",
    re.I,
)
_ERROR = "<tool_use_error>"


class ClaudeCodeReader:
    """The lines of a session, those of its subagents among them or not."""

    name = "claude-code"

    def recognises(self, document: Document) -> bool:
        return any(map(_is_line, document.entries))

    def read(self, document: Document) -> Sequence[Conversation]:
        lines = [line for line in document.entries if isinstance(line, dict)]
        return list(_conversations(_entries(_Lines(lines))))


def _is_line(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.get("type") in ("user", "assistant")
        and isinstance(value.get("message"), dict)
        and any(key in value for key in _OWN_KEYS)
    )


class _Lines:
    """The lines of a session, and for each the index of the one before it in its conversation."""

    def __init__(self, lines: Sequence[Mapping[str, Any]]) -> None:
        self.lines = lines
        by_id = {line["uuid"]: i for i, line in enumerate(lines) if as_text(line.get("uuid"))}
        self.before: list[int | None] = []
        last: dict[str, int] = {}
        for index, line in enumerate(lines):
            stream = _stream(line)
            parent = line.get("parentUuid", "")
            if parent is None:
                self.before.append(None)
            else:
                # Without a parent, or with one that is not in the log, a line follows the last.
                known = by_id.get(parent) if isinstance(parent, str) else None
                self.before.append(last.get(stream) if known is None else known)
            if _is_line(line) or "uuid" in line:
                last[stream] = index


def _stream(line: Mapping[str, Any]) -> str:
    agent = as_text(line.get("parent_tool_use_id")) or as_text(line.get("agentId"))
    return agent or str(line.get("isSidechain") is True)


@dataclass(slots=True)
class _Entry:
    """A message as the model sees it: of a reply all of its lines, with all of its results.

    `line` is the first of its lines, `before` the entry that it follows.
    """

    role: str
    line: int
    content: list[Any] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)
    before: int | None = None
    cut_off: bool = False
    summary: bool = False


def _entries(session: _Lines) -> list[_Entry]:
    made = _Entries(session)
    for index, line in enumerate(session.lines):
        if line.get("type") == "assistant" and _is_line(line):
            made.reply(index, line)
    for index, line in enumerate(session.lines):
        if line.get("type") == "user" and _is_line(line):
            made.said(index, line)
    return made.in_order()


@dataclass(slots=True)
class _Entries:
    session: _Lines
    entries: list[_Entry] = field(default_factory=list)
    by_message: dict[str, int] = field(default_factory=dict)
    by_call: dict[str, int] = field(default_factory=dict)
    of_line: dict[int, int] = field(default_factory=dict)

    def reply(self, index: int, line: Mapping[str, Any]) -> None:
        message = as_dict(line["message"])
        if line.get("isApiErrorMessage") is True or message.get("model") == "<synthetic>":
            return
        message_id = as_text(message.get("id"))
        key = f"{_stream(line)} {message_id}"
        if message_id is None or key not in self.by_message:
            self.by_message[key] = self._new("assistant", index)
        at = self.of_line[index] = self.by_message[key]
        entry = self.entries[at]
        entry.cut_off |= message.get("stop_reason") == "max_tokens"
        for part in _parts(message.get("content")):
            call_id = as_text(part.get("id")) if isinstance(part, dict) else None
            # A session that was resumed may tell of a call once more.
            if call_id is None or self.by_call.setdefault(call_id, at) == at:
                entry.content.append(part)

    def said(self, index: int, line: Mapping[str, Any]) -> None:
        if line.get("isVisibleInTranscriptOnly") is True and not line.get("isCompactSummary"):
            return
        parts = _parts(as_dict(line["message"]).get("content"))
        results = [part for part in parts if _is_result(part)]
        others = [part for part in parts if not _is_result(part)]
        interrupted = as_dict(line.get("toolUseResult")).get("interrupted") is True
        at = None
        for result in results:
            at = self.by_call.get(str(result.get("tool_use_id")))
            if at is None:
                at = self._new("user", index)
            self.entries[at].results.append({**result, "interrupted": interrupted})
            self.of_line[index] = at
        if others:
            self.of_line[index] = self._new("user", index)
            entry = self.entries[self.of_line[index]]
            entry.content = others
            entry.summary = line.get("isCompactSummary") is True
            entry.before = at

    def in_order(self) -> list[_Entry]:
        """The entries as their first lines stand in the session, each with the one before it."""
        order = sorted(range(len(self.entries)), key=lambda at: self.entries[at].line)
        place = {at: number for number, at in enumerate(order)}
        above: dict[int, int | None] = {}
        for at in order:
            before = self.entries[at].before
            if before is None:
                before = self._above(at, above)
            self.entries[at].before = None if before is None else place[before]
        return [self.entries[at] for at in order]

    def _new(self, role: str, line: int) -> int:
        self.entries.append(_Entry(role, line))
        return len(self.entries) - 1

    def _above(self, at: int, above: dict[int, int | None]) -> int | None:
        """The entry of the nearest line above an entry's first one that is of another entry."""
        passed = []
        line = self.session.before[self.entries[at].line]
        seen: set[int] = set()
        found: int | None = None
        while line is not None and line not in seen:
            seen.add(line)
            found = self.of_line.get(line)
            if found is not None and found != at:
                break
            if found is None and line in above:
                found = above[line]
                break
            if found is None:
                passed.append(line)
            line, found = self.session.before[line], None
        for one in passed:
            above[one] = found
        return found


def _parts(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content if isinstance(content, list) else []


def _is_result(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == _RESULT


def _cancelled(block: Mapping[str, Any], text: str) -> bool:
    if block.get("interrupted") is True:
        return True
    return block.get("is_error") is not False and _CANCELLED.match(text) is not None


def _conversations(entries: Sequence[_Entry]) -> Iterator[Conversation]:
    made = BlockTurns(cancelled=_cancelled, unmarked=False)
    for note in (TOLD, NO_SYSTEM):
        made.draft.note(note)
    turns = [_turns(entry, made) for entry in entries]
    found, shortened = ways([entry.before for entry in entries])
    if shortened:
        made.draft.note(SHORTENED)
    told: set[int] = set()
    for way in found:
        fresh = [at for at in way if at not in told]
        told.update(fresh)
        if not told - set(fresh) or any(entries[at].role == "assistant" for at in fresh):
            whole = tuple(turn for at in way for turn in turns[at])
            yield Conversation(whole, notes=tuple(made.draft.notes))


def _turns(entry: _Entry, made: BlockTurns) -> tuple[Turn, ...]:
    start = len(made.draft.turns)
    if entry.summary:
        made.draft.note(COMPACTED)
    made.add(entry.role, entry.content)
    if entry.cut_off:
        made.cut_off()
    made.add("user", entry.results)
    return tuple(made.draft.turns[start:])
