"""Sessions of pi, which OpenClaw writes as well: a tree of entries, one a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_failgain.transcripts.conversation import Conversation, Result, Turn
from pytest_failgain.transcripts.document import Document
from pytest_failgain.transcripts.draft import Draft, text_in
from pytest_failgain.transcripts.heuristics import cancelled_by
from pytest_failgain.transcripts.members import as_dicts, as_text
from pytest_failgain.transcripts.session_tree import SHORTENED, ways

TOLD = "entries of a pi session told as chat messages"
NO_SYSTEM = "the system prompt and the tools of the session are not in its log"
COMPACTED = "a summary in the place of what was said before it"
BROKEN_OFF = "a reply that broke off left out, as pi leaves it out"

_ROLES = ("toolResult", "bashExecution", "branchSummary", "compactionSummary")
_SKIPPED = ("skipped due to queued user message", "operation aborted", "command aborted")


class PiReader:
    """The entries of a session, their tree told by `parentId`, or in their order without it."""

    name = "pi"

    def recognises(self, document: Document) -> bool:
        entries = [entry for entry in document.entries if isinstance(entry, dict)]
        if not any(map(_is_message, entries)):
            return False
        return any(entry.get("type") == "session" for entry in entries) or any(
            map(_is_own_message, entries)
        )

    def read(self, document: Document) -> Sequence[Conversation]:
        return list(_conversations([one for one in document.entries if isinstance(one, dict)]))


def _is_message(entry: Mapping[str, Any]) -> bool:
    return entry.get("type") == "message" and isinstance(entry.get("message"), dict)


def _is_own_message(entry: Mapping[str, Any]) -> bool:
    if not _is_message(entry):
        return False
    message = entry["message"]
    blocks = as_dicts(message.get("content"))
    return message.get("role") in _ROLES or any(one.get("type") == "toolCall" for one in blocks)


def _conversations(entries: Sequence[Mapping[str, Any]]) -> Iterator[Conversation]:
    draft = Draft()
    for note in (TOLD, NO_SYSTEM):
        draft.note(note)
    turns = [_turns(entry, draft) for entry in entries]
    found, shortened = ways(_parents(entries))
    if shortened:
        draft.note(SHORTENED)
    for way in found:
        for part in _parts(way, entries):
            whole = tuple(turn for at in part for turn in turns[at])
            if whole:
                yield Conversation(whole, notes=tuple(draft.notes))


def _parents(entries: Sequence[Mapping[str, Any]]) -> list[int | None]:
    by_id = {entry["id"]: i for i, entry in enumerate(entries) if as_text(entry.get("id"))}
    parents: list[int | None] = []
    for index, entry in enumerate(entries):
        parent = entry.get("parentId", "")
        known = by_id.get(parent) if isinstance(parent, str) else None
        # Without a parent, or with one that is not in the log, an entry follows the last.
        before = index - 1 if index else None
        parents.append(None if parent is None else before if known is None else known)
    return parents


def _parts(way: Sequence[int], entries: Sequence[Mapping[str, Any]]) -> Iterator[Sequence[int]]:
    """What the model is given on a way: all up to a summary, then that and what it keeps."""
    begin = 0
    kept: Sequence[int] = ()
    by_id = {str(entries[at].get("id")): number for number, at in enumerate(way)}
    for number, at in enumerate(way):
        if entries[at].get("type") != "compaction":
            continue
        yield [*kept, *way[begin:number]]
        first = by_id.get(str(entries[at].get("firstKeptEntryId")), number)
        # What an earlier summary tells of already is not kept another time.
        kept = [at, *way[max(first, begin) : number]]
        begin = number + 1
    yield [*kept, *way[begin:]]


def _turns(entry: Mapping[str, Any], draft: Draft) -> tuple[Turn, ...]:
    start = len(draft.turns)
    kind = entry.get("type")
    if _is_message(entry):
        _add(entry["message"], draft)
    elif kind in ("compaction", "branch_summary"):
        draft.note(COMPACTED)
        draft.say("user", text_in(entry.get("summary"), draft))
    elif kind == "custom_message":
        draft.say("user", text_in(entry.get("content"), draft))
    return tuple(draft.turns[start:])


def _add(message: Mapping[str, Any], draft: Draft) -> None:
    role, content = message.get("role"), message.get("content")
    if role == "assistant":
        _reply(message, draft)
    elif role == "toolResult":
        draft.answer(_result(message, text_in(content, draft)))
    elif role == "bashExecution":
        if message.get("excludeFromContext") is not True:
            draft.say("user", f"Ran `{message.get('command')}`\n{message.get('output') or ''}")
    elif role in ("branchSummary", "compactionSummary"):
        draft.note(COMPACTED)
        draft.say("user", text_in(message.get("summary"), draft))
    else:
        draft.say("system" if role == "system" else "user", text_in(content, draft))


def _reply(message: Mapping[str, Any], draft: Draft) -> None:
    if message.get("stopReason") in ("error", "aborted"):
        draft.note(BROKEN_OFF)
        return
    blocks = as_dicts(message.get("content"))
    made = [block for block in blocks if block.get("type") == "toolCall"]
    said = [block for block in blocks if block.get("type") != "toolCall"]
    text = text_in(said or message.get("content"), draft) if said or not made else ""
    calls = [draft.call(one.get("name"), one.get("arguments"), one.get("id")) for one in made]
    draft.reply(text, calls)


def _result(message: Mapping[str, Any], text: str) -> Result:
    call_id, tool = as_text(message.get("toolCallId")), as_text(message.get("toolName"))
    failed = message.get("isError")
    if failed is not False and (text.lower().startswith(_SKIPPED) or cancelled_by(text)):
        return Result(text, call_id, cancelled=True, tool=tool)
    marked = isinstance(failed, bool)
    return Result(text, call_id, failed if marked else None, "isError" if marked else "", tool=tool)
