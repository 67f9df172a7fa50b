"""A conversation while it is being read: its turns so far, and notes on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_failgain.prompt import Message, Prompt
from pytest_failgain.trajectory import Action, Tool, ToolCall
from pytest_failgain.transcripts.arguments import (
    DUMPED,
    arguments_text,
    as_json,
    broken_arguments,
)
from pytest_failgain.transcripts.conversation import Call, Conversation, Result, Turn
from pytest_failgain.transcripts.members import as_text

THOUGHTS = "thoughts that the log has beside a reply left out"
NOT_TEXT = "an image or another part that is no text told as a placeholder"


@dataclass(slots=True)
class Draft:
    """What a reader has made of a conversation so far; each note stands once."""

    turns: list[Turn] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)

    def note(self, text: str) -> None:
        self.notes[text] = None

    def remark(self, text: str) -> None:
        """Note something on the last turn that changes no prompt."""
        if not self.turns:
            self.note(text)
            return
        last = self.turns[-1]
        self.turns[-1] = replace(last, remarks=(*last.remarks, text))

    def say(self, role: str, text: str, message: Message | None = None) -> None:
        """Add a turn without calls or results, unless it says nothing."""
        if text or message is not None:
            self.turns.append(Turn(role, text, message=message))

    def reply(
        self, text: str, calls: Sequence[Call | None], message: Message | None = None
    ) -> None:
        """Add an assistant's turn, unless it neither says nor does anything."""
        made = tuple(call for call in calls if call is not None)
        if text or made or message is not None:
            self.turns.append(Turn("assistant", text, made, message=message))

    def answer(self, *results: Result, message: Message | None = None) -> None:
        """Add a turn of a tool."""
        if results:
            self.turns.append(Turn("tool", "", results=results, message=message))

    def hear(self, result: Result, message: Message | None = None) -> None:
        """Add a user's turn that is the answer to an action in text."""
        self.turns.append(Turn("user", result.text, results=(result,), message=message))

    def call(
        self, name: Any, arguments: Any, call_id: Any = None, problem: str | None = None
    ) -> Call | None:
        """A structured call, None where it has no name.

        Arguments that are a text stay letter for letter; a value is written as JSON again.
        """
        if not isinstance(name, str) or not name:
            return None
        text = arguments_text(arguments)
        if arguments is not None and text is not arguments:
            self.note(DUMPED)
        made = Action(calls=(ToolCall(name, text),))
        return Call(made, as_text(call_id) or None, problem, broken_arguments(text))

    def conversation(
        self,
        tools: Sequence[Tool | None] = (),
        write: Callable[[Sequence[Turn], Conversation], Prompt] | None = None,
    ) -> Conversation:
        """The conversation as it stands."""
        offered = tuple(tool for tool in tools if tool is not None)
        return Conversation(tuple(self.turns), offered, tuple(self.notes), write)


def text_in(content: Any, draft: Draft) -> str:
    """The text of a content: a string, a part, or a list of them.

    What is no text becomes a placeholder, and thoughts are left out; each with a note.
    """
    parts = content if isinstance(content, list) else [content]
    return "".join(_part_text(part, draft) for part in parts)


_THOUGHTS = ("reasoning", "thinking", "redacted_thinking")
_MEDIA = ("image", "audio", "video", "file", "document", "binary", "blob", "uri")


def _part_text(part: Any, draft: Draft) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return "" if part is None else as_json(part)
    kind = part.get("type", part.get("kind"))
    if kind in _THOUGHTS:
        draft.note(THOUGHTS)
        return ""
    for key in ("text", "content", "refusal"):
        if isinstance(part.get(key), str) and kind not in _MEDIA:
            return str(part[key])
    draft.note(NOT_TEXT)
    named = part.get("modality") or kind
    return f"[{named.removeprefix('input_')}]" if isinstance(named, str) else "[part]"
