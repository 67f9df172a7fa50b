"""The contexts in which one action is scored: each a small function from a case to a trajectory.

Conditions change the *trajectory* and never a rendered prompt, so that a user's harness is measured
exactly as the built-in ones are. Names are those of the design; the paper's are beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pytest_failgain.errors import UsageError
from pytest_failgain.padding import PADDINGS, CountTokens
from pytest_failgain.remedies import DESCRIBED, DESCRIBED_MINIMAL, INSTRUCTED, Remedy
from pytest_failgain.trajectory import FailureCase, Step, Trajectory


@dataclass(frozen=True, slots=True)
class Condition:
    """A context in which the candidates are scored.

    `trajectory` gives None where the case lacks what the condition needs. `remedy`, if any, is
    applied on top of the harness that is measured. With `padded`, the last observation is brought
    to the length of the error, in tokens of the model that scores. `isolates` says what a
    comparison with it shows.
    """

    name: str
    paper_name: str
    trajectory: Callable[[FailureCase], Trajectory | None]
    remedy: Remedy | None = None
    padded: bool = False
    isolates: str = ""

    def context(
        self,
        case: FailureCase,
        count_tokens: CountTokens,
        count_prompt: Callable[[Trajectory], int] | None = None,
    ) -> Trajectory | None:
        """The trajectory of `case` under this condition, for the model that counts so."""
        trajectory = self.trajectory(case)
        if not self.padded or trajectory is None:
            return trajectory
        return _padded(trajectory, case, count_tokens, count_prompt)


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


def _padded(
    trajectory: Trajectory,
    case: FailureCase,
    count_tokens: CountTokens,
    count_prompt: Callable[[Trajectory], int] | None,
) -> Trajectory:
    *past, step = trajectory.steps
    assert isinstance(step, Step)
    neutral, error = step.observation or "", case.failed.observation or ""

    def answered(observation: str) -> Trajectory:
        return replace(trajectory, steps=(*past, replace(step, observation=observation)))

    def count_in_prompt(observation: str) -> int:
        assert count_prompt is not None
        # Where the error stands, the harness may write more than its text.
        return count_prompt(failed(case) if observation == error else answered(observation))

    # The published padding counts the texts by themselves.
    exact = case.observations.padding == "exact" and count_prompt is not None
    pad = PADDINGS[case.observations.padding]
    count = count_in_prompt if exact else count_tokens
    return answered(pad(neutral, error, str(case.failed.action), count))


def echoed(case: FailureCase) -> Trajectory | None:
    """The failed step, with an error that quotes the action once more."""
    return _told(case, case.observations.echoed)


def terse(case: FailureCase) -> Trajectory | None:
    """The failed step, with an error of few words."""
    return _told(case, case.observations.terse)


def verbose(case: FailureCase) -> Trajectory | None:
    """The failed step, with an error that tells more than the usual one."""
    return _told(case, case.observations.verbose)


def _told(case: FailureCase, error: str | None) -> Trajectory | None:
    return None if error is None else case.trajectory.then(replace(case.failed, observation=error))


def twice(case: FailureCase) -> Trajectory:
    """The failed step, two times over."""
    return case.trajectory.then(case.failed, case.failed)


def three_times(case: FailureCase) -> Trajectory:
    """The failed step, three times over."""
    return case.trajectory.then(case.failed, case.failed, case.failed)


def early(case: FailureCase) -> Trajectory:
    """The failed step before all others; the same as `failed` where there are none."""
    return replace(case.trajectory, steps=(case.failed, *case.trajectory.steps))


def other_failed(case: FailureCase) -> Trajectory | None:
    """Another action that failed at the same point, in place of the failed one."""
    return None if case.other_failed is None else case.trajectory.then(case.other_failed)


BEFORE = Condition("before", "pre", before, isolates="where every difference starts from")
FAILED = Condition("failed", "fail", failed, isolates="the whole effect of the record")
SUCCEEDED = Condition(
    "succeeded", "succ", succeeded, isolates="whether failure and success make any difference"
)
NEUTRAL = Condition(
    "neutral", "neut", neutral, isolates="the action's text in the context, without its failure"
)
NEUTRAL_PADDED = Condition(
    "neutral-padded",
    "neut_pad",
    neutral,
    padded=True,
    isolates="the same, with an answer as long as the error: length",
)
ECHOED = Condition("echoed", "fail_echo", echoed, isolates="one more copy of the action's text")
TERSE = Condition("terse", "fail_terse", terse, isolates="how much the error tells: little")
VERBOSE = Condition("verbose", "fail_verbose", verbose, isolates="how much the error tells: much")
INSTRUCTED_CONDITION = Condition(
    "instructed", "fail_instr", failed, remedy=INSTRUCTED, isolates="being told not to repeat"
)
TWICE = Condition("twice", "fail_k2", twice, isolates="a second identical failure")
THREE_TIMES = Condition("three-times", "fail_k3", three_times, isolates="a third one")
EARLY = Condition("early", "fail_early", early, isolates="distance: steps between failure and now")
OTHER_FAILED = Condition(
    "other-failed", "fail_other", other_failed, isolates="this action's text from any failure's"
)
DESCRIBED_CONDITION = Condition(
    "described", "abstract", failed, remedy=DESCRIBED, isolates="the record without the action"
)
DESCRIBED_MINIMAL_CONDITION = Condition(
    "described-minimal",
    "abstract_min",
    failed,
    remedy=DESCRIBED_MINIMAL,
    isolates="the record without the action and without a reason",
)

CONDITIONS = {
    condition.name: condition
    for condition in (
        BEFORE,
        FAILED,
        SUCCEEDED,
        NEUTRAL,
        NEUTRAL_PADDED,
        ECHOED,
        TERSE,
        VERBOSE,
        INSTRUCTED_CONDITION,
        TWICE,
        THREE_TIMES,
        EARLY,
        OTHER_FAILED,
        DESCRIBED_CONDITION,
        DESCRIBED_MINIMAL_CONDITION,
    )
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
