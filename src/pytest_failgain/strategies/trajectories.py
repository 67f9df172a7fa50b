"""Trajectories and failure cases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_failgain.padding import PADDINGS
from pytest_failgain.remedies import REMEDIES
from pytest_failgain.strategies.actions import (
    KNOWN_TOOLS,
    actions,
    error_texts,
    replies,
    structured_actions,
    text_actions,
)
from pytest_failgain.strategies.texts import TEXTS, WORDS
from pytest_failgain.trajectory import (
    Action,
    FailureCase,
    Observations,
    Step,
    Tool,
    Trajectory,
    UserTurn,
)


def steps(
    failed: bool | st.SearchStrategy[bool] | None = None,
    actions: st.SearchStrategy[Action] | None = None,
) -> st.SearchStrategy[Step]:
    """Steps with everything that a step can have; `failed` or not, either unless given.

    The observation of a failed one, if there is any, is an error, which may quote its action.
    """
    return _steps(_whether(failed), _ANY_ACTIONS if actions is None else actions)


@st.composite
def _steps(
    draw: st.DrawFn, failed: st.SearchStrategy[bool], actions: st.SearchStrategy[Action]
) -> Step:
    action, fails = draw(actions), draw(failed)
    return Step(
        action=action,
        observation=draw(st.none() | error_texts(action) if fails else _ANSWERS),
        failed=fails,
        error_family=draw(_FAMILIES) if fails else None,
        tool=action.calls[0].name if action.calls else draw(_TOOL_NAMES),
        records=draw(_RECORDS),
        reply=draw(replies(action)),
    )


def _whether(failed: bool | st.SearchStrategy[bool] | None) -> st.SearchStrategy[bool]:
    if failed is None:
        return st.booleans()
    return st.just(failed) if isinstance(failed, bool) else failed


def user_turns() -> st.SearchStrategy[UserTurn]:
    """What a user says between two steps."""
    return st.builds(UserTurn, TEXTS)


def trajectories(
    turns: st.SearchStrategy[Step | UserTurn] | None = None,
    tools: st.SearchStrategy[Tool] | None = None,
) -> st.SearchStrategy[Trajectory]:
    """Trajectories of up to four steps and user's turns, or of `turns`, that offer some of `tools`.

    Without `turns`, some are of text actions, some of structured calls, some mixed.
    """
    some = st.one_of([*map(_some, _TURNS)]) if turns is None else _some(turns)
    offered = st.lists(
        st.sampled_from(KNOWN_TOOLS) if tools is None else tools,
        max_size=2,
        unique_by=lambda tool: tool.name,
    )
    return st.builds(Trajectory, TEXTS, TEXTS, some, offered.map(tuple))


def _some(
    turns: st.SearchStrategy[Step | UserTurn],
) -> st.SearchStrategy[tuple[Step | UserTurn, ...]]:
    return st.lists(turns, max_size=4).map(tuple)


def observations() -> st.SearchStrategy[Observations]:
    """Other answers to a failed action, each of them known or not."""
    unknown = [st.none() | TEXTS] * 4
    return st.builds(Observations, TEXTS, *unknown, padding=st.sampled_from(sorted(PADDINGS)))


def failure_cases(
    actions: st.SearchStrategy[Action] | None = None,
    errors: Callable[[Action], st.SearchStrategy[str]] = error_texts,
    trajectories: st.SearchStrategy[Trajectory] | None = None,
) -> st.SearchStrategy[FailureCase]:
    """Failure cases with any of their parts left out or present.

    The failed action and the other candidates are of `actions`, the error is of
    `errors(failed action)`, and what came before of `trajectories`.
    """
    return _failure_cases(
        st.lists(_ANY_ACTIONS if actions is None else actions, min_size=1, max_size=4, unique=True),
        errors,
        _ANY_TRAJECTORIES if trajectories is None else trajectories,
    )


@st.composite
def _failure_cases(
    draw: st.DrawFn,
    candidates: st.SearchStrategy[list[Action]],
    errors: Callable[[Action], st.SearchStrategy[str]],
    trajectories: st.SearchStrategy[Trajectory],
) -> FailureCase:
    failed, *others = draw(candidates)
    correct = others.pop() if draw(st.booleans()) and others else None
    other = others[0] if draw(st.booleans()) and others else None
    return FailureCase(
        case_id=draw(WORDS),
        task_id=draw(WORDS),
        trajectory=draw(trajectories),
        failed=draw(_failing(failed, errors)),
        correct=correct,
        distractors=tuple(others),
        observations=draw(_OBSERVATIONS),
        environment=draw(TEXTS),
        operator=draw(TEXTS),
        template=draw(TEXTS),
        other_failed=None if other is None else draw(_failing(other, errors)),
    )


@st.composite
def _failing(
    draw: st.DrawFn, action: Action, errors: Callable[[Action], st.SearchStrategy[str]]
) -> Step:
    return replace(draw(_steps(_FAILED, st.just(action))), observation=draw(errors(action)))


def given_case(
    test: Callable[..., None], cases: st.SearchStrategy[FailureCase], options: settings | None
) -> Callable[..., None]:
    """`test` as a property test of its argument `case`."""
    # No deadline: what a harness takes is not what is tested.
    applied: Any = options or settings(deadline=None)
    return applied(given(case=cases)(test))  # type: ignore[no-any-return]


# Made once, for the reason that texts are.
_FAILED = st.just(True)
_ANSWERS = st.none() | TEXTS
_TOOL_NAMES = st.none() | TEXTS
_FAMILIES = st.none() | st.sampled_from(("type_error", "unknown_tool", "timeout", "other"))
_RECORDS = st.dictionaries(st.sampled_from(sorted(REMEDIES)), WORDS, max_size=2)
_OBSERVATIONS = observations()
_ANY_ACTIONS = actions()
_TURNS = tuple(
    steps(actions=of_kind) | user_turns()
    for of_kind in (text_actions(), structured_actions(), _ANY_ACTIONS)
)
_ANY_TRAJECTORIES = trajectories()
