"""The contexts in which one action is scored: each a small function from a case to a trajectory.

Conditions change the *trajectory* and never a rendered prompt, so that a user's harness is measured
exactly as the built-in ones are. Names are those of the design; the paper's are beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pytest_failgain.errors import UsageError
from pytest_failgain.harnesses import DESCRIBED, Remedy
from pytest_failgain.trajectory import FailureCase, Trajectory


@dataclass(frozen=True, slots=True)
class Condition:
    """A context in which the candidates are scored.

    `trajectory` gives None where the case lacks what the condition needs. `remedy`, if any, is
    applied on top of the harness that is measured.
    """

    name: str
    paper_name: str
    trajectory: Callable[[FailureCase], Trajectory | None]
    remedy: Remedy | None = None


def before(case: FailureCase) -> Trajectory:
    """The decision point, as if the failed step had not happened."""
    return case.trajectory


def failed(case: FailureCase) -> Trajectory:
    """The failed step with the error that the runtime answered."""
    return case.trajectory.then(case.failed)


def neutral(case: FailureCase) -> Trajectory:
    """The same action, answered by words that tell neither success nor failure."""
    return _answered(case, case.observations.neutral)


def succeeded(case: FailureCase) -> Trajectory | None:
    """The same action, answered as if it had worked."""
    success = case.observations.success
    return None if success is None else _answered(case, success)


def _answered(case: FailureCase, observation: str) -> Trajectory:
    step = replace(case.failed, observation=observation, failed=False, error_family=None)
    return case.trajectory.then(step)


BEFORE = Condition("before", "pre", before)
FAILED = Condition("failed", "fail", failed)
SUCCEEDED = Condition("succeeded", "succ", succeeded)
NEUTRAL = Condition("neutral", "neut", neutral)
DESCRIBED_CONDITION = Condition("described", "abstract", failed, remedy=DESCRIBED)

CONDITIONS = {
    condition.name: condition
    for condition in (BEFORE, FAILED, SUCCEEDED, NEUTRAL, DESCRIBED_CONDITION)
}

# What every measurement needs: the gain and its two parts.
DEFAULT_CONDITIONS = (BEFORE, FAILED, NEUTRAL)


def condition_named(name: str) -> Condition:
    """The condition called `name`.

    Raises:
        UsageError: when there is none.
    """
    try:
        return CONDITIONS[name]
    except KeyError:
        raise UsageError(
            f"there is no condition {name!r}; there are: {', '.join(CONDITIONS)}"
        ) from None
