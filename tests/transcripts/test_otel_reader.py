from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_failgain.errors import TranscriptError
from pytest_failgain.transcripts.otel import FROM_TOOL_SPANS, NO_CONTENTS, TOOLS_ALONE
from pytest_failgain.transcripts.read import ReadTranscript, read_transcript

ARGUMENTS = {"day": "12 Oct"}
ASKED = {"role": "user", "parts": [{"type": "text", "content": "Add it."}]}


def call(call_id: str = "c1", arguments: Any = ARGUMENTS) -> dict[str, Any]:
    part = {"type": "tool_call", "id": call_id, "name": "add", "arguments": arguments}
    return {"role": "assistant", "parts": [part]}


def answer(text: Any = "Error: no such day", call_id: str = "c1", **more: Any) -> dict[str, Any]:
    part = {"type": "tool_call_response", "id": call_id, "response": text, **more}
    return {"role": "tool", "parts": [part]}


def any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return {"kvlistValue": {"values": keyed(value)}}
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(one) for one in value]}}
    return {"stringValue": value}


def keyed(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": any_value(value)} for key, value in attributes.items()]


def span(attributes: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "chat m", "trace_id": "t1", "span_id": "s1", "attributes": attributes, **more}


def chat(*told: dict[str, Any], came: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    attributes = {"gen_ai.input.messages": json.dumps([ASKED, *told])}
    if came is not None:
        attributes["gen_ai.output.messages"] = json.dumps([{**came, "finish_reason": "stop"}])
    return span(attributes, **more)


def tool(call_id: str = "c1", status: Any = None, **attributes: Any) -> dict[str, Any]:
    named = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "add",
        "gen_ai.tool.call.id": call_id,
    }
    ran = span({**named, **attributes}, span_id=f"tool-{call_id}")
    return {**ran, "name": "execute_tool add", "status": status or {}}


def observed(transcript: ReadTranscript) -> list[str | None]:
    assert transcript.format == "otel-genai"
    return [case.failed.observation for case in transcript.failures]


def test_history_that_later_spans_repeat_is_told_once() -> None:
    told = [call(), answer(), call("c2"), answer(call_id="c2")]
    spans = [
        chat(*told[:end], came=came, span_id=f"s{end}")
        for end, came in ((0, call()), (2, call("c2")), (4, call("c3")))
    ]
    for order in (spans, spans[::-1]):
        transcript = read_transcript(order)
        assert observed(transcript) == ["Error: no such day"] * 2
        assert len(transcript.trajectories) == 1


def test_arguments_that_one_span_has_as_text_and_another_as_an_object_are_the_same() -> None:
    came = call(arguments='{"day":"12 Oct"}')
    spans = [chat(came=came), chat(call(), answer(), span_id="s2")]
    assert len(observed(read_transcript(spans))) == 1


def test_changing_system_prompt_does_not_double_a_failure() -> None:
    def at(hour: str) -> dict[str, Any]:
        return {"gen_ai.system_instructions": [{"type": "text", "content": f"It is {hour}."}]}

    first, second = (
        chat(call(), answer(), span_id="s1"),
        chat(call(), answer(), call("c2"), answer(call_id="c2"), span_id="s2"),
    )
    spans = [
        {**one, "attributes": {**one["attributes"], **at(hour)}}
        for one, hour in ((first, "nine"), (second, "ten"))
    ]
    transcript = read_transcript(spans)
    assert len(observed(transcript)) == 2
    assert transcript.failures[0].trajectory.system == "It is ten."


def test_same_call_in_another_trace_is_another_failure() -> None:
    spans = [chat(call(), answer(), trace_id=trace) for trace in ("t1", "t2")]
    assert len(observed(read_transcript(spans))) == 2
    named = [
        {**one, "attributes": {**one["attributes"], "gen_ai.conversation.id": "k"}} for one in spans
    ]
    assert len(observed(read_transcript(named))) == 1


def test_repeat_under_one_reused_id_is_told_twice() -> None:
    spans = [chat(call(), answer(), call(), answer()), chat(call(), answer(), span_id="s2")]
    assert len(observed(read_transcript(spans))) == 2


@pytest.mark.parametrize(
    ("ran", "failed", "mark"),
    [
        (tool(**{"error.type": "ValueError"}), True, "error.type"),
        (tool(status={"status_code": "ERROR"}), True, "span status"),
        (tool(status={"code": 2}), True, "span status"),
        (tool(status={"code": "STATUS_CODE_OK"}), False, ""),
        (tool(**{"error.type": "CancelledError"}), False, ""),
    ],
)
def test_tool_span_marks_the_result_of_its_call(
    ran: dict[str, Any], failed: bool, mark: str
) -> None:
    transcript = read_transcript([chat(call(), answer("odd")), ran])
    assert observed(transcript) == ["odd"] * failed
    assert any(mark in note for note in transcript.notes)


def test_last_result_is_taken_from_its_tool_span_where_no_request_follows() -> None:
    raised = {"name": "exception", "attributes": {"exception.message": "no such day"}}
    ran = {**tool(**{"error.type": "ValueError"}), "events": [raised]}
    transcript = read_transcript([chat(came=call()), ran])
    assert observed(transcript) == ["no such day"]
    assert any(FROM_TOOL_SPANS in note for note in transcript.notes)


def test_tool_spans_alone_are_calls_with_results() -> None:
    ran = tool(
        status={"code": 2},
        **{"gen_ai.tool.call.arguments": '{"day":"12"}', "gen_ai.tool.call.result": "no day"},
    )
    transcript = read_transcript([ran])
    assert observed(transcript) == ["no day"]
    assert transcript.failures[0].failed.action.calls[0].arguments == '{"day":"12"}'
    assert any(TOOLS_ALONE in note for note in transcript.notes)


def test_otlp_json_and_lines_of_it_are_read() -> None:
    flat = chat(call(), answer())
    inner = {**flat, "traceId": "t1", "attributes": keyed(flat["attributes"])}
    document = {"resourceSpans": [{"scopeSpans": [{"spans": [inner]}]}]}
    for source in (document, json.dumps(document) + "\n" + json.dumps(document)):
        assert observed(read_transcript(source)) == ["Error: no such day"]


def test_nested_values_of_otlp_log_records_are_read() -> None:
    details = {"gen_ai.input.messages": [ASKED, call(), answer()]}
    record = {"eventName": "gen_ai.client.inference.operation.details"}
    log = {**record, "traceId": "t1", "spanId": "s1", "attributes": keyed(details)}
    document = {"resourceLogs": [{"scopeLogs": [{"logRecords": [log]}]}]}
    transcript = read_transcript(document)
    assert observed(transcript) == ["Error: no such day"]
    assert transcript.failures[0].failed.action.calls[0].arguments == json.dumps(ARGUMENTS)


def older(name: str, body: dict[str, Any]) -> dict[str, Any]:
    return {"event_name": name, "trace_id": "t1", "span_id": "s1", "body": body, "attributes": {}}


def test_older_events_are_read_as_log_records_and_inside_spans() -> None:
    made = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{ }"}}
    bodies: list[tuple[str, dict[str, Any]]] = [
        ("gen_ai.system.message", {"content": "You add."}),
        ("gen_ai.user.message", {"content": "Add it."}),
        ("gen_ai.assistant.message", {"content": None, "tool_calls": [made]}),
        ("gen_ai.tool.message", {"id": "c1", "content": "Error: no such day"}),
        ("gen_ai.choice", {"index": 0, "message": {"role": "assistant", "content": "Hm."}}),
    ]
    records = [older(name, body) for name, body in bodies]
    events = [
        {"name": name, "attributes": {"gen_ai.event.content": json.dumps(body)}}
        for name, body in bodies
    ]
    for source in (records, [span({"gen_ai.system": "x"}, events=events)]):
        transcript = read_transcript(source)
        assert observed(transcript) == ["Error: no such day"]
        (case,) = transcript.failures
        assert (case.trajectory.system, case.trajectory.goal) == ("You add.", "Add it.")
        assert case.failed.action.calls[0].arguments == "{ }"


def test_attributes_with_an_index_are_read() -> None:
    attributes = {
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "Add it.",
        "gen_ai.prompt.1.role": "assistant",
        "gen_ai.prompt.1.tool_calls.0.id": "c1",
        "gen_ai.prompt.1.tool_calls.0.name": "add",
        "gen_ai.prompt.1.tool_calls.0.arguments": '{"day":"12"}',
        "gen_ai.prompt.2.role": "tool",
        "gen_ai.prompt.2.tool_call_id": "c1",
        "gen_ai.prompt.2.content": "Error: no such day",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "Hm.",
    }
    transcript = read_transcript([span(attributes)])
    assert observed(transcript) == ["Error: no such day"]
    assert transcript.failures[0].failed.action.calls[0].arguments == '{"day":"12"}'


def test_results_in_a_users_message_and_parts_that_are_no_text() -> None:
    image = {"type": "blob", "modality": "image", "content": "AA=="}
    listed = [{"type": "text", "content": "Error: no such day"}]
    told = {"role": "user", "parts": [answer(listed)["parts"][0], image]}
    transcript = read_transcript([chat(call(), told)])
    assert observed(transcript) == ["Error: no such day"]
    assert any("placeholder" in note for note in transcript.notes)


def test_mark_in_the_response_is_believed() -> None:
    assert observed(read_transcript([chat(call(), answer("odd", is_error=True))])) == ["odd"]
    assert not observed(read_transcript([chat(call(), answer(is_error=False))]))


def test_tools_come_from_their_definitions() -> None:
    one = chat(call(), answer())
    definitions = json.dumps([{"type": "function", "name": "add", "parameters": {}}])
    one["attributes"]["gen_ai.tool.definitions"] = definitions
    (case,) = read_transcript([one]).failures
    assert [tool.name for tool in case.trajectory.tools] == ["add"]


def test_trace_without_contents_says_how_to_get_them() -> None:
    empty = span({"gen_ai.operation.name": "chat"}, trace_id="t0")
    with pytest.raises(TranscriptError, match="CAPTURE_MESSAGE_CONTENT"):
        read_transcript([empty])
    transcript = read_transcript([empty, chat(call(), answer())])
    assert len(observed(transcript)) == 1
    assert any(NO_CONTENTS in note for note in transcript.notes)


def test_agent_span_that_holds_no_call_is_no_conversation_of_its_own() -> None:
    final = {"role": "assistant", "parts": [{"type": "text", "content": "Sorry."}]}
    whole = chat(came=final, span_id="agent")
    transcript = read_transcript([whole, chat(call(), answer(), came=final)])
    assert len(transcript.trajectories) == 1
