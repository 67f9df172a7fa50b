"""Messages of LangChain in each of the forms that they are kept in."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from pytest_failgain.trajectory import Step
from pytest_failgain.transcripts.arguments import DUMPED
from pytest_failgain.transcripts.draft import THOUGHTS
from pytest_failgain.transcripts.langchain import LEFT_OUT, NAMELESS, TOLD
from pytest_failgain.transcripts.read import ReadTranscript, read_transcript

Message = dict[str, Any]


def human(content: Any = "Book a room.") -> Message:
    return {"type": "human", "content": content}


def ai(content: Any = "", **more: Any) -> Message:
    return {"type": "ai", "content": content, **more}


def call(call_id: str = "a", **arguments: Any) -> Message:
    return {"name": "book", "args": arguments, "id": call_id, "type": "tool_call"}


def tool(content: Any = "full", call_id: str = "a", status: str | None = "error") -> Message:
    marked = {} if status is None else {"status": status}
    return {"type": "tool", "content": content, "name": "book", "tool_call_id": call_id, **marked}


RUN = [human(), ai(tool_calls=[call(b=1, a="é")]), tool()]


def as_data(message: Message) -> Message:
    return {"type": message["type"], "data": message}


def as_constructor(message: Message) -> Message:
    name = {"human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage"}[message["type"]]
    path = ["langchain", "schema", "messages", name]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": message}


def as_class(message: Message) -> Message:
    names = {"human": "HumanMessage", "ai": "AIMessageChunk", "tool": "ToolMessage"}
    return {**message, "type": names[message["type"]]}


def only(transcript: ReadTranscript) -> Any:
    assert transcript.format == "langchain"
    (case,) = transcript.failures
    return case


@pytest.mark.parametrize("form", [dict, as_data, as_constructor, as_class])
def test_messages_of_every_form_are_told_as_chat_messages(
    form: Callable[[Message], Message],
) -> None:
    transcript = read_transcript([*map(form, RUN)])
    case = only(transcript)
    after = transcript.as_recorded(case.trajectory.then(case.failed))
    function = {"name": "book", "arguments": '{"b": 1, "a": "é"}'}
    assert after.messages == (
        {"role": "user", "content": "Book a room."},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "a", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "a", "content": "full"},
    )
    assert set(after.adaptations) == {TOLD, DUMPED}
    assert "failed by the format's own mark (status) (1)" in transcript.notes


LOGS: dict[str, Any] = {
    "state": {"messages": RUN},
    "snapshot": {"values": {"messages": RUN}, "next": []},
    "checkpoint": {"checkpoint": {"channel_values": {"messages": RUN}}},
    "run": {"inputs": {"messages": [RUN]}},
    "list of lists": [RUN],
    "states that grow": [{"messages": RUN[:count]} for count in (1, 2, 3)],
    "lines": "\n".join(map(json.dumps, RUN)),
}


@pytest.mark.parametrize("log", LOGS.values(), ids=LOGS)
def test_logs_of_every_shape_hold_the_failure(log: Any) -> None:
    transcript = read_transcript(log)
    case = only(transcript)
    assert (case.trajectory.goal, case.failed.observation) == ("Book a room.", "full")
    assert len(transcript.trajectories) == 1


def test_arguments_as_the_provider_had_them_stay_letter_for_letter() -> None:
    raw = '{"b":1,  "a":"\\u00e9"}'
    function = {"name": "book", "arguments": raw}
    beside = {"tool_calls": [{"id": "a", "type": "function", "function": function}]}
    for made in ({"tool_calls": [call(b=1, a="é")]}, {}):
        transcript = read_transcript([human(), ai(additional_kwargs=beside, **made), tool()])
        assert only(transcript).failed.action.calls[0].arguments == raw
        assert not any(note.startswith(DUMPED) for note in transcript.notes)


@pytest.mark.parametrize(
    ("error", "observation"),
    [("not JSON", "not JSON"), (None, "arguments are not valid JSON: ")],
)
def test_invalid_call_is_a_failure_of_its_own(error: str | None, observation: str) -> None:
    invalid = {"name": "book", "args": '{"a": ', "id": "b", "error": error}
    transcript = read_transcript(
        [human(), ai(tool_calls=[call()], invalid_tool_calls=[invalid]), tool("fine", status=None)]
    )
    case = only(transcript)
    assert case.failed.action.calls[0].arguments == '{"a": '
    assert case.failed.observation.startswith(observation)


def test_invalid_call_without_a_name_is_noted() -> None:
    invalid = {"name": None, "args": "x", "id": "b", "error": "no"}
    transcript = read_transcript([*RUN, ai(invalid_tool_calls=[invalid])])
    only(transcript)
    assert f"{NAMELESS} (1)" in transcript.notes


def test_success_is_taken_at_its_word_and_the_doubt_is_noted() -> None:
    transcript = read_transcript([*RUN[:2], tool("Error: shown", status="success")])
    assert not transcript.failures
    assert any("no failure by the format's own mark, though" in note for note in transcript.notes)


def test_unmarked_result_is_judged_by_its_words() -> None:
    assert only(read_transcript([*RUN[:2], tool("Error: no room", status=None)]))


def test_parallel_calls_are_cases_of_their_own() -> None:
    calls = [call("a", n=1), call("b", n=2), call("c", n=3)]
    answers = [tool("3", "c"), tool("2", "b", "success"), tool("1", "a")]
    transcript = read_transcript([human(), ai(tool_calls=calls), *answers])
    assert [case.failed.observation for case in transcript.failures] == ["1", "3"]


def test_calls_in_the_content_are_told_once() -> None:
    content = [
        {"type": "text", "text": "I do."},
        {"type": "thinking", "thinking": "hm"},
        {"type": "tool_use", "id": "a", "name": "book", "input": {"n": 1}},
    ]
    transcript = read_transcript([human(), ai(content, tool_calls=[call(n=1)]), tool()])
    case = only(transcript)
    assert case.failed.reply == "I do."
    assert f"{THOUGHTS} (1)" in transcript.notes


def test_roles_of_chat_messages_are_kept() -> None:
    chat = {"type": "chat", "role": "system", "content": "Be brief."}
    told = {"type": "chat", "role": "assistant", "content": "Yes."}
    (whole,) = read_transcript([chat, human(), told]).trajectories
    assert (whole.system, whole.goal) == ("Be brief.", "Book a room.")
    assert isinstance(whole.steps[0], Step)


def test_entries_that_are_no_messages_are_noted() -> None:
    transcript = read_transcript([*RUN, {"type": "remove", "id": "x"}])
    assert f"{LEFT_OUT} (1)" in transcript.notes


@pytest.mark.parametrize(
    "message",
    [
        ai(None, tool_calls=[None, {"name": 5}, {"name": "x", "args": [1], "id": 7}]),
        ai({"a": 1}, additional_kwargs=[], invalid_tool_calls="x"),
        tool([["x"]], call_id=[]),  # type: ignore[arg-type]
        {"type": "constructor", "id": [], "kwargs": 5},
        {"type": "human", "content": 5, "data": None},
    ],
    ids=range(5),
)
def test_odd_messages_are_passed_over(message: Message) -> None:
    assert only(read_transcript([*RUN, message])).failed.observation == "full"


def test_invalid_call_that_the_provider_has_too_is_told_once() -> None:
    function = {"name": "book", "arguments": '{"a": '}
    beside = {"tool_calls": [{"id": "b", "type": "function", "function": function}]}
    invalid = {"name": "book", "args": '{"a": ', "id": "b", "error": "not JSON"}
    transcript = read_transcript(
        [human(), ai(invalid_tool_calls=[invalid], additional_kwargs=beside)]
    )
    assert only(transcript).failed.observation == "not JSON"
