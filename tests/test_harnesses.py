from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_failgain.errors import UsageError
from pytest_failgain.harnesses import (
    GLOSSES,
    INSTRUCTION,
    REMEDIES,
    VERBATIM,
    Harness,
    RemediedHarness,
    harness_name,
    remedied,
    render_verbatim,
)
from pytest_failgain.prompt import Message
from pytest_failgain.trajectory import Action, Step, ToolCall, Trajectory, UserTurn
from strategies import (
    good_steps,
    plain_harnesses,
    quick,
    remedy_names,
    render_as_text,
    trajectories,
    user_turns,
)

ASK = Step(Action("find(name='Ann')"), "ann@corp.example")
FAIL = Step(Action("send(to='Ann')"), "ValueError: no '@' in 'Ann'", True, "format_error", "send")
START = Trajectory(system="You call tools.", goal="Write to Ann.", steps=(ASK,))
FAILED = START.then(FAIL)

written_remedies = st.sampled_from(["described", "described-minimal"])
anything = st.sampled_from(sorted(REMEDIES))


def transformed(name: str, trajectory: Trajectory) -> Trajectory:
    return REMEDIES[name].transform(trajectory)


def failures(trajectory: Trajectory) -> list[Step]:
    return [step for step in trajectory.steps if isinstance(step, Step) and step.failed]


def the_rest(trajectory: Trajectory) -> list[Step | UserTurn]:
    return [step for step in trajectory.steps if isinstance(step, UserTurn) or not step.failed]


def test_verbatim_writes_text_steps_as_the_experiment_did() -> None:
    assert VERBATIM(FAILED.then(UserTurn("Go on."), Step(Action("Which Ann?"), None))) == [
        {"role": "system", "content": "You call tools."},
        {"role": "user", "content": "Write to Ann."},
        {"role": "assistant", "content": "find(name='Ann')"},
        {"role": "user", "content": "Observation: ann@corp.example"},
        {"role": "assistant", "content": "send(to='Ann')"},
        {"role": "user", "content": "Observation: ValueError: no '@' in 'Ann'"},
        {"role": "user", "content": "Go on."},
        {"role": "assistant", "content": "Which Ann?"},
    ]


def test_verbatim_writes_structured_calls_as_chat_apis_do() -> None:
    calls = (ToolCall("find", '{"name": "Ann"}'), ToolCall("finish", "{}"))
    trajectory = Trajectory("", "Write to Ann.", (Step(Action("So:", calls), "done"),))
    assert VERBATIM(trajectory) == [
        {"role": "user", "content": "Write to Ann."},
        {
            "role": "assistant",
            "content": "So:",
            "tool_calls": [
                {
                    "id": "call00000",
                    "type": "function",
                    "function": {"name": "find", "arguments": '{"name": "Ann"}'},
                },
                {
                    "id": "call00001",
                    "type": "function",
                    "function": {"name": "finish", "arguments": "{}"},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "call00000", "name": "find", "content": "done"},
        {"role": "tool", "tool_call_id": "call00001", "name": "finish", "content": "done"},
    ]


@quick
@given(trajectory=trajectories())
def test_every_call_has_its_own_id_and_every_answer_names_a_call(trajectory: Trajectory) -> None:
    messages = render_verbatim(trajectory)
    calls = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    answers = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert len(set(calls)) == len(calls)
    assert set(answers) <= set(calls)
    assert all(len(identity) == 9 and identity.isalnum() for identity in calls)


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
    ],
)
def test_what_each_remedy_makes_of_a_failure(remedy: str, rest: list[Step | UserTurn]) -> None:
    assert transformed(remedy, FAILED).steps == (ASK, *rest)


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
@given(trajectory=trajectories(), name=anything)
def test_remedies_leave_all_else_untouched_and_in_order(trajectory: Trajectory, name: str) -> None:
    changed = transformed(name, trajectory)
    replaced = iter(changed.steps)
    # Each good step and user turn is found, as the very same object, after the one before it.
    assert all(any(step is kept for step in replaced) for kept in the_rest(trajectory))
    assert changed.goal == trajectory.goal
    assert changed.tools == trajectory.tools


@quick
@given(trajectory=trajectories(), name=written_remedies | st.just("dropped"))
def test_records_of_failures_are_gone_and_only_they(trajectory: Trajectory, name: str) -> None:
    changed = transformed(name, trajectory)
    assert failures(changed) == []
    lost = 0 if name != "dropped" else len(failures(trajectory))
    assert len(changed.steps) == len(trajectory.steps) - lost
    assert changed.system == trajectory.system


@quick
@given(trajectory=trajectories(good_steps | user_turns), name=anything)
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
    name=written_remedies | st.just("dropped"),
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


def test_remedies_come_before_a_harness_of_ones_own() -> None:
    def history(trajectory: Trajectory) -> Sequence[Message] | str:
        return render_as_text(trajectory)

    described = remedied("described", history)
    assert described(FAILED) == render_as_text(transformed("described", FAILED))
    assert "Ann')\nResult: ValueError" not in str(described(FAILED))
    assert described.base is history
    assert described.name == "test_remedies_come_before_a_harness_of_ones_own.history+described"


@quick
@given(trajectory=trajectories(), harness=plain_harnesses)
def test_verbatim_stands_for_the_harness_as_it_is(trajectory: Trajectory, harness: Harness) -> None:
    assert remedied("verbatim", harness)(trajectory) == harness(trajectory)


@quick
@given(trajectory=trajectories(), names=remedy_names, harness=plain_harnesses)
def test_the_order_in_the_name_does_not_matter(
    trajectory: Trajectory, names: list[str], harness: Harness
) -> None:
    prompts = [
        remedied("+".join(order), harness)(trajectory) for order in itertools.permutations(names)
    ]
    assert all(prompt == prompts[0] for prompt in prompts)


def test_the_instruction_is_given_because_of_failures_that_are_then_described_or_dropped() -> None:
    for name in ("described", "dropped"):
        prompt = remedied(f"{name}+instructed", render_as_text)(FAILED)
        assert INSTRUCTION in prompt
        assert "send(to='Ann')" not in prompt


def test_names_may_have_spaces() -> None:
    assert remedied(" verbatim + instructed ").name == "verbatim+instructed"
    assert remedied("verbatim+instructed").remedies == (REMEDIES["instructed"],)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("abstract", "there is no remedy 'abstract' (in 'abstract'); there are: verbatim, "),
        ("described+", "there is no remedy '' (in 'described+'); there are: "),
        ("", "there is no remedy '' (in ''); there are: "),
        ("described+described", "the remedy 'described' stands twice in 'described+described'"),
        ("verbatim+verbatim", "the remedy 'verbatim' stands twice in 'verbatim+verbatim'"),
    ],
)
def test_a_name_that_is_none(name: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        remedied(name)
    assert str(caught.value).startswith(said)


def test_only_dropping_makes_something_certain_by_construction() -> None:
    assert remedied("dropped").by_construction == REMEDIES["dropped"].by_construction
    assert remedied("described+instructed").by_construction is None
    assert VERBATIM.by_construction is None


class Window:
    """A harness that is an object, such as one with settings."""

    def __call__(self, trajectory: Trajectory) -> str:
        return trajectory.goal

    def render(self, trajectory: Trajectory) -> str:
        return trajectory.goal


class Named(Window):
    name = "window"


class Misnamed(Window):
    name = 7


@pytest.mark.parametrize(
    ("harness", "name"),
    [
        (VERBATIM, "verbatim"),
        (RemediedHarness("mine", render_as_text), "mine"),
        (render_as_text, "render_as_text"),
        (Named(), "window"),
        (Window(), "Window"),
        (Misnamed(), "Misnamed"),
        (Window().render, "Window.render"),
    ],
)
def test_a_harness_is_called_by_its_name_or_by_how_it_was_defined(harness: Any, name: str) -> None:
    assert harness_name(harness) == name
