from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_failgain.environments import ENVIRONMENTS, build_environment
from pytest_failgain.environments.demonstrations import Demonstration, with_demonstrations
from pytest_failgain.environments.protocol import RolloutEnvironment
from pytest_failgain.environments.settings import EnvironmentSettings
from pytest_failgain.environments.tool_calls import ToolCallsEnvironment
from pytest_failgain.harnesses import render_verbatim
from pytest_failgain.trajectory import Action, Step, Trajectory
from strategies import good_steps, quick, texts, trajectories

ALLOWED = EnvironmentSettings(allow_code_execution=True)

demonstrations = st.lists(
    st.builds(Demonstration, texts, st.lists(good_steps, max_size=2).map(tuple)), max_size=3
)


@pytest.mark.parametrize("count", [None, 2])
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_models_can_drive_in_every_environment(name: str, count: int | None) -> None:
    environment = build_environment(name, ALLOWED, count=count)
    assert isinstance(environment, RolloutEnvironment)
    plain = build_environment(name, ALLOWED)
    assert environment.reply_tokens == plain.reply_tokens
    assert environment.replies.name == plain.replies.name


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_fixed_number_of_cases_is_one_of_episodes_too(name: str) -> None:
    fixed, plain = (build_environment(name, ALLOWED, count=count) for count in (3, None))
    wanted = plain.episodes(3, demonstrations=1)
    found = fixed.episodes(50, demonstrations=1)
    assert [one.trajectory for one in found] == [one.trajectory for one in wanted]


def test_a_fixed_number_is_one_of_primed_episodes_too() -> None:
    found = build_environment("tool_calls", count=3).episodes(50, primed=True)
    assert [one.task_id for one in found] == [
        one.task_id for one in ToolCallsEnvironment().cases(3)
    ]


def test_the_native_format_is_seen_as_a_rollout_environment_and_refuses_rollouts() -> None:
    assert isinstance(ToolCallsEnvironment(action_format="native"), RolloutEnvironment)


def test_demonstrations_are_turns_of_the_same_chat() -> None:
    first = Demonstration("Feed the cat.", (Step(Action("feed()"), "Fed."),))
    second = Demonstration("Walk the dog.", (Step(Action("walk()"), "Walked."),))
    step = Step(Action("sing()"), "No such tool.", failed=True)
    told = with_demonstrations(Trajectory("Be good.", "Sing.").then(step), (first, second))
    assert [(message["role"], message["content"]) for message in render_verbatim(told)] == [
        ("system", "Be good."),
        ("user", "Feed the cat."),
        ("assistant", "feed()"),
        ("user", "Observation: Fed."),
        ("user", "Walk the dog."),
        ("assistant", "walk()"),
        ("user", "Observation: Walked."),
        ("user", "Sing."),
        ("assistant", "sing()"),
        ("user", "Observation: No such tool."),
    ]


@quick
@given(trajectories(), demonstrations)
def test_the_chat_ends_as_it_does_without_demonstrations(
    trajectory: Trajectory, before: list[Demonstration]
) -> None:
    told = with_demonstrations(trajectory, before)
    assert dataclasses.replace(told, goal="", steps=()) == dataclasses.replace(
        trajectory, goal="", steps=()
    )
    rest = len(told.steps) - len(trajectory.steps)
    assert rest == sum(len(one.steps) + 1 for one in before)
    assert told.steps[rest:] == trajectory.steps
    # Nothing is said twice.
    assert len(render_verbatim(told)) - len(render_verbatim(trajectory)) == sum(
        len(render_verbatim(Trajectory("", one.goal, one.steps))) for one in before
    )
