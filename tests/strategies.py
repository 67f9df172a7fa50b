"""Harnesses to try things on, and the public strategies under the names that tests use."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from pytest_failgain import strategies as public
from pytest_failgain.harnesses import Harness, remedied, render_verbatim
from pytest_failgain.remedies import CHANGING, REMEDIES, TAKING_AWAY
from pytest_failgain.trajectory import Step, ToolCall, Trajectory, UserTurn

# No deadline: what these tests hold is not a time, and a busy machine is no failure.
quick = settings(deadline=None, max_examples=60)

texts, json_values = public.texts(), public.json_values()
# Without what tokenizers take for one token.
words = st.text(min_size=1, max_size=12).filter(str.strip)
actions, tools = public.actions(), public.tools()
# With arguments that need be no JSON.
tool_calls = st.builds(ToolCall, texts, texts)
records = st.dictionaries(st.sampled_from(sorted(REMEDIES)), words, max_size=2)
good_steps, failed_steps = public.steps(failed=False), public.steps(failed=True)
user_turns = public.user_turns()
trajectories, cases = public.trajectories, public.failure_cases


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
