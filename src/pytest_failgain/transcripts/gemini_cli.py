"""Gemini CLI: recorded sessions, checkpoints and API history, and its stream of JSON events."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pytest_failgain.transcripts.arguments import as_json
from pytest_failgain.transcripts.conversation import Call, Conversation, Result, tool_from
from pytest_failgain.transcripts.document import Document
from pytest_failgain.transcripts.draft import NOT_TEXT, THOUGHTS, Draft
from pytest_failgain.transcripts.members import as_dict, as_dicts, as_text

TOLD = "Gemini's contents told as chat messages"

_SAID = ("user", "gemini")
_SHELL = "run_shell_command"
_EXIT_CODE = re.compile(r"^Exit Code: (-?\d{1,10})\s*$", re.M)
_TAIL = 2000
_CANCELLED = "[Operation Cancelled]"
_CANCELLED_STATUSES = ("cancelled", "canceled")
_EVENTS = ("init", "message", "tool_use", "tool_result", "error", "result")
_SENT_PARTS = ("text", "functionCall", "functionResponse", "inlineData", "fileData")


class GeminiCLIReader:
    """A session's JSON or JSON Lines, a list of contents, or a request's body with `contents`."""

    name = "gemini-cli"

    def recognises(self, document: Document) -> bool:
        return any(True for _ in _sessions(document))

    def read(self, document: Document) -> Sequence[Conversation]:
        return [read() for read in _sessions(document)]


def _sessions(document: Document) -> Iterator[Callable[[], Conversation]]:
    """The reading of each session in a document, not yet done."""
    entries = document.entries
    if _are_contents(entries):
        yield partial(_of_contents, entries, {})
    elif _is_stream(entries):
        yield partial(_of_stream, entries)
    elif _are_records(entries):
        yield partial(_of_lines, entries)
    else:
        for entry in entries:
            yield from _held_in(entry)


def _held_in(entry: Any) -> Iterator[Callable[[], Conversation]]:
    if isinstance(entry, list) and _are_contents(entry):
        yield partial(_of_contents, entry, {})
    if not isinstance(entry, dict):
        return
    if _are_records(entry.get("messages")):
        yield partial(_of_records, entry["messages"])
        return
    for key in ("contents", "history", "clientHistory"):
        if _are_contents(entry.get(key)):
            yield partial(_of_contents, entry[key], entry)
            return


# Recorded sessions


def _are_records(value: Any) -> bool:
    records = as_dicts(value)
    types = [one.get("type") for one in records if "content" in one or "toolCalls" in one]
    return "gemini" in types or ("user" in types and "projectHash" in records[0])


def _of_lines(lines: Sequence[Any]) -> Conversation:
    """A session from its lines, of which some replace or take back what earlier ones say."""
    messages: dict[str | int, Any] = {}
    for number, line in enumerate(as_dicts(lines)):
        back, update = line.get("$rewindTo"), as_dict(line.get("$set")).get("messages")
        if isinstance(back, str):
            known = back in messages
            while messages and (not known or back in messages):
                messages.popitem()
        elif isinstance(update, list):
            messages = {_key(one, i): one for i, one in enumerate(as_dicts(update))}
        elif "type" in line:
            messages[_key(line, number)] = line
    return _of_records(list(messages.values()))


def _key(record: Mapping[str, Any], number: int) -> str | int:
    identity = record.get("id")
    return identity if isinstance(identity, str) else number


def _of_records(records: Sequence[Any]) -> Conversation:
    draft = Draft()
    draft.note(TOLD)
    answered: set[str] = set()
    for record in as_dicts(records):
        if record.get("type") not in _SAID:
            continue
        content = record.get("content")
        parts = [{"text": content}] if isinstance(content, str) else as_dicts(content)
        if isinstance(content, dict):
            parts = [content]
        if record.get("type") == "user":
            _user(parts, draft, answered)
            continue
        if record.get("thoughts"):
            draft.note(THOUGHTS)
        made = as_dicts(record.get("toolCalls"))
        ids = [one.get("id") for one in made]
        spoken = [as_dict(part.get("functionCall")) for part in parts if "functionCall" in part]
        calls = [_call(one, draft) for one in made]
        calls += [_call(one, draft) for one in spoken if one.get("id") not in ids]
        draft.reply(_text(parts, draft), calls)
        for one in made:
            _recorded_answer(one, draft, answered)
    return draft.conversation()


def _recorded_answer(made: Mapping[str, Any], draft: Draft, answered: set[str]) -> None:
    """The result that a recorded call holds; user's messages tell of it once more."""
    status, call_id = as_text(made.get("status")), as_text(made.get("id"))
    result = made.get("result")
    parts = [result] if isinstance(result, dict) else as_dicts(result)
    responses = [as_dict(part.get("functionResponse")) for part in parts]
    response = next((one for one in responses if one), None)
    if response is None:
        text = result if isinstance(result, str) else _text(parts, draft)
        if not text and status not in ("error", *_CANCELLED_STATUSES):
            return
        response = {"response": {"error" if status == "error" else "output": text}}
        if not text:
            response = {"response": {"error": as_text(made.get("resultDisplay")) or ""}}
    _answer(response, call_id, as_text(made.get("name")), status, draft)
    if call_id is not None:
        answered.add(call_id)


# The API's contents


def _are_contents(value: Any) -> bool:
    contents = as_dicts(value)
    return (
        isinstance(value, list | tuple)
        and len(contents) == len(value) > 0
        and all(
            isinstance(one.get("parts"), list)
            and one.get("role") in ("user", "model", "function", "system", None)
            and "kind" not in one
            for one in contents
        )
        and any(
            any(key in part for key in _SENT_PARTS)
            for one in contents
            for part in as_dicts(one["parts"])
        )
    )


def _of_contents(contents: Sequence[Any], around: Mapping[str, Any]) -> Conversation:
    draft = Draft()
    draft.note(TOLD)
    config = as_dict(around.get("config")) or around
    system = config.get("systemInstruction", config.get("system_instruction"))
    parts = as_dicts(as_dict(system).get("parts"))
    draft.say("system", system if isinstance(system, str) else _text(parts, draft))
    for content in as_dicts(contents):
        parts = as_dicts(content.get("parts"))
        if content.get("role") == "model":
            spoken = [as_dict(part["functionCall"]) for part in parts if "functionCall" in part]
            draft.reply(_text(parts, draft), [_call(one, draft) for one in spoken])
        else:
            _user(parts, draft, set(), "system" if content.get("role") == "system" else "user")
    declared = [
        schema
        for tool in as_dicts(config.get("tools"))
        for schema in as_dicts(tool.get("functionDeclarations", tool.get("function_declarations")))
    ]
    return draft.conversation([tool_from(_named_schema(schema)) for schema in declared])


def _named_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    parameters = schema.get("parametersJsonSchema", schema.get("parameters"))
    return {**schema, "parameters": parameters}


def _user(
    parts: Sequence[Mapping[str, Any]], draft: Draft, answered: set[str], role: str = "user"
) -> None:
    """What a user's content says; the results of functions come in the user's role, too."""
    for part in parts:
        response = as_dict(part.get("functionResponse"))
        call_id = as_text(response.get("id"))
        if response and call_id not in answered:
            name = as_text(response.get("name"))
            _answer(response, call_id, name, None, draft)
    draft.say(role, _text(parts, draft))


# The stream of events


def _is_stream(entries: Sequence[Any]) -> bool:
    events = as_dicts(entries)
    kinds = [event.get("type") for event in events]
    return all(kind in _EVENTS for kind in kinds) and any(
        kind in ("tool_use", "tool_result") and "tool_id" in event
        for kind, event in zip(kinds, events, strict=True)
    )


def _of_stream(events: Sequence[Any]) -> Conversation:
    draft = Draft()
    draft.note(TOLD)
    said: list[str] = []
    calls: list[Call | None] = []

    def end_of_reply() -> None:
        draft.reply("".join(said), calls)
        said.clear()
        calls.clear()

    for event in as_dicts(events):
        kind, text = event.get("type"), as_text(event.get("content")) or ""
        if kind == "message" and event.get("role") == "assistant":
            if calls:
                end_of_reply()
            said.append(text)
        elif kind == "message":
            end_of_reply()
            draft.say("user", text)
        elif kind == "tool_use":
            made = draft.call(event.get("tool_name"), event.get("parameters"), event.get("tool_id"))
            calls.append(made)
        elif kind == "tool_result":
            end_of_reply()
            draft.answer(_streamed_result(event))
    end_of_reply()
    return draft.conversation()


def _streamed_result(event: Mapping[str, Any]) -> Result:
    told = as_text(as_dict(event.get("error")).get("message"))
    text = told or as_text(event.get("output")) or ""
    status = as_text(event.get("status"))
    if status in _CANCELLED_STATUSES or text.startswith(_CANCELLED):
        return Result(text, as_text(event.get("tool_id")), cancelled=True)
    failed = status == "error" if status in ("error", "success") else None
    return Result(text, as_text(event.get("tool_id")), failed, f"status {status}")


# Parts, calls and answers


def _text(parts: Sequence[Mapping[str, Any]], draft: Draft) -> str:
    texts = []
    for part in parts:
        if part.get("thought"):
            draft.note(THOUGHTS)
        elif isinstance(part.get("text"), str):
            texts.append(part["text"])
        else:
            media = as_dict(part.get("inlineData", part.get("fileData")))
            if media:
                draft.note(NOT_TEXT)
                kind = as_text(media.get("mimeType")) or "file"
                texts.append(f"[{kind.partition('/')[0]}]")
    return "".join(texts)


def _call(made: Mapping[str, Any], draft: Draft) -> Call | None:
    return draft.call(made.get("name"), made.get("args"), made.get("id"))


def _answer(
    response: Mapping[str, Any],
    call_id: str | None,
    name: str | None,
    status: str | None,
    draft: Draft,
) -> None:
    """Add what a functionResponse says, which the model reads as the object that it is."""
    body = as_dict(response.get("response"))
    error = body.get("error")
    told = error or body.get("output", body.get("result", body.get("content", body or "")))
    text = told if isinstance(told, str) else as_json(told)
    sent = {"role": "tool", "tool_call_id": call_id or "", "content": as_json(body)}
    draft.answer(_result(text, call_id, name, status, bool(error)), message=sent)


def _result(
    text: str, call_id: str | None, name: str | None, status: str | None, error: bool
) -> Result:
    """A result by the status of its recorded call, and by the member of the response it is."""
    result = Result(text, call_id, tool=name)
    if status in _CANCELLED_STATUSES or text.startswith(_CANCELLED):
        return replace(result, cancelled=True)
    if status == "error" or error:
        mark = "status error" if status == "error" else "response.error"
        return replace(result, failed=True, mark=mark)
    code = _EXIT_CODE.search(text[-_TAIL:]) if name == _SHELL else None
    if code is not None:
        # The tool that runs commands is successful also where the command is not.
        return replace(result, failed=int(code.group(1)) != 0, mark="Exit Code")
    return replace(result, failed=False if status == "success" else None)
