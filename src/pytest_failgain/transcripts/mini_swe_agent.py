"""mini-swe-agent: one command in the text of a reply, or native calls of a bash tool."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_failgain.prompt import Message
from pytest_failgain.trajectory import Action, ToolCall
from pytest_failgain.transcripts.content import content_text
from pytest_failgain.transcripts.conversation import Call, Conversation, Result, Turn
from pytest_failgain.transcripts.document import Document
from pytest_failgain.transcripts.messages import (
    MessageList,
    call_id_of,
    message_lists,
    native_calls,
    plain_turn,
    role_of,
    text_of,
    without,
)

NO_ACTION = "a reply without exactly one action, which the agent turned down: no case"
TOLD = "items of the Responses API told as chat messages"

_NOT_SENT = ("extra", "timestamp")

_OPENING = re.compile(r"^```(?:bash|mswea_bash_command|sh|shell)[ \t]*\n|(<bash_code>)", re.M)
_OUTPUT = re.compile(
    r"\A<returncode>[^<]{0,20}</returncode>\s*<output>\n?(.*?)\n?</output>\s*\Z", re.S
)
_RETURN_CODE = re.compile(r"(?:<returncode>|[\"']returncode[\"']: )\s*(-?\d{1,10})\b")
_EXCEPTION = re.compile(r"\A\s*<exception>|\"exception_info\": \"[^\"]")
_FORMAT_ERROR = re.compile(
    r"EXACTLY ONE action|at least one tool call|\ATool call error|\AYour last output did not",
    re.I,
)
_TIMEOUT = re.compile(r"\AThe last command <command>")
_REJECTED = re.compile(
    r"\ACommands? not executed\b|\AInterrupted by user|\ATemporary interruption caught"
)


class MiniSWEAgentReader:
    """A `.traj.json` document, or the messages alone."""

    name = "mini-swe-agent"

    def recognises(self, document: Document) -> bool:
        return any(map(_is_run, message_lists(document)))

    def read(self, document: Document) -> Sequence[Conversation]:
        return [_conversation(run.messages) for run in message_lists(document)]


def _is_run(run: MessageList) -> bool:
    info, form = run.around.get("info"), run.around.get("trajectory_format")
    if isinstance(form, str) and form.startswith("mini-swe-agent"):
        return True
    if isinstance(info, dict) and "mini_version" in info:
        return True
    acted = False
    for message in run.messages:
        if role_of(message) == "assistant":
            acted = bool(_commands(text_of(message)))
        elif acted and _RETURN_CODE.search(text_of(message)[:2000]):
            return True
    return False


def _conversation(messages: Sequence[Mapping[str, Any]]) -> Conversation:
    turns: list[Turn] = []
    notes: list[str] = []
    for message in messages:
        if message.get("role") == "exit":
            continue
        if "output" in message and message.get("role") is None:
            notes = [*notes, *([] if TOLD in notes else [TOLD])]
            turns.extend(_items(message))
        elif role_of(message) == "assistant":
            turns.append(_reply(message))
        elif turns and turns[-1].role == "assistant":
            if not turns[-1].calls and _is_format_error(message):
                notes.append(NO_ACTION)
            turns.append(_answer(message, turns[-1]))
        else:
            turns.append(_answer(message, None))
    return Conversation(tuple(turns), notes=tuple(dict.fromkeys(notes)))


def _sent(message: Mapping[str, Any]) -> Message:
    return {
        k: v for k, v in without(message, *_NOT_SENT).items() if v is not None or k == "content"
    }


def _reply(message: Mapping[str, Any]) -> Turn:
    text = text_of(message)
    calls = native_calls(message)
    commands = _commands(text)
    if not calls and len(commands) == 1:
        calls = (Call(Action(commands[0])),)
    return Turn("assistant", text, calls, message=_sent(message))


def _commands(reply: str) -> list[str]:
    """The commands in a reply, as they stand in its fences or tags."""
    found: list[str] = []
    at = 0
    while opening := _OPENING.search(reply, at):
        closing = "</bash_code>" if opening.group(1) else "\n```"
        end = reply.find(closing, opening.end() - 1)
        if end < 0:
            break
        found.append(reply[opening.end() : end].strip())
        at = end + len(closing)
    return [command for command in found if command]


def _answer(message: Mapping[str, Any], replied: Turn | None) -> Turn:
    """What follows a reply: the output of its command, or why there is none."""
    text = text_of(message)
    extra = message.get("extra")
    extra = extra if isinstance(extra, dict) else {}
    native = role_of(message) == "tool"
    made = replied.calls if replied is not None else ()
    if not native and not made:
        return plain_turn(message, _sent(message))
    results: tuple[Result, ...] = (_result(text, extra, call_id_of(message)),)
    if not native and _is_format_error(message):
        # The whole reply was turned down, so each of its calls was.
        results = tuple(Result(text, call.call_id, True, "format error") for call in made)
    return Turn("tool" if native else "user", text, results=results, message=_sent(message))


def _result(text: str, extra: Mapping[str, Any], call_id: str | None) -> Result:
    if _REJECTED.match(text) or extra.get("interrupt_type") == "UserRejection":
        return Result(text, call_id, cancelled=True)
    if "action was not executed" in (extra.get("exception_info"), _told_exception(text)):
        return Result(text, call_id, cancelled=True)
    if _TIMEOUT.match(text):
        return Result(text, call_id, True, "timeout")
    if _EXCEPTION.search(text[:2000]):
        return Result(text, call_id, True, "exception")
    code = extra.get("returncode")
    if not isinstance(code, int):
        told = _RETURN_CODE.search(text[:2000]) or _RETURN_CODE.search(text[-2000:])
        code = int(told.group(1)) if told else None
    output = _OUTPUT.match(text)
    shown = output.group(1) if output and output.group(1).strip() else text
    failed = None if code is None else code != 0
    return Result(shown, call_id, failed, "" if code is None else "returncode")


def _told_exception(text: str) -> str:
    start = text.find("<exception>", 0, 200)
    end = text.find("</exception>", start)
    return text[start + len("<exception>") : end] if 0 <= start < end else ""


def _is_format_error(message: Mapping[str, Any]) -> bool:
    extra = message.get("extra")
    if isinstance(extra, dict) and extra.get("interrupt_type") == "FormatError":
        return True
    return bool(_FORMAT_ERROR.search(text_of(message)[:400]))


def _items(message: Mapping[str, Any]) -> Iterator[Turn]:
    """The turn of a response of the Responses API, or of an item that answers one of its calls."""
    if message.get("type") == "function_call_output":
        extra = message.get("extra")
        call_id = message.get("call_id")
        text = content_text(message.get("output"))
        result = _result(
            text,
            extra if isinstance(extra, dict) else {},
            call_id if isinstance(call_id, str) else None,
        )
        yield Turn("tool", text, results=(result,))
        return
    items = message.get("output")
    texts: list[str] = []
    calls: list[Call] = []
    for item in items if isinstance(items, list) else ():
        if not isinstance(item, dict):
            continue
        name, arguments, call_id = item.get("name"), item.get("arguments"), item.get("call_id")
        if item.get("type") == "message":
            texts.append(content_text(item.get("content")))
        elif item.get("type") == "function_call" and isinstance(name, str):
            made = ToolCall(name, arguments if isinstance(arguments, str) else "{}")
            calls.append(Call(Action(calls=(made,)), call_id if isinstance(call_id, str) else None))
    yield Turn("assistant", "".join(texts), tuple(calls))
