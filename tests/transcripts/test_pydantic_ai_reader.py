from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from conftest import SHARED
from pytest_failgain.trajectory import UserTurn
from pytest_failgain.transcripts.pydantic_ai import NO_CALL, PROVIDERS_OWN
from pytest_failgain.transcripts.read import read_transcript

ASKED = {
    "kind": "request",
    "instructions": "You keep a calendar.",
    "parts": [{"part_kind": "user-prompt", "content": "Add it."}],
}
NAMED = {"tool_name": "add", "tool_call_id": "c1"}


def response(args: Any = '{"day":"12"}', *before: dict[str, Any]) -> dict[str, Any]:
    call = {"part_kind": "tool-call", "args": args, **NAMED}
    return {"kind": "response", "parts": [*before, call]}


def request(kind: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"kind": "request", "parts": [{"part_kind": kind, "content": content, **NAMED, **more}]}


def last_content(transcript: Any) -> Any:
    (case,) = transcript.failures
    prompt = transcript.as_recorded(case.trajectory.then(case.failed))
    assert prompt.messages is not None
    return prompt.messages[-1]["content"]


def test_retry_prompt_marks_a_failure_and_is_worded_as_pydantic_ai_words_it() -> None:
    transcript = read_transcript([ASKED, response(), request("retry-prompt", "no day")])
    (case,) = transcript.failures
    assert transcript.format == "pydantic-ai"
    assert case.trajectory.system == "You keep a calendar."
    assert case.failed.action.calls[0].arguments == '{"day":"12"}'
    assert case.failed.observation == "no day"
    assert last_content(transcript) == "no day\n\nFix the errors and try again."
    neutral = replace(case.failed, observation="Received.", failed=False)
    prompt = transcript.as_recorded(case.trajectory.then(neutral))
    assert prompt.messages is not None
    assert prompt.messages[-1]["content"].startswith("Received.\n")


def test_validation_errors_are_described_as_the_model_reads_them() -> None:
    error = {"type": "missing", "loc": ["day"], "msg": "Field required", "ctx": {"x": 1}}
    transcript = read_transcript([ASKED, response(), request("retry-prompt", [error])])
    content = last_content(transcript)
    assert content.startswith('1 validation error:\n```json\n[\n  {\n    "type": "missing"')
    assert "ctx" not in content
    assert transcript.failures[0].failed.observation in content


@pytest.mark.parametrize(
    ("outcome", "failed"),
    [("success", 0), ("failed", 1), ("retried", 1), ("denied", 0), ("interrupted", 0)],
)
def test_outcome_is_believed_whatever_the_text_says(outcome: str, failed: int) -> None:
    answer = request("tool-return", "Error: no day", outcome=outcome)
    transcript = read_transcript([ASKED, response(), answer])
    assert len(transcript.failures) == failed
    cancelled = outcome in ("denied", "interrupted")
    assert any("cancelled" in note for note in transcript.notes) == cancelled


def test_failed_return_is_recorded_as_an_object() -> None:
    answer = request("tool-return", "no 'day'", outcome="failed")
    transcript = read_transcript([ASKED, response(), answer])
    assert last_content(transcript) == '{"error":"no \'day\'"}'
    assert transcript.failures[0].failed.observation == "no 'day'"


def test_without_an_outcome_the_text_is_judged() -> None:
    failing = [ASKED, response(), request("tool-return", {"error": "no day"})]
    working = [ASKED, response(), request("tool-return", {"day": "12"})]
    (case,) = read_transcript(failing).failures
    assert case.failed.observation == '{"error":"no day"}'
    assert not read_transcript(working).failures


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ('{"b":1,  "a":', '{"b":1,  "a":'),
        ({"b": 1, "a": "é"}, '{"b": 1, "a": "é"}'),
        ({"args_json": '{"b":1}'}, '{"b":1}'),
        ({"args_dict": {"b": 1}}, '{"b": 1}'),
        (None, "{}"),
    ],
)
def test_arguments_stay_as_the_model_wrote_them(args: Any, text: str) -> None:
    (case,) = read_transcript([ASKED, response(args), request("retry-prompt", "no")]).failures
    assert case.failed.action.calls[0].arguments == text


def test_retry_that_answers_no_call_is_a_users_turn() -> None:
    said = {"kind": "response", "parts": [{"part_kind": "text", "content": "Done."}]}
    retry = {"part_kind": "retry-prompt", "content": "call a tool", "tool_name": None}
    transcript = read_transcript([ASKED, said, {"kind": "request", "parts": [retry]}])
    assert not transcript.failures
    assert any(NO_CALL in note for note in transcript.notes)
    (_, told) = transcript.trajectories[0].steps
    assert isinstance(told, UserTurn)
    assert told.text.startswith("Validation feedback:\ncall a tool")


def test_parts_beside_the_call_are_told_or_noted() -> None:
    before = (
        {"part_kind": "thinking", "content": "hm"},
        {"part_kind": "text", "content": "I add it."},
        {"part_kind": "builtin-tool-call", "tool_name": "web_search", "args": "{}"},
    )
    image = {"kind": "image-url", "url": "https://x/y.png"}
    asked = {
        "kind": "request",
        "parts": [{"part_kind": "user-prompt", "content": ["See ", image]}],
    }
    transcript = read_transcript([asked, response("{}", *before), request("retry-prompt", "no")])
    (case,) = transcript.failures
    assert case.failed.reply == "I add it."
    assert case.trajectory.goal == "See [image-url]"
    assert any(PROVIDERS_OWN in note for note in transcript.notes)
    assert any("thoughts" in note for note in transcript.notes)


def test_history_may_be_held_in_an_object_or_in_lines() -> None:
    messages = [ASKED, response(), request("retry-prompt", "no day")]
    lines = "\n".join(map(json.dumps, messages))
    for source in ({"messages": messages}, {"message_history": messages}, [messages], lines):
        transcript = read_transcript(source)
        assert (transcript.format, len(transcript.failures)) == ("pydantic-ai", 1)


def test_prompt_is_the_request_that_the_library_really_sends() -> None:
    path = SHARED / "captures" / "pydantic_chat-modelretry-retries_after.json"
    if not path.is_file():
        pytest.skip(f"the recorded request is not in {path}")
    sent = json.loads(path.read_text())["messages"]
    call = sent[2]["tool_calls"][0]
    named = {"tool_name": call["function"]["name"], "tool_call_id": call["id"]}
    made = {"part_kind": "tool-call", "args": call["function"]["arguments"], **named}
    error = json.loads(sent[3]["content"])["error"]
    retried = {"part_kind": "tool-return", "content": error, "outcome": "retried", **named}
    asked = {"part_kind": "user-prompt", "content": sent[1]["content"]}
    transcript = read_transcript(
        [
            {"kind": "request", "instructions": sent[0]["content"], "parts": [asked]},
            {"kind": "response", "parts": [made]},
            {"kind": "request", "parts": [retried]},
        ]
    )
    after = transcript.recorded[0].after.messages
    assert after is not None
    assert [{**one, "content": one["content"] or None} for one in after] == sent


def test_dump_of_the_library_is_read() -> None:
    messages = pytest.importorskip("pydantic_ai.messages", reason="pydantic-ai is not installed")
    history = [
        messages.ModelRequest(parts=[messages.UserPromptPart("Add it.")]),
        messages.ModelResponse(parts=[messages.ToolCallPart("add", '{"day": "12"}', "c1")]),
        messages.ModelRequest(
            parts=[messages.ToolReturnPart("add", "no day", "c1", outcome="failed")]
        ),
    ]
    dumped = messages.ModelMessagesTypeAdapter.dump_json(history)
    (case,) = read_transcript(dumped).failures
    assert case.failed.action.calls[0].arguments == '{"day": "12"}'
    assert case.failed.observation == "no day"
