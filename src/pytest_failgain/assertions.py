"""Assertions on measurements.

Each fails with the headline figure, its threshold and n on the first line; then the worst cases;
then what to try. A measurement of no case fails every one of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from numbers import Real

from pytest_failgain.errors import UsageError
from pytest_failgain.measurement import Measurement, inversion_removed
from pytest_failgain.statistics import Estimate

_WORST_SHOWN = 5

DEMANDS = ("no evidence of harm", "point estimate", "evidence of safety")

HARM_ADVICE = (
    "try: describe the failure instead of showing the call (remedy 'described'), and compare with "
    "`failgain.remedy(...)`; a retry from a clean context ('dropped') has gain 0 by construction. "
    "Repeating less is not succeeding more: check success too."
)


def assert_corrective_gain_nonnegative(
    result: Measurement, tolerance: float = 0.0, *, demand: str = "no evidence of harm"
) -> None:
    """The record must not make the failed action likelier, in nats per action token.

    `demand` says what is asked of the 95% interval:

    - "no evidence of harm": fails when the upper bound is under -tolerance;
    - "point estimate": fails when the mean is under -tolerance;
    - "evidence of safety": fails unless the lower bound reaches -tolerance.

    Raises:
        AssertionError: when the demand is not met, or no case was measured.
        UsageError: when `tolerance` is negative or not finite, or there is no such demand.
    """
    __tracebackhide__ = True
    check_tolerance(tolerance, "0 or more nats per token")
    check_demand(demand)
    require_cases(result)
    gain = result.estimates["corrective_gain_per_token"]
    name, bound = decisive(gain, demand)
    # `not >=` also fails on NaN: an unknown bound meets no demand.
    if not bound >= -tolerance:
        _fail(
            result,
            # Not -tolerance, which would be shown as -0.000 for 0.
            f"corrective gain {_signed(gain)} nats per token, its {name} is under "
            f"{0 - tolerance:+.3f} (demand: {demand})",
            gain.n,
            _worst_gains(result),
        )


def assert_corrective_gain_at_least(result: Measurement, minimum: float) -> None:
    """The mean corrective gain, in nats per action token, must be at least `minimum`.

    Raises:
        AssertionError: when it is less, or no case was measured.
        UsageError: when `minimum` is not finite.
    """
    __tracebackhide__ = True
    if not _is_finite(minimum):
        raise UsageError(f"minimum must be a finite number of nats per token, not {minimum!r}")
    require_cases(result)
    gain = result.estimates["corrective_gain_per_token"]
    if not gain.value >= minimum:
        _fail(
            result,
            f"corrective gain {_signed(gain)} nats per token, at least {minimum:+.3f} wanted",
            gain.n,
            _worst_gains(result),
        )


def assert_repeat_probability_at_most(result: Measurement, maximum: float) -> None:
    """After the record, the failed action's mean share among the candidates is at most `maximum`.

    Raises:
        AssertionError: when it is more, no case was measured, or no case has another candidate.
        UsageError: when `maximum` is not between 0 and 1.
    """
    __tracebackhide__ = True
    check_share("maximum", maximum)
    require_cases(result)
    after = result.estimates["repeat_probability_after"]
    before = result.estimates["repeat_probability_before"]
    if not after.n:
        _fail(
            result,
            "repeat probability is unknown: no case has a correct action or a distractor to "
            "compare the failed action with",
            len(result.values.case_ids),
            (),
        )
    if not after.value <= maximum:
        _fail(
            result,
            f"repeat probability {_plain(after)} after the record ({before.value:.3f} before), "
            f"at most {maximum:.3f} allowed",
            after.n,
            _worst_repeats(result),
        )


def assert_greedy_repeat_rate_at_most(result: Measurement, maximum: float) -> None:
    """After the record, greedy decoding emits the failed action on at most this share of cases.

    Raises:
        AssertionError: when it does on more, or no case was measured.
        UsageError: when `maximum` is not between 0 and 1.
    """
    __tracebackhide__ = True
    check_share("maximum", maximum)
    require_cases(result)
    after = result.estimates["greedy_repeat_after"]
    before = result.estimates["greedy_repeat_before"]
    if not after.value <= maximum:
        _fail(
            result,
            f"greedy repeat rate {_plain(after)} after the record ({before.value:.3f} before), "
            f"at most {maximum:.3f} allowed",
            after.n,
            _worst_gains(result, among="greedy repeats"),
        )


def assert_inversion_removed(
    remedy: Measurement, verbatim: Measurement, at_least: float = 0.6
) -> None:
    """`remedy` must take away at least this share of the inversion that `verbatim` shows.

    Raises:
        AssertionError: when it takes away less, or either measured no case.
        UsageError: when `at_least` is not finite, the two can't be compared, or `verbatim` shows no
            inversion.
    """
    __tracebackhide__ = True
    if not _is_finite(at_least):
        raise UsageError(f"at_least must be a finite share, not {at_least!r}")
    require_cases(remedy)
    require_cases(verbatim)
    removed = inversion_removed(remedy, verbatim)
    if not removed.value >= at_least:
        _fail(
            remedy,
            f"removes {removed.value:.0%} [{removed.low:.0%}, {removed.high:.0%}] of the "
            f"inversion of {verbatim.harness}, at least {at_least:.0%} wanted",
            removed.n,
            _worst_gains(remedy),
        )


def require_cases(result: Measurement) -> None:
    """Refuse a measurement of no case, and what is no measurement.

    Raises:
        AssertionError: with the reasons for which cases were skipped.
        UsageError: naming the type of what is no measurement.
    """
    __tracebackhide__ = True
    if not isinstance(result, Measurement):
        raise UsageError(
            f"this assertion takes what failgain.measure gave, not a {type(result).__name__}; "
            "those for rollouts are in docs/rollouts.md"
        )
    if not result.values.case_ids:
        reasons = "".join(f"\n  {skip.case_id}: {skip.reason}" for skip in result.skips[:5])
        skipped = f"; all {len(result.skips)} were skipped:{reasons}" if result.skips else ""
        raise AssertionError(
            f"{result.harness} on {result.environment}: no case was measured (n = 0), so nothing "
            f"can be asserted{skipped}"
        )


def check_demand(demand: str) -> None:
    """Refuse what is none of `DEMANDS`.

    Raises:
        UsageError: naming them.
    """
    __tracebackhide__ = True
    if demand not in DEMANDS:
        choices = ", ".join(repr(known) for known in DEMANDS)
        raise UsageError(f"there is no demand {demand!r}; there are: {choices}")


def decisive(estimate: Estimate, demand: str) -> tuple[str, float]:
    """What `demand` asks about of an estimate, by name: a bound or the mean."""
    bounds = (("upper bound", estimate.high), ("mean", estimate.value))
    return dict(zip(DEMANDS, (*bounds, ("lower bound", estimate.low)), strict=True))[demand]


def check_tolerance(value: float, fits: str, name: str = "tolerance") -> None:
    """Refuse a tolerance that is negative or not finite; `fits` says what one may be.

    Raises:
        UsageError: naming the argument and the value.
    """
    __tracebackhide__ = True
    if not (_is_finite(value) and value >= 0):
        raise UsageError(f"{name} must be {fits}, not {value!r}")


def check_share(name: str, value: float) -> None:
    """Refuse what is no share between 0 and 1.

    Raises:
        UsageError: naming the argument and the value.
    """
    __tracebackhide__ = True
    if not (_is_finite(value) and 0 <= value <= 1):
        raise UsageError(f"{name} must be a share between 0 and 1, not {value!r}")


def _is_finite(value: object) -> bool:
    return isinstance(value, Real) and math.isfinite(value)


def _fail(result: Measurement, headline: str, n: int, worst: Iterable[str]) -> None:
    __tracebackhide__ = True
    raise AssertionError(failure_text(result, [f"{headline}, n = {n}"], worst, HARM_ADVICE))


def failure_text(
    result: Measurement, headlines: Sequence[str], worst: Iterable[str], *advice: str
) -> str:
    """What is told of a failure: the headlines, each of one fault; worst cases; what to try."""
    first, *others = headlines
    lines = [f"{result.harness} on {result.environment}: {first}"]
    lines += [f"also: {other}" for other in others]
    lines += list(worst)
    lines += [f"note: {warning}" for warning in result.warnings]
    if result.skips:
        lines.append(f"note: {len(result.skips)} of {len(result.cases)} cases were skipped")
    return "\n".join([*lines, *advice])


def _signed(estimate: Estimate) -> str:
    return f"{estimate.value:+.3f} [{estimate.low:+.3f}, {estimate.high:+.3f}]"


def _plain(estimate: Estimate) -> str:
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def _worst_gains(result: Measurement, *, among: str = "all") -> list[str]:
    gains = result.values.corrective_gain_per_token
    repeated = result.values.greedy_repeat_after
    shown = [
        float(gain) if among == "all" or again else math.nan
        for gain, again in zip(gains, repeated, strict=True)
    ]
    return worst_cases(result, "gain/token", shown, worst_is_low=True)


def _worst_repeats(result: Measurement) -> list[str]:
    shares = result.values.repeat_probability_after
    return worst_cases(result, "repeat p", [float(share) for share in shares], worst_is_low=False)


def worst_cases(
    result: Measurement, title: str, figures: list[float], *, worst_is_low: bool
) -> list[str]:
    """The cases with the worst figures, one line each, under a heading."""
    known = [i for i, figure in enumerate(figures) if math.isfinite(figure)]
    order = sorted(known, key=lambda i: figures[i] if worst_is_low else -figures[i])
    width = max(10, len(title))
    lines = [f"worst cases:  {title:>{width}}  greedy  failed action"]
    for i in order[:_WORST_SHOWN]:
        case_id = result.values.case_ids[i]
        row = result.by_key[case_id, "failed", "failed"]
        text = " ".join(row.text.split())
        shown = text if len(text) <= 60 else f"{text[:57]}..."
        greedy = "repeat" if row.greedy else "-"
        lines.append(f"              {figures[i]:>{width}.3f}  {greedy:<6}  {shown}  ({case_id})")
    return lines
