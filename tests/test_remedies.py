from __future__ import annotations

import copy
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_failgain.harnesses import Harness, remedied
from pytest_failgain.remedies import GLOSSES, INSTRUCTION, LEFT_OUT, NUDGE, REMEDIES, TAKING_AWAY
from pytest_failgain.trajectory import Action, Step, Tool, ToolCall, Trajectory, UserTurn
from strategies import (
    good_steps,
    plain_harnesses,
    quick,
    trajectories,
    user_turns,
)

ASK = Step(Action("find(name='Ann')"), "ann@corp.example")
FAIL = Step(Action("send(to='Ann')"), "ValueError: no '@' in 'Ann'", True, "format_error", "send")
START = Trajectory(system="You call tools.", goal="Write to Ann.", steps=(ASK,))
FAILED = START.then(FAIL)


written_remedies = st.sampled_from(["described", "described-minimal"])
taking_away = st.sampled_from(sorted(TAKING_AWAY))
anything = st.sampled_from(sorted(REMEDIES))
# A label stands on good steps, too.
on_failures_alone = st.sampled_from(sorted(set(REMEDIES) - {"labelled"}))


def transformed(name: str, trajectory: Trajectory) -> Trajectory:
    return REMEDIES[name].transform(trajectory)


def failures(trajectory: Trajectory) -> list[Step]:
    return [step for step in trajectory.steps if isinstance(step, Step) and step.failed]


def the_rest(trajectory: Trajectory) -> list[Step | UserTurn]:
    return [step for step in trajectory.steps if isinstance(step, UserTurn) or not step.failed]


@pytest.mark.parametrize(
    ("remedy", "rest"),
    [
        (
            "described",
            [
                UserTurn(
                    "[Attempt 1: the call to send failed because an argument was not in the "
                    "format that the tool takes. Make a different call.]"
                )
            ],
        ),
        ("described-minimal", [UserTurn("[Attempt 1 failed.]")]),
        ("dropped", []),
        ("instructed", [FAIL]),
        ("redirected", [FAIL, UserTurn(NUDGE)]),
        ("collapsed", [FAIL]),
        ("stripped", [replace(FAIL, action=Action("send(...)"))]),
        ("advised", [FAIL]),
        ("labelled", [replace(FAIL, observation="[failed] ValueError: no '@' in 'Ann'")]),
    ],
)
def test_what_each_remedy_makes_of_a_failure(remedy: str, rest: list[Step | UserTurn]) -> None:
    start = ASK if remedy != "labelled" else replace(ASK, observation="[ok] ann@corp.example")
    assert transformed(remedy, FAILED).steps == (start, *rest)


def test_failures_are_counted_from_one() -> None:
    twice = FAILED.then(ASK, FAIL)
    notices = [step for step in transformed("described-minimal", twice).steps if step != ASK]
    assert notices == [UserTurn("[Attempt 1 failed.]"), UserTurn("[Attempt 2 failed.]")]


def test_a_description_does_without_a_tool_or_a_known_family() -> None:
    step = replace(FAIL, tool=None, error_family="cosmic_ray")
    assert transformed("described", Trajectory("", "", (step,))).steps == (
        UserTurn("[Attempt 1: the call failed because it did not work. Make a different call.]"),
    )


@quick
@given(trajectory=trajectories(), name=on_failures_alone)
def test_remedies_leave_all_else_untouched_and_in_order(trajectory: Trajectory, name: str) -> None:
    changed = transformed(name, trajectory)
    replaced = iter(changed.steps)
    # Each good step and user turn is found, as the very same object, after the one before it.
    assert all(any(step is kept for step in replaced) for kept in the_rest(trajectory))
    assert changed.goal == trajectory.goal
    assert changed.tools == trajectory.tools


@quick
@given(trajectory=trajectories(), name=anything)
def test_a_remedy_leaves_its_input_alone_and_always_does_the_same(
    trajectory: Trajectory, name: str
) -> None:
    untouched = copy.deepcopy(trajectory)
    assert transformed(name, trajectory) == transformed(name, trajectory)
    assert trajectory == untouched


@quick
@given(
    trajectory=trajectories(),
    name=st.sampled_from([*sorted(TAKING_AWAY), "collapsed", "redirected"]),
)
def test_what_was_done_once_has_nothing_left_to_do(trajectory: Trajectory, name: str) -> None:
    once = transformed(name, trajectory)
    assert transformed(name, once) == once


@quick
@given(trajectory=trajectories(), name=taking_away)
def test_records_of_failures_are_gone_and_only_they(trajectory: Trajectory, name: str) -> None:
    changed = transformed(name, trajectory)
    assert failures(changed) == []
    lost = 0 if name != "dropped" else len(failures(trajectory))
    assert len(changed.steps) == len(trajectory.steps) - lost
    assert changed.system == trajectory.system


@quick
@given(trajectory=trajectories(good_steps | user_turns), name=on_failures_alone)
def test_without_a_failure_no_remedy_does_anything(trajectory: Trajectory, name: str) -> None:
    assert transformed(name, trajectory) == trajectory


@quick
@given(trajectory=trajectories())
def test_the_instruction_changes_only_the_system_prompt_and_only_after_a_failure(
    trajectory: Trajectory,
) -> None:
    changed = transformed("instructed", trajectory)
    assert replace(changed, system=trajectory.system) == trajectory
    if failed := failures(trajectory):
        said = failed[0].records.get("instructed", INSTRUCTION)
        system = f"{trajectory.system}\n{said}" if trajectory.system else said
        assert changed.system == system
    else:
        assert changed.system == trajectory.system


def test_the_instruction_stands_after_the_system_prompt() -> None:
    assert transformed("instructed", FAILED).system == f"You call tools.\n{INSTRUCTION}"
    assert transformed("instructed", replace(FAILED, system="")).system == INSTRUCTION


def test_an_instruction_that_comes_with_the_first_failure_takes_the_place_of_ours() -> None:
    told = START.then(replace(FAIL, records={"instructed": "Not again."}), FAIL)
    assert transformed("instructed", told).system == "You call tools.\nNot again."
    assert transformed("instructed", FAILED.then(*told.steps)).system.endswith(INSTRUCTION)


# Long enough, and odd enough, never to occur in a description by chance.
markers = st.integers(min_value=10_000_000, max_value=99_999_999).map("value{}".format)


@st.composite
def failures_with_marked_values(draw: st.DrawFn) -> Step:
    """Failed calls, whose values are markers, and which the error quotes."""
    values = draw(st.lists(markers, min_size=1, max_size=3))
    arguments = {f"argument{i}": value for i, value in enumerate(values)}
    if draw(st.booleans()):
        action = Action(calls=(ToolCall("send", json.dumps(arguments)),))
    else:
        written = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        action = Action(f"send({written})")
    return Step(
        action,
        f"ValueError: {action}",
        failed=True,
        error_family=draw(st.sampled_from([None, *GLOSSES, "unheard_of"])),
        tool=draw(st.none() | st.just("send")),
    )


@quick
@given(
    first=failures_with_marked_values(),
    second=failures_with_marked_values(),
    name=taking_away,
    harness=plain_harnesses,
)
def test_no_value_of_a_failed_call_is_left(
    first: Step, second: Step, name: str, harness: Harness
) -> None:
    trajectory = START.then(first, ASK, second)
    assert "value" in str(harness(trajectory))
    assert "value" not in str(remedied(name, harness)(trajectory))


@quick
@given(trajectory=trajectories(), name=written_remedies)
def test_a_record_that_comes_with_the_step_takes_precedence(
    trajectory: Trajectory, name: str
) -> None:
    written = [
        changed
        for step, changed in zip(trajectory.steps, transformed(name, trajectory).steps, strict=True)
        if isinstance(step, Step) and step.failed
    ]
    for attempt, (step, turn) in enumerate(
        zip(failures(trajectory), written, strict=True), start=1
    ):
        assert isinstance(turn, UserTurn)
        if name in step.records:
            assert turn.text == step.records[name]
        else:
            assert turn.text.startswith(f"[Attempt {attempt}")


@quick
@given(
    first=failures_with_marked_values(),
    second=failures_with_marked_values(),
    harness=plain_harnesses,
)
def test_no_argument_of_a_failed_call_is_left_of_a_stripped_one(
    first: Step, second: Step, harness: Harness
) -> None:
    unquoted = [replace(step, observation="ValueError") for step in (first, second)]
    trajectory = START.then(unquoted[0], ASK, unquoted[1])
    assert "value" in str(harness(trajectory))
    stripped = str(remedied("stripped", harness)(trajectory))
    assert "value" not in stripped
    assert "send" in stripped


@pytest.mark.parametrize(
    ("action", "left"),
    [
        ("send(to='Ann', cc=')')", "send(...)"),
        ("finish()", "finish()"),
        ('{"name": "send", "arguments": {"to": "Ann"}}', '{"name": "send", "arguments": ...}'),
        (
            '<c>{"name": "a", "arguments": {"b": 1}}</c><c>{"name": "d", "arguments": [2]}</c>',
            '<c>{"name": "a", "arguments": ...}</c><c>{"name": "d", "arguments": ...}</c>',
        ),
        ('{"name": "send", "arguments": {"to": "An', '{"name": "send", "arguments": ...'),
        ("```python\nx = 1\n```", "```python\n...\n```"),
        ("def double(x):\n    return x + x", LEFT_OUT),
        ("I wonder who Ann is.", LEFT_OUT),
        (
            Action("Now:", (ToolCall("a", '{"b": 1}'), ToolCall("c", "not JSON"))),
            Action("Now:", (ToolCall("a", "{}"), ToolCall("c", "{}"))),
        ),
        (
            Action("send(to='Ann')", (ToolCall("send", '{"to": "Ann"}'),)),
            Action("send(...)", (ToolCall("send", "{}"),)),
        ),
    ],
)
def test_what_is_left_of_a_stripped_action(action: Action | str, left: Action | str) -> None:
    step = replace(FAIL, action=Action.of(action))
    (stripped,) = transformed("stripped", Trajectory("", "", (step,))).steps
    assert stripped == replace(step, action=Action.of(left))


CALLED = Step(Action(calls=(ToolCall("send", '{"to": "Ann"}'),)), "no", True)


def test_the_reply_around_a_stripped_action_stays() -> None:
    step = Step(Action("send(to='Ann')"), "no", True, reply="Try:\nsend(to='Ann')\nDone.")
    (stripped,) = transformed("stripped", Trajectory("", "", (step,))).steps
    assert isinstance(stripped, Step)
    assert stripped.reply == "Try:\nsend(...)\nDone."
    (beside,) = transformed(
        "stripped", Trajectory("", "", (replace(CALLED, reply="I send it."),))
    ).steps
    assert isinstance(beside, Step)
    assert beside.reply == "I send it."


def counted(times: int, step: Step = FAIL) -> Step:
    said = f"[Tried {times} times; it failed in the same way each time.]"
    return replace(step, observation=f"{step.observation}\n{said}" if step.observation else said)


other_action = replace(FAIL, action=Action("send(to='Bob')"))
other_error = replace(FAIL, observation="TimeoutError")


@pytest.mark.parametrize(
    ("steps", "left"),
    [
        ((FAIL, FAIL, FAIL), (counted(3),)),
        ((FAIL, ASK, FAIL), (ASK, counted(2))),
        ((FAIL, UserTurn("Go on."), FAIL, ASK), (UserTurn("Go on."), counted(2), ASK)),
        ((FAIL, other_action, FAIL), (other_action, counted(2))),
        ((FAIL, other_error), (FAIL, other_error)),
        ((FAIL, replace(FAIL, failed=False)), (FAIL, replace(FAIL, failed=False))),
        ((ASK, ASK), (ASK, ASK)),
        ((replace(FAIL, observation=None),) * 2, (counted(2, replace(FAIL, observation=None)),)),
        ((FAIL, replace(FAIL, tool="mail")), (counted(2, replace(FAIL, tool="mail")),)),
    ],
)
def test_what_is_left_of_collapsed_failures(
    steps: tuple[Step | UserTurn, ...], left: tuple[Step | UserTurn, ...]
) -> None:
    assert transformed("collapsed", Trajectory("", "", steps)).steps == left


@quick
@given(trajectory=trajectories(), times=st.integers(1, 4))
def test_after_collapsing_each_failure_stands_once(trajectory: Trajectory, times: int) -> None:
    repeated = replace(trajectory, steps=trajectory.steps * times)
    different = {(step.action, step.observation) for step in failures(repeated)}
    assert len(failures(transformed("collapsed", repeated))) == len(different)


@quick
@given(trajectory=trajectories())
def test_every_observation_is_labelled_and_nothing_else_changes(trajectory: Trajectory) -> None:
    changed = transformed("labelled", trajectory)
    assert replace(changed, steps=()) == replace(trajectory, steps=())
    for step, labelled in zip(trajectory.steps, changed.steps, strict=True):
        if isinstance(step, UserTurn) or step.observation is None:
            assert labelled is step
        else:
            assert isinstance(labelled, Step)
            outcome = "[failed]" if step.failed else "[ok]"
            label = step.records.get("labelled", outcome)
            said = f"{label} {step.observation}" if step.observation else label
            assert labelled == replace(step, observation=said)


SEND = Tool("send", "Sends.", {"type": "object", "properties": {"to": {"title": "für"}}})
FIND = Tool("find", "Finds.", {"type": "object"})
SCHEMA = 'Arguments of send, as JSON Schema: {"type":"object","properties":{"to":{"title":"für"}}}'
NAMES = "Tools on offer: find, send"


@pytest.mark.parametrize(
    ("tools", "step", "advice"),
    [
        ((FIND, SEND), FAIL, SCHEMA),
        ((FIND, SEND), replace(FAIL, tool=None), NAMES),
        ((FIND, SEND), replace(FAIL, tool="mail"), NAMES),
        ((FIND, SEND), replace(FAIL, records={"advised": "Ask Bob."}), "Ask Bob."),
        ((), replace(FAIL, records={"advised": "Ask Bob."}), "Ask Bob."),
    ],
)
def test_what_is_advised_below_an_error(tools: tuple[Tool, ...], step: Step, advice: str) -> None:
    (advised,) = transformed("advised", Trajectory("", "", (step,), tools)).steps
    assert advised == replace(step, observation=f"{step.observation}\n{advice}")


def test_advice_may_be_all_that_is_answered() -> None:
    for silent in (replace(FAIL, observation=""), replace(FAIL, observation=None)):
        (advised,) = transformed("advised", Trajectory("", "", (silent,), (FIND, SEND))).steps
        assert advised == replace(silent, observation=SCHEMA)


def test_where_nothing_is_known_nothing_is_advised() -> None:
    assert transformed("advised", FAILED) == FAILED
    kept_silent = Trajectory("", "", (replace(FAIL, records={"advised": ""}),), (SEND,))
    assert transformed("advised", kept_silent) == kept_silent


def test_only_a_failure_that_nothing_followed_is_turned_away_from() -> None:
    assert transformed("redirected", FAILED) == FAILED.then(UserTurn(NUDGE))
    for more in (ASK, UserTurn("Go on.")):
        assert transformed("redirected", FAILED.then(more)) == FAILED.then(more)


def test_the_last_failure_may_say_where_to_turn() -> None:
    told = replace(FAIL, records={"redirected": "Ask Bob."})
    assert transformed("redirected", START.then(told)).steps[-1] == UserTurn("Ask Bob.")
    assert transformed("redirected", START.then(told, FAIL)).steps[-1] == UserTurn(NUDGE)


def test_no_wording_of_ours_holds_a_call() -> None:
    for text in (INSTRUCTION, NUDGE, LEFT_OUT):
        assert "(" not in text
        assert "{" not in text
