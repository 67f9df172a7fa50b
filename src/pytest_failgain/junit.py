"""What a test measured, as properties of the test: JUnit reports have them, and others as well."""

from __future__ import annotations

import math
from collections.abc import Iterator

from pytest_failgain.measurement import Measurement
from pytest_failgain.rollout.results import Rollouts
from pytest_failgain.stash import Findings

Property = tuple[str, object]

_DECIMALS = 6

# By the name of the property, that of the estimate.
_OF_MEASUREMENTS = {
    "gain_per_token": "corrective_gain_per_token",
    "repeat_probability": "repeat_probability_after",
    "greedy_repeat": "greedy_repeat_after",
}
_OF_ROLLOUTS = {"success": "success", "repeat_rate": "canonical_repeat_rate"}


def add_properties(properties: list[Property], found: Findings) -> None:
    """Add what `found` holds to a test's properties, each once, however often the test is run."""
    properties.extend(one for one in properties_of(found) if one not in properties)


def properties_of(found: Findings) -> Iterator[Property]:
    """Names and values: finite numbers, what is not known left out, and verdicts."""
    for measurement in found.measurements:
        yield from _numbers(measurement, len(measurement.values.case_ids), _OF_MEASUREMENTS)
    for rollouts in found.rollouts:
        yield from _numbers(rollouts, len(rollouts.rollouts), _OF_ROLLOUTS)
    for comparison in found.comparisons:
        yield f"failgain: {comparison.label}: baseline", comparison.verdict


def _numbers(result: Measurement | Rollouts, n: int, names: dict[str, str]) -> Iterator[Property]:
    label = f"failgain: {result.harness} on {result.environment}"
    for name, estimate in names.items():
        value = result.estimates[estimate].value
        if math.isfinite(value):
            yield f"{label}: {name}", round(value, _DECIMALS)
    yield f"{label}: n", n
