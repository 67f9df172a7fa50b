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
from pytest_failgain.prompt import Prompt
from pytest_failgain.scoring.protocol import (
    ModelIdentity,
    Pair,
    Refusal,
    Score,
    Scorer,
    TokenCounter,
)
from pytest_failgain.scoring.work import Work
from pytest_failgain.study.folder import FolderError, StudyFolder
from pytest_failgain.study.plan import CaseSet, ModelSettings, StudyPlan
from pytest_failgain.study.results import Cell, NotMeasured, StudiedModel, Study
from pytest_failgain.study.tables import estimate_rows, group_rows, holm_adjusted


class StudyScorer(Scorer, TokenCounter, Protocol):
    """A scorer that also says how large its model is and what it had to compute."""

    @property
    def work(self) -> Work: ...

    @property
    def n_parameters(self) -> int: ...


class Load(Protocol):
    """Makes the scorer of a model, whose scores are kept in the study's folder."""

    def __call__(
        self, spec: str, settings: ModelSettings, folder: StudyFolder, progress: Progress
    ) -> StudyScorer: ...


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
    run = _Run(plan, folder, load, progress or NoProgress(), on_cell, on_not_measured)
    for number, spec in enumerate(plan.models):
        run.measure_model(number, spec)
    return run.study


@dataclass(frozen=True, slots=True)
class _Run:
    plan: StudyPlan
    folder: StudyFolder
    load: Load
    progress: Progress
    on_cell: Callable[[Study], None]
    on_not_measured: Callable[[NotMeasured], None]
    study: Study = field(default_factory=Study)

    def measure_model(self, number: int, spec: str) -> None:
        """Load the plan's model `number` and measure all; after this nothing holds on to it."""
        try:
            scorer = self.load(spec, self.plan.settings, self.folder, self.progress)
            model = _studied(spec, scorer, self.study.models)
        except FolderError:
            raise
        except (FailgainError, MemoryError) as error:
            self._fail(spec, None, error)
            return
        self.study.models.append(model)
        sets = self.plan.case_sets
        for place, case_set in enumerate(sets, start=number * len(sets) + 1):
            total = len(self.plan.models) * len(sets)
            label = f"{model.name} on {case_set.name} ({place} of {total})"
            try:
                self._measure_cell(model, scorer, case_set, label)
            except FolderError:
                raise
            except (FailgainError, MemoryError) as error:
                self._fail(model.name, case_set.name, error)
            else:
                self.on_cell(self.study)

    def _fail(self, model: str, environment: str | None, error: Exception) -> None:
        kind = "" if isinstance(error, FailgainError) else f"{type(error).__name__}: "
        problem = NotMeasured(model, environment, f"{kind}{error}")
        self.study.not_measured.append(problem)
        self.on_not_measured(problem)

    def _measure_cell(
        self, model: StudiedModel, scorer: StudyScorer, case_set: CaseSet, label: str
    ) -> None:
        identity, study = model.identity, self.study
        key = f"{model.name} {identity.fingerprint[:16]} {identity.dtype} {case_set.name}"
        measurement = measure(
            _Recording(scorer, partial(self.folder.add_work, key)),
            VERBATIM,
            case_set.cases,
            conditions=self.plan.conditions,
            progress=self.progress,
            label=label,
        )
        if not measurement.case_rows:
            reason = measurement.skips[0].reason if measurement.skips else "there are no cases"
            raise UsageError(f"not one of {len(case_set.cases)} cases could be measured: {reason}")
        self.folder.write_rows(model.name, case_set.name, measurement)
        study.cells.append(_cell(model, case_set, measurement, self.folder.work(key)))
        study.groups.extend(group_rows(model.name, measurement, case_set.name))
        estimates = estimate_rows(model.name, measurement, case_set.name)
        study.estimates = holm_adjusted([*study.estimates, *estimates])


def _studied(spec: str, scorer: StudyScorer, known: Sequence[StudiedModel]) -> StudiedModel:
    identity = scorer.identity
    if any(identity.fingerprint == model.identity.fingerprint for model in known):
        raise ModelError(f"{spec} is a model that was measured already, under another name")
    taken = {model.name for model in known}
    name = spec if identity.name in taken else identity.name
    return StudiedModel(name, identity, scorer.n_parameters)


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

    def count_prompt_tokens(self, prompt: Prompt) -> int:
        return self.scorer.count_prompt_tokens(prompt)

    def score(self, pairs: Sequence[Pair]) -> list[Score | Refusal]:
        before = self.scorer.work
        scores = self.scorer.score(pairs)
        if self.scorer.work != before:
            self.record(self.scorer.work - before)
        return scores
