"""OpenTelemetry's GenAI conventions: requests and tool calls in spans, events and log records."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_failgain.errors import TranscriptError
from pytest_failgain.trajectory import Tool
from pytest_failgain.transcripts.arguments import as_json
from pytest_failgain.transcripts.conversation import Conversation, Result, Turn, tool_from
from pytest_failgain.transcripts.document import Document
from pytest_failgain.transcripts.draft import Draft, text_in
from pytest_failgain.transcripts.members import as_dict, as_dicts, as_text
from pytest_failgain.transcripts.otel_records import (
    Record,
    is_gen_ai,
    parsed,
    raw_records,
    record_of,
)
from pytest_failgain.transcripts.shared_turns import told_once

TOLD = "messages of spans told as chat messages, each turn once though later spans repeat it"
FROM_TOOL_SPANS = "a result that no request tells of taken from the span of its tool"
TOOLS_ALONE = "a trace without messages: the calls and results of its tools' spans told alone"
NO_CONTENTS = "a trace without the contents of messages left out"

_MESSAGES = (
    ("pydantic_ai.all_messages", "gen_ai.input.messages", "gen_ai.prompt"),
    ("gen_ai.output.messages", "gen_ai.completion"),
)
_INDEXED = re.compile(r"(gen_ai\.(?:prompt|completion))\.(\d{1,6})\.(.+)")
_INDEXED_CALL = re.compile(r"tool_calls\.(\d{1,6})\.(?:function\.)?(id|name|arguments)")
_EVENT = re.compile(r"gen_ai\.(system|user|assistant|tool)\.message|gen_ai\.choice")
_CANCELLED = ("CancelledError", "asyncio.CancelledError", "asyncio.exceptions.CancelledError")
_ROLES = {"developer": "system", "model": "assistant", "ai": "assistant", "function": "tool"}


class OTelReader:
    """OTLP's JSON, or spans and log records in a flat list or lines."""

    name = "otel-genai"

    def recognises(self, document: Document) -> bool:
        return any(map(is_gen_ai, raw_records(document.entries)))

    def read(self, document: Document) -> Sequence[Conversation]:
        """The conversations of a document, what spans repeat told once.

        Raises:
            TranscriptError: when its spans have no contents.
        """
        records = [record_of(one) for one in raw_records(document.entries) if is_gen_ai(one)]
        read = [one for group in _groups(records) for one in _conversations(group)]
        if read and not any(one.turns for one in read):
            raise TranscriptError(
                f"the spans in the transcript {document.name!r} have no contents of messages or "
                "tool calls; switch their capture on where they are recorded, as with "
                "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true"
            )
        return read


def _groups(records: Sequence[Record]) -> Sequence[Sequence[Record]]:
    """The records of each conversation: of the traces that name it, else of one trace."""
    named: dict[str, str] = {}
    for record in records:
        conversation = record.attributes.get("gen_ai.conversation.id")
        if isinstance(conversation, str):
            named.setdefault(record.trace, conversation)
    groups: dict[tuple[str, bool], list[Record]] = {}
    for record in records:
        key = (named.get(record.trace, record.trace), record.trace in named)
        groups.setdefault(key, []).append(record)
    return list(groups.values())


@dataclass(frozen=True, slots=True)
class _Ran:
    """A call that a tool's span tells of, and what came of it."""

    name: Any
    arguments: Any
    result: Result


def _conversations(records: Sequence[Record]) -> list[Conversation]:
    draft = Draft()
    draft.note(TOLD)
    tool_spans = [record for record in records if _is_tool(record)]
    ran = [_ran(record, draft) for record in tool_spans]
    by_id = {one.result.call_id: one.result for one in ran if one.result.call_id}
    told = [turns for turns in _requests(records, draft) if turns]
    if told:
        made = [_completed(turns, by_id, draft) for turns in told_once(told)]
    elif any(one.name for one in ran):
        draft.note(TOOLS_ALONE)
        made = [_of_tools(ran, draft)]
    else:
        draft.note(NO_CONTENTS)
        made = [()]
    notes, tools = tuple(draft.notes), _tools(records)
    return [Conversation(turns, tools, notes) for turns in made]


# Tools' spans


def _is_tool(record: Record) -> bool:
    operation = record.attributes.get("gen_ai.operation.name")
    return operation == "execute_tool" or (
        operation is None and "gen_ai.tool.name" in record.attributes
    )


def _ran(record: Record, draft: Draft) -> _Ran:
    attributes = record.attributes
    kind = attributes.get("error.type")
    raised = (as_text(event.attributes.get("exception.message")) for event in record.events)
    told = attributes.get("gen_ai.tool.call.result", attributes.get("tool_response"))
    # What is known of a failure whose tool returned nothing.
    known = (*raised, record.status, kind)
    text = next((one for one in known if isinstance(one, str) and one), "")
    if told is not None:
        text = _response_text(told, draft)
    failed, mark = (True, "error.type") if kind else (None, "")
    if not failed and record.status is not None:
        failed, mark = True, "span status"
    call_id = as_text(attributes.get("gen_ai.tool.call.id"))
    return _Ran(
        attributes.get("gen_ai.tool.name"),
        attributes.get("gen_ai.tool.call.arguments", attributes.get("tool_arguments")),
        Result(text, call_id, failed, mark, cancelled=kind in _CANCELLED),
    )


def _of_tools(ran: Sequence[_Ran], draft: Draft) -> tuple[Turn, ...]:
    alone = Draft()
    for one in ran:
        call = draft.call(one.name, one.arguments, one.result.call_id)
        if call is not None:
            alone.reply("", [call])
            alone.answer(one.result)
    return tuple(alone.turns)


def _completed(
    turns: Sequence[Turn], by_id: Mapping[str, Result], draft: Draft
) -> tuple[Turn, ...]:
    """The turns with what the tools' spans say: marks of failure, and results that nothing has."""
    marked = tuple(_marked(turn, by_id) for turn in turns)
    answered = {result.call_id for turn in turns for result in turn.results}
    last = turns[-1]
    open_ids = (call.call_id for call in last.calls if call.call_id not in answered)
    missing = [by_id[one] for one in open_ids if one is not None and one in by_id]
    if missing:
        draft.note(FROM_TOOL_SPANS)
        return (*marked, Turn("tool", "", results=tuple(missing)))
    return marked


def _marked(turn: Turn, by_id: Mapping[str, Result]) -> Turn:
    if not any(result.call_id in by_id for result in turn.results):
        return turn
    results = []
    for result in turn.results:
        ran = by_id.get(result.call_id or "")
        if ran is not None and result.failed is None:
            result = replace(result, failed=ran.failed, mark=ran.mark, cancelled=ran.cancelled)
        results.append(result)
    return replace(turn, results=tuple(results))


# Requests


def _requests(records: Sequence[Record], draft: Draft) -> Iterator[list[Turn]]:
    """The turns of each request: what it sent, and what came back."""
    by_span: dict[tuple[str, str], list[Record]] = {}
    for number, record in enumerate(records):
        if not _is_tool(record):
            by_span.setdefault((record.trace, record.span or f"#{number}"), []).append(record)
    for request in by_span.values():
        one = Draft(notes=draft.notes)
        for message in _messages(request, one):
            _turn(message, one)
        yield one.turns


def _messages(records: Sequence[Record], draft: Draft) -> Iterator[Mapping[str, Any]]:
    told = [*records, *(event for record in records for event in record.events)]
    for record in told:
        system = parsed(record.attributes.get("gen_ai.system_instructions"))
        if system:
            yield {"role": "system", "content": text_in(system, draft)}
            break
    # A span that is there twice, or as a span and as an event, tells the same twice.
    for keys in _MESSAGES:
        held = (as_dicts(parsed(one.attributes.get(key))) for one in told for key in keys)
        yield from next(filter(None, held), ())
    indexed = (list(_indexed(one.attributes)) for one in told)
    yield from next(filter(None, indexed), ())
    for record in told:
        if _EVENT.fullmatch(record.name):
            yield from _of_event(record)


def _of_event(event: Record) -> Iterator[Mapping[str, Any]]:
    """The message of an event of the conventions before 1.37: one message, or one choice, each."""
    held = event.body if isinstance(event.body, dict) else parsed(event.body)
    if not isinstance(held, dict):
        held = parsed(event.attributes.get("gen_ai.event.content"))
    body = {**event.attributes, **as_dict(held)}
    role = event.name.split(".")[1]
    if role == "choice":
        message = parsed(body.get("message"))
        inner = message if isinstance(message, dict) else {"content": message}
        yield {**body, **inner, "role": "assistant", "message": None}
    else:
        yield {**body, "role": body.get("role", role) if role != "tool" else role}


def _indexed(attributes: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Messages that are spread over attributes with an index in their names."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    calls: dict[tuple[str, int], dict[int, dict[str, Any]]] = {}
    for key, value in attributes.items():
        part = _INDEXED.fullmatch(key)
        if part is None:
            continue
        place = (part.group(1), int(part.group(2)))
        message = found.setdefault(place, {})
        call = _INDEXED_CALL.fullmatch(part.group(3))
        if call is None:
            message[part.group(3)] = value
        else:
            one = calls.setdefault(place, {}).setdefault(int(call.group(1)), {})
            one[call.group(2)] = value
    for place in sorted(found, key=lambda at: (at[0] != "gen_ai.prompt", at[1])):
        made = calls.get(place, {})
        listed = [{"id": made[i].get("id"), "function": made[i]} for i in sorted(made)]
        role = "assistant" if place[0] == "gen_ai.completion" else "user"
        yield {"role": role, **found[place], "tool_calls": listed}


def _turn(message: Mapping[str, Any], draft: Draft) -> None:
    """Add a message's turns: one with parts, or one of the shape of chat completions."""
    role = as_text(message.get("role")) or "user"
    role = _ROLES.get(role, role)
    parts = message.get("parts")
    said, answers, calls = [], [], []
    for part in as_dicts(parts):
        kind = part.get("type")
        if kind == "tool_call":
            calls.append(draft.call(part.get("name"), part.get("arguments"), part.get("id")))
        elif kind == "tool_call_response":
            answers.append(_answer(part, draft))
        else:
            said.append(text_in(part, draft))
    if not isinstance(parts, list):
        content = message.get("content")
        said = [text_in(content if role == "tool" else _parts(content), draft)]
    for made in as_dicts(parsed(message.get("tool_calls"))):
        function = as_dict(made.get("function")) or made
        calls.append(draft.call(function.get("name"), function.get("arguments"), made.get("id")))
    text = "".join(said)
    if role == "assistant":
        draft.reply(text, calls)
        draft.answer(*answers)
        return
    if role == "tool" and not answers:
        call_id = as_text(message.get("tool_call_id")) or as_text(message.get("id"))
        answers, text = [Result(text, call_id or None)], ""
    draft.answer(*answers)
    draft.say("system" if role == "system" else "user", text)


def _parts(content: Any) -> Any:
    """A message's content, of which a list of parts may be a text of JSON."""
    value = parsed(content)
    parts = as_dicts(value)
    typed = isinstance(value, list) and parts and all("type" in part for part in parts)
    return value if typed and len(parts) == len(value) else content


def _answer(part: Mapping[str, Any], draft: Draft) -> Result:
    text = _response_text(part.get("response", part.get("result")), draft)
    failed = part.get("is_error")
    mark = "is_error" if isinstance(failed, bool) else ""
    return Result(text, as_text(part.get("id")) or None, failed if mark else None, mark)


def _response_text(response: Any, draft: Draft) -> str:
    listed = as_dicts(response)
    if isinstance(response, list) and listed and all("type" in one for one in listed):
        return text_in(response, draft)
    if response is None or isinstance(response, str):
        return response or ""
    return as_json(response)


def _tools(records: Sequence[Record]) -> tuple[Tool, ...]:
    for record in records:
        offered = as_dicts(parsed(record.attributes.get("gen_ai.tool.definitions")))
        if offered:
            return tuple(tool for tool in map(tool_from, offered) if tool is not None)
    return ()
