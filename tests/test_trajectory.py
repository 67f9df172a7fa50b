from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_failgain.errors import CaseError
from pytest_failgain.trajectory import (
    Action,
    FailureCase,
    Observations,
    Step,
    Tool,
    ToolCall,
    Trajectory,
    UserTurn,
)
from strategies import actions, cases, good_steps, quick, trajectories, user_turns

CALL = ToolCall("refund", '{"order": "42"}')
FAILED = Step(Action("refund('42')"), "TypeError", failed=True)
START = Trajectory(system="You handle orders.", goal="Refund order 42.")


def case_with(**parts: Any) -> FailureCase:
    return FailureCase(**{**default_parts(), **parts})


def default_parts() -> dict[str, Any]:
    return {"case_id": "refund-42", "task_id": "refund", "trajectory": START, "failed": FAILED}


@pytest.mark.parametrize(
    ("action", "reply", "lead"),
    [
        (Action("ls"), "", ""),
        (Action("ls"), "Look:\n```\nls\n```", "Look:\n```\n"),
        (Action("ls"), "ls is first, then ls", "ls is first, then "),
        (Action(calls=(CALL,)), "I pay it back.", "I pay it back."),
        (Action(calls=(CALL,)), "", ""),
    ],
)
def test_the_lead_is_what_a_turn_says_before_its_action(
    action: Action, reply: str, lead: str
) -> None:
    assert Step(action, "done", reply=reply).lead == lead


def test_an_action_that_is_no_part_of_its_reply_is_refused() -> None:
    with pytest.raises(CaseError, match=r"the action 'ls' is no part of its reply 'pwd'"):
        Step(Action("ls"), "done", reply="pwd")


@pytest.mark.parametrize("text", ["", " ", "\n\t\u2003"])
def test_an_action_without_text_or_call_is_refused(text: str) -> None:
    with pytest.raises(CaseError, match="empty or only white space, so there is nothing to score"):
        Action(text)


def test_an_action_may_have_calls_and_no_text() -> None:
    assert Action(calls=(CALL,)).text == ""


@quick
@given(action=actions)
def test_an_action_stands_for_itself(action: Action) -> None:
    assert Action.of(action) is action


def test_text_and_calls_stand_for_actions() -> None:
    assert Action.of("refund(42)") == Action("refund(42)")
    assert Action.of(CALL) == Action(calls=(CALL,))


def test_an_action_is_shown_with_its_calls() -> None:
    assert str(Action("refund(42)")) == "refund(42)"
    assert str(Action("So:", (CALL, ToolCall("finish", "{}")))) == (
        'So: refund({"order": "42"}) finish({})'
    )


def test_a_tool_has_the_shape_that_chat_templates_take() -> None:
    schema = {"type": "object", "properties": {}}
    assert Tool("refund", "Pays back.", schema).as_function() == {
        "type": "function",
        "function": {"name": "refund", "description": "Pays back.", "parameters": schema},
    }


@quick
@given(start=trajectories(), turns=st.lists(good_steps | user_turns, max_size=3))
def test_a_trajectory_goes_on_without_changing(
    start: Trajectory, turns: list[Step | UserTurn]
) -> None:
    longer = start.then(*turns)
    assert longer.steps == (*start.steps, *turns)
    assert dataclasses.replace(longer, steps=start.steps) == start


def test_a_failed_step_must_be_marked() -> None:
    with pytest.raises(CaseError, match="case 'refund-42': the failed step is not marked"):
        case_with(failed=dataclasses.replace(FAILED, failed=False))


def test_a_failed_step_must_have_been_answered() -> None:
    with pytest.raises(CaseError, match="case 'refund-42': the failed step has no observation"):
        case_with(failed=dataclasses.replace(FAILED, observation=None))
    case_with(failed=dataclasses.replace(FAILED, observation=""))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"failed": False}, "the other failed step is not marked failed=True"),
        ({"observation": None}, "the other failed step has no observation"),
        (
            {"action": FAILED.action},
            r"the other failed step has the failed action \"refund\('42'\)",
        ),
        ({"action": Action("refund(42)")}, "the other failed step has the correct action"),
    ],
)
def test_the_other_failed_step_failed_too_and_with_another_action(
    change: dict[str, Any], said: str
) -> None:
    other = Step(Action("pay()"), "", failed=True)
    correct = Action("refund(42)")
    case_with(other_failed=other, correct=correct, distractors=(other.action,))
    with pytest.raises(CaseError, match=f"case 'refund-42': {said}"):
        case_with(other_failed=dataclasses.replace(other, **change), correct=correct)


def test_a_padding_that_is_none() -> None:
    with pytest.raises(CaseError, match="no padding 'exactly'; there are: exact, published"):
        Observations(padding="exactly")


@pytest.mark.parametrize(
    "others", [{"correct": FAILED.action}, {"distractors": (Action("a"), FAILED.action)}]
)
def test_the_failed_action_is_no_other_candidate(others: dict[str, Any]) -> None:
    with pytest.raises(CaseError, match=r"failed action \"refund\('42'\)\" is also given as"):
        case_with(**others)


@pytest.mark.parametrize(
    "others",
    [
        {"correct": Action("a"), "distractors": (Action("a"),)},
        {"distractors": (Action(calls=(CALL,)), Action(calls=(CALL,)))},
    ],
)
def test_two_candidates_are_not_the_same(others: dict[str, Any]) -> None:
    with pytest.raises(CaseError, match="case 'refund-42': two candidates are the same action"):
        case_with(**others)


def test_candidates_are_named_in_order() -> None:
    a, b, c = Action("a"), Action("b"), Action("c")
    assert list(case_with(correct=a, distractors=(b, c)).candidates().items()) == [
        ("failed", FAILED.action),
        ("correct", a),
        ("distractor0", b),
        ("distractor1", c),
    ]
    assert list(case_with(distractors=(b,)).candidates()) == ["failed", "distractor0"]


@quick
@given(case=cases())
def test_candidates_are_the_failed_action_and_all_others_once(case: FailureCase) -> None:
    candidates = case.candidates()
    assert candidates["failed"] == case.failed.action
    assert candidates.get("correct") == case.correct
    assert len(set(candidates.values())) == len(candidates)
    assert len(candidates) == 1 + (case.correct is not None) + len(case.distractors)
