"""Messages of OpenAI's chat completions, a request's body around them or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_failgain.trajectory import Action, ToolCall
from pytest_failgain.transcripts.arguments import DUMPED, arguments_text, broken_arguments
from pytest_failgain.transcripts.beginnings import joined
from pytest_failgain.transcripts.chat_logs import LEFT_OUT, ChatLog, chat_logs
from pytest_failgain.transcripts.content import content_text, placeholders
from pytest_failgain.transcripts.conversation import Call, Conversation, Result, Turn, tool_from
from pytest_failgain.transcripts.document import Document
from pytest_failgain.transcripts.members import as_dict, as_dicts, as_text

CUT_OFF = "a reply that the output limit cut off"

_ROLES = {"developer": "system", "function": "tool"}


class OpenAIChatReader:
    """A list of messages, a request's body, or JSON Lines of one or the other."""

    name = "openai-chat"

    def recognises(self, document: Document) -> bool:
        return any(True for _ in chat_logs(document))

    def read(self, document: Document) -> Sequence[Conversation]:
        return joined([_conversation(log) for log in chat_logs(document)])


def _conversation(log: ChatLog) -> Conversation:
    offered = log.body.get("tools") or log.body.get("functions")
    tools = tuple(tool for tool in map(tool_from, as_dicts(offered)) if tool is not None)
    notes = (LEFT_OUT,) * log.left_out
    return Conversation(tuple(map(_turn, log.messages)), tools, notes)


def _turn(message: Mapping[str, Any]) -> Turn:
    role = _ROLES.get(message["role"], message["role"])
    content = message.get("content")
    text = content_text(content)
    remarks = [f"{part} in place of a part that is no text" for part in placeholders(content)]
    if role == "tool":
        return Turn(role, text, (), (_result(message, text),), message, tuple(remarks))
    if role != "assistant":
        return Turn(role, text, message=message, remarks=tuple(remarks))
    if not text and isinstance(message.get("refusal"), str):
        text = message["refusal"]
    calls = tuple(_calls(message))
    if any(not isinstance(arguments, str) for arguments in _logged_arguments(message)):
        remarks.append(DUMPED)
    if message.get("finish_reason") == "length":
        remarks.append(CUT_OFF)
    return Turn(role, text, calls, message=message, remarks=tuple(remarks))


def _result(message: Mapping[str, Any], text: str) -> Result:
    # No member of the API's, but of many logs.
    failed = message.get("is_error")
    call_id, tool = as_text(message.get("tool_call_id")), as_text(message.get("name"))
    if isinstance(failed, bool):
        return Result(text, call_id, failed, "is_error", tool=tool)
    return Result(text, call_id, tool=tool)


def _functions(message: Mapping[str, Any]) -> Iterator[tuple[str | None, Mapping[str, Any]]]:
    """What the message calls, with the call's id; of the one call of old, too."""
    for call in as_dicts(message.get("tool_calls")):
        yield as_text(call.get("id")), as_dict(call.get("function")) or as_dict(call.get("custom"))
    old = as_dict(message.get("function_call"))
    if old:
        yield None, old


def _calls(message: Mapping[str, Any]) -> Iterator[Call]:
    for call_id, function in _functions(message):
        name = as_text(function.get("name"))
        if name:
            # A custom tool takes any text, so none of it is broken.
            custom = "input" in function and "arguments" not in function
            text = arguments_text(function.get("input" if custom else "arguments"))
            broken = "" if custom else broken_arguments(text)
            yield Call(Action(calls=(ToolCall(name, text),)), call_id, broken=broken)


def _logged_arguments(message: Mapping[str, Any]) -> Iterator[Any]:
    for _, function in _functions(message):
        yield function.get("arguments", function.get("input", ""))
