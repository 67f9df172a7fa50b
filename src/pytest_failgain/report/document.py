"""What a run found out, as the plain data that all of its reports are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest_failgain
from pytest_failgain.baseline.comparison import Comparison
from pytest_failgain.baseline.comparison import Verdict as BaselineVerdict
from pytest_failgain.measurement import CaseValues, Measurement, Skip
from pytest_failgain.options import OPTIONS, Settings
from pytest_failgain.report.comparisons import distinct_comparisons
from pytest_failgain.report.groups import (
    Effect,
    Verdict,
    effect_of,
    measurement_groups,
    verdict_of,
)
from pytest_failgain.report.measurements import Note, measurement_notes
from pytest_failgain.report.rollouts import RolloutEffect, rollout_effects, rollout_groups
from pytest_failgain.report.tokens import Token, tokens_of
from pytest_failgain.rollout.results import Rollouts
from pytest_failgain.scoring.protocol import ModelIdentity
from pytest_failgain.stash import Findings
from pytest_failgain.statistics import Estimate

_FAILURES: Mapping[str, BaselineVerdict] = {
    "regressions": "regression",
    "not_comparable": "not comparable",
    "without_a_baseline": "missing",
}

# The values of a case, in the order in which reports give them.
CASE_VALUES = tuple(
    name for name in CaseValues.__dataclass_fields__ if name not in ("case_ids", "task_ids")
)


@dataclass(frozen=True, slots=True)
class GivenSetting:
    """An option that somebody set, and where."""

    flag: str
    value: Any
    source: str


@dataclass(frozen=True, slots=True)
class ReportedCase:
    """One measured case: `values` by name of `CASE_VALUES`, NaN where one is not known.

    `action` is the failed action as it was scored, `correct` what would have been right, and
    `record` the text that the failed step added to the prompt.
    """

    case_id: str
    task_id: str
    goal: str
    action: str
    correct: str | None
    values: Mapping[str, float]
    record: str
    tokens: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class ReportedMeasurement:
    """One harness on the cases of its group.

    `remarks` are the measurement's own notes; `notes` are all that a person is told of it.
    """

    harness: str
    verdict: Verdict
    estimates: Mapping[str, Estimate]
    n_tasks: int
    effect: Effect | None
    by_construction: str | None
    warnings: tuple[str, ...]
    adaptations: tuple[tuple[str, int], ...]
    left_out: tuple[tuple[str, int], ...]
    skips: tuple[Skip, ...]
    remarks: tuple[str, ...]
    notes: tuple[Note, ...]
    cases: tuple[ReportedCase, ...]


@dataclass(frozen=True, slots=True)
class MeasurementGroup:
    """Measurements of the same cases with the same model; counts include skipped cases."""

    environment: str
    model: ModelIdentity
    n_cases: int
    n_tasks: int
    measurements: tuple[ReportedMeasurement, ...]


@dataclass(frozen=True, slots=True)
class ReportedRollouts:
    """The rollouts of one harness, beside the others of its group."""

    rollouts: Rollouts
    effects: tuple[RolloutEffect, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """All that a report tells. `version` is pytest-failgain's own."""

    version: str
    settings: tuple[GivenSetting, ...]
    groups: tuple[MeasurementGroup, ...]
    rollouts: tuple[tuple[ReportedRollouts, ...], ...]
    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...]

    @property
    def empty(self) -> bool:
        """Whether nothing was measured, rolled out or compared."""
        return not (self.groups or self.rollouts or self.comparisons)

    @property
    def models(self) -> tuple[ModelIdentity, ...]:
        """The models that anything was made with, each once."""
        measured = [group.model for group in self.groups]
        rolled_out = [group[0].rollouts.setting.model for group in self.rollouts]
        return tuple(dict.fromkeys((*measured, *rolled_out)))

    @property
    def verdicts(self) -> Counter[Verdict]:
        """How many measurements have each verdict."""
        return Counter(one.verdict for group in self.groups for one in group.measurements)

    @property
    def failures(self) -> dict[str, int]:
        """How many comparisons with the baseline came to each of what fails a test."""
        counts = Counter(one.verdict for one in self.comparisons)
        return {name: counts[verdict] for name, verdict in _FAILURES.items()}

    @property
    def failure_lines(self) -> tuple[str, ...]:
        """The same in words: regressions always, the others where there are any."""
        return tuple(
            f"{count} {name.replace('_', ' ').removesuffix('s' if count == 1 else '')}"
            for name, count in self.failures.items()
            if count or name == "regressions"
        )


def document_of(findings: Findings, settings: Settings) -> Document:
    """What there is to report of `findings`, which a run with `settings` made."""
    return Document(
        version=pytest_failgain.__version__,
        settings=tuple(
            GivenSetting(option.flag, getattr(settings, option.name), source)
            for option in OPTIONS
            if (source := settings.source(option.name))
        ),
        groups=tuple(map(_group, measurement_groups(findings.measurements))),
        rollouts=tuple(
            tuple(ReportedRollouts(one, tuple(rollout_effects(one, group))) for one in group)
            for group in rollout_groups(findings.rollouts)
        ),
        comparisons=tuple(distinct_comparisons(findings.comparisons)),
        notes=tuple(findings.notes.values()),
    )


def _group(group: Sequence[Measurement]) -> MeasurementGroup:
    first = group[0]
    return MeasurementGroup(
        environment=first.environment,
        model=first.model,
        n_cases=len(first.cases),
        n_tasks=len({case.task_id for case in first.cases}),
        measurements=tuple(_measurement(one, group) for one in group),
    )


def _measurement(measurement: Measurement, group: Sequence[Measurement]) -> ReportedMeasurement:
    return ReportedMeasurement(
        harness=measurement.harness,
        verdict=verdict_of(measurement),
        estimates=measurement.estimates,
        n_tasks=len(set(measurement.task_ids)),
        effect=effect_of(measurement, group),
        by_construction=measurement.by_construction,
        warnings=measurement.warnings,
        adaptations=measurement.adaptations,
        left_out=measurement.left_out,
        skips=measurement.skips,
        remarks=measurement.notes,
        notes=tuple(measurement_notes(measurement)),
        cases=tuple(_cases(measurement)),
    )


def _cases(measurement: Measurement) -> list[ReportedCase]:
    values = {name: getattr(measurement.values, name).tolist() for name in CASE_VALUES}
    cases = []
    for place, measured in enumerate(measurement.case_rows):
        case = measured.case
        before, after = measured.rows["before", "failed"], measured.rows["failed", "failed"]
        cases.append(
            ReportedCase(
                case_id=case.case_id,
                task_id=case.task_id,
                goal=case.trajectory.goal,
                action=after.text,
                correct=None if case.correct is None else str(case.correct),
                values={name: of_cases[place] for name, of_cases in values.items()},
                record=measurement.records.get(case.case_id, ""),
                tokens=tokens_of(before, after),
            )
        )
    return cases
