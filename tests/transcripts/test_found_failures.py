"""Which calls of a conversation failed, and how that is told."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import pytest

from pytest_failgain.errors import NotRecordedError
from pytest_failgain.prompt import Prompt
from pytest_failgain.trajectory import Action, Step, ToolCall, UserTurn
from pytest_failgain.transcripts.conversation import Call, Conversation, Result, Turn
from pytest_failgain.transcripts.failures import (
    BROKEN,
    PARALLEL,
    UNANSWERED,
    Findings,
    find_failures,
)
from pytest_failgain.transcripts.found import Failures
from pytest_failgain.transcripts.read import NO_FAILURE, read_transcript
from pytest_failgain.transcripts.recorded import REPLACED, AsRecorded

GOAL = Turn("user", "Book a room.")


def action(arguments: str = "{}", name: str = "book") -> Action:
    return Action(calls=(ToolCall(name, arguments),))


def call(call_id: str | None = "a", arguments: str = "{}", **more: Any) -> Call:
    return Call(action(arguments), call_id, **more)


def reply(*calls: Call, text: str = "") -> Turn:
    return Turn("assistant", text, calls)


def answer(text: str, call_id: str | None = "a", **more: Any) -> Turn:
    return Turn("tool", results=(Result(text, call_id, **more),))


def found(*turns: Turn, **more: Any) -> Findings:
    return find_failures("log", [Conversation((GOAL, *turns))], **more)


def test_failure_keeps_what_stood_before_it() -> None:
    findings = found(Turn("assistant", "I look."), reply(call(), text="Now."), answer("Error: x"))
    (one,) = findings.recorded
    assert one.case.case_id == "log-1"
    assert one.case.task_id == "log"
    assert one.case.trajectory.goal == "Book a room."
    assert one.case.trajectory.steps == (Step(Action("I look."), None),)
    assert one.case.failed == Step(action(), "Error: x", True, None, "book", reply="Now.")


def test_mark_wins_over_the_words_and_the_doubt_is_noted() -> None:
    findings = found(
        reply(call()),
        answer("Error: x", failed=False, mark="status"),
        reply(call("b")),
        answer("fine", "b", failed=True, mark="status"),
    )
    assert [one.step.observation for one in findings.recorded] == ["fine"]
    assert findings.notes["failed by the format's own mark (status)"] == 1
    assert any("though the heuristic 'error word'" in note for note in findings.notes)


def test_words_decide_where_nothing_is_marked_and_the_rule_is_named() -> None:
    findings = found(reply(call()), answer("Error: x"))
    assert findings.notes["failed by the heuristic 'error word'"] == 1


@pytest.mark.parametrize("verdict", [True, False])
def test_is_failure_overrides_mark_and_words(*, verdict: bool) -> None:
    asked = []

    def is_failure(call: Call, result: Result) -> bool:
        asked.append((call.tool, result.text))
        return verdict

    findings = found(
        reply(call()),
        answer("Error: x", failed=not verdict, mark="status"),
        is_failure=is_failure,
    )
    assert asked == [("book", "Error: x")]
    assert len(findings.recorded) == verdict
    note = "failed by is_failure" if verdict else "no failure by is_failure"
    assert findings.notes[note] == 1


def test_is_failure_may_leave_a_call_to_the_mark() -> None:
    findings = found(
        reply(call()), answer("x", failed=True, mark="m"), is_failure=lambda call, result: None
    )
    assert findings.notes["failed by the format's own mark (m)"] == 1


def test_cancelled_call_is_no_failure_whatever_its_text() -> None:
    findings = found(reply(call()), answer("Error: cancelled", cancelled=True))
    assert not findings.recorded
    assert findings.notes["a rejected or cancelled call: no failure"] == 1


def test_call_that_never_reached_a_tool_failed() -> None:
    (one,) = found(reply(call(problem="no such tool"))).recorded
    assert one.case.failed.observation == "no such tool"


def test_call_without_a_result_is_noted_once_and_no_failure() -> None:
    shared = reply(call())
    conversations = [Conversation((GOAL, shared)), Conversation((GOAL, shared, Turn("user", "?")))]
    findings = find_failures("log", conversations)
    assert not findings.recorded
    assert findings.notes[UNANSWERED] == 1


BROKEN_CALL = {"arguments": '{"a": ', "broken": "arguments are not valid JSON: cut off"}


def test_broken_arguments_without_a_result_are_a_failure_by_themselves() -> None:
    findings = found(reply(call(**BROKEN_CALL)))
    assert findings.recorded[0].case.failed.observation == BROKEN_CALL["broken"]
    assert findings.notes[BROKEN] == 1
    assert not findings.notes[UNANSWERED]


@pytest.mark.parametrize(("told", "failed"), [("the JSON ends too early", 1), ("written", 0)])
def test_broken_arguments_failed_unless_the_harness_mended_them(told: str, failed: int) -> None:
    findings = found(reply(call(**BROKEN_CALL)), answer(told))
    assert len(findings.recorded) == failed
    assert findings.notes["failed by the heuristic 'broken arguments'"] == failed


def test_same_words_about_sound_arguments_say_nothing() -> None:
    assert not found(reply(call()), answer("your JSON is stored")).recorded


def test_calls_of_one_turn_are_cases_of_their_own_with_the_same_past() -> None:
    findings = found(
        reply(call("a", '{"n": 1}'), call("b", '{"n": 2}'), call("c", '{"n": 3}')),
        answer("Error: one", "a"),
        answer("fine", "b"),
        answer("Error: three", "c"),
    )
    assert [one.case.failed.observation for one in findings.recorded] == [
        "Error: one",
        "Error: three",
    ]
    assert {one.case.trajectory.steps for one in findings.recorded} == {()}
    assert findings.notes[PARALLEL] == 2
    (whole,) = findings.trajectories
    assert [step.failed for step in whole.steps if isinstance(step, Step)] == [True, False, True]


def test_call_is_answered_after_the_next_reply_and_the_prompt_reaches_so_far() -> None:
    turns = (reply(call("a")), reply(call("b")), answer("Error: one", "a"), answer("fine", "b"))
    (one,) = found(*turns, Turn("assistant", "Done.")).recorded
    assert one.after.messages is not None
    assert [message["role"] for message in one.after.messages] == [
        "user",
        "assistant",
        "assistant",
        "tool",
        "tool",
    ]


def test_later_system_message_is_told_as_the_users() -> None:
    findings = found(Turn("system", "late"), reply(call()), answer("Error: x"), Turn("system", "z"))
    assert findings.recorded[0].case.trajectory.system == "late"
    assert findings.trajectories[0].steps[-1] == UserTurn("z")
    assert findings.notes["a later system message told as a user's turn"] == 1


def test_shared_turns_are_told_once_with_the_answer_that_a_later_conversation_has() -> None:
    shared = (GOAL, reply(call()))
    conversations = [
        Conversation(shared),
        Conversation((*shared, answer("Error: x"))),
        Conversation((*shared, answer("Error: x"), Turn("assistant", "Sorry."))),
    ]
    findings = find_failures("log", conversations)
    assert len(findings.recorded) == 1
    assert findings.notes["failed by the heuristic 'error word'"] == 1
    last = [trajectory.steps for trajectory in findings.trajectories][1:]
    assert last[0][0] is last[1][0]


def test_remarks_of_a_shared_turn_are_counted_once() -> None:
    marked = replace(GOAL, remarks=("an image",))
    findings = find_failures("log", [Conversation((marked,)), Conversation((marked,))])
    assert +findings.notes == {"an image": 1}


def test_notes_of_a_conversation_are_adaptations_of_its_prompts_each_once() -> None:
    conversation = Conversation((GOAL, reply(call()), answer("Error: x")), notes=("told", "told"))
    findings = find_failures("log", [conversation])
    assert findings.notes["told"] == 2
    assert findings.recorded[0].after.adaptations == ("told",)


def test_conversation_may_write_its_own_prompts() -> None:
    def write(turns: Any, conversation: Conversation) -> Prompt:
        return Prompt(text="|".join(turn.text or turn.results[0].text for turn in turns))

    turns = (GOAL, Turn("assistant", "do()", (Call(Action("do()")),)), answer("Error: x", None))
    findings = find_failures("log", [Conversation(turns, write=write)])
    (one,) = findings.recorded
    harness = AsRecorded((one,))
    assert harness(one.case.trajectory).text == "Book a room."
    assert harness(one.case.trajectory.then(one.step)).text == "Book a room.|do()|Error: x"
    neutral = harness(one.case.trajectory.then(replace(one.step, observation="ok", failed=False)))
    assert neutral.text == "Book a room.|do()|ok"
    assert neutral.adaptations == (REPLACED,)


def test_error_is_replaced_in_its_own_message_and_not_in_a_like_one() -> None:
    turns = (reply(call("a"), call("b")), answer("Error: x", "a"), answer("Error: x", "b"))
    findings = found(*turns)
    first = findings.recorded[0]
    neutral = first.case.trajectory.then(Step(first.action, "ok", tool="book"))
    messages = AsRecorded((first,))(neutral).messages
    assert messages is not None
    assert [message["content"] for message in messages[-2:]] == ["ok", "Error: x"]


def test_empty_error_is_replaced_where_it_is_all_of_a_message() -> None:
    (one,) = found(reply(call()), answer("", failed=True, mark="m")).recorded
    neutral = one.case.trajectory.then(Step(one.action, "ok", tool="book"))
    messages = AsRecorded((one,))(neutral).messages
    assert messages is not None
    assert messages[-1]["content"] == "ok"


def test_what_was_not_recorded_is_refused() -> None:
    (one,) = found(reply(call()), answer("Error: x")).recorded
    other = Step(action('{"n": 2}'), "Error: x", failed=True)
    for trajectory in (
        replace(one.case.trajectory, goal="Other."),
        one.case.trajectory.then(other),
        one.case.trajectory.then(one.step, one.step),
    ):
        with pytest.raises(NotRecordedError, match="was not recorded"):
            AsRecorded((one,))(trajectory)


def test_failures_are_a_sequence_of_cases_made_when_asked_for() -> None:
    findings = found(
        reply(call("a")), answer("Error: one"), reply(call("b")), answer("Error: two", "b")
    )
    failures = Failures(tuple(findings.recorded))
    assert [case.case_id for case in failures] == ["log-1", "log-2"]
    assert failures[-1] == findings.recorded[1].case
    assert [*failures[1:]] == [failures[1]]
    assert failures == [*failures]
    assert failures == tuple(failures)
    assert failures != [failures[0]]
    assert failures != "ab"
    assert repr(failures) == "<failures: log-1, log-2>"
    assert repr(failures[2:]) == "<failures: none>"


def test_transcript_without_a_failure_says_so() -> None:
    transcript = read_transcript([{"role": "user", "content": "hi"}])
    assert transcript.notes == (NO_FAILURE,)
    assert transcript.failures == ()


@pytest.mark.parametrize("parallel", [False, True])
def test_thousands_of_failures_take_time_in_proportion(*, parallel: bool) -> None:
    def seconds(count: int) -> float:
        text = json.dumps([*many_failures(count, parallel=parallel)])
        started = time.perf_counter()
        transcript = read_transcript(text)
        assert len(transcript.failures) == count
        for index in range(0, count, count // 10):
            case = transcript.failures[index]
            transcript.as_recorded(case.trajectory)
            transcript.as_recorded(case.trajectory.then(case.failed))
        return time.perf_counter() - started

    few = min(seconds(500) for _ in range(3))
    assert seconds(5000) < 40 * few


def many_failures(count: int, *, parallel: bool) -> list[dict[str, Any]]:
    made = [
        {"id": f"c{n}", "type": "function", "function": {"name": f"f{n}", "arguments": "{}"}}
        for n in range(count)
    ]
    told = [{"role": "tool", "tool_call_id": one["id"], "content": "Error: x"} for one in made]
    if parallel:
        return [{"role": "assistant", "content": None, "tool_calls": made}, *told]
    pairs = zip(made, told, strict=True)
    return [
        message
        for one, result in pairs
        for message in ({"role": "assistant", "content": None, "tool_calls": [one]}, result)
    ]


def test_broken_arguments_are_no_failure_where_the_result_says_that_it_worked() -> None:
    told = '{"ok": true, "note": "invalid JSON was mended"}'
    assert not found(reply(call(**BROKEN_CALL)), answer(told)).recorded
