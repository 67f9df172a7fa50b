from __future__ import annotations

import copy
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_scorer import failure_case, spans_of_tokens
from pytest_failgain.conditions import (
    BEFORE,
    CONDITIONS,
    DEFAULT_CONDITIONS,
    DESCRIBED_CONDITION,
    DESCRIBED_MINIMAL_CONDITION,
    EARLY,
    ECHOED,
    FAILED,
    INSTRUCTED_CONDITION,
    NEUTRAL,
    NEUTRAL_PADDED,
    OTHER_FAILED,
    SUCCEEDED,
    TERSE,
    THREE_TIMES,
    TWICE,
    VERBOSE,
    Condition,
    condition_named,
)
from pytest_failgain.errors import UsageError
from pytest_failgain.harnesses import Harness, remedied
from pytest_failgain.padding import PADDINGS
from pytest_failgain.remedies import DESCRIBED, DESCRIBED_MINIMAL, INSTRUCTED, INSTRUCTION
from pytest_failgain.trajectory import Action, FailureCase, Step, Trajectory, UserTurn
from strategies import cases, harnesses, plain_harnesses, quick

conditions = st.sampled_from([*CONDITIONS.values()])


def count_tokens(text: str) -> int:
    return len(spans_of_tokens(text))


def made(condition: Condition, case: FailureCase) -> Trajectory:
    trajectory = condition.context(case, count_tokens)
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
@given(case=cases())
def test_a_padded_answer_is_the_neutral_one_in_the_length_of_the_error(case: FailureCase) -> None:
    *before, step = made(NEUTRAL_PADDED, case).steps
    *_, unpadded = made(NEUTRAL, case).steps
    assert tuple(before) == case.trajectory.steps
    assert isinstance(step, Step)
    assert isinstance(unpadded, Step)
    assert replace(step, observation=unpadded.observation) == unpadded
    pad = PADDINGS[case.observations.padding]
    neutral, error = case.observations.neutral, case.failed.observation
    assert error is not None
    assert step.observation == pad(neutral, error, str(case.failed.action), count_tokens)


@quick
@given(case=cases())
def test_another_rendering_of_the_error_stands_in_the_same_failed_step(case: FailureCase) -> None:
    seen = case.observations
    for condition, error in {ECHOED: seen.echoed, TERSE: seen.terse, VERBOSE: seen.verbose}.items():
        if error is None:
            assert condition.context(case, count_tokens) is None
        else:
            step = replace(case.failed, observation=error)
            assert made(condition, case) == case.trajectory.then(step)


@quick
@given(case=cases())
def test_a_repeated_failure_is_the_failed_step_as_often(case: FailureCase) -> None:
    for condition, times in {FAILED: 1, TWICE: 2, THREE_TIMES: 3}.items():
        assert made(condition, case) == case.trajectory.then(*[case.failed] * times)


@quick
@given(case=cases())
def test_an_early_failure_comes_before_every_other_step(case: FailureCase) -> None:
    assert made(EARLY, case).steps == (case.failed, *case.trajectory.steps)
    first = replace(case, trajectory=replace(case.trajectory, steps=()))
    assert made(EARLY, first) == made(FAILED, first)


@quick
@given(case=cases())
def test_the_other_failure_stands_in_place_of_the_failed_step(case: FailureCase) -> None:
    if case.other_failed is None:
        assert OTHER_FAILED.context(case, count_tokens) is None
    else:
        assert made(OTHER_FAILED, case) == case.trajectory.then(case.other_failed)


@quick
@given(case=cases(), condition=conditions, harness=harnesses)
def test_conditions_and_harnesses_change_no_case(
    case: FailureCase, condition: Condition, harness: Harness
) -> None:
    untouched = copy.deepcopy(case)
    trajectory = condition.context(case, count_tokens)
    if trajectory is not None:
        harness(trajectory)
    assert case == untouched


@quick
@given(case=cases(), condition=conditions)
def test_conditions_change_nothing_but_the_steps(case: FailureCase, condition: Condition) -> None:
    trajectory = condition.context(case, count_tokens)
    if trajectory is not None:
        assert replace(trajectory, steps=case.trajectory.steps) == case.trajectory


@quick
@given(case=cases(), condition=conditions)
def test_only_a_padded_condition_asks_for_the_length_of_texts(
    case: FailureCase, condition: Condition
) -> None:
    asked: list[str] = []

    def counted(text: str) -> int:
        asked.append(text)
        return count_tokens(text)

    condition.context(case, counted)
    assert bool(asked) == (condition is NEUTRAL_PADDED)


def test_no_two_conditions_of_a_full_case_write_the_same() -> None:
    case = failure_case()
    case = replace(
        case,
        trajectory=case.trajectory.then(Step(Action("find(name='Ann')"), "one found")),
        observations=replace(
            case.observations, terse="No.", verbose="ValueError: no '@'", echoed="No: send('Ann')"
        ),
        other_failed=Step(Action("mail(to='Ann')"), "NameError: mail", failed=True),
    )
    written = [
        remedied(condition.remedy.name if condition.remedy else "verbatim")(made(condition, case))
        for condition in CONDITIONS.values()
    ]
    assert len(written) == 15
    assert all(written.count(prompt) == 1 for prompt in written)


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
    said = case.failed.records.get("instructed", INSTRUCTION)
    assert str(instructed(made(FAILED, case))).endswith(said)
    for condition in (BEFORE, NEUTRAL):
        assert instructed(made(condition, case)) == case.trajectory.system


@quick
@given(case=cases())
def test_a_condition_with_a_remedy_is_the_failed_step_seen_through_it(case: FailureCase) -> None:
    remedies = {
        DESCRIBED_CONDITION: DESCRIBED,
        DESCRIBED_MINIMAL_CONDITION: DESCRIBED_MINIMAL,
        INSTRUCTED_CONDITION: INSTRUCTED,
    }
    for condition in CONDITIONS.values():
        assert condition.remedy is remedies.get(condition)
        if condition.remedy is not None:
            assert made(condition, case) == made(FAILED, case)


def test_the_default_conditions_give_the_gain_and_its_two_parts() -> None:
    assert [condition.name for condition in DEFAULT_CONDITIONS] == ["before", "failed", "neutral"]


def test_conditions_are_found_by_name() -> None:
    assert all(condition_named(name).name == name for name in CONDITIONS)
    with pytest.raises(UsageError, match="no condition 'pre'; there are: before, failed"):
        condition_named("pre")


def test_each_condition_has_a_paper_name_and_a_reason_of_its_own() -> None:
    names = {condition.paper_name for condition in CONDITIONS.values()}
    reasons = {condition.isolates for condition in CONDITIONS.values()}
    assert len(names) == len(reasons - {""}) == len(CONDITIONS)
