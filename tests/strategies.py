"""Hypothesis strategies for trajectories, cases and harnesses, shared by the tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from pytest_failgain.harnesses import Harness, remedied, render_verbatim
from pytest_failgain.padding import PADDINGS
from pytest_failgain.remedies import CHANGING, REMEDIES, TAKING_AWAY
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

# No deadline: what these tests hold is not a time, and a busy machine is no failure.
quick = settings(deadline=None, max_examples=60)

# Every character but half ones; the odd ones among them are those that end a line somewhere.
texts = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["", " ", "\ufeff", "\u2028\u2029\x85", "a\r\nb", '{"a": "\\"', "日本 🦊", "\0"]
    ),
)
words = st.text(min_size=1, max_size=12).filter(str.strip)

json_values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False)
    )
    | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=5,
)

tool_calls = st.builds(ToolCall, texts, texts)
text_actions = st.builds(Action, words)
native_actions = st.builds(Action, texts, st.lists(tool_calls, min_size=1, max_size=2).map(tuple))
actions = text_actions | native_actions

tools = st.builds(Tool, texts, texts, st.dictionaries(texts, json_values, max_size=3))

records = st.dictionaries(st.sampled_from(sorted(REMEDIES)), words, max_size=2)


@st.composite
def steps(draw: st.DrawFn, failed: st.SearchStrategy[bool]) -> Step:
    """Steps with everything that a step can have."""
    action = draw(actions)
    return Step(
        action=action,
        observation=draw(st.none() | texts),
        failed=draw(failed),
        error_family=draw(st.none() | texts | st.just("type_error")),
        tool=draw(st.none() | texts),
        records=draw(records),
        reply=draw(replies(action)),
    )


def replies(action: Action) -> st.SearchStrategy[str]:
    """Whole turns that `action` may be a part of, none among them."""
    around = st.tuples(texts, texts).map(lambda ends: f"{ends[0]}{action.text}{ends[1]}")
    return st.just("") | around


good_steps = steps(st.just(False))
failed_steps = steps(st.just(True))
user_turns = st.builds(UserTurn, texts)

observations = st.builds(
    Observations, texts, *[st.none() | texts] * 4, padding=st.sampled_from(sorted(PADDINGS))
)


def trajectories(
    turns: st.SearchStrategy[Step | UserTurn] = good_steps | failed_steps | user_turns,
) -> st.SearchStrategy[Trajectory]:
    """Trajectories of up to four `turns`."""
    return st.builds(
        Trajectory,
        system=texts,
        goal=texts,
        steps=st.lists(turns, max_size=4).map(tuple),
        tools=st.lists(tools, max_size=2).map(tuple),
    )


@st.composite
def cases(draw: st.DrawFn) -> FailureCase:
    """Failure cases with any of their parts left out or present."""
    candidates: st.SearchStrategy[list[Action]] = st.lists(
        actions, min_size=1, max_size=4, unique=True
    )
    failed, *others = draw(candidates)
    has_correct = draw(st.booleans())
    correct = others.pop() if others and has_correct else None
    return FailureCase(
        case_id=draw(words),
        task_id=draw(texts),
        trajectory=draw(trajectories()),
        failed=Step(
            action=failed,
            observation=draw(texts),
            failed=True,
            error_family=draw(st.none() | texts),
            tool=draw(st.none() | texts),
            records=draw(records),
            reply=draw(replies(failed)),
        ),
        correct=correct,
        distractors=tuple(others),
        observations=draw(observations),
        environment=draw(texts),
        operator=draw(texts),
        template=draw(texts),
        other_failed=draw(st.none() | other_failures(failed, correct)),
    )


@st.composite
def other_failures(draw: st.DrawFn, failed: Action, correct: Action | None) -> Step:
    """Steps that failed as well, with another action than `failed` and `correct`."""
    action = draw(actions.filter(lambda action: action not in (failed, correct)))
    observation = draw(texts)
    return replace(draw(failed_steps), action=action, observation=observation, reply="")


def render_as_text(trajectory: Trajectory) -> str:
    """A harness that writes the whole trajectory as one text."""
    lines = [f"System: {trajectory.system}", f"Goal: {trajectory.goal}"]
    for step in trajectory.steps:
        if isinstance(step, UserTurn):
            lines.append(f"User: {step.text}")
        else:
            lines.append(f"Agent: {step.action}\nResult: {step.observation} ({step.failed})")
    return "\n".join(lines)


def render_last_only(trajectory: Trajectory) -> list[dict[str, Any]]:
    """A harness that forgets all but the last turn, and counts the failures."""
    failures = sum(isinstance(step, Step) and step.failed for step in trajectory.steps)
    return [
        {"role": "system", "content": f"{trajectory.system} ({failures} failures)"},
        {"role": "user", "content": f"{trajectory.goal} {trajectory.steps[-1:]}"},
    ]


# What takes the failed step away can't be joined with another that does, or that changes it.
remedy_names = st.one_of(
    st.lists(st.sampled_from(sorted(set(REMEDIES) - TAKING_AWAY)), min_size=1, unique=True),
    st.lists(st.sampled_from(sorted(set(REMEDIES) - TAKING_AWAY - CHANGING)), unique=True).flatmap(
        lambda names: st.sampled_from(sorted(TAKING_AWAY)).map(lambda one: [one, *names])
    ),
)
plain_harnesses: st.SearchStrategy[Harness] = st.sampled_from(
    [render_verbatim, render_as_text, render_last_only]
)
harnesses: st.SearchStrategy[Harness] = plain_harnesses | st.builds(
    lambda names, harness: remedied("+".join(names), harness), remedy_names, plain_harnesses
)
