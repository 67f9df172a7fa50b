"""How the corrective gain follows the size of the model: a line through one mean per model.

The fit is the published one (arXiv 2608.23651): unweighted least squares of the mean gains on
log10(parameter count), and the size at which the line crosses 0. The 95% intervals, which the paper
does not give, come from the scatter of the models about the line; that of the cases in each mean is
no part of them. They take for granted that gains lie on a line, also beyond the sizes fitted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pytest_failgain.errors import UsageError
from pytest_failgain.statistics import Estimate

_UPPER_QUANTILE = 0.975


@dataclass(frozen=True, slots=True)
class ScalingFit:
    """gain = intercept + slope * log10(parameters), with 95% intervals; `n` of each is the models.

    `slope` is in nats per tenfold parameters, `intercept` in nats at one parameter, `zero_crossing`
    is a number of parameters. `r_squared` is 1 - SSres / SStot, NaN where all gains are equal.
    Two models leave no scatter to make intervals of: all bounds are NaN.

    `zero_crossing` is NaN where the line is level. Its interval is Fieller's: the sizes at which
    the line's own interval contains 0. Where that of the slope contains 0 they reach without bound
    on one side or both, and the interval is all sizes, from 0 to infinity.
    """

    slope: Estimate
    intercept: Estimate
    r_squared: float
    zero_crossing: Estimate

    @property
    def by_construction(self) -> str | None:
        """What follows from the number of models alone, None where nothing does."""
        if self.slope.n > 2:
            return None
        return (
            "two models: a line goes through any two points, so R2 is 1 by construction and no "
            "interval is known"
        )


def fit_scaling(parameters: Sequence[float], gains: Sequence[float]) -> ScalingFit:
    """The line through the mean `gains`, in nats, of models with so many `parameters`.

    Both have one entry a model. `parameters` are counts: 135e6, not 0.135.

    Raises:
        UsageError: when they don't pair up, are not finite, a count is not positive, there are
            fewer than two sizes, or scipy is missing (intervals are of Student's t).
    """
    _check(parameters, gains)
    decades = np.array([math.log10(count) for count in parameters])
    models = len(decades)
    mean_decade = float(decades.mean())
    x = decades - mean_decade
    # From the first gain on, so that equal gains give exactly no slope.
    y = np.asarray(gains, dtype=np.float64) - gains[0]
    mean_gain = float(gains[0] + y.mean())
    y = y - y.mean()
    spread = float(x @ x)
    slope = float(x @ y) / spread
    residual, total = float(np.sum((y - slope * x) ** 2)), float(y @ y)
    if models == 2:
        quantile = variance = math.nan
    else:
        quantile, variance = _t_quantile(models - 2), residual / (models - 2)
    intercept = mean_gain - slope * mean_decade
    slope_half = quantile * math.sqrt(variance / spread)
    intercept_half = quantile * math.sqrt(variance * (1 / models + mean_decade**2 / spread))
    level_half = quantile * math.sqrt(variance / models)
    low, high = _crossings(slope, mean_gain, slope_half, level_half)
    return ScalingFit(
        slope=_within(slope, slope_half, models),
        intercept=_within(intercept, intercept_half, models),
        r_squared=1 - residual / total if total else math.nan,
        zero_crossing=Estimate(
            _count(mean_decade - mean_gain / slope) if slope else math.nan,
            _count(mean_decade + low),
            _count(mean_decade + high),
            models,
        ),
    )


def _check(parameters: Sequence[float], gains: Sequence[float]) -> None:
    if len(parameters) != len(gains):
        raise UsageError(
            f"there are {len(parameters)} parameter counts and {len(gains)} gains; give one of "
            "each for every model"
        )
    for count, gain in zip(parameters, gains, strict=True):
        if not (math.isfinite(count) and count > 0):
            raise UsageError(f"{count!r} is no parameter count; give a number such as 135e6")
        if not math.isfinite(gain):
            raise UsageError(
                f"the gain of the model with {count:g} parameters is {gain!r}; leave out models "
                "without a mean gain"
            )
    if len({math.log10(count) for count in parameters}) < 2:
        models = "model" if len(parameters) == 1 else "models"
        given = f"{len(parameters)} {models}"
        if len(parameters):
            given += f" of {parameters[0]:g} parameters"
        raise UsageError(
            f"a scaling fit needs models of two sizes or more, not {given}; add one of another size"
        )


def _t_quantile(freedom: int) -> float:
    try:
        from scipy.stats import t
    except ImportError as error:
        raise UsageError(
            f"the intervals of a scaling fit need the 'study' extra ({error}): "
            "pip install 'pytest-failgain[study]'"
        ) from error
    return float(t.ppf(_UPPER_QUANTILE, freedom))


def _within(value: float, half: float, n: int) -> Estimate:
    return Estimate(value, value - half, value + half, n)


def _crossings(
    slope: float, level: float, slope_half: float, level_half: float
) -> tuple[float, float]:
    """Where the interval of level + slope * x, x in decades from the mean one, contains 0.

    Fieller: the x with (level + slope x)^2 <= level_half^2 + (slope_half x)^2, a square inequality.
    Level and slope are uncorrelated, since x is taken from its mean.
    """
    if math.isnan(slope_half):
        return math.nan, math.nan
    square = slope**2 - slope_half**2
    if square <= 0:
        return -math.inf, math.inf
    centre = -level * slope / square
    # A quarter of the discriminant, written so that it can't be negative.
    root = math.sqrt(level_half**2 * square + (level * slope_half) ** 2) / square
    return centre - root, centre + root


def _count(decades: float) -> float:
    """10^decades, infinite where no float is that large."""
    try:
        return math.pow(10, decades)
    except OverflowError:
        return math.inf
