"""What two requests tell of a failed call, by their texts and tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_failgain import FailingCall
from pytest_failgain.capture.comparison import compare, request_conversation, shows
from pytest_failgain.capture.outcome import OUTCOME_KINDS, Outcome, OutcomeKind, outcome_of
from pytest_failgain.capture.pair import CapturedPair, captured_pair

ERROR = "'date' must be YYYY-MM-DD, got '12 Oct'"
ARGUMENTS = '{"title": "Dentist", "date": "12 Oct"}'
CALL = FailingCall("add", ARGUMENTS, error=ERROR)
UNKNOWN = FailingCall("add", ARGUMENTS)
TASK = {"role": "user", "content": "Add the dentist on 12 Oct."}
NUDGE = {"role": "user", "content": "Go on."}


def tool(name: str, description: str = "") -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description}}


def calling(arguments: str = ARGUMENTS, name: str = "add") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
    }


def answering(text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "call_1", "content": text}


def pair_of(
    after: Sequence[dict[str, Any]],
    call: FailingCall = CALL,
    *,
    before: Sequence[dict[str, Any]] = (TASK,),
    tools: Sequence[dict[str, Any]] = (tool("add"),),
    tools_after: Sequence[dict[str, Any]] | None = None,
) -> CapturedPair:
    later = tools if tools_after is None else tools_after
    return captured_pair(
        {"messages": [*before], "tools": [*tools]},
        {"messages": [*after], "tools": [*later]},
        call,
    )


def outcome(after: Sequence[dict[str, Any]], call: FailingCall = CALL, **requests: Any) -> Outcome:
    return outcome_of(pair_of(after, call, **requests), call)


def test_the_kinds_are_the_ones_that_the_type_names() -> None:
    assert get_args(OutcomeKind) == OUTCOME_KINDS
    assert len({*OUTCOME_KINDS}) == 11


def test_a_call_with_its_result_is_native() -> None:
    told = outcome([TASK, calling(), answering(f"Error: {ERROR}")])
    assert told.kinds == ("native",)
    assert told.has_record
    assert told.advice == ""


def test_a_reminder_that_stays_last_does_not_count_as_changed() -> None:
    pair = pair_of([TASK, calling(), answering(ERROR), NUDGE], before=[TASK, NUDGE])
    assert outcome_of(pair, CALL).kinds == ("native",)
    assert not pair.comparison.rewritten
    assert not pair.comparison.dropped
    assert pair.case.failed.observation == ERROR


@pytest.mark.parametrize(
    "said",
    [
        f"Action: add\nAction Input: {ARGUMENTS}",
        "add(title='Dentist', date='12 Oct')",
        f"Calling tools: [{{'name': 'add', 'arguments': {json.loads(ARGUMENTS)}}}]",
    ],
)
def test_a_call_in_the_assistants_words_is_text_in_whichever_spelling(said: str) -> None:
    told = outcome(
        [TASK, {"role": "assistant", "content": said}, {"role": "user", "content": ERROR}]
    )
    assert told.kinds == ("text",)


def test_another_call_of_the_assistant_is_no_echo() -> None:
    said = {"role": "assistant", "content": "add(title='Lunch', date='12 Oct')"}
    told = outcome([TASK, said, {"role": "user", "content": f"Error: {ERROR}"}])
    assert told.kinds == ("call not echoed",)
    told = outcome([TASK, calling(name="look"), answering(f"Error: {ERROR}")])
    assert told.kind == "call not echoed"


def test_an_error_inside_the_assistants_own_text_is_its_observation() -> None:
    said = f"Action: add\nAction Input: {ARGUMENTS}\nObservation: Error: {ERROR}"
    pair = pair_of([TASK, {"role": "assistant", "content": said}])
    assert outcome_of(pair, CALL).kinds == ("text",)
    assert pair.case.failed.observation == f"Observation: Error: {ERROR}"


def test_a_longer_task_is_merged_and_its_new_part_is_the_observation() -> None:
    longer = {**TASK, "content": f"{TASK['content']}\nError: {ERROR}\nTry again."}
    pair = pair_of([longer])
    assert outcome_of(pair, CALL).kinds == ("merged into an earlier message", "call not echoed")
    assert pair.case.failed.observation == f"Error: {ERROR}\nTry again."


def test_a_rewritten_clock_beside_a_native_record_is_not_merged() -> None:
    early, late = ({"role": "system", "content": f"It is 10:0{minute}."} for minute in (1, 2))
    told = outcome([late, TASK, calling(), answering(ERROR)], before=[early, TASK])
    assert told.kinds == ("native",)
    assert told.reason.endswith("an earlier message was rewritten (system)")


def test_a_message_of_its_own_without_the_call_is_not_echoed() -> None:
    told = outcome([TASK, {"role": "user", "content": f"Error: {ERROR}"}])
    assert told.kinds == ("call not echoed",)
    assert "a message of its own (user)" in told.reason


def test_a_hidden_error_is_told_with_what_stands_instead() -> None:
    told = outcome([TASK, calling(), answering("An error occurred. Please try again.")])
    assert told.kinds == ("native", "error hidden")
    assert ERROR in told.reason
    assert "An error occurred. Please try again." in told.reason


def test_an_empty_result_hides_an_error_that_was_named() -> None:
    assert outcome([TASK, calling(), answering("")]).kinds == ("native", "error hidden")
    assert outcome([TASK, calling(), answering("")], UNKNOWN).kind == "call did not fail"


def test_whether_an_unnamed_error_is_hidden_is_unknown_and_said() -> None:
    told = outcome([TASK, calling(), answering("An error occurred.")], UNKNOWN)
    assert told.kinds == ("native",)
    assert "unknown without FailingCall(error=…)" in told.reason


@pytest.mark.parametrize("call", [CALL, UNKNOWN], ids=["error named", "error not named"])
def test_a_result_that_reads_like_none_is_no_failure(call: FailingCall) -> None:
    told = outcome([TASK, calling(), answering("Created Dentist on 2026-10-12.")], call)
    assert told.kind == "call did not fail"
    assert not told.has_record
    assert "Created Dentist" in told.reason
    assert "FailingCall(error=…)" in told.advice


def test_a_named_error_makes_a_failure_of_what_reads_like_none() -> None:
    call = FailingCall("add", ARGUMENTS, error="there are no Octobers left")
    told = outcome([TASK, calling(), answering("Sorry, there are no Octobers left!")], call)
    assert told.kinds == ("native",)


@pytest.mark.parametrize(
    ("tools_after", "said"),
    [
        ([], "add no longer offered"),
        ([tool("add"), tool("look")], "look newly offered"),
        ([tool("add", "Adds.")], "add offered in another form"),
    ],
)
def test_other_tools_are_told_by_name(tools_after: list[dict[str, Any]], said: str) -> None:
    told = outcome([TASK, calling(), answering(ERROR)], tools_after=tools_after)
    assert told.kinds == ("native", "tools changed")
    assert said in told.reason


def test_a_history_that_was_cut_is_told() -> None:
    earlier = [{"role": "assistant", "content": "I think."}, NUDGE]
    told = outcome(
        [calling(), answering(ERROR)],
        before=[TASK, *earlier],
    )
    assert told.kinds == ("native",)
    assert "3 of the earlier messages left out" in told.reason


def test_a_request_of_the_responses_api_is_read_in_the_same_way() -> None:
    task = {"role": "user", "content": "Add it."}
    call = {"type": "function_call", "call_id": "c", "name": "add", "arguments": ARGUMENTS}
    output = {"type": "function_call_output", "call_id": "c", "output": f"Error: {ERROR}"}
    pair = captured_pair({"input": [task]}, {"input": [task, call, output]}, CALL)
    assert outcome_of(pair, CALL).kinds == ("native",)
    assert pair.case.trajectory.goal == "Add it."


def test_arguments_that_differ_in_value_are_told_apart_from_those_in_another_form() -> None:
    again = pair_of([TASK, calling('{"date":"12 Oct","title":"Dentist"}'), answering(ERROR)])
    assert again.notes[0].startswith("the client writes the call's arguments anew")
    other = pair_of([TASK, calling('{"title": "Dentist"}'), answering(ERROR)])
    assert other.notes[0].startswith("the client changes the call's arguments")
    assert other.case.failed.action == CALL.action


def test_what_the_model_says_beside_the_call_leads_to_the_action() -> None:
    beside = FailingCall("add", ARGUMENTS, content="I will add it.", error=ERROR)
    assert pair_of([TASK, calling(), answering(ERROR)], beside).case.failed.lead == "I will add it."
    text = FailingCall(text="Thought.\nRun: add 12 Oct\nDone.", action_text="add 12 Oct")
    assert pair_of([TASK], text).case.failed.lead == "Thought.\nRun: "


WAYS: dict[str, Callable[[str], str]] = {
    "JSON": json.dumps,
    "JSON in JSON": lambda text: json.dumps(json.dumps(text)),
    "repr": repr,
    "lines": lambda text: "".join(f"> {line}\n" for line in text.split("\n")),
}


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=60, deadline=None)
@given(
    error=st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"]), min_size=1)
    | st.lists(st.sampled_from(["no date", "got 'x'", 'a "b"', "line 3"]), min_size=1).map(
        "\n".join
    )
)
def test_an_error_is_found_however_it_is_quoted(way: str, error: str) -> None:
    if not any(map(str.isalnum, error)) or "\\" in error:
        return
    assert shows(f"Tool said {WAYS[way](error)}: try again", error)


def test_an_error_that_is_not_there_is_not_found() -> None:
    assert not shows("An error occurred.", ERROR)
    assert not shows("done.", "!?")
    assert shows("what!?", "!?")


MESSAGES = st.lists(
    st.sampled_from(
        [TASK, NUDGE, calling(), answering("x"), {"role": "assistant", "content": "Hm."}]
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(before=MESSAGES, more=MESSAGES)
def test_what_is_appended_is_what_is_added(
    before: list[dict[str, Any]], more: list[dict[str, Any]]
) -> None:
    sent, same, came = (
        request_conversation({"messages": messages})
        for messages in (before, before, [*before, *more])
    )
    assert compare(sent, same).same
    comparison = compare(sent, came)
    assert not comparison.same
    assert len(comparison.added) == len(more)
    assert not comparison.rewritten
    assert not comparison.dropped
