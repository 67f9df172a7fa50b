"""Measurements as tables and lines: what every report says of them, in the same words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pytest_failgain.measurement import Measurement
from pytest_failgain.report.groups import Effect
from pytest_failgain.report.numbers import change, percent, percents, signed, signed_value
from pytest_failgain.scoring.protocol import ModelIdentity
from pytest_failgain.statistics import Estimate

# Reasons name lengths, so every skipped case may have its own.
_REASONS_SHOWN = 5

HEADINGS = (
    "harness",
    "n",
    "gain/token [95%]",
    "arguments",
    "negative",
    "repeat p",
    "greedy",
    "surface",
    "record",
)

CAUTION = "Repeating less is not succeeding more: check success too."

LEGEND = f"""\
gain: nats by which the record lowers (+) or raises (-) the failed action's log-probability
arguments: the gain on the action's argument span alone; negative: share of cases made likelier
repeat p: the failed action's share among the candidates, before -> after the record
greedy: share of cases in which greedy decoding emits the failed action, before -> after
surface: share of the damage done by the call's text alone; record: tokens that it adds
{CAUTION}"""


class Note(NamedTuple):
    """Something to know beside the figures; `careful` where it takes away from them."""

    text: str
    careful: bool


def measurement_heading(environment: str, n: int, n_tasks: int, model: ModelIdentity) -> str:
    """What the measurements of a group have in common: `n` cases of `n_tasks` tasks, one model."""
    return (
        f"{environment}: {n} case{'s' * (n != 1)} of {n_tasks} task{'s' * (n_tasks != 1)}, "
        f"{model.name} ({model.source}, {model.dtype})"
    )


def measurement_cells(harness: str, estimates: Mapping[str, Estimate]) -> tuple[str, ...]:
    """The figures of one measurement, in the order of `HEADINGS`."""
    gain = estimates["corrective_gain_per_token"]
    return (
        harness,
        str(gain.n),
        signed(gain),
        signed_value(estimates["argument_gain_per_token"]),
        percent(estimates["negative_share"].value),
        change(estimates["repeat_probability_before"].value, estimates["repeat_probability_after"]),
        change(estimates["greedy_repeat_before"].value, estimates["greedy_repeat_after"]),
        percent(estimates["surface_share"].value),
        f"{estimates['record_tokens'].value:.0f}" if gain.n else "-",
    )


def effect_line(effect: Effect) -> str:
    """What a remedy changes, as a line."""
    changed = f"gain {signed(effect.gain)} nats per token over {effect.over}"
    if effect.removed is None:
        return changed
    return f"{changed}, removes {percents(effect.removed)} of its inversion"


def measurement_notes(measurement: Measurement) -> list[Note]:
    """What has to be said about a measurement beside its figures."""
    notes = []
    if measurement.by_construction:
        notes.append(Note(f"by construction, {measurement.by_construction}", careful=False))
    notes += [Note(text, careful=False) for text in measurement.notes]
    return [*notes, *(Note(text, careful=True) for text in _reservations(measurement))]


def _reservations(measurement: Measurement) -> Iterator[str]:
    n = len(measurement.cases)
    for warning in measurement.warnings:
        yield f"warning: {warning}"
    for adaptation, count in measurement.adaptations:
        yield f"adapted in {count} of {n} cases: {adaptation}"
    for condition, count in measurement.left_out:
        yield (
            f"condition {condition!r} left out in {count} of {n} cases, which lack what it needs"
        )
    reasons = Counter(skip.reason for skip in measurement.skips).most_common()
    for reason, count in reasons[:_REASONS_SHOWN]:
        yield f"skipped {count} of {n} cases: {reason}"
    further = sum(count for _, count in reasons[_REASONS_SHOWN:])
    if further:
        yield f"skipped {further} of {n} cases for other reasons"
