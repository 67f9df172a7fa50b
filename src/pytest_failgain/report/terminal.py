"""The terminal summary: one row a measurement, grouped by environment and model."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pytest_failgain.measurement import Measurement
from pytest_failgain.report.columns import aligned
from pytest_failgain.report.comparisons import comparison_line
from pytest_failgain.report.groups import effect_of, measurement_groups, verdict_of
from pytest_failgain.report.measurements import (
    HEADINGS,
    LEGEND,
    effect_line,
    measurement_cells,
    measurement_heading,
    measurement_notes,
)
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


def write_summary(
    reporter: pytest.TerminalReporter, findings: Findings, outcome: Outcome | None = None
) -> None:
    """Write a section: a table for each environment, model and set of cases or tasks, then notes.

    A legend follows the measurements, and another the rollouts. Then come the comparisons with the
    baseline, and what the run wrote.
    """
    reporter.write_sep("=", "failgain", bold=True)
    for group in measurement_groups(findings.measurements):
        _write_measurements(reporter, group)
    if findings.measurements:
        reporter.write_line(LEGEND)
    for results in rollout_groups(findings.rollouts):
        _write_rollouts(reporter, results)
    if findings.rollouts:
        reporter.write_line(ROLLOUT_LEGEND)
    for comparison in dict.fromkeys(map(comparison_line, findings.comparisons)):
        reporter.write_line(comparison)
    for note in (*findings.notes.values(), *(outcome.notes if outcome else ())):
        reporter.write_line(f"note: {note}")
    for line in outcome.written if outcome else ():
        reporter.write_line(f"wrote {line}")
    for line in outcome.problems if outcome else ():
        reporter.write_line(f"error: {line}", red=True)


def _write_measurements(reporter: pytest.TerminalReporter, group: Sequence[Measurement]) -> None:
    one = group[0]
    tasks = len({case.task_id for case in one.cases})
    reporter.write_line(
        measurement_heading(one.environment, len(one.cases), tasks, one.model), bold=True
    )
    cells = [measurement_cells(each.harness, each.estimates) for each in group]
    headings, *lines = aligned(HEADINGS, cells)
    reporter.write_line(headings)
    for measurement, line in zip(group, lines, strict=True):
        verdict = verdict_of(measurement)
        reporter.write_line(line, red=verdict == "harmful", green=verdict == "fine")
    for measurement in group:
        effect = effect_of(measurement, group)
        if effect is not None:
            reporter.write_line(f"{measurement.harness}: {effect_line(effect)}")
        for note in measurement_notes(measurement):
            reporter.write_line(f"{measurement.harness}: {note.text}", yellow=note.careful)


def _write_rollouts(reporter: pytest.TerminalReporter, group: Sequence[Rollouts]) -> None:
    reporter.write_line(rollout_heading(group[0]), bold=True)
    for line in aligned(ROLLOUT_HEADINGS, [rollout_cells(result) for result in group]):
        reporter.write_line(line)
    for result in group:
        for note in rollout_notes(result, group):
            reporter.write_line(note, yellow=": warning: " in note)
