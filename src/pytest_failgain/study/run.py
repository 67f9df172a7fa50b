"""Measuring what a plan asks for, model after model, into the study's folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from pytest_failgain.conditions import EARLY, FAILED
from pytest_failgain.errors import FailgainError, ModelError, UsageError
from pytest_failgain.harnesses import VERBATIM
from pytest_failgain.measurement import Measurement, measure
from pytest_failgain.progress import NoProgress, Progress
from pytest_failgain.scaling import ScalingFit, fit_scaling
from pytest_failgain.scoring.protocol import (
    ModelIdentity,
    Pair,
    Refusal,
    Score,
    Scorer,
    TokenCounter,
)
from pytest_failgain.scoring.work import Work
from pytest_failgain.statistics import Estimate
from pytest_failgain.study.folder import FolderError, StudyFolder
from pytest_failgain.study.plan import CaseSet, ModelSettings, StudyPlan
from pytest_failgain.study.tables import (
    EstimateRow,
    Estimates,
    GroupRow,
    estimate_rows,
    group_rows,
    holm_adjusted,
)


class StudyScorer(Scorer, TokenCounter, Protocol):
    """A scorer that also says how large its model is and what it had to compute."""

    @property
    def work(self) -> Work: ...

    @property
    def n_parameters(self) -> int: ...


_SURVIVED = (FailgainError, MemoryError)


class Load(Protocol):
    """Makes the scorer of a model, whose scores are kept in the study's folder."""

    def __call__(
        self, spec: str, settings: ModelSettings, folder: StudyFolder, progress: Progress
    ) -> StudyScorer: ...


@dataclass(frozen=True, slots=True)
class StudiedModel:
    """A model under the name that tables give it."""

    name: str
    identity: ModelIdentity
    parameters: int


@dataclass(frozen=True, slots=True)
class Cell:
    """One model on one set of cases: what was scored, and what it took.

    `pairs` are all that were asked for. `work` is what was computed under these names, in this run
    and in earlier ones of the same folder; equal pairs are computed once.
    """

    model: str
    environment: str
    n: int
    n_tasks: int
    pairs: int
    work: Work
    skips: tuple[tuple[str, int], ...]
    left_out: tuple[tuple[str, int], ...]
    adaptations: tuple[tuple[str, int], ...]
    warnings: tuple[str, ...]
    by_construction: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NotMeasured:
    """A model, or one of its sets of cases, that could not be measured, and why."""

    model: str
    environment: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class ScalingRow:
    """The line through the mean gains of the models on one set of cases; see `ScalingFit`."""

    environment: str
    n_models: int
    slope_per_decade: float
    slope_low: float
    slope_high: float
    intercept: float
    r_squared: float
    zero_crossing_parameters: float
    zero_crossing_low: float
    zero_crossing_high: float
    by_construction: str

    @property
    def slope(self) -> Estimate:
        return Estimate(self.slope_per_decade, self.slope_low, self.slope_high, self.n_models)

    @property
    def zero_crossing(self) -> Estimate:
        """A number of parameters."""
        return Estimate(
            self.zero_crossing_parameters,
            self.zero_crossing_low,
            self.zero_crossing_high,
            self.n_models,
        )


@dataclass
class Study:
    """What was measured so far."""

    models: list[StudiedModel] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    not_measured: list[NotMeasured] = field(default_factory=list)
    estimates: list[EstimateRow] = field(default_factory=list)
    groups: list[GroupRow] = field(default_factory=list)

    def scaling(self) -> list[ScalingRow]:
        """One line for each set of cases that models of two sizes or more were measured on."""
        estimates = Estimates(self.estimates)
        rows = []
        for environment in estimates.environments:
            points = [
                (model.parameters, row.value)
                for model in self.models
                if (row := estimates.find(model.name, environment, "gain", "failed"))
            ]
            if len({count for count, _ in points}) > 1:
                fit = fit_scaling(*zip(*points, strict=True))
                rows.append(_scaling_row(environment, fit))
        return rows


def _scaling_row(environment: str, fit: ScalingFit) -> ScalingRow:
    return ScalingRow(
        environment=environment,
        n_models=fit.slope.n,
        slope_per_decade=fit.slope.value,
        slope_low=fit.slope.low,
        slope_high=fit.slope.high,
        intercept=fit.intercept.value,
        r_squared=fit.r_squared,
        zero_crossing_parameters=fit.zero_crossing.value,
        zero_crossing_low=fit.zero_crossing.low,
        zero_crossing_high=fit.zero_crossing.high,
        by_construction=fit.by_construction or "",
    )


def run_study(
    plan: StudyPlan,
    folder: StudyFolder,
    load: Load,
    *,
    progress: Progress | None = None,
    on_cell: Callable[[Study], None] = lambda study: None,
    on_not_measured: Callable[[NotMeasured], None] = lambda problem: None,
) -> Study:
    """Measure every set of cases of `plan` with every model, one model in memory at a time.

    A model that can't be loaded, or a set of cases that it can't score, is told to
    `on_not_measured`, and the others go on. `on_cell` is called whenever one more cell is measured.

    Raises:
        FolderError: when `folder` can't be written to.
    """
    shown = progress or NoProgress()
    study = Study()
    total = len(plan.models) * len(plan.case_sets)

    def fail(model: str, environment: str | None, error: Exception) -> None:
        kind = "" if isinstance(error, FailgainError) else f"{type(error).__name__}: "
        problem = NotMeasured(model, environment, f"{kind}{error}")
        study.not_measured.append(problem)
        on_not_measured(problem)

    for number, spec in enumerate(plan.models):
        try:
            scorer = load(spec, plan.settings, folder, shown)
            model = _studied(spec, scorer, study.models)
        except FolderError:
            raise
        except _SURVIVED as error:
            fail(spec, None, error)
            continue
        study.models.append(model)
        for place, case_set in enumerate(plan.case_sets, start=number * len(plan.case_sets) + 1):
            label = f"{model.name} on {case_set.name} ({place} of {total})"
            try:
                _measure_cell(plan, folder, study, model, case_set, scorer, shown, label)
            except FolderError:
                raise
            except _SURVIVED as error:
                fail(model.name, case_set.name, error)
            else:
                on_cell(study)
    return study


def _studied(spec: str, scorer: StudyScorer, known: Sequence[StudiedModel]) -> StudiedModel:
    identity = scorer.identity
    if any(identity.fingerprint == model.identity.fingerprint for model in known):
        raise ModelError(f"{spec} is a model that was measured already, under another name")
    taken = {model.name for model in known}
    name = spec if identity.name in taken else identity.name
    return StudiedModel(name, identity, scorer.n_parameters)


def _measure_cell(
    plan: StudyPlan,
    folder: StudyFolder,
    study: Study,
    model: StudiedModel,
    case_set: CaseSet,
    scorer: StudyScorer,
    progress: Progress,
    label: str,
) -> None:
    key = f"{model.name} {model.identity.fingerprint[:16]} {model.identity.dtype} {case_set.name}"
    measurement = measure(
        _Recording(scorer, partial(folder.add_work, key)),
        VERBATIM,
        case_set.cases,
        conditions=plan.conditions,
        progress=progress,
        label=label,
    )
    if not measurement.case_rows:
        reason = measurement.skips[0].reason if measurement.skips else "there are no cases"
        raise UsageError(f"not one of {len(case_set.cases)} cases could be measured: {reason}")
    folder.write_rows(model.name, case_set.name, measurement)
    study.cells.append(_cell(model, case_set, measurement, folder.work(key)))
    study.groups.extend(group_rows(model.name, measurement, case_set.name))
    estimates = estimate_rows(model.name, measurement, case_set.name)
    study.estimates = holm_adjusted([*study.estimates, *estimates])


def _cell(model: StudiedModel, case_set: CaseSet, measurement: Measurement, work: Work) -> Cell:
    return Cell(
        model=model.name,
        environment=case_set.name,
        n=len(measurement.case_rows),
        n_tasks=len(set(measurement.task_ids)),
        pairs=len(measurement.rows),
        work=work,
        skips=tuple(_alike([skip.reason for skip in measurement.skips])),
        left_out=measurement.left_out,
        adaptations=measurement.adaptations,
        warnings=measurement.warnings,
        by_construction=tuple(_by_construction(measurement)),
    )


def _alike(reasons: Sequence[str]) -> Iterable[tuple[str, int]]:
    """Reasons with how often each was given; those that differ in their numbers alone are one."""
    kinds: dict[str, list[str]] = {}
    for reason in reasons:
        kinds.setdefault(re.sub(r"\d+", "", reason), []).append(reason)
    for found in sorted(kinds.values(), key=len, reverse=True):
        others = len(set(found)) > 1
        yield f"{found[0]}{', and the like' if others else ''}", len(found)


def _by_construction(measurement: Measurement) -> Iterable[str]:
    """What no model could have changed."""
    first = sum(not measured.case.trajectory.steps for measured in measurement.case_rows)
    if first and EARLY.name in {row.condition for row in measurement.rows}:
        yield (
            f"{EARLY.name} is the same as {FAILED.name} in {first} of {len(measurement.case_rows)} "
            "cases, which have no step before the failure"
        )


@dataclass(frozen=True, slots=True)
class _Recording:
    """A scorer whose work is put on record batch by batch, so that a killed run's counts too."""

    scorer: StudyScorer
    record: Callable[[Work], None]

    @property
    def identity(self) -> ModelIdentity:
        return self.scorer.identity

    def count_tokens(self, text: str) -> int:
        return self.scorer.count_tokens(text)

    def score(self, pairs: Sequence[Pair]) -> list[Score | Refusal]:
        before = self.scorer.work
        scores = self.scorer.score(pairs)
        if self.scorer.work != before:
            self.record(self.scorer.work - before)
        return scores
