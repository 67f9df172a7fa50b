"""Thresholds on a measurement, and what is told of those that it misses."""

from __future__ import annotations

import math
from collections.abc import Iterable

from pytest_failgain.assertions import HARM_ADVICE, failure_text, worst_cases
from pytest_failgain.measurement import Measurement
from pytest_failgain.suites.suite import Threshold
from pytest_failgain.summary_values import SUMMARY_VALUES, SummaryValue

_COUNT_ADVICE = "try: ask for more cases, or see to it that fewer are skipped"


def missed_text(result: Measurement, thresholds: Iterable[Threshold]) -> str | None:
    """What is to be told of all thresholds that `result` misses, None where it meets them."""
    missed = [one for one in thresholds if not _is_met(result, one)]
    if not missed:
        return None
    first = missed[0]
    advice = _COUNT_ADVICE if SUMMARY_VALUES[first.name].kind == "count" else HARM_ADVICE
    told = [advice] if _is_harm(result, first) else []
    return failure_text(
        result, [_headline(result, one) for one in missed], _worst(result, first), *told
    )


def _number(result: Measurement, name: str) -> float:
    return float(result.summary()[name])


def _is_met(result: Measurement, threshold: Threshold) -> bool:
    number = _number(result, threshold.name)
    # Without a bound it is compared with itself: NaN, what is not known, meets no threshold.
    lowest = number if threshold.at_least is None else threshold.at_least
    highest = number if threshold.at_most is None else threshold.at_most
    return lowest <= number <= highest


def _is_too_low(result: Measurement, threshold: Threshold) -> bool:
    low = threshold.at_least
    return low is not None and not _number(result, threshold.name) >= low


def _is_harm(result: Measurement, threshold: Threshold) -> bool:
    side = "low" if _is_too_low(result, threshold) else "high"
    return SUMMARY_VALUES[threshold.name].harm == side


def _headline(result: Measurement, threshold: Threshold) -> str:
    value = SUMMARY_VALUES[threshold.name]
    if _is_too_low(result, threshold) and threshold.at_least is not None:
        wanted = f"at least {value.as_given(threshold.at_least)} wanted"
    else:
        assert threshold.at_most is not None
        wanted = f"at most {value.as_given(threshold.at_most)} allowed"
    cases = len(result.values.case_ids)
    if value.kind == "count":
        counted = f"{value.name} = {value.shown(_number(result, value.name))}, {wanted}"
        return counted if value.name == "n" else f"{counted}, n = {cases}"
    estimate = result.estimates[value.name]
    n = estimate.n or cases
    if math.isnan(estimate.value):
        return f"{value.name} is unknown{_why(value)}, {wanted}, n = {n}"
    number, low, high = map(value.shown, (estimate.value, estimate.low, estimate.high))
    unit = f" {value.unit}" if value.unit else ""
    return f"{value.name} {number} [{low}, {high}]{unit}, {wanted}, n = {n}"


def _why(value: SummaryValue) -> str:
    reasons = {
        "repeat_probability_before": "no case has another candidate",
        "repeat_probability_after": "no case has another candidate",
        "surface": "it needs the condition neutral",
        "semantic": "it needs the condition neutral",
        "surface_share": "it needs the condition neutral, and a gain whose interval is negative",
    }
    return f" ({reasons[value.name]})" if value.name in reasons else ""


def _worst(result: Measurement, threshold: Threshold) -> list[str]:
    value = SUMMARY_VALUES[threshold.name]
    if value.kind == "count":
        return []
    figures = getattr(result.values, value.name, None)
    is_low = _is_too_low(result, threshold)
    if figures is None:
        # What is a share of cases, or of sums, has no figure case by case but the gain.
        gains = result.values.corrective_gain_per_token
        return worst_cases(result, "gain/token", [*map(float, gains)], worst_is_low=not is_low)
    return worst_cases(result, value.name, [*map(float, figures)], worst_is_low=is_low)
