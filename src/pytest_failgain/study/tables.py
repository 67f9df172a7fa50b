"""The rows of a study's tables: estimates of every measure, and break-downs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pytest_failgain.measurement import Measurement
from pytest_failgain.measures import MEASURES, Measure
from pytest_failgain.rows import CaseRows
from pytest_failgain.statistics import ClusterBootstrap, Estimate, holm
from pytest_failgain.trajectory import Step

# A mean of fewer cases says nothing, so the published tables leave it out, as these do.
FEWEST_CASES = 3


@dataclass(frozen=True, slots=True)
class EstimateRow:
    """The mean of one measure under one condition, over the cases of one environment.

    `p` and `d_z` are NaN for measures of which 0 is no neutral value. `p_holm` is p adjusted for
    all models and environments of the study, for the gain of the failed record only.
    """

    model: str
    environment: str
    measure: str
    condition: str
    unit: str
    paper: str
    value: float
    low: float
    high: float
    n: int
    n_tasks: int
    p: float
    p_holm: float
    d_z: float


@dataclass(frozen=True, slots=True)
class GroupRow:
    """The mean of one measure over those cases of an environment that have something in common."""

    model: str
    environment: str
    by: str
    group: str
    measure: str
    condition: str
    unit: str
    value: float
    low: float
    high: float
    n: int
    n_tasks: int


class Estimates:
    """The estimates of a study, by what they are of."""

    def __init__(self, rows: Iterable[EstimateRow]) -> None:
        self._rows = {(row.model, row.environment, row.measure, row.condition): row for row in rows}
        self.models = list(dict.fromkeys(row.model for row in self.rows))
        self.environments = list(dict.fromkeys(row.environment for row in self.rows))

    @property
    def rows(self) -> Iterable[EstimateRow]:
        return self._rows.values()

    def find(
        self, model: str, environment: str, measure: str, condition: str
    ) -> EstimateRow | None:
        """The estimate, or None where there is none."""
        return self._rows.get((model, environment, measure, condition))


def estimate_rows(model: str, measurement: Measurement, environment: str) -> list[EstimateRow]:
    """Every measure under every condition that was scored, for one model and environment.

    Means of fewer than three cases are left out. Those of one task have no interval and no p, since
    both come from drawing tasks.
    """
    tasks = measurement.task_ids
    bootstrap = ClusterBootstrap.over(tasks)
    rows = []
    for measure, condition in _scored(measurement, MEASURES.values()):
        values = measurement.values_of(measure.name, condition)
        effect = bootstrap.effect(values)
        if effect.n < FEWEST_CASES:
            continue
        n_tasks = _known_tasks(tasks, values)
        low, high = _interval(effect, n_tasks)
        rows.append(
            EstimateRow(
                model=model,
                environment=environment,
                measure=measure.name,
                condition=condition,
                unit=measure.unit,
                paper=measure.paper.get(condition, ""),
                value=effect.value,
                low=low,
                high=high,
                n=effect.n,
                n_tasks=n_tasks,
                p=effect.p if measure.signed and n_tasks > 1 else math.nan,
                p_holm=math.nan,
                d_z=effect.d_z if measure.signed else math.nan,
            )
        )
    return rows


def _interval(estimate: Estimate, n_tasks: int) -> tuple[float, float]:
    """Not known for a single task: it comes from drawing tasks."""
    return estimate.interval if n_tasks > 1 else (math.nan, math.nan)


def _known_tasks(tasks: Sequence[str], values: NDArray[np.float64]) -> int:
    """How many tasks have a case with a value."""
    return len({task for task, value in zip(tasks, values, strict=True) if math.isfinite(value)})


def _scored(measurement: Measurement, measures: Iterable[Measure]) -> Iterable[tuple[Measure, str]]:
    scored = {row.condition for row in measurement.rows}
    for measure in measures:
        for condition in measure.conditions:
            if condition in scored:
                yield measure, condition


def holm_adjusted(rows: Sequence[EstimateRow]) -> list[EstimateRow]:
    """`rows` with p adjusted after Holm: one family of the gains under `failed`, as published."""
    family = [
        index
        for index, row in enumerate(rows)
        if (row.measure, row.condition) == ("gain", "failed") and not math.isnan(row.p)
    ]
    corrected = list(rows)
    for index, p in zip(family, holm([rows[index].p for index in family]), strict=True):
        corrected[index] = replace(rows[index], p_holm=p)
    return corrected


def _error_family(measured: CaseRows) -> str:
    return measured.case.failed.error_family or "unknown"


def _depth(measured: CaseRows) -> str:
    return str(sum(isinstance(step, Step) for step in measured.case.trajectory.steps))


def _action_tokens(measured: CaseRows) -> str:
    """The action's length in a class of its own octave, such as "17-32" tokens."""
    octave = max(3, math.ceil(math.log2(measured.n_tokens)))
    return f"1-{2**octave}" if octave == 3 else f"{2 ** (octave - 1) + 1}-{2**octave}"


BREAKDOWNS: dict[str, Callable[[CaseRows], str]] = {
    "operator": lambda measured: measured.case.operator or "unknown",
    "error_family": _error_family,
    "template": lambda measured: measured.case.template or "unknown",
    "depth": _depth,
    "action_tokens": _action_tokens,
}
_BROKEN_DOWN = (
    ("gain", "failed"),
    ("gain_per_token", "failed"),
    ("surface_per_token", "neutral"),
    ("semantic_per_token", "neutral"),
    ("repeat_probability", "before"),
    ("repeat_probability", "failed"),
    ("greedy_repeat", "failed"),
    ("change_from_failed_per_token", "described"),
)


def group_rows(model: str, measurement: Measurement, environment: str) -> list[GroupRow]:
    """The main measures over groups of cases; groups of fewer than three cases are left out."""
    scored = {
        (measure.name, condition): measurement.values_of(measure.name, condition)
        for measure, condition in _scored(measurement, MEASURES.values())
        if (measure.name, condition) in _BROKEN_DOWN
    }
    rows = []
    for by, group_of in BREAKDOWNS.items():
        members: dict[str, list[int]] = {}
        for index, measured in enumerate(measurement.case_rows):
            members.setdefault(group_of(measured), []).append(index)
        for group in sorted(members, key=natural_order):
            here = members[group]
            tasks_here = [measurement.task_ids[index] for index in here]
            bootstrap = ClusterBootstrap.over(tasks_here)
            for (name, condition), values in scored.items():
                estimate = bootstrap.mean(values[here])
                if estimate.n < FEWEST_CASES:
                    continue
                n_tasks = _known_tasks(tasks_here, values[here])
                low, high = _interval(estimate, n_tasks)
                rows.append(
                    GroupRow(
                        model=model,
                        environment=environment,
                        by=by,
                        group=group,
                        measure=name,
                        condition=condition,
                        unit=MEASURES[name].unit,
                        value=estimate.value,
                        low=low,
                        high=high,
                        n=estimate.n,
                        n_tasks=n_tasks,
                    )
                )
    return rows


def natural_order(group: str) -> tuple[bool, list[int], str]:
    """Orders groups that begin with a number by their numbers, and the others by the name."""
    numbers = [int(digits) for digits in re.findall(r"[0-9]+", group)]
    counted = group[:1].isdecimal()
    return not counted, numbers if counted else [], group
