"""pydantic-ai: the JSON that `ModelMessagesTypeAdapter` makes of a run's messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_failgain.transcripts.arguments import as_json
from pytest_failgain.transcripts.conversation import Call, Conversation, Result
from pytest_failgain.transcripts.document import Document
from pytest_failgain.transcripts.draft import THOUGHTS, Draft, text_in
from pytest_failgain.transcripts.members import as_dict, as_dicts, as_text

TOLD = "parts of pydantic-ai's messages told as chat messages"
NO_CALL = "a request to retry that answers no call told as a user's turn"
PROVIDERS_OWN = "a call that the model's provider ran by itself left out"

_KINDS = ("request", "response")
_HOLDERS = ("messages", "message_history", "new_messages", "all_messages")
_FAILED = ("failed", "retried")
_CANCELLED = ("denied", "interrupted")
_COMPACT = (",", ":")
_FIX = "\n\nFix the errors and try again."


class PydanticAIReader:
    """A list of messages, JSON Lines of them, or an object that holds such a list."""

    name = "pydantic-ai"

    def recognises(self, document: Document) -> bool:
        return any(True for _ in _histories(document))

    def read(self, document: Document) -> Sequence[Conversation]:
        return [_conversation(history) for history in _histories(document)]


def _histories(document: Document) -> Iterator[list[dict[str, Any]]]:
    whole = _history(document.entries)
    if whole:
        yield whole
        return
    for entry in document.entries:
        held = [entry.get(key) for key in _HOLDERS] if isinstance(entry, dict) else [entry]
        yield from filter(None, map(_history, held))


def _history(value: Any) -> list[dict[str, Any]]:
    """The messages in `value`, none where it lists anything else."""
    messages = as_dicts(value)
    known = all(
        one.get("kind") in _KINDS and isinstance(one.get("parts"), list) for one in messages
    )
    return messages if messages and known and len(messages) == len(value) else []


def _conversation(history: Sequence[Mapping[str, Any]]) -> Conversation:
    draft = Draft()
    draft.note(TOLD)
    instructions = (as_text(message.get("instructions")) for message in history)
    draft.say("system", next(filter(None, instructions), ""))
    for message in history:
        parts = as_dicts(message["parts"])
        if message["kind"] == "response":
            _reply(parts, draft)
        else:
            for part in parts:
                _request(part, draft)
    return draft.conversation()


def _reply(parts: Sequence[Mapping[str, Any]], draft: Draft) -> None:
    said, calls = "", []
    for part in parts:
        kind = part.get("part_kind")
        if kind == "text":
            said += as_text(part.get("content")) or ""
        elif kind == "thinking":
            draft.note(THOUGHTS)
        elif kind == "tool-call":
            calls.append(_call(part, draft))
        elif isinstance(kind, str) and kind.startswith("builtin-tool"):
            draft.note(PROVIDERS_OWN)
        elif kind == "file":
            said += text_in({"kind": "file"}, draft)
    draft.reply(said, calls)


def _call(part: Mapping[str, Any], draft: Draft) -> Call | None:
    arguments = part.get("args")
    if isinstance(arguments, dict) and len(arguments) == 1:
        # What releases before 0.0.20 wrapped them in.
        arguments = arguments.get("args_json", arguments.get("args_dict", arguments))
    return draft.call(part.get("tool_name"), arguments, part.get("tool_call_id"))


def _request(part: Mapping[str, Any], draft: Draft) -> None:
    kind, content = part.get("part_kind"), part.get("content")
    if kind == "tool-return":
        _returned(part, draft)
    elif kind == "retry-prompt" and part.get("tool_name") is not None:
        text = _described(content)
        call_id = as_text(part.get("tool_call_id"))
        sent = {"role": "tool", "tool_call_id": call_id or "", "content": f"{text}{_FIX}"}
        tool = as_text(part.get("tool_name"))
        draft.answer(Result(text, call_id, True, "retry-prompt", tool=tool), message=sent)
    elif kind == "retry-prompt":
        draft.note(NO_CALL)
        begins = "Validation feedback:\n" if isinstance(content, str) else ""
        draft.say("user", f"{begins}{_described(content)}{_FIX}")
    elif kind == "retry-feedback":
        draft.note(NO_CALL)
        draft.say("user", _described(content))
    elif kind == "system-prompt":
        draft.say("system", text_in(content, draft))
    elif kind == "user-prompt":
        draft.say("user", text_in(content, draft))


def _returned(part: Mapping[str, Any], draft: Draft) -> None:
    content, outcome = part.get("content"), as_text(part.get("outcome"))
    call_id = as_text(part.get("tool_call_id"))
    text = _value_text(content)
    result = Result(text, call_id, tool=as_text(part.get("tool_name")))
    if outcome in _CANCELLED:
        draft.answer(replace(result, cancelled=True))
        return
    if outcome not in _FAILED:
        draft.answer(replace(result, failed=False if outcome == "success" else None))
        return
    # Without an error channel of its own a provider is sent an object, the text of a retry or a
    # failure in it.
    inner = content if outcome == "retried" and content is not None else text
    sent = {
        "role": "tool",
        "tool_call_id": call_id or "",
        "content": as_json({"error": inner}, separators=_COMPACT),
    }
    draft.answer(replace(result, failed=True, mark=f"outcome {outcome}"), message=sent)


def _value_text(value: Any) -> str:
    """A returned value as the model reads it: a text as it is, else compact JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else as_json(value, separators=_COMPACT)


def _described(content: Any) -> str:
    """Why to retry: a text, or the errors of a validation, as pydantic-ai words them."""
    if not isinstance(content, list):
        return _value_text(content)
    errors = [{k: v for k, v in as_dict(one).items() if k != "ctx"} for one in content]
    count = f"{len(errors)} validation error{'' if len(errors) == 1 else 's'}"
    return f"{count}:\n```json\n{as_json(errors, indent=2)}\n```"
