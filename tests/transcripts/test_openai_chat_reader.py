"""Chat completions: messages, requests' bodies, and logs of both."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_failgain.trajectory import Tool, UserTurn
from pytest_failgain.transcripts.arguments import DUMPED
from pytest_failgain.transcripts.chat_logs import LEFT_OUT
from pytest_failgain.transcripts.failures import BROKEN
from pytest_failgain.transcripts.openai_chat import CUT_OFF
from pytest_failgain.transcripts.read import ReadTranscript, read_transcript

GOAL = {"role": "user", "content": "Book a room."}
TOOLS = [{"type": "function", "function": {"name": "book", "parameters": {"type": "object"}}}]


def call(arguments: Any = "{}", call_id: str | None = "a", name: str = "book") -> dict[str, Any]:
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def reply(*calls: dict[str, Any], content: Any = None, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": [*calls], **more}


def answer(content: Any = "Error: full", call_id: str | None = "a", **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


RUN = [GOAL, reply(call()), answer()]


def only(transcript: ReadTranscript) -> Any:
    assert transcript.format == "openai-chat"
    (case,) = transcript.failures
    return case


@pytest.mark.parametrize(
    "arguments",
    ['{"b":1,  "a":2}', '{"a": "\\u00e9\\/"}', '{"a": 1', "", "not JSON", '{"a": 1e400}'],
)
def test_arguments_stay_letter_for_letter(arguments: str) -> None:
    case = only(read_transcript([GOAL, reply(call(arguments)), answer()]))
    assert case.failed.action.calls[0].arguments == arguments


def test_arguments_that_are_an_object_keep_its_order_and_are_noted() -> None:
    transcript = read_transcript([GOAL, reply(call({"b": "é", "a": 2})), answer()])
    assert only(transcript).failed.action.calls[0].arguments == '{"b": "é", "a": 2}'
    assert f"{DUMPED} (1)" in transcript.notes


def test_prompts_are_the_messages_as_they_were_sent() -> None:
    odd = {"role": "user", "content": [{"type": "text", "text": "hi"}], "name": "ann", "x": None}
    developer = {"role": "developer", "content": "Be brief."}
    sent = [developer, odd, reply(call(), refusal=None, annotations=[]), answer(name="book")]
    transcript = read_transcript({"messages": [*sent, GOAL], "tools": TOOLS})
    case = only(transcript)
    assert (case.trajectory.system, case.trajectory.goal) == ("Be brief.", "hi")
    before = transcript.as_recorded(case.trajectory)
    after = transcript.as_recorded(case.trajectory.then(case.failed))
    assert before.messages == tuple(sent[:2])
    assert after.messages == (*sent, GOAL)
    assert after.tools == (Tool("book", "", {"type": "object"}),)
    assert after.adaptations == ()


LOGS: dict[str, Any] = {
    "messages": RUN,
    "body": {"model": "m", "messages": RUN, "tools": TOOLS},
    "list of bodies": [{"messages": RUN}],
    "list of lists": [RUN],
    "batch line": {"custom_id": "1", "method": "POST", "body": {"messages": RUN}},
    "request in a request": {"request": {"body": {"messages": RUN}}},
    "run's inputs": {"inputs": {"messages": [RUN]}},
    "messages with times": [{"at": n, "message": message} for n, message in enumerate(RUN)],
    "messages and events": [{"event": "start"}, *RUN, {"event": "end"}],
    "lines": "\n".join(map(json.dumps, RUN)),
}


@pytest.mark.parametrize("log", LOGS.values(), ids=LOGS)
def test_logs_of_every_shape_hold_the_failure(log: Any) -> None:
    case = only(read_transcript(log))
    assert case.trajectory.goal == "Book a room."
    assert case.failed.observation == "Error: full"


def test_entries_that_are_no_messages_are_counted() -> None:
    transcript = read_transcript([{"event": "start"}, *RUN, {"event": "end"}])
    assert f"{LEFT_OUT} (2)" in transcript.notes


def test_answer_beside_a_request_is_its_last_message() -> None:
    bad = reply(call('{"a": '), finish_reason="length")
    response = {"choices": [{"index": 0, "message": bad}]}
    for log in (
        {"request": {"messages": [GOAL]}, "response": response},
        {"messages": [GOAL], **response},
    ):
        transcript = read_transcript(log)
        case = only(transcript)
        assert case.failed.observation.startswith("arguments are not valid JSON: ")
        assert f"{BROKEN} (1)" in transcript.notes
        assert f"{CUT_OFF} (1)" in transcript.notes


def test_requests_that_grow_tell_of_each_failure_once() -> None:
    messages = [
        GOAL,
        reply(call()),
        answer(),
        reply(call('{"n": 2}', "b")),
        answer("Error: still full", "b"),
        reply(content="I give up."),
    ]
    bodies = [{"messages": messages[:count], "tools": TOOLS} for count in (1, 3, 5, 6)]
    transcript = read_transcript("\n".join(map(json.dumps, bodies)))
    assert [case.failed.observation for case in transcript.failures] == [
        "Error: full",
        "Error: still full",
    ]
    assert len(transcript.trajectories) == 1


def test_requests_with_other_tools_are_conversations_of_their_own_and_share_failures() -> None:
    bodies = [{"messages": RUN, "tools": TOOLS}, {"messages": [*RUN, GOAL]}]
    transcript = read_transcript(bodies)
    assert len(transcript.trajectories) == 2
    assert len(transcript.failures) == 1


def test_unrelated_conversations_with_the_same_ids_are_told_apart() -> None:
    other = {"role": "user", "content": "Book another."}
    transcript = read_transcript([{"messages": RUN}, {"messages": [other, *RUN[1:]]}])
    assert [case.trajectory.goal for case in transcript.failures] == [
        "Book a room.",
        "Book another.",
    ]


def test_function_call_of_old_and_its_answer_are_read() -> None:
    old = {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "book", "arguments": '{"a":1}'},
    }
    messages = [GOAL, old, {"role": "function", "name": "book", "content": "Error: full"}]
    transcript = read_transcript({"messages": messages, "functions": [{"name": "book"}]})
    case = only(transcript)
    assert case.failed.action.calls[0].arguments == '{"a":1}'
    assert case.trajectory.tools == (Tool("book"),)


def test_custom_tool_takes_any_text() -> None:
    made = {"id": "a", "type": "custom", "custom": {"name": "patch", "input": "{ not JSON"}}
    case = only(read_transcript([GOAL, reply(made), answer()]))
    assert case.failed.action.calls[0].arguments == "{ not JSON"
    assert not read_transcript([GOAL, reply(made)]).failures


def test_refusal_is_what_was_said() -> None:
    refused = {"role": "assistant", "content": None, "refusal": "I won't."}
    (whole,) = read_transcript([GOAL, refused, *RUN[1:]]).trajectories
    first = whole.steps[0]
    assert not isinstance(first, UserTurn)
    assert first.action.text == "I won't."


def test_images_are_told_as_placeholders_and_sent_as_they_were() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    seen = answer([{"type": "text", "text": "Error: see "}, image])
    transcript = read_transcript([GOAL, reply(call()), seen])
    case = only(transcript)
    assert case.failed.observation == "Error: see [image]"
    assert "[image] in place of a part that is no text (1)" in transcript.notes
    after = transcript.as_recorded(case.trajectory.then(case.failed))
    assert after.messages is not None
    assert after.messages[-1] == seen


@pytest.mark.parametrize("failed", [True, False])
def test_mark_that_many_logs_add_is_taken(*, failed: bool) -> None:
    text = "fine" if failed else "Error: full"
    transcript = read_transcript([GOAL, reply(call()), answer(text, is_error=failed)])
    assert len(transcript.failures) == failed


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "tool_calls": "none"},
        {"role": "assistant", "tool_calls": [None, 5, {"function": None}, {"function": {}}]},
        {"role": "assistant", "content": {"a": 1}, "function_call": []},
        {"role": "tool", "content": [[["x"]]], "tool_call_id": ["a"]},
        {"role": "user", "content": 5},
        {"role": "user"},
    ],
    ids=range(6),
)
def test_odd_members_are_passed_over(message: Any) -> None:
    transcript = read_transcript([*RUN, message])
    assert only(transcript).failed.observation == "Error: full"


TEXTS = st.text(max_size=8)


@given(
    st.lists(st.tuples(TEXTS, st.booleans()), min_size=1, max_size=6),
    st.randoms(use_true_random=False),
)
@settings(max_examples=60, deadline=None)
def test_failed_calls_come_out_in_order_with_their_own_answers(
    made: list[tuple[str, bool]], random: Any
) -> None:
    calls = [call(json.dumps({"n": text}), f"id{n}") for n, (text, _) in enumerate(made)]
    answers = [
        answer(f"Error: {n} is full" if failed else "booked", f"id{n}")
        for n, (_, failed) in enumerate(made)
    ]
    random.shuffle(answers)
    transcript = read_transcript([GOAL, reply(*calls), *answers])
    found = [
        (case.failed.action.calls[0].arguments, case.failed.observation)
        for case in transcript.failures
    ]
    assert found == [
        (json.dumps({"n": text}), f"Error: {n} is full")
        for n, (text, failed) in enumerate(made)
        if failed
    ]


def test_call_without_arguments_is_sound() -> None:
    assert not read_transcript([GOAL, reply(call(""))]).failures
