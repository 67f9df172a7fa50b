"""What a study came to: models, cells, tables and what could not be measured."""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_failgain.scaling import ScalingFit, fit_scaling
from pytest_failgain.scoring.protocol import ModelIdentity
from pytest_failgain.scoring.work import Work
from pytest_failgain.statistics import Estimate
from pytest_failgain.study.tables import EstimateRow, Estimates, GroupRow


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

    @property
    def place(self) -> str:
        return f"{self.model} on {self.environment}" if self.environment else self.model


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
