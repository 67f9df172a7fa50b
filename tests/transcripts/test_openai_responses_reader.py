"""Items of the Responses API: bodies, responses, and lists of items."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_failgain.trajectory import Step, Tool
from pytest_failgain.transcripts.draft import THOUGHTS
from pytest_failgain.transcripts.openai_responses import EARLIER, TOLD
from pytest_failgain.transcripts.read import ReadTranscript, read_transcript
from pytest_failgain.transcripts.response_items import HOSTED, REFERENCE, UNKNOWN

GOAL = {"role": "user", "content": [{"type": "input_text", "text": "Book a room."}]}
CALL = {"type": "function_call", "call_id": "a", "name": "book", "arguments": '{"b":1,  "a":2}'}
FAILED = {"type": "function_call_output", "call_id": "a", "output": "Error: full"}
RUN = [GOAL, CALL, FAILED]


def said(text: str) -> dict[str, Any]:
    parts = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "role": "assistant", "content": parts}


def only(transcript: ReadTranscript) -> Any:
    assert transcript.format == "openai-responses"
    assert f"{TOLD} (1)" in transcript.notes
    (case,) = transcript.failures
    return case


def test_body_is_told_as_chat_messages_and_says_so() -> None:
    tools = [{"type": "function", "name": "book", "parameters": {"type": "object"}}]
    body = {"model": "m", "instructions": "Be brief.", "input": [*RUN, said("Hm.")], "tools": tools}
    transcript = read_transcript(body)
    case = only(transcript)
    after = transcript.as_recorded(case.trajectory.then(case.failed))
    function = {"name": "book", "arguments": '{"b":1,  "a":2}'}
    assert after.messages == (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Book a room."},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "a", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "a", "content": "Error: full"},
    )
    assert after.tools == (Tool("book", "", {"type": "object"}),)
    assert after.adaptations == (TOLD,)


LOGS: dict[str, Any] = {
    "items": RUN,
    "lines of items": "\n".join(map(json.dumps, RUN)),
    "list of lists": [RUN],
    "request": {"request": {"model": "m", "input": RUN}},
    "request and response": {
        "request": {"model": "m", "input": RUN},
        "response": {"object": "response", "output": [said("Hm.")]},
    },
}


@pytest.mark.parametrize("log", LOGS.values(), ids=LOGS)
def test_logs_of_every_shape_hold_the_failure(log: Any) -> None:
    case = only(read_transcript(log))
    assert case.trajectory.goal == "Book a room."
    assert case.failed.action.calls[0].arguments == CALL["arguments"]
    assert case.failed.observation == "Error: full"


def test_text_for_an_input_is_the_goal() -> None:
    (whole,) = read_transcript({"model": "m", "input": "Book a room."}).trajectories
    assert whole.goal == "Book a room."


def test_requests_that_grow_tell_of_each_failure_once() -> None:
    bodies = [{"model": "m", "input": RUN[:1]}, {"model": "m", "input": [*RUN, said("Hm.")]}]
    transcript = read_transcript(bodies)
    only(transcript)
    assert len(transcript.trajectories) == 1


def test_response_alone_ends_in_the_call_that_it_makes() -> None:
    cut_off = {**CALL, "arguments": '{"a": '}
    response = {"object": "response", "output": [said("Now."), cut_off]}
    case = only(read_transcript(response))
    assert case.failed.reply == "Now."
    assert case.failed.observation.startswith("arguments are not valid JSON")


def test_earlier_response_that_is_not_in_the_log_is_noted() -> None:
    body = {"model": "m", "previous_response_id": "r1", "input": [CALL, FAILED]}
    assert f"{EARLIER} (1)" in read_transcript(body).notes


def test_message_and_parallel_calls_are_one_turn() -> None:
    second = {**CALL, "call_id": "b"}
    items = [
        GOAL,
        said("Two."),
        CALL,
        second,
        {**FAILED, "call_id": "b"},
        {**FAILED, "output": "1"},
    ]
    case = only(read_transcript(items))
    assert case.failed.reply == "Two."
    assert case.trajectory.steps == ()


def test_what_no_chat_message_has_is_left_out_and_noted() -> None:
    items = [
        GOAL,
        {"type": "reasoning", "summary": []},
        {"type": "item_reference", "id": "x"},
        {"type": "web_search_call", "id": "w"},
        CALL,
        FAILED,
    ]
    notes = read_transcript({"model": "m", "input": items}).notes
    assert {f"{note} (1)" for note in (THOUGHTS, REFERENCE, HOSTED)} <= {*notes}
    odd = {"model": "m", "input": RUN, "object": "response", "output": []}
    assert f"{UNKNOWN} (1)" not in read_transcript(odd).notes


@pytest.mark.parametrize(
    ("call", "output", "observation"),
    [
        (
            {"type": "custom_tool_call", "call_id": "a", "name": "patch", "input": "{ no JSON"},
            {"type": "custom_tool_call_output", "call_id": "a", "output": "Error: full"},
            "Error: full",
        ),
        (
            {"type": "local_shell_call", "call_id": "a", "action": {"command": ["ls", "x"]}},
            {"type": "local_shell_call_output", "id": "a", "output": "Error: full"},
            "Error: full",
        ),
        (
            {"type": "shell_call", "call_id": "a", "action": {"commands": ["ls x"]}},
            {
                "type": "shell_call_output",
                "call_id": "a",
                "output": [
                    {
                        "stdout": "a",
                        "stderr": "b",
                        "outcome": {"type": "exit", "exit_code": 2},
                    }
                ],
            },
            "ab",
        ),
        (
            {"type": "shell_call", "call_id": "a", "action": {"commands": ["ls x"]}},
            {
                "type": "shell_call_output",
                "call_id": "a",
                "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "timeout"}}],
            },
            "a",
        ),
        (
            {"type": "apply_patch_call", "call_id": "a", "operation": {"path": "x"}},
            {"type": "apply_patch_call_output", "call_id": "a", "status": "failed", "output": "no"},
            "no",
        ),
        (
            {"type": "mcp_call", "id": "a", "name": "book", "arguments": "{}", "error": "full"},
            said("Hm."),
            "full",
        ),
    ],
    ids=["custom tool", "local shell", "shell", "shell that took too long", "patch", "MCP"],
)
def test_calls_of_every_kind_fail_by_their_own_marks(
    call: dict[str, Any], output: dict[str, Any], observation: str
) -> None:
    case = only(read_transcript({"model": "m", "input": [GOAL, call, output]}))
    assert case.failed.observation == observation
    logged = call.get("input", call.get("arguments", call.get("action", call.get("operation"))))
    made = case.failed.action.calls[0].arguments
    assert made == (logged if isinstance(logged, str) else json.dumps(logged))


@pytest.mark.parametrize(
    "call",
    [
        {"type": "mcp_call", "id": "a", "name": "book", "arguments": "{}", "output": "Error: x"},
        {"type": "mcp_call", "id": "a", "name": "book", "arguments": "{}", "error": None},
    ],
)
def test_mcp_call_without_an_error_is_no_failure(call: dict[str, Any]) -> None:
    assert not read_transcript({"model": "m", "input": [GOAL, call]}).failures


def test_mcp_call_is_answered_behind_its_message() -> None:
    call = {"type": "mcp_call", "id": "a", "name": "book", "arguments": "{}", "error": "full"}
    transcript = read_transcript({"model": "m", "input": [GOAL, call, said("Hm.")]})
    case = only(transcript)
    neutral = Step(case.failed.action, "ok", tool="book")
    messages = transcript.as_recorded(case.trajectory.then(neutral)).messages
    assert messages is not None
    assert [message["role"] for message in messages] == ["user", "assistant", "tool"]
    assert messages[-1]["content"] == "ok"


def test_error_of_an_mcp_call_is_replaced_in_its_own_message() -> None:
    call = {"type": "mcp_call", "id": "a", "name": "book", "arguments": "{}", "error": "full"}
    echo = {"role": "user", "content": "full"}
    transcript = read_transcript({"model": "m", "input": [GOAL, call, echo]})
    case = only(transcript)
    neutral = Step(case.failed.action, "ok", tool="book")
    messages = transcript.as_recorded(case.trajectory.then(neutral)).messages
    assert messages is not None
    assert [message["content"] for message in messages[-2:]] == ["ok", "full"]


def test_message_behind_a_call_begins_another_turn() -> None:
    second = {**CALL, "call_id": "b"}
    items = [GOAL, CALL, said("And then."), second, FAILED, {**FAILED, "call_id": "b"}]
    first, last = read_transcript(items).failures
    assert (first.failed.reply, last.failed.reply) == ("", "And then.")
    assert len(last.trajectory.steps) == 1
