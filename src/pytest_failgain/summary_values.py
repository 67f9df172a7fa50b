"""The numbers of `Measurement.summary()`, by name: what each is, for those that can't measure.

A threshold names one of them before anything is imported that measures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class SummaryValue:
    """One number: its kind, its unit if that is worth telling, and which side of it is harm.

    Gains have a sign that matters, shares lie between 0 and 1, ratios need not.
    """

    name: str
    kind: Literal["gain", "share", "ratio", "tokens", "count"]
    harm: Literal["low", "high"]
    unit: str = ""

    def shown(self, number: float) -> str:
        """`number` as reports write it."""
        digits = {"gain": "+.3f", "share": ".3f", "ratio": ".3f", "tokens": ".1f", "count": "g"}
        return format(number, digits[self.kind])

    def as_given(self, bound: float) -> str:
        """A bound in the same way, or with all of its digits where that would round it."""
        text = self.shown(bound)
        return text if float(text) == bound else format(bound, "+g" if text[0] in "+-" else "g")


SUMMARY_VALUES = {
    value.name: value
    for value in (
        SummaryValue("n", "count", "low"),
        SummaryValue("n_tasks", "count", "low"),
        SummaryValue("corrective_gain", "gain", "low", "nats"),
        SummaryValue("corrective_gain_per_token", "gain", "low", "nats per token"),
        SummaryValue("argument_gain_per_token", "gain", "low", "nats per token"),
        SummaryValue("negative_share", "share", "high"),
        SummaryValue("repeat_probability_before", "share", "high"),
        SummaryValue("repeat_probability_after", "share", "high"),
        SummaryValue("greedy_repeat_before", "share", "high"),
        SummaryValue("greedy_repeat_after", "share", "high"),
        SummaryValue("surface", "gain", "high", "nats"),
        SummaryValue("semantic", "gain", "high", "nats"),
        SummaryValue("surface_share", "ratio", "high"),
        SummaryValue("record_tokens", "tokens", "high", "tokens"),
    )
}

# Those that are estimated and have an interval; the others are counted.
SUMMARY_ESTIMATES = tuple(value.name for value in SUMMARY_VALUES.values() if value.kind != "count")
