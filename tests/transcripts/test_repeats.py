"""Failed actions that an agent makes again, and reruns that are none."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import SHARED
from pytest_failgain import (
    Action,
    Step,
    ToolCall,
    Trajectory,
    UsageError,
    UserTurn,
    assert_no_repeated_failures,
    call,
    read_transcript,
)
from pytest_failgain.transcripts.repeats import repeated_failures

ADD = call("add", date="12 Oct")
SAME = ToolCall("add", '{"date":"12 Oct"}')
OTHER = call("add", date="2026-10-12")
LOOK = call("list_events")
EDIT = call("edit", path="a.py")


def failed(made: ToolCall | str, error: str = "Error: no") -> Step:
    return Step(action(made), error, failed=True)


def worked(made: ToolCall | str, observation: str = "ok") -> Step:
    return Step(action(made), observation)


def action(made: ToolCall | str) -> Action:
    return Action(made) if isinstance(made, str) else Action(calls=(made,))


def run(*steps: Step | UserTurn) -> Any:
    return runs(steps)


def runs(*trajectories: tuple[Step | UserTurn, ...]) -> Any:
    told = tuple(Trajectory("", "Add it.", steps) for steps in trajectories)
    return SimpleNamespace(trajectories=told)


def places(transcript: Any, allow_after_change: bool = True) -> list[tuple[int, tuple[int, ...]]]:
    found = repeated_failures(transcript, allow_after_change)
    return [(one.first, one.again) for one in found]


def test_failed_call_that_is_made_again_is_a_fault() -> None:
    transcript = run(failed(ADD), failed(SAME))
    with pytest.raises(AssertionError) as raised:
        assert_no_repeated_failures(transcript)
    assert str(raised.value).split("\n")[:3] == [
        "1 failed action was made again once with nothing changed in between, n = 2 steps",
        "failed at  made again at      action",
        '        1  2                  add({"date": "12 Oct"})',
    ]


def test_each_action_is_named_with_its_places_and_errors() -> None:
    transcript = run(
        failed(ADD, "Error: bad date"),
        failed("rm x", "No such file"),
        failed(SAME, "Error: bad date"),
        failed(ADD, "Error: still bad"),
        failed("rm x\n", "No such file"),
    )
    with pytest.raises(AssertionError) as raised:
        assert_no_repeated_failures(transcript)
    lines = str(raised.value).split("\n")
    assert lines[0].startswith("2 failed actions were made again 3 times")
    # What is repeated most comes first.
    assert lines[2:] == [
        '        1  3, 4               add({"date": "12 Oct"})',
        "           answered (2 times): Error: bad date",
        "           answered: Error: still bad",
        "        2  5                  rm x",
        "           answered (2 times): No such file",
        lines[-1],
    ]
    assert lines[-1].startswith("try: look at the record")


@pytest.mark.parametrize(
    "steps",
    [
        [worked(ADD), worked(ADD)],
        [failed(ADD), failed(OTHER), worked(call("add", date="13 Oct"))],
        [failed(ADD)],
        [worked(ADD)],
        [failed("ls x"), failed("ls  x")],
    ],
)
def test_other_actions_are_no_repeats(steps: list[Step]) -> None:
    assert_no_repeated_failures(run(*steps))
    assert_no_repeated_failures(run(*steps), allow_after_change=False)


def test_change_in_between_excuses_a_rerun() -> None:
    transcript = run(failed(ADD), worked(EDIT), failed(ADD))
    assert_no_repeated_failures(transcript)
    assert places(transcript, allow_after_change=False) == [(1, (3,))]
    with pytest.raises(AssertionError, match="although something changed in between"):
        assert_no_repeated_failures(transcript, allow_after_change=False)


@pytest.mark.parametrize(
    "between",
    [
        worked(LOOK),
        worked("git status"),
        failed(EDIT),
        Step(action(EDIT), None),
        Step(Action("I try once more."), None),
        UserTurn("Please try again."),
    ],
)
def test_what_changes_nothing_excuses_none(between: Step | UserTurn) -> None:
    assert places(run(failed(ADD), between, failed(ADD))) == [(1, (3,))]


def test_change_before_the_latest_failure_excuses_no_rerun_after_it() -> None:
    transcript = run(worked(EDIT), failed(ADD), worked(EDIT), failed(ADD), failed(ADD))
    assert places(transcript) == [(2, (5,))]


def test_tool_that_the_runtime_names_decides_whether_a_text_looks() -> None:
    looked = Step(Action("everything"), "ok", tool="search")
    ran = Step(Action("everything"), "ok", tool="run_tests")
    assert places(run(failed(ADD), looked, failed(ADD))) == [(1, (3,))]
    assert places(run(failed(ADD), ran, failed(ADD))) == []


def test_rerun_that_works_was_right() -> None:
    transcript = run(failed(ADD), worked(LOOK), worked(ADD))
    assert_no_repeated_failures(transcript)
    assert places(transcript, allow_after_change=False) == [(1, (3,))]


def test_failure_after_a_rerun_that_worked_begins_anew() -> None:
    assert places(run(failed(ADD), worked(ADD), failed(ADD))) == []
    assert places(run(failed(ADD), worked(ADD), failed(ADD), failed(ADD))) == [(3, (4,))]


def test_faults_stay_when_a_later_rerun_works() -> None:
    transcript = run(failed(ADD), failed(ADD), worked(ADD))
    assert places(transcript) == [(1, (2,))]


def test_failure_after_faults_and_a_rerun_that_worked_begins_anew_too() -> None:
    steps = (failed(ADD), failed(ADD), worked(ADD), failed(ADD))
    assert places(run(*steps)) == [(1, (2,))]
    assert places(run(*steps, failed(ADD))) == [(1, (2,)), (4, (5,))]
    assert places(run(*steps), allow_after_change=False) == [(1, (2, 3, 4))]


def test_rerun_without_an_answer_is_a_fault() -> None:
    transcript = run(failed(ADD), Step(action(ADD), None))
    with pytest.raises(AssertionError, match="answered: \\(no answer\\)"):
        assert_no_repeated_failures(transcript)


def test_trajectories_are_judged_each_by_itself() -> None:
    assert_no_repeated_failures(runs((failed(ADD),), (failed(ADD),)))
    assert places(runs((failed(ADD),), (failed(ADD), failed(ADD)))) == [(1, (2,))]


def test_what_trajectories_have_in_common_is_told_once_at_its_longest() -> None:
    begin = (failed(ADD), failed(ADD))
    transcript = runs(begin, (*begin, failed(ADD)), (*begin, worked(EDIT)))
    assert places(transcript) == [(1, (2, 3))]


@pytest.mark.parametrize("steps", [(), (Step(Action("Hello."), None),), (UserTurn("Hello."),)])
def test_transcript_without_an_action_is_nothing_to_judge(steps: Any) -> None:
    with pytest.raises(AssertionError, match=r"no action in it \(n = 0 steps\)"):
        assert_no_repeated_failures(run(*steps))
    with pytest.raises(AssertionError, match="nothing to judge"):
        assert_no_repeated_failures(runs())


@pytest.mark.parametrize("value", [None, [], {"messages": []}, "text", SimpleNamespace(x=1)])
def test_what_is_no_transcript_is_refused(value: Any) -> None:
    with pytest.raises(UsageError, match="takes what read_transcript gave"):
        assert_no_repeated_failures(value)


def test_many_repeats_are_told_with_a_limit() -> None:
    steps = [failed(call("add", n=number), f"Error: {number}") for number in range(14)]
    with pytest.raises(AssertionError) as raised:
        assert_no_repeated_failures(run(*steps, *steps))
    lines = str(raised.value).split("\n")
    assert lines[0].startswith("14 failed actions were made again 14 times")
    assert "and 4 more" in lines
    assert max(map(len, lines[:-1])) <= 100


def test_long_texts_are_told_on_one_line_each() -> None:
    long = failed(call("add", text="x\n" * 500), "Error:\n" * 500)
    with pytest.raises(AssertionError) as raised:
        assert_no_repeated_failures(run(*[long] * 40))
    assert len(str(raised.value).split("\n")) == 5


def chat(*made: tuple[list[ToolCall], list[str]]) -> list[dict[str, Any]]:
    """Chat messages in which each turn makes calls side by side, with these results."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Add it."}]
    for turn, (calls, results) in enumerate(made):
        identities = [f"call_{turn}_{index}" for index in range(len(calls))]
        functions = [{"name": one.name, "arguments": one.arguments} for one in calls]
        messages.append(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": identity, "type": "function", "function": function}
                    for identity, function in zip(identities, functions, strict=True)
                ],
            }
        )
        messages += [
            {"role": "tool", "tool_call_id": identity, "content": result}
            for identity, result in zip(identities, results, strict=True)
        ]
    return messages


def test_calls_of_one_turn_are_no_repeats_of_each_other() -> None:
    error = "Error: no such date"
    side_by_side = chat(([ADD, ADD], [error, error]))
    assert_no_repeated_failures(read_transcript(side_by_side), allow_after_change=False)
    again = chat(([ADD, ADD], [error, error]), ([ADD], [error]))
    assert len(repeated_failures(read_transcript(again))) == 1
    one_by_one = chat(([ADD], [error]), ([ADD], [error]))
    assert places(read_transcript(one_by_one)) == [(1, (2,))]


CASES = SHARED / "cases"


@pytest.mark.skipif(not CASES.is_dir(), reason=f"the logs are not in {CASES}")
@pytest.mark.parametrize(("number", "holds"), [("01", False), ("15", True), ("16", True)])
def test_real_logs_and_their_controls(number: str, holds: bool) -> None:
    (path,) = CASES.glob(f"{number}_*.json")
    transcript = read_transcript(json.loads(path.read_text("utf-8"))["transcript"])
    if holds:
        assert_no_repeated_failures(transcript)
        return
    with pytest.raises(AssertionError, match="1 failed action was made again 3 times"):
        assert_no_repeated_failures(transcript)


outcomes = st.sampled_from([failed, worked])
steps = st.lists(
    st.tuples(outcomes, st.sampled_from([ADD, SAME, OTHER, LOOK, EDIT])).map(
        lambda drawn: drawn[0](drawn[1])
    ),
    max_size=8,
)


@settings(max_examples=100)
@given(steps)
def test_what_is_allowed_after_a_change_is_a_part_of_all_reruns(steps: list[Step]) -> None:
    strict = {place for one in repeated_failures(run(*steps), False) for place in one.again}
    kind = {place for one in repeated_failures(run(*steps)) for place in one.again}
    assert kind <= strict
    for place in kind:
        assert steps[place - 1].failed


@settings(max_examples=100)
@given(steps)
def test_no_failure_is_no_fault_and_a_failure_at_once_again_is_one(steps: list[Step]) -> None:
    for flag in (True, False):
        assert places(run(*(step for step in steps if not step.failed)), flag) == []
        again = run(*steps, failed(ADD), failed(SAME))
        assert any(len(steps) + 2 in one.again for one in repeated_failures(again, flag))
