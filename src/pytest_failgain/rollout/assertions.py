"""Assertions on rollouts.

Each fails with the headline figure, its threshold and n on the first line; then the worst rollouts;
then what to try. Where no rollout was run, every one of them fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pytest_failgain.assertions import check_demand, check_share, check_tolerance, decisive
from pytest_failgain.errors import UsageError
from pytest_failgain.report.numbers import percent, percents, signed
from pytest_failgain.rollout.measures import ROLLOUT_MEASURES
from pytest_failgain.rollout.results import Rollouts, rollout_difference
from pytest_failgain.rollout.turns import Rollout

_WORST_SHOWN = 5
_REPEATS = {"exact": "exact_repeat_rate", "canonical": "canonical_repeat_rate"}

_TRY = (
    "try: another record of failures (failgain.remedy('described') and its kin), or a decoder "
    "block (failgain.remedy('described+searched')). Repeating less is not succeeding more: assert "
    "both."
)


def assert_success_rate_at_least(result: Rollouts, minimum: float) -> None:
    """At least this share of the rollouts must solve their task.

    Raises:
        AssertionError: when fewer do, or no rollout was run.
        UsageError: when `minimum` is not between 0 and 1.
    """
    __tracebackhide__ = True
    check_share("minimum", minimum)
    _require_rollouts(result)
    solved = result.estimates["success"]
    if not solved.value >= minimum:
        _fail(
            result,
            f"success rate {percents(solved)}, at least {percent(minimum)} wanted",
            solved.n,
            _worst(result, "canonical_repeat_rate", lambda rollout: rollout.outcome != "solved"),
        )


def assert_repeat_rate_at_most(
    result: Rollouts, maximum: float, *, match: str = "canonical"
) -> None:
    """Of the failed actions, at most this share may repeat an earlier failed one.

    It is the mean over the rollouts in which an action failed; where none did, nothing was
    repeated. `match` is "canonical", for any spelling of the same action, or "exact".

    Raises:
        AssertionError: when more do, or no rollout was run.
        UsageError: when `maximum` is not between 0 and 1, or there is no such match.
    """
    __tracebackhide__ = True
    check_share("maximum", maximum)
    if match not in _REPEATS:
        raise UsageError(f"there is no match {match!r}; take {' or '.join(map(repr, _REPEATS))}")
    _require_rollouts(result)
    repeats = result.estimates[_REPEATS[match]]
    if repeats.n and not repeats.value <= maximum:
        _fail(
            result,
            f"repeat rate {percents(repeats)} of the failed actions ({match}), at most "
            f"{percent(maximum)} allowed",
            repeats.n,
            _worst(result, _REPEATS[match]),
        )


def assert_not_stuck(result: Rollouts, maximum: float = 0.0) -> None:
    """At most this share of the rollouts may use up its steps while it repeats itself.

    Raises:
        AssertionError: when more do, or no rollout was run.
        UsageError: when `maximum` is not between 0 and 1.
    """
    __tracebackhide__ = True
    check_share("maximum", maximum)
    _require_rollouts(result)
    stuck = result.estimates["stuck"]
    if not stuck.value <= maximum:
        is_stuck = ROLLOUT_MEASURES["stuck"].of
        _fail(
            result,
            f"stuck in {percents(stuck)} of the rollouts, at most {percent(maximum)} allowed",
            stuck.n,
            _worst(result, "canonical_repeat_rate", lambda rollout: bool(is_stuck(rollout))),
        )


def assert_success_not_reduced(
    remedy: Rollouts,
    verbatim: Rollouts,
    tolerance: float = 0.0,
    *,
    demand: str = "no evidence of harm",
) -> None:
    """`remedy` must not solve fewer of the same tasks than `verbatim`.

    `tolerance` is a share of the tasks. `demand` says what is asked of the 95% interval of the
    paired difference, as in `assert_corrective_gain_nonnegative`.

    Raises:
        AssertionError: when the demand is not met, or either has no rollout.
        UsageError: when `tolerance` is negative or not finite, there is no such demand, or the two
            were not run on the same tasks in the same way.
    """
    __tracebackhide__ = True
    check_tolerance(tolerance, "a share, 0 or more")
    check_demand(demand)
    _require_rollouts(remedy)
    _require_rollouts(verbatim)
    difference = rollout_difference("success", remedy, verbatim)
    name, bound = decisive(difference, demand)
    if not bound >= -tolerance:
        _fail(
            remedy,
            f"success changes by {signed(difference, 2)} against {verbatim.harness}, its {name} "
            f"is under {0 - tolerance:+.2f} (demand: {demand})",
            difference.n,
            _worst(remedy, "canonical_repeat_rate", lambda rollout: rollout.outcome != "solved"),
        )


def _require_rollouts(result: Rollouts) -> None:
    __tracebackhide__ = True
    if not result.rollouts:
        reasons = "".join(f"\n  {one.task_id}: {one.reason}" for one in result.not_started[:5])
        raise AssertionError(
            f"{result.harness} on {result.environment}: no rollout was run (n = 0), so nothing can "
            f"be asserted{reasons}"
        )


def _fail(result: Rollouts, headline: str, n: int, worst: Iterable[str]) -> None:
    __tracebackhide__ = True
    lines = [f"{result.harness} on {result.environment}: {headline}, n = {n}", *worst]
    lines += [f"note: {warning}" for warning in result.warnings]
    if result.not_started:
        lines.append(f"note: {len(result.not_started)} of {result.n_wanted} rollouts not started")
    lines.append(_TRY)
    raise AssertionError("\n".join(lines))


def _worst(
    result: Rollouts, measure: str, among: Callable[[Rollout], bool] = lambda rollout: True
) -> list[str]:
    """The rollouts with the highest figure, one line each, under a heading."""
    of = ROLLOUT_MEASURES[measure].of
    chosen = [rollout for rollout in result.rollouts if among(rollout)]
    # NaN, for a rollout without a failure, comes last.
    chosen.sort(key=lambda rollout: (of(rollout) != of(rollout), -of(rollout)))
    lines = ["worst rollouts:  repeats  ended    last action"]
    for rollout in chosen[:_WORST_SHOWN]:
        text = " ".join(rollout.turns[-1].action.split()) or "(nothing)"
        shown = text if len(text) <= 60 else f"{text[:57]}..."
        repeats = percent(of(rollout))
        lines.append(
            f"                 {repeats:>7}  {rollout.outcome:<7}  {shown}  ({rollout.task_id})"
        )
    return lines
