"""The terminal summary: one row a measurement, grouped by environment and model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from pytest_failgain.errors import UsageError
from pytest_failgain.measurement import Measurement, gain_difference, inversion_removed
from pytest_failgain.report.columns import aligned
from pytest_failgain.report.comparisons import comparison_line
from pytest_failgain.report.numbers import change, percent, percents, signed, signed_value
from pytest_failgain.report.rollouts import HEADINGS as ROLLOUT_HEADINGS
from pytest_failgain.report.rollouts import LEGEND as ROLLOUT_LEGEND
from pytest_failgain.report.rollouts import (
    rollout_cells,
    rollout_groups,
    rollout_heading,
    rollout_notes,
)
from pytest_failgain.rollout.results import Rollouts
from pytest_failgain.stash import Findings, Outcome

REFERENCE = "verbatim"
# Reasons name lengths, so every skipped case may have its own.
_REASONS_SHOWN = 5

# What scoring the same pair among other pairs can change in its sum.
_ROUNDING_NATS = 1e-3

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
)


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """One measurement as the cells of a table, in the order of the headings.

    `verdict` is "harmful" where the interval of the gain is below zero, "unknown" where nothing was
    measured, else "fine".
    """

    cells: tuple[str, ...]
    verdict: str


def write_summary(
    reporter: pytest.TerminalReporter, findings: Findings, outcome: Outcome | None = None
) -> None:
    """Write a section: a table for each environment, model and set of cases or tasks, then notes.

    A legend follows the measurements, and another the rollouts. Then come the comparisons with the
    baseline, and what the run wrote.
    """
    measurements, rollouts = findings.measurements, findings.rollouts
    reporter.write_sep("=", "failgain", bold=True)
    for group in _groups(measurements):
        reporter.write_line(_heading(group[0]), bold=True)
        rows = [_row(measurement) for measurement in group]
        headings, *lines = aligned(_HEADINGS, [row.cells for row in rows])
        reporter.write_line(headings)
        for row, line in zip(rows, lines, strict=True):
            reporter.write_line(line, red=row.verdict == "harmful", green=row.verdict == "fine")
        for measurement in group:
            compared = _compared(measurement, group)
            if compared is not None:
                reporter.write_line(compared)
            _write_notes(reporter, measurement)
    if measurements:
        reporter.write_line(_LEGEND)
    for results in rollout_groups(rollouts):
        _write_rollouts(reporter, results)
    if rollouts:
        reporter.write_line(ROLLOUT_LEGEND)
    for comparison in dict.fromkeys(map(comparison_line, findings.comparisons)):
        reporter.write_line(comparison)
    for note in findings.notes.values():
        reporter.write_line(f"note: {note}")
    for line in outcome.written if outcome else ():
        reporter.write_line(f"wrote {line}")
    for line in outcome.problems if outcome else ():
        reporter.write_line(f"error: {line}", red=True)


def _write_rollouts(reporter: pytest.TerminalReporter, group: Sequence[Rollouts]) -> None:
    reporter.write_line(rollout_heading(group[0]), bold=True)
    for line in aligned(ROLLOUT_HEADINGS, [rollout_cells(result) for result in group]):
        reporter.write_line(line)
    for result in group:
        for note in rollout_notes(result, group):
            reporter.write_line(note, yellow=": warning: " in note)


_LEGEND = """\
gain: nats by which the record lowers (+) or raises (-) the failed action's log-probability
arguments: the gain on the action's argument span alone; negative: share of cases made likelier
repeat p: the failed action's share among the candidates, before -> after the record
greedy: share of cases in which greedy decoding emits the failed action, before -> after
surface: share of the damage done by the call's text alone; record: tokens that it adds
Repeating less is not succeeding more: check success too."""


def _groups(measurements: Sequence[Measurement]) -> list[list[Measurement]]:
    """Measurements of the same cases with the same model together, repeats left out."""
    groups: list[list[Measurement]] = []
    for measurement in measurements:
        group = next((group for group in groups if _same_cases(group[0], measurement)), None)
        if group is None:
            groups.append([measurement])
        elif not any(_same_figures(known, measurement) for known in group):
            group.append(measurement)
    return groups


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


def _heading(measurement: Measurement) -> str:
    model = measurement.model
    n, tasks = len(measurement.cases), len({case.task_id for case in measurement.cases})
    return (
        f"{measurement.environment}: {n} case{'s' * (n != 1)} of {tasks} task{'s' * (tasks != 1)}, "
        f"{model.name} ({model.source}, {model.dtype})"
    )


def _row(measurement: Measurement) -> SummaryRow:
    estimates = measurement.estimates
    gain = estimates["corrective_gain_per_token"]
    cells = (
        measurement.harness,
        str(gain.n),
        signed(gain),
        signed_value(estimates["argument_gain_per_token"]),
        percent(estimates["negative_share"].value),
        change(estimates["repeat_probability_before"].value, estimates["repeat_probability_after"]),
        change(estimates["greedy_repeat_before"].value, estimates["greedy_repeat_after"]),
        percent(estimates["surface_share"].value),
        f"{estimates['record_tokens'].value:.0f}" if gain.n else "-",
    )
    if not gain.n:
        return SummaryRow(cells, "unknown")
    return SummaryRow(cells, "harmful" if gain.high < 0 else "fine")


def _compared(measurement: Measurement, group: Sequence[Measurement]) -> str | None:
    """What a remedy changes, as a line; None where its harness was not measured without it."""
    reference = _reference(measurement, group)
    if reference is None:
        return None
    try:
        difference = signed(gain_difference(measurement, reference))
    except UsageError:
        return None
    changed = f"{measurement.harness}: gain {difference} nats per token over {reference.harness}"
    try:
        removed = percents(inversion_removed(measurement, reference))
    except UsageError:
        return changed
    return f"{changed}, removes {removed} of its inversion"


def _reference(measurement: Measurement, group: Sequence[Measurement]) -> Measurement | None:
    """The measurement of the same harness without its remedies, else of the reference harness."""
    by_name = {other.harness: other for other in group}
    base = measurement.harness.partition("+")[0]
    for name in (base, REFERENCE):
        if name in by_name and by_name[name] is not measurement:
            return by_name[name]
    return None


def _write_notes(reporter: pytest.TerminalReporter, measurement: Measurement) -> None:
    name = measurement.harness
    if measurement.by_construction:
        reporter.write_line(f"{name}: by construction, {measurement.by_construction}")
    for warning in measurement.warnings:
        reporter.write_line(f"{name}: warning: {warning}", yellow=True)
    n = len(measurement.cases)
    for adaptation, count in measurement.adaptations:
        reporter.write_line(f"{name}: adapted in {count} of {n} cases: {adaptation}", yellow=True)
    for condition, count in measurement.left_out:
        reporter.write_line(
            f"{name}: condition {condition!r} left out in {count} of {n} cases, which lack what it "
            "needs",
            yellow=True,
        )
    reasons = Counter(skip.reason for skip in measurement.skips)
    for reason, count in reasons.most_common(_REASONS_SHOWN):
        reporter.write_line(f"{name}: skipped {count} of {n} cases: {reason}", yellow=True)
    further = sum(count for _, count in reasons.most_common()[_REASONS_SHOWN:])
    if further:
        reporter.write_line(
            f"{name}: skipped {further} of {n} cases for other reasons", yellow=True
        )
