"""Messages of LangChain: `messages_to_dict`, flat dumps, and constructors that `lc` serialises."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_failgain.transcripts.arguments import arguments_text, broken_arguments
from pytest_failgain.transcripts.beginnings import joined
from pytest_failgain.transcripts.conversation import Call, Conversation, Result
from pytest_failgain.transcripts.document import Document
from pytest_failgain.transcripts.draft import Draft, text_in
from pytest_failgain.transcripts.members import as_dict, as_dicts, as_text

TOLD = "messages of LangChain told as chat messages"
LEFT_OUT = "entries that are no messages left out"
NAMELESS = "an invalid call without a tool's name left out"

_KINDS = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
    "chat": "user",
}
_ROLES = {"assistant": "assistant", "ai": "assistant", "system": "system", "developer": "system"}

# Where states, checkpoints, runs and their exports hold a list of messages.
_STATES = ("values", "channel_values", "checkpoint", "state", "history", "chat_history")
_RUNS = ("inputs", "input", "outputs", "output", "kwargs", "data", "generation")

# Calls as providers have them in the content, beside the message's own list of them.
_CALL_BLOCKS = ("tool_use", "tool_call", "function_call", "invalid_tool_call", "tool_call_chunk")


@dataclass(frozen=True, slots=True)
class _Message:
    role: str
    data: Mapping[str, Any]


class LangChainReader:
    """A list of messages, or states, checkpoints and runs that hold such lists."""

    name = "langchain"

    def recognises(self, document: Document) -> bool:
        return any(True for _ in _lists(document.entries))

    def read(self, document: Document) -> Sequence[Conversation]:
        return joined([_conversation(*found) for found in _lists(document.entries)])


def _lists(entries: Sequence[Any]) -> Iterator[tuple[list[_Message], int]]:
    """The lists of messages, each with how many other entries stand in it."""
    own = _messages(entries)
    if own is not None:
        yield own
        return
    waiting = [(entry, 0) for entry in reversed(entries)]
    while waiting:
        entry, depth = waiting.pop()
        if isinstance(entry, list):
            found = _messages(entry)
            if found is not None:
                yield found
            elif depth < 4:
                waiting.extend((one, depth + 1) for one in reversed(entry))
        elif isinstance(entry, dict) and depth < 4:
            held = [entry[key] for key in ("messages", *_STATES, *_RUNS) if key in entry]
            waiting.extend((one, depth + 1) for one in reversed(held))


def _messages(entries: Sequence[Any]) -> tuple[list[_Message], int] | None:
    """The messages in a list that is mostly of them; None where it is another's."""
    found = [message for message in map(_message, entries) if message is not None]
    # A human or a reply there must be; "tool" and "system" are types of many things.
    if len(found) * 2 <= len(entries) or not any(
        one.role in ("user", "assistant") for one in found
    ):
        return None
    return found, len(entries) - len(found)


def _message(entry: Any) -> _Message | None:
    if not isinstance(entry, dict):
        return None
    kind, data = entry.get("type"), entry
    if kind == "constructor":
        path, data = entry.get("id"), as_dict(entry.get("kwargs"))
        kind = path[-1] if isinstance(path, list) and path else None
    elif isinstance(entry.get("data"), dict):
        data = entry["data"]
    if not isinstance(kind, str) or "content" not in data:
        return None
    kind = kind.removesuffix("Chunk").removesuffix("Message").lower()
    if kind == "chat":
        return _Message(_ROLES.get(str(data.get("role")).lower(), "user"), data)
    return _Message(_KINDS[kind], data) if kind in _KINDS else None


def _conversation(messages: Sequence[_Message], left_out: int) -> Conversation:
    draft = Draft()
    draft.note(TOLD)
    if left_out:
        draft.note(LEFT_OUT)
    for message in messages:
        if message.role == "assistant":
            _reply(message.data, draft)
        elif message.role == "tool":
            draft.answer(_result(message.data, draft))
        else:
            draft.say(message.role, text_in(message.data["content"], draft))
    return draft.conversation()


def _reply(data: Mapping[str, Any], draft: Draft) -> None:
    content = data["content"]
    said = content if isinstance(content, list) else [content]
    text = text_in([one for one in said if as_dict(one).get("type") not in _CALL_BLOCKS], draft)
    draft.reply(text, [*_calls(data, draft), *_invalid_calls(data, draft)])


def _calls(data: Mapping[str, Any], draft: Draft) -> Iterator[Call | None]:
    beside = as_dict(data.get("additional_kwargs"))
    provided = as_dicts(beside.get("tool_calls"))
    # The provider's own arguments are the text that the model wrote.
    written = {as_text(one.get("id")): as_dict(one.get("function")) for one in provided}
    made, invalid = as_dicts(data.get("tool_calls")), as_dicts(data.get("invalid_tool_calls"))
    for call in made:
        call_id, arguments = as_text(call.get("id")), call.get("args")
        raw = written.get(call_id, {}).get("arguments") if call_id else None
        yield draft.call(call.get("name"), raw if isinstance(raw, str) else arguments, call_id)
    if made or invalid:
        return
    for call_id, function in written.items():
        yield draft.call(function.get("name"), function.get("arguments"), call_id)
    old = as_dict(beside.get("function_call"))
    if old:
        yield draft.call(old.get("name"), old.get("arguments"))


def _invalid_calls(data: Mapping[str, Any], draft: Draft) -> Iterator[Call | None]:
    for call in as_dicts(data.get("invalid_tool_calls")):
        arguments = call.get("args")
        problem = as_text(call.get("error")) or broken_arguments(arguments_text(arguments))
        problem = problem or "the call could not be read"
        made = draft.call(call.get("name"), arguments, call.get("id"), problem)
        if made is None:
            draft.note(NAMELESS)
        yield made


def _result(data: Mapping[str, Any], draft: Draft) -> Result:
    text = text_in(data["content"], draft)
    call_id, tool = as_text(data.get("tool_call_id")), as_text(data.get("name"))
    status = data.get("status")
    if status in ("error", "success"):
        return Result(text, call_id, status == "error", "status", tool=tool)
    return Result(text, call_id, tool=tool)
