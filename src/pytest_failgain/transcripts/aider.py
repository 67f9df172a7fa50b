"""Aider's .aider.chat.history.md: turns told apart by the beginnings of their lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pytest_failgain.trajectory import Action
from pytest_failgain.transcripts.conversation import Call, Conversation, Result, Turn
from pytest_failgain.transcripts.document import Document

TOLD = "the tool's lines of a chat history told as a user's turn, with their '> '"
LEFT_OUT = "notices of the tool that answer no edit left out"

_HEADER = "# aider chat started at "
_USER = re.compile(r"####(?: |$)")
_TOOL = re.compile(r">(?: |$)")
_HEAD, _DIVIDER, _UPDATED = "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE"
_FENCE = "```"
_SHELL = re.compile(r"```(?:bash|sh|shell|cmd|batch|powershell|ps1|zsh|fish)\s*$")
_DIFF = re.compile(r"```(?:diff|udiff|patch)\s*$")

# Commands of the user whose text goes to the model; the others are the tool's business.
_ASKING = re.compile(r"/(?:ask|code|architect|chat|help|context)\s+(?=\S)")

_USAGE = re.compile(r"> (?:Tokens:|Cost:|\s*$)|>\s*$")
_NOT_APPLIED = re.compile(
    r"SEARCH/REPLACE blocks? (?:failed to match|did not match)|did not conform to the edit format"
    r"|UnifiedDiff(?:NoMatch|NotUnique)|hunks? failed to apply|Malformed (?:ORIGINAL|edit)"
    r"|The edit format was not|No exact match for|Bad/missing filename|DiffError"
    r"|Unable to (?:parse|apply|find)|Skipping edits to|Expected `[<=>]{7}"
)
_LINT = re.compile(r"^> # Fix any errors below|^> ## Running: |^> .{0,200}: (?:E999|F\d{3}) ", re.M)
_APPLIED = re.compile(r"^> (?:Applied edit to|Allow edits to|Creating empty file) ", re.M)


class AiderReader:
    """A chat history; each session in it is a conversation."""

    name = "aider"

    def recognises(self, document: Document) -> bool:
        text = _text(document)
        if text is None:
            return False
        if text.startswith(_HEADER) or f"\n{_HEADER}" in text:
            return True
        return bool(re.search(r"^#### \S", text, re.M) and _APPLIED.search(text))

    def read(self, document: Document) -> Sequence[Conversation]:
        return [_conversation(blocks) for blocks in _sessions(_text(document) or "")]


def _text(document: Document) -> str | None:
    if document.text and document.broken_lines >= len(document.values):
        return document.text
    return document.value if isinstance(document.value, str) else None


@dataclass(frozen=True, slots=True)
class _Block:
    """Consecutive lines of one speaker: "user", "tool" or "assistant"."""

    speaker: str
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.lines)


def _sessions(text: str) -> Iterator[list[_Block]]:
    blocks: list[_Block] = []
    for speaker, lines in _spoken(text.splitlines(keepends=True)):
        if speaker == "session":
            if blocks:
                yield blocks
            blocks = []
        elif blocks and blocks[-1].speaker == speaker and not _is_new_message(blocks[-1]):
            blocks[-1].lines.extend(lines)
        elif any(line.strip() for line in lines):
            blocks.append(_Block(speaker, list(lines)))
        elif blocks:
            blocks[-1].lines.extend(lines)
    if blocks:
        yield blocks


def _is_new_message(block: _Block) -> bool:
    """Whether what the same speaker says next is another message; only users send several."""
    return block.speaker == "user" and not block.lines[-1].strip()


def _spoken(lines: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Who says which lines. Fences count for nothing, since they may be unbalanced."""
    ends = _edit_ends(lines)
    at = 0
    while at < len(lines):
        line = lines[at]
        bare = line.rstrip("\r\n")
        if at in ends:
            # An edit may have lines that begin as another speaker's do.
            yield "assistant", lines[at : ends[at] + 1]
            at = ends[at]
        elif line.startswith(_HEADER):
            yield "session", ()
        elif _USER.match(bare):
            yield "user", (line,)
        elif _TOOL.match(bare):
            yield "tool", (line,)
        elif not bare.strip():
            yield "blank", (line,)
        else:
            yield "assistant", (line,)
        at += 1


def _edit_ends(lines: Sequence[str]) -> dict[int, int]:
    """The last line of each SEARCH/REPLACE block by its first; one that is cut off is none."""
    ends: dict[int, int] = {}
    head = None
    for at, line in enumerate(lines):
        bare = line.strip()
        if bare == _HEAD:
            head = at
        elif bare == _UPDATED and head is not None:
            ends[head] = at
            head = None
        elif line.startswith(_HEADER):
            head = None
    return ends


def _conversation(blocks: Sequence[_Block]) -> Conversation:
    turns: list[Turn] = []
    notes: list[str] = []
    for place, block in enumerate(blocks):
        if block.speaker == "user":
            said = _asked(block)
            if said:
                turns.append(Turn("user", said))
        elif block.speaker == "assistant":
            answer = blocks[place + 1] if place + 1 < len(blocks) else None
            notice = _notice(answer) if answer and answer.speaker == "tool" else ""
            turns.append(_reply(block.text.strip("\r\n"), notice))
        else:
            notice = _notice(block)
            answered = turns[-1] if turns and turns[-1].role == "assistant" else None
            if not notice or answered is None or not answered.calls:
                notes.append(LEFT_OUT)
                continue
            notes.append(TOLD)
            results = tuple(_results(answered.calls, notice))
            turns.append(Turn("user", notice, results=results))
    return Conversation(tuple(turns), notes=tuple(dict.fromkeys(notes)))


def _asked(block: _Block) -> str:
    """What the user said to the model, without the marks of the log."""
    lines = [line.rstrip("\r\n")[4:].removeprefix(" ").removesuffix("  ") for line in block.lines]
    text = "\n".join(lines).strip()
    asking = _ASKING.match(text)
    if asking:
        return text[asking.end() :]
    return "" if text == "<blank>" or re.match(r"/[a-z]|!", text) else text


def _notice(block: _Block) -> str:
    """What the tool said, mark for mark, from what is no count of tokens on."""
    lines = list(block.lines)
    while lines and not lines[-1].strip():
        lines.pop()
    first = next((i for i, line in enumerate(lines) if not _USAGE.match(line)), len(lines))
    return "".join(lines[first:])


def _reply(text: str, notice: str) -> Turn:
    actions = _edits(text) or _fenced(text, _DIFF) or _fenced(text, _SHELL)
    if not actions and (_NOT_APPLIED.search(notice) or _APPLIED.search(notice)):
        actions = [text]
    return Turn("assistant", text, tuple(Call(Action(one)) for one in actions if one.strip()))


def _edits(text: str) -> list[str]:
    """The SEARCH/REPLACE blocks of a reply, each with its file's name and its fence."""
    lines = text.splitlines(keepends=True)
    found = []
    for head, last in sorted(_edit_ends(lines).items()):
        start = head
        for before in range(head - 1, max(head - 4, -1), -1):
            fence = lines[before].startswith(_FENCE)
            if not fence and not _is_file_name(lines[before]):
                break
            start = before
        fenced = any(line.startswith(_FENCE) for line in lines[start:head])
        closed = last + 1 < len(lines) and lines[last + 1].strip() == _FENCE
        end = last + 1 + (fenced and closed)
        found.append("".join(lines[start:end]).rstrip("\r\n"))
    return found


def _is_file_name(line: str) -> bool:
    name = line.strip().strip("*`#:")
    return (
        bool(name) and len(name) < 300 and not name.startswith((">", "<", "=")) and " " not in name
    )


def _fenced(text: str, opening: re.Pattern[str]) -> list[str]:
    """The fenced blocks that begin with a kind of fence, cut off where the reply is."""
    found: list[str] = []
    block: list[str] | None = None
    for line in text.splitlines(keepends=True):
        if block is None:
            block = [line] if opening.match(line.rstrip("\r\n")) else None
        else:
            block.append(line)
            if line.strip() == _FENCE:
                found.append("".join(block).rstrip("\r\n"))
                block = None
    return found if block is None else [*found, "".join(block).rstrip("\r\n")]


def _results(calls: Sequence[Call], notice: str) -> Iterator[Result]:
    searched = _searched(line.removeprefix(">").removeprefix(" ") for line in notice.splitlines())
    quoted = set(searched)
    own = [set(_searched(call.action.text.splitlines())) for call in calls]
    named = any(one & quoted for one in own)
    for one in own:
        if _NOT_APPLIED.search(notice):
            yield Result(notice, failed=not named or bool(one & quoted), mark="an edit not applied")
        elif _LINT.search(notice):
            yield Result(notice, failed=True, mark="lint errors after an edit")
        elif _APPLIED.search(notice):
            yield Result(notice, failed=False, mark="an applied edit")
        else:
            yield Result(notice)


def _searched(lines: Iterable[str]) -> Iterator[str]:
    """The SEARCH parts of the blocks among some lines."""
    part: list[str] | None = None
    for line in lines:
        bare = line.strip()
        if bare == _HEAD:
            part = []
        elif bare == _DIVIDER and part is not None:
            yield "\n".join(part)
            part = None
        elif part is not None:
            part.append(line.rstrip())
