"""Messages of Anthropic's API, and of Bedrock's Converse API, whose blocks are alike."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_failgain.trajectory import Step, Tool, UserTurn
from pytest_failgain.transcripts.anthropic import TOLD
from pytest_failgain.transcripts.anthropic_blocks import CUT_OFF
from pytest_failgain.transcripts.arguments import DUMPED
from pytest_failgain.transcripts.draft import NOT_TEXT, THOUGHTS
from pytest_failgain.transcripts.read import ReadTranscript, read_transcript

GOAL = {"role": "user", "content": "Book a room."}


def use(call_id: str = "a", name: str = "book", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def result(content: Any = "full", call_id: str = "a", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def reply(*blocks: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [*blocks], **more}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": [*blocks]}


RUN = [GOAL, reply(use(b=1, a="é")), user(result(is_error=True))]


def only(transcript: ReadTranscript) -> Any:
    assert transcript.format == "anthropic"
    (case,) = transcript.failures
    return case


def test_body_is_told_as_chat_messages_and_says_so() -> None:
    tools = [{"name": "book", "description": "Books.", "input_schema": {"type": "object"}}]
    system = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    transcript = read_transcript({"system": system, "messages": RUN, "tools": tools})
    case = only(transcript)
    after = transcript.as_recorded(case.trajectory.then(case.failed))
    function = {"name": "book", "arguments": '{"b": 1, "a": "é"}'}
    assert after.messages == (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Book a room."},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "a", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "a", "content": "full"},
    )
    assert after.tools == (Tool("book", "Books.", {"type": "object"}),)
    assert set(after.adaptations) == {TOLD, DUMPED}
    assert "failed by the format's own mark (is_error) (1)" in transcript.notes


LOGS: dict[str, Any] = {
    "messages": RUN,
    "lines": "\n".join(map(json.dumps, RUN)),
    "bodies that grow": [{"messages": RUN[:1]}, {"messages": RUN}],
    "request and response": {
        "request": {"messages": RUN},
        "response": {"type": "message", **reply({"type": "text", "text": "Hm."})},
    },
    "body without a call yet, and the next": [
        {"system": "x", "messages": RUN[:1]},
        {"system": "x", "messages": RUN},
    ],
}


@pytest.mark.parametrize("log", LOGS.values(), ids=LOGS)
def test_logs_of_every_shape_hold_the_failure(log: Any) -> None:
    transcript = read_transcript(log)
    assert only(transcript).failed.observation == "full"
    assert len(transcript.trajectories) == 1


@pytest.mark.parametrize(
    "body",
    [
        {"system": "Be brief.", "messages": [GOAL]},
        {"anthropic_version": "2023-06-01", "messages": [GOAL]},
        {"messages": [GOAL], "tools": [{"name": "book", "input_schema": {}}]},
    ],
)
def test_plain_messages_are_told_apart_by_the_body(body: dict[str, Any]) -> None:
    assert read_transcript(body).format == "anthropic"


@pytest.mark.parametrize(
    "messages",
    [
        [GOAL],
        [{"role": "system", "content": "x"}, GOAL],
        [GOAL, {"role": "tool", "tool_call_id": "a", "content": [result()]}],
        [GOAL, {"role": "user", "content": [{"type": "image_url", "image_url": {}}]}],
    ],
)
def test_messages_of_chat_completions_are_left_to_their_reader(messages: Any) -> None:
    assert read_transcript(messages).format == "openai-chat"


def test_unmarked_result_is_judged_by_its_words() -> None:
    transcript = read_transcript([*RUN[:2], user(result("Error: no room"))])
    only(transcript)
    assert "failed by the heuristic 'error word' (1)" in transcript.notes


def test_mark_of_success_wins_over_the_words() -> None:
    assert not read_transcript([*RUN[:2], user(result("Error: x", is_error=False))]).failures


def test_rejected_call_is_no_failure() -> None:
    text = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    transcript = read_transcript([*RUN[:2], user(result(text, is_error=True))])
    assert not transcript.failures
    assert "a rejected or cancelled call: no failure (1)" in transcript.notes


def test_text_beside_results_is_said_after_them() -> None:
    both = user({"type": "text", "text": "Hurry."}, result(is_error=True))
    transcript = read_transcript([*RUN[:2], both])
    case = only(transcript)
    after = transcript.as_recorded(case.trajectory.then(case.failed)).messages
    assert after is not None
    assert [message["role"] for message in after[-2:]] == ["tool", "user"]
    assert transcript.trajectories[0].steps[-1] == UserTurn("Hurry.")


def test_thoughts_are_left_out_and_images_are_placeholders() -> None:
    image = {"type": "image", "source": {"type": "base64", "data": "AAAA"}}
    transcript = read_transcript(
        [
            GOAL,
            reply({"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "I do."}, use()),
            user(result([{"type": "text", "text": "no: "}, image], is_error=True)),
        ]
    )
    case = only(transcript)
    assert (case.failed.reply, case.failed.observation) == ("I do.", "no: [image]")
    assert {f"{THOUGHTS} (1)", f"{NOT_TEXT} (1)"} <= {*transcript.notes}


def test_parallel_calls_are_cases_of_their_own() -> None:
    transcript = read_transcript(
        [
            GOAL,
            reply(use("a"), use("b"), use("c")),
            user(result("1", "c", is_error=True), result("2", "b"), result("3", is_error=True)),
        ]
    )
    assert [case.failed.observation for case in transcript.failures] == ["3", "1"]


@pytest.mark.parametrize(
    ("content", "failed"),
    [
        ({"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}, 1),
        ({"type": "code_execution_result", "return_code": 1, "stdout": "", "stderr": "no"}, 1),
        ({"type": "code_execution_result", "return_code": 0, "stdout": "ok", "stderr": ""}, 0),
        ([{"type": "web_search_result", "title": "x"}], 0),
    ],
)
def test_tools_that_the_api_runs_are_answered_in_the_same_message(
    content: Any, failed: int
) -> None:
    ran = {"type": "server_tool_use", "id": "s", "name": "search", "input": {"q": "x"}}
    told = {"type": "web_search_tool_result", "tool_use_id": "s", "content": content}
    transcript = read_transcript([GOAL, reply(ran, told, {"type": "text", "text": "So."})])
    assert len(transcript.failures) == failed
    (whole,) = transcript.trajectories
    assert isinstance(whole.steps[0], Step)
    assert whole.steps[0].observation is not None


def test_reply_that_was_cut_off_is_noted() -> None:
    transcript = read_transcript([GOAL, reply(use(), stop_reason="max_tokens"), RUN[2]])
    assert f"{CUT_OFF} (1)" in transcript.notes


def test_converse_messages_are_read_with_their_status() -> None:
    used = {"toolUse": {"toolUseId": "a", "name": "book", "input": {"n": 1}}}
    content = [{"text": "no"}, {"json": {"left": 0}}]
    told = {"toolResult": {"toolUseId": "a", "status": "error", "content": content}}
    tool = {"toolSpec": {"name": "book", "inputSchema": {"json": {"type": "object"}}}}
    body = {"messages": [GOAL, reply(used), user(told)], "toolConfig": {"tools": [tool]}}
    case = only(read_transcript(body))
    assert case.failed.observation == 'no{"left": 0}'
    assert case.trajectory.tools == (Tool("book", "", {"type": "object"}),)
    (whole,) = read_transcript([GOAL, reply({"text": "I do."}, used), user(told)]).trajectories
    assert isinstance(whole.steps[0], Step)
    assert whole.steps[0].reply == "I do."


@pytest.mark.parametrize(
    "message",
    [
        reply({"type": "tool_use"}, {"type": "tool_use", "name": 5}, None, 7),
        user({"type": "tool_result"}, {"type": "tool_result", "tool_use_id": []}),
        {"role": "assistant", "content": {"type": "tool_use", "name": "x", "input": None}},
        {"role": "user", "content": [{"toolResult": {"content": "x"}}, {"toolUse": 5}]},
    ],
)
def test_odd_blocks_are_passed_over(message: dict[str, Any]) -> None:
    assert only(read_transcript([*RUN, message])).failed.observation == "full"
