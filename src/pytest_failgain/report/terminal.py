"""The terminal summary: one row a measurement, grouped by environment and model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from pytest_failgain.errors import UsageError
from pytest_failgain.measurement import Measurement, gain_difference, inversion_removed
from pytest_failgain.statistics import Estimate

REFERENCE = "verbatim"

_HEADINGS = (
    "harness",
    "n",
    "gain/token [95%]",
    "arguments",
    "negative",
    "repeat p",
    "greedy",
    "surface",
    "record",
    "removed [95%]",
    "gain over verbatim [95%]",
)


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """One measurement as the cells of a table, in the order of the headings."""

    cells: tuple[str, ...]
    harmful: bool


def write_summary(reporter: pytest.TerminalReporter, measurements: Sequence[Measurement]) -> None:
    """Write a section with one table for each environment, model and set of cases."""
    reporter.section("failgain", sep="=", bold=True)
    for group in _groups(measurements):
        reporter.write_line(_heading(group[0]), bold=True)
        rows = [_row(measurement, group) for measurement in group]
        shown = _used_columns(rows)
        widths = [
            max(len(line[i]) for line in [_HEADINGS, *(r.cells for r in rows)]) for i in shown
        ]
        reporter.write_line(_aligned([_HEADINGS[i] for i in shown], widths))
        for row in rows:
            line = _aligned([row.cells[i] for i in shown], widths)
            reporter.write_line(line, red=row.harmful, green=not row.harmful)
        for measurement in group:
            _write_notes(reporter, measurement)
    reporter.write_line(_LEGEND)


_LEGEND = (
    "gain: nats by which the record lowers (+) or raises (-) the failed action's log-probability; "
    "'arguments': on its argument span alone. repeat p, greedy: before -> after the record. "
    "surface: share of the damage done by the call's text alone. record: tokens it adds. "
    "Repeating less is not succeeding more: check success too."
)


def _groups(measurements: Sequence[Measurement]) -> list[list[Measurement]]:
    """Measurements of the same cases with the same model together, repeats left out."""
    groups: dict[object, dict[object, Measurement]] = {}
    for measurement in measurements:
        same = (measurement.environment, measurement.model, measurement.cases)
        identity = (measurement.harness, measurement.rows)
        key = next((key for key in groups if key == same), same)
        groups.setdefault(key, {}).setdefault(identity, measurement)
    return [list(group.values()) for group in groups.values()]


def _heading(measurement: Measurement) -> str:
    model = measurement.model
    n, tasks = len(measurement.values.case_ids), len(set(measurement.values.task_ids))
    return (
        f"{measurement.environment}: {n} cases of {tasks} tasks, {model.name} "
        f"({model.source}, {model.dtype})"
    )


def _row(measurement: Measurement, group: Sequence[Measurement]) -> SummaryRow:
    estimates = measurement.estimates
    gain = estimates["corrective_gain_per_token"]
    removed, difference = _compared(measurement, group)
    cells = (
        measurement.harness,
        str(gain.n),
        _signed(gain),
        _signed_value(estimates["argument_gain_per_token"]),
        _percent(estimates["negative_share"].value),
        _change(estimates["repeat_probability_before"], estimates["repeat_probability_after"]),
        _change(estimates["greedy_repeat_before"], estimates["greedy_repeat_after"]),
        _percent(estimates["surface_share"].value),
        f"{estimates['record_tokens'].value:.0f}" if gain.n else "-",
        "-" if removed is None else _percents(removed),
        "-" if difference is None else _signed(difference),
    )
    return SummaryRow(cells, harmful=gain.high < 0)


def _compared(
    measurement: Measurement, group: Sequence[Measurement]
) -> tuple[Estimate | None, Estimate | None]:
    """What a remedy takes away from the group's verbatim measurement, where there is one."""
    reference = next((other for other in group if other.harness == REFERENCE), None)
    if reference is None or measurement is reference:
        return None, None
    try:
        difference = gain_difference(measurement, reference)
    except UsageError:
        return None, None
    try:
        return inversion_removed(measurement, reference), difference
    except UsageError:
        return None, difference


def _used_columns(rows: Sequence[SummaryRow]) -> list[int]:
    return [i for i in range(len(_HEADINGS)) if any(row.cells[i] != "-" for row in rows)]


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = (
        cell.ljust(width) if i == 0 else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join([first, *rest]).rstrip()


def _write_notes(reporter: pytest.TerminalReporter, measurement: Measurement) -> None:
    name = measurement.harness
    if measurement.by_construction:
        reporter.write_line(f"{name}: by construction, {measurement.by_construction}")
    for warning in measurement.warnings:
        reporter.write_line(f"{name}: warning: {warning}", yellow=True)
    n = len(measurement.cases)
    for adaptation, count in measurement.adaptations:
        reporter.write_line(f"{name}: adapted in {count} of {n} cases: {adaptation}", yellow=True)
    reasons: dict[str, int] = {}
    for skip in measurement.skips:
        reasons[skip.reason] = reasons.get(skip.reason, 0) + 1
    for reason, count in reasons.items():
        reporter.write_line(f"{name}: skipped {count} of {n} cases: {reason}", yellow=True)


def _signed(estimate: Estimate) -> str:
    if not estimate.n:
        return "-"
    return f"{estimate.value:+.3f} [{estimate.low:+.3f}, {estimate.high:+.3f}]"


def _signed_value(estimate: Estimate) -> str:
    return f"{estimate.value:+.3f}" if estimate.n else "-"


def _percent(share: float) -> str:
    return f"{share:.0%}" if math.isfinite(share) else "-"


def _percents(estimate: Estimate) -> str:
    return f"{estimate.value:.0%} [{estimate.low:.0%}, {estimate.high:.0%}]"


def _change(before: Estimate, after: Estimate) -> str:
    return f"{before.value:.2f} -> {after.value:.2f}" if after.n else "-"
