from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from pytest_failgain.transcripts.read import ReadTranscript, read_transcript

ASKED = {"id": "u1", "type": "user", "content": [{"text": "Run the tests."}]}


def response(text: str, *, member: str = "error", call_id: str = "c1") -> dict[str, Any]:
    named = {"id": call_id, "name": "run_shell_command"}
    return {"functionResponse": {**named, "response": {member: text}}}


def call(*result: dict[str, Any], call_id: str = "c1", **more: Any) -> dict[str, Any]:
    made = {"id": call_id, "name": "run_shell_command", "args": {"command": "npm test"}}
    return {**made, "result": list(result), **more}


def gemini(*calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "g1", "type": "gemini", "content": "", "toolCalls": list(calls), **more}


def session(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"sessionId": "s", "projectHash": "h", "messages": [ASKED, *messages]}


def lines(*entries: dict[str, Any]) -> str:
    head = {"sessionId": "s", "projectHash": "h", "kind": "main"}
    return "\n".join(json.dumps(entry) for entry in (head, *entries))


def errors(transcript: ReadTranscript) -> list[str | None]:
    assert transcript.format == "gemini-cli"
    return [case.failed.observation for case in transcript.failures]


def test_status_marks_a_call_and_its_error_is_the_text_alone() -> None:
    transcript = read_transcript(session(gemini(call(response("no script"), status="error"))))
    assert errors(transcript) == ["no script"]
    assert transcript.failures[0].failed.action.calls[0].arguments == '{"command": "npm test"}'
    assert any("status error" in note for note in transcript.notes)


def test_record_is_the_response_as_the_object_that_the_model_reads() -> None:
    transcript = read_transcript(session(gemini(call(response("a\nb"), status="error"))))
    (case,) = transcript.failures
    prompt = transcript.as_recorded(case.trajectory.then(case.failed))
    assert prompt.messages is not None
    assert prompt.messages[-1]["content"] == '{"error": "a\\nb"}'
    neutral = replace(case.failed, observation="Received.", failed=False)
    prompt = transcript.as_recorded(case.trajectory.then(neutral))
    assert prompt.messages is not None
    assert prompt.messages[-1]["content"] == '{"error": "Received."}'


@pytest.mark.parametrize(
    ("text", "member", "status", "failed"),
    [
        ("[Operation Cancelled] Reason: no", "error", None, False),
        ("whatever", "error", "cancelled", False),
        ("Command: x\nOutput: y\nExit Code: 2", "output", "success", True),
        ("Command: x\nOutput: Error: y\nExit Code: 0", "output", "success", False),
        ("Error: only said", "output", "success", False),
        ("Error: no status at all", "output", None, True),
        ("odd", "error", None, True),
    ],
)
def test_outcome_is_told_by_status_then_member_then_text(
    text: str, member: str, status: str | None, failed: bool
) -> None:
    more = {} if status is None else {"status": status}
    transcript = read_transcript(session(gemini(call(response(text, member=member), **more))))
    assert bool(errors(transcript)) == failed


def test_result_that_the_user_message_repeats_is_told_once() -> None:
    failing = call(response("no script"), status="error")
    repeated = {"id": "u2", "type": "user", "content": [response("no script")]}
    transcript = read_transcript(session(gemini(failing), repeated))
    assert errors(transcript) == ["no script"]
    prompt = transcript.recorded[0].after
    assert [message["role"] for message in prompt.messages or ()] == ["user", "assistant", "tool"]


def test_lines_of_one_id_replace_each_other() -> None:
    unfinished = gemini(call(status="executing"))
    finished = gemini(call(response("no script"), status="error"))
    update = {"$set": {"lastUpdated": "x"}}
    assert errors(read_transcript(lines(ASKED, unfinished, update, finished))) == ["no script"]


def test_rewinding_takes_lines_back() -> None:
    failing = gemini(call(response("no script"), status="error"))
    other = gemini(call(response("other"), status="error"), id="g2")
    assert errors(read_transcript(lines(ASKED, failing, {"$rewindTo": "g1"}, other))) == ["other"]


def test_rewinding_to_an_unknown_line_takes_all_back() -> None:
    failing = gemini(call(response("no script"), status="error"))
    other = gemini(call(response("other"), status="error"), id="g2")
    assert errors(read_transcript(lines(ASKED, failing, {"$rewindTo": "g9"}, other))) == ["other"]


def test_whole_history_may_be_set_anew() -> None:
    failing = gemini(call(response("no script"), status="error"))
    again = {"$set": {"messages": [ASKED, failing]}}
    assert errors(read_transcript(lines(ASKED, failing, again))) == ["no script"]


def test_contents_of_the_api_pair_by_id_or_by_order() -> None:
    made = [{"functionCall": {"name": "ls", "args": {"n": n}}} for n in (1, 2)]
    heard = [
        {"functionResponse": {"name": "ls", "response": {"output": "fine"}}},
        {"functionResponse": {"name": "ls", "response": {"error": "no"}}},
    ]
    contents = [
        {"role": "user", "parts": [{"text": "List."}]},
        {"role": "model", "parts": [{"text": "Ok."}, *made]},
        {"role": "user", "parts": heard},
    ]
    for source in (contents, {"contents": contents}, {"history": contents}):
        transcript = read_transcript(source)
        assert errors(transcript) == ["no"]
        assert transcript.failures[0].failed.action.calls[0].arguments == '{"n": 2}'


def test_request_body_gives_the_system_prompt_and_the_tools() -> None:
    contents = [
        {"role": "user", "parts": [{"text": "List."}]},
        {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "ls", "args": {}}}]},
        {"role": "user", "parts": [response("no")]},
    ]
    declared = {"name": "ls", "description": "d", "parametersJsonSchema": {"type": "object"}}
    body = {
        "contents": contents,
        "systemInstruction": {"parts": [{"text": "You list."}]},
        "tools": [{"functionDeclarations": [declared]}],
    }
    (case,) = read_transcript(body).failures
    assert case.trajectory.system == "You list."
    assert [tool.parameters for tool in case.trajectory.tools] == [{"type": "object"}]


def test_stream_of_events_is_read() -> None:
    events = [
        {"type": "init", "session_id": "s", "model": "m"},
        {"type": "message", "role": "user", "content": "List."},
        {"type": "message", "role": "assistant", "content": "I ", "delta": True},
        {"type": "message", "role": "assistant", "content": "list.", "delta": True},
        {"type": "tool_use", "tool_name": "ls", "tool_id": "t1", "parameters": {"p": "x"}},
        {"type": "tool_result", "tool_id": "t1", "status": "error", "error": {"message": "no x"}},
        {"type": "result", "status": "success"},
    ]
    transcript = read_transcript("\n".join(map(json.dumps, events)))
    assert errors(transcript) == ["no x"]
    assert transcript.failures[0].failed.reply == "I list."


def test_thoughts_and_images_are_told_of() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "AA=="}}
    asked = {"id": "u", "type": "user", "content": [{"text": "See "}, image]}
    failing = gemini(call(response("no"), status="error"), thoughts=[{"subject": "hm"}])
    transcript = read_transcript(
        {"sessionId": "s", "projectHash": "h", "messages": [asked, failing]}
    )
    assert transcript.failures[0].trajectory.goal == "See [image]"
    assert any("placeholder" in note for note in transcript.notes)
    assert any("thoughts" in note for note in transcript.notes)


def test_interface_messages_are_no_turns() -> None:
    info = {"id": "i", "type": "info", "content": "Error: quota"}
    transcript = read_transcript(session(info, gemini(call(response("no"), status="error"))))
    assert "quota" not in str(transcript.recorded[0].after.messages)
