"""inspect_ai: an evaluation's log as JSON, or a sample of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_failgain.trajectory import Tool
from pytest_failgain.transcripts.conversation import Call, Conversation, Result, tool_from
from pytest_failgain.transcripts.document import Document
from pytest_failgain.transcripts.draft import Draft, text_in
from pytest_failgain.transcripts.members import as_dict, as_dicts, as_text

TOLD = "inspect_ai's messages told as chat messages"

_ATTACHMENT = "attachment://"
_REJECTED = "approval"


class InspectAIReader:
    """A log with its samples, each a conversation; a sample alone, or a list of them."""

    name = "inspect-ai"

    def recognises(self, document: Document) -> bool:
        return any(True for _ in _samples(document))

    def read(self, document: Document) -> Sequence[Conversation]:
        return [_conversation(sample) for sample in _samples(document)]


def _samples(document: Document) -> Iterator[Mapping[str, Any]]:
    for entry in document.entries:
        if not isinstance(entry, dict):
            continue
        if "eval" in entry or "samples" in entry:
            yield from filter(_is_sample, as_dicts(entry.get("samples")))
        elif _is_sample(entry):
            yield entry


def _is_sample(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("messages"), list) and "epoch" in value


def _conversation(sample: Mapping[str, Any]) -> Conversation:
    draft = Draft()
    draft.note(TOLD)
    attachments = as_dict(sample.get("attachments"))
    messages = as_dicts(sample["messages"])
    answered = {as_text(message.get("tool_call_id")) for message in messages}
    for message in messages:
        text = _text(message.get("content"), attachments, draft)
        role = message.get("role")
        if role == "assistant":
            made = as_dicts(message.get("tool_calls"))
            draft.reply(text, [_call(one, answered, attachments, draft) for one in made])
        elif role == "tool":
            _answer(message, text, draft)
        else:
            draft.say("system" if role == "system" else "user", text)
    return draft.conversation(_tools(sample))


def _text(content: Any, attachments: Mapping[str, Any], draft: Draft) -> str:
    """A content's text; long ones stand apart, under the name that the content gives."""
    texts = (text_in(part, draft) for part in (content if isinstance(content, list) else [content]))
    return "".join(_attached(text, attachments) for text in texts)


def _attached(text: str, attachments: Mapping[str, Any]) -> str:
    if not text.startswith(_ATTACHMENT):
        return text
    return as_text(attachments.get(text.removeprefix(_ATTACHMENT))) or text


def _call(
    made: Mapping[str, Any],
    answered: set[str | None],
    attachments: Mapping[str, Any],
    draft: Draft,
) -> Call | None:
    function = made.get("function")
    held = function if isinstance(function, dict) else {}
    name = held.get("name", function)
    arguments = held.get("arguments", made.get("arguments"))
    if isinstance(arguments, dict):
        arguments = {
            key: _attached(value, attachments) if isinstance(value, str) else value
            for key, value in arguments.items()
        }
    call_id = as_text(made.get("id"))
    # A call that can't be parsed is answered like others, unless the run ended there.
    problem = None if call_id in answered else as_text(made.get("parse_error"))
    return draft.call(name, arguments, call_id, problem)


def _answer(message: Mapping[str, Any], text: str, draft: Draft) -> None:
    call_id, error = as_text(message.get("tool_call_id")), message.get("error")
    told = as_text(message.get("tool_error"))
    if isinstance(error, dict):
        told = as_text(error.get("message")) or ""
    tool = as_text(message.get("function"))
    if told is None:
        draft.answer(Result(text, call_id, tool=tool))
        return
    kind = as_text(as_dict(error).get("type")) or "unknown"
    sent = {"role": "tool", "tool_call_id": call_id or "", "content": f"Error: {told}"}
    result = Result(told, call_id, True, f"error {kind}", kind == _REJECTED, tool)
    draft.answer(result, message=sent)


def _tools(sample: Mapping[str, Any]) -> list[Tool | None]:
    """The tools that the model was offered, which only the log's events tell."""
    for event in as_dicts(sample.get("events")):
        offered = as_dicts(event.get("tools"))
        if event.get("event") == "model" and offered:
            return [tool_from(tool) for tool in offered]
    return []
