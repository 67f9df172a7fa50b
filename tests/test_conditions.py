from __future__ import annotations

import copy
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_failgain.conditions import (
    BEFORE,
    CONDITIONS,
    DEFAULT_CONDITIONS,
    DESCRIBED_CONDITION,
    FAILED,
    NEUTRAL,
    SUCCEEDED,
    Condition,
    condition_named,
)
from pytest_failgain.errors import UsageError
from pytest_failgain.harnesses import DESCRIBED, INSTRUCTION, Harness, remedied
from pytest_failgain.trajectory import FailureCase, Step, Trajectory, UserTurn
from strategies import cases, harnesses, plain_harnesses, quick


def made(condition: Condition, case: FailureCase) -> Trajectory:
    trajectory = condition.trajectory(case)
    assert trajectory is not None
    return trajectory


@quick
@given(case=cases())
def test_before_is_the_decision_point(case: FailureCase) -> None:
    assert made(BEFORE, case) is case.trajectory


@quick
@given(case=cases())
def test_failed_adds_the_failed_step_as_it_was(case: FailureCase) -> None:
    assert made(FAILED, case) == case.trajectory.then(case.failed)


@quick
@given(case=cases())
def test_other_answers_stand_after_the_same_action_and_mark_no_failure(case: FailureCase) -> None:
    answers = {NEUTRAL: case.observations.neutral, SUCCEEDED: case.observations.success}
    for condition, answer in answers.items():
        if answer is None:
            assert condition.trajectory(case) is None
            continue
        *before, step = made(condition, case).steps
        assert tuple(before) == case.trajectory.steps
        assert isinstance(step, Step)
        assert step.action == case.failed.action
        assert (step.observation, step.failed, step.error_family) == (answer, False, None)


@quick
@given(case=cases(), condition=st.sampled_from(sorted(CONDITIONS)), harness=harnesses)
def test_conditions_and_harnesses_change_no_case(
    case: FailureCase, condition: str, harness: Harness
) -> None:
    untouched = copy.deepcopy(case)
    trajectory = CONDITIONS[condition].trajectory(case)
    if trajectory is not None:
        harness(trajectory)
    assert case == untouched


@quick
@given(case=cases(), condition=st.sampled_from(sorted(CONDITIONS)))
def test_conditions_change_nothing_but_the_steps(case: FailureCase, condition: str) -> None:
    trajectory = CONDITIONS[condition].trajectory(case)
    if trajectory is not None:
        assert replace(trajectory, steps=case.trajectory.steps) == case.trajectory


@quick
@given(case=cases(), harness=harnesses)
def test_a_dropped_failure_leaves_the_context_before_it(
    case: FailureCase, harness: Harness
) -> None:
    dropped = remedied("dropped", harness)
    assert dropped(made(FAILED, case)) == dropped(made(BEFORE, case))


@quick
@given(case=cases(), harness=plain_harnesses)
def test_a_failure_dropped_from_clean_steps_leaves_the_harness_as_it_is(
    case: FailureCase, harness: Harness
) -> None:
    clean = tuple(
        step for step in case.trajectory.steps if isinstance(step, UserTurn) or not step.failed
    )
    case = replace(case, trajectory=replace(case.trajectory, steps=clean))
    assert remedied("dropped", harness)(made(FAILED, case)) == harness(made(BEFORE, case))


@quick
@given(case=cases())
def test_the_instruction_is_given_in_failed_only(case: FailureCase) -> None:
    case = replace(case, trajectory=replace(case.trajectory, steps=()))
    instructed = remedied("instructed", lambda trajectory: trajectory.system)
    assert str(instructed(made(FAILED, case))).endswith(INSTRUCTION)
    for condition in (BEFORE, NEUTRAL):
        assert instructed(made(condition, case)) == case.trajectory.system


@quick
@given(case=cases())
def test_described_is_the_failed_step_seen_through_the_remedy(case: FailureCase) -> None:
    assert made(DESCRIBED_CONDITION, case) == made(FAILED, case)
    assert DESCRIBED_CONDITION.remedy is DESCRIBED
    assert {condition.remedy for condition in (BEFORE, FAILED, NEUTRAL, SUCCEEDED)} == {None}


def test_the_default_conditions_give_the_gain_and_its_two_parts() -> None:
    assert [condition.name for condition in DEFAULT_CONDITIONS] == ["before", "failed", "neutral"]


def test_conditions_are_found_by_name() -> None:
    assert all(condition_named(name).name == name for name in CONDITIONS)
    with pytest.raises(UsageError, match="no condition 'pre'; there are: before, failed"):
        condition_named("pre")
