"""Which measurements belong together, and what they say of each other; the same in every report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from pytest_failgain.errors import UsageError
from pytest_failgain.measurement import Measurement, gain_difference, inversion_removed
from pytest_failgain.statistics import Estimate

REFERENCE = "verbatim"

# What scoring the same pair among other pairs can change in its sum.
_ROUNDING_NATS = 1e-3

Verdict = Literal["harmful", "fine", "unknown"]


@dataclass(frozen=True, slots=True)
class Effect:
    """What a harness changes over the one called `over`, on the same cases.

    `gain` is a difference in nats per token. `removed` is the share of the other's inversion that
    goes away, None where it has none.
    """

    over: str
    gain: Estimate
    removed: Estimate | None


def measurement_groups(measurements: Iterable[Measurement]) -> list[list[Measurement]]:
    """Measurements of the same cases with the same model together, repeats left out."""
    groups: list[list[Measurement]] = []
    for measurement in measurements:
        group = next((group for group in groups if _same_cases(group[0], measurement)), None)
        if group is None:
            groups.append([measurement])
        elif not any(_same_figures(known, measurement) for known in group):
            group.append(measurement)
    return groups


def verdict_of(measurement: Measurement) -> Verdict:
    """Harmful where the gain's interval is below zero, unknown where nothing was measured."""
    gain = measurement.estimates["corrective_gain_per_token"]
    if not gain.n:
        return "unknown"
    return "harmful" if gain.high < 0 else "fine"


def effect_of(measurement: Measurement, group: Sequence[Measurement]) -> Effect | None:
    """What a remedy changes; None where its harness was not measured without it."""
    reference = _reference(measurement, group)
    if reference is None:
        return None
    try:
        gain = gain_difference(measurement, reference)
    except UsageError:
        return None
    try:
        removed = inversion_removed(measurement, reference)
    except UsageError:
        return Effect(reference.harness, gain, None)
    return Effect(reference.harness, gain, removed)


def _reference(measurement: Measurement, group: Sequence[Measurement]) -> Measurement | None:
    """The measurement of the same harness without its remedies, else of the reference harness."""
    by_name = {other.harness: other for other in group}
    base = measurement.harness.partition("+")[0]
    for name in (base, REFERENCE):
        if name in by_name and by_name[name] is not measurement:
            return by_name[name]
    return None


def _same_cases(one: Measurement, other: Measurement) -> bool:
    return (
        one.environment == other.environment
        and one.model == other.model
        and one.cases == other.cases
    )


def _same_figures(one: Measurement, other: Measurement) -> bool:
    """Whether one repeats the other: two workers' sums can differ in the last digits."""
    return (
        one.harness == other.harness
        and one.by_key.keys() == other.by_key.keys()
        and all(
            row.context_tokens == other.by_key[key].context_tokens
            and math.isclose(row.logprob, other.by_key[key].logprob, abs_tol=_ROUNDING_NATS)
            for key, row in one.by_key.items()
        )
    )
