from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_failgain.errors import UsageError
from pytest_failgain.scaling import ScalingFit, fit_scaling
from pytest_failgain.statistics import Estimate
from strategies import quick

scipy_stats: Any = pytest.importorskip("scipy.stats")

# log10 of the parameter count and the mean gain in nats of the published models.
TOOLSHED = [
    (8.130333768495007, -23.92104851782322),
    (8.558708570533165, -18.620453929901124),
    (8.693726948923647, -13.910314309559762),
    (8.775246259740236, -21.49700415859629),
    (9.092018470752796, -12.411974890583329),
]
CODEREPAIR = [
    (8.130333768495007, -82.6099373852053),
    (8.558708570533165, -70.34886230876049),
    (8.693726948923647, -67.68287275681892),
]

decades = st.lists(st.integers(700, 1100), min_size=3, max_size=7, unique=True).map(
    lambda hundredths: [value / 100 for value in hundredths]
)


def fitted(points: Sequence[tuple[float, float]]) -> ScalingFit:
    return fit_scaling([10**decade for decade, _ in points], [gain for _, gain in points])


def decade_of(count: float) -> float:
    return math.log10(count) if count else -math.inf


def numbers(fit: ScalingFit) -> list[float]:
    estimates = (fit.slope, fit.intercept, fit.zero_crossing)
    return [fit.r_squared, *(x for one in estimates for x in (one.value, one.low, one.high))]


@st.composite
def scattered(draw: st.DrawFn) -> list[tuple[float, float]]:
    """Models about a line, with scatter from a little to much."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    slope, level = draw(st.floats(-30, 30)), draw(st.floats(-60, 60))
    scatter = draw(st.sampled_from([0.1, 1.0, 10.0]))
    return [(x, level + slope * (x - 9) + scatter * rng.normal()) for x in draw(decades)]


@pytest.mark.parametrize(
    ("points", "slope", "intercept", "r_squared", "billions"),
    [
        (TOOLSHED, 10.876750479236998, -112.15612480872002, 0.6080694794214878, 20.49024235252682),
        (
            CODEREPAIR,
            27.009892692409103,
            -302.0758490515136,
            0.9959940039132024,
            152.72026681683258,
        ),
    ],
)
def test_the_line_is_the_published_one(
    points: list[tuple[float, float]],
    slope: float,
    intercept: float,
    r_squared: float,
    billions: float,
) -> None:
    fit = fitted(points)
    assert fit.slope.value == pytest.approx(slope, rel=1e-10)
    assert fit.intercept.value == pytest.approx(intercept, rel=1e-10)
    assert fit.r_squared == pytest.approx(r_squared, rel=1e-10)
    assert fit.zero_crossing.value / 1e9 == pytest.approx(billions, rel=1e-10)
    assert fit.by_construction is None


def test_the_published_crossings_are_hardly_known() -> None:
    # One slope may as well be 0, and the other line's crossing has 12 decades of room.
    toolshed, coderepair = fitted(TOOLSHED), fitted(CODEREPAIR)
    assert toolshed.slope.low < 0 < toolshed.slope.high
    assert toolshed.zero_crossing.interval == (0.0, math.inf)
    assert coderepair.slope.low > 0
    assert coderepair.zero_crossing.low < 1e10
    assert 1e22 < coderepair.zero_crossing.high < math.inf


@quick
@given(points=scattered())
def test_intervals_are_those_of_ordinary_least_squares(points: list[tuple[float, float]]) -> None:
    fit = fitted(points)
    theirs = scipy_stats.linregress(*zip(*points, strict=True))
    t = scipy_stats.t(len(points) - 2).ppf(0.975)
    for ours, value, error in (
        (fit.slope, theirs.slope, theirs.stderr),
        (fit.intercept, theirs.intercept, theirs.intercept_stderr),
    ):
        expected = [value, value - t * error, value + t * error]
        assert [ours.value, ours.low, ours.high] == pytest.approx(expected, rel=1e-6, abs=1e-6)
        assert ours.n == len(points)
    assert fit.r_squared == pytest.approx(theirs.rvalue**2, abs=1e-6)


@quick
@given(points=scattered())
def test_at_the_ends_of_the_crossing_the_lines_own_interval_ends_at_zero(
    points: list[tuple[float, float]],
) -> None:
    crossing = fitted(points).zero_crossing
    ends = [end for end in crossing.interval if 1e-12 < end < 1e30]
    assume(ends)
    t = scipy_stats.t(len(points) - 2).ppf(0.975)
    for end in ends:
        # The line's value at a size is the intercept of a fit with that size at 0.
        there = scipy_stats.linregress(
            [x - math.log10(end) for x, _ in points], [y for _, y in points]
        )
        assert abs(there.intercept) == pytest.approx(t * there.intercept_stderr, rel=1e-5, abs=1e-6)
    assert crossing.low <= crossing.value <= crossing.high


@quick
@given(points=scattered())
def test_the_crossing_is_unbounded_exactly_where_the_line_may_be_level(
    points: list[tuple[float, float]],
) -> None:
    fit = fitted(points)
    level = fit.slope.low <= 0 <= fit.slope.high
    assert (fit.zero_crossing.interval == (0, math.inf)) == level


def test_intervals_hold_the_truth_in_19_of_20_samples() -> None:
    rng = np.random.default_rng(7)
    x = np.array([8.1, 8.5, 8.7, 8.8, 9.1])
    samples = 1_000
    held = np.zeros(3)
    for _ in range(samples):
        fit = fitted(
            list(zip(x.tolist(), (12 * x - 110 + rng.normal(size=5)).tolist(), strict=True))
        )
        truths = (12, -110, 10 ** (110 / 12))
        estimates = (fit.slope, fit.intercept, fit.zero_crossing)
        held += [one.low <= truth <= one.high for one, truth in zip(estimates, truths, strict=True)]
    assert held / samples == pytest.approx([0.95] * 3, abs=5 * math.sqrt(0.95 * 0.05 / samples))


@quick
@given(points=scattered(), scale=st.sampled_from([0.1, 3.0, -1.0, -20.0]))
def test_scaling_the_gains_moves_no_crossing(
    points: list[tuple[float, float]], scale: float
) -> None:
    plain, scaled = fitted(points), fitted([(x, scale * y) for x, y in points])
    for one, other in ((plain.slope, scaled.slope), (plain.intercept, scaled.intercept)):
        expected = [scale * one.value, *sorted((scale * one.low, scale * one.high))]
        assert [other.value, other.low, other.high] == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert scaled.r_squared == pytest.approx(plain.r_squared, abs=1e-9)
    one, other = plain.zero_crossing, scaled.zero_crossing
    for left, right in ((one.value, other.value), (one.low, other.low), (one.high, other.high)):
        assert decade_of(right) == pytest.approx(decade_of(left), rel=1e-4, abs=1e-4)


@quick
@given(points=scattered(), data=st.data())
def test_the_order_of_models_does_not_matter(
    points: list[tuple[float, float]], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(points))
    one, other = numbers(fitted(points))[:7], numbers(fitted(shuffled))[:7]
    assert one == pytest.approx(other, rel=1e-6, abs=1e-6)


def test_an_exact_line_has_no_scatter() -> None:
    fit = fitted([(8.0, -20.0), (9.0, -10.0), (10.0, 0.0), (11.0, 10.0)])
    expected = [1, *[10] * 3, *[-100] * 3, *[1e10] * 3]
    assert numbers(fit) == pytest.approx(expected, rel=1e-9)
    assert fit.by_construction is None


def test_two_models_have_a_line_by_construction_and_no_interval() -> None:
    fit = fitted(CODEREPAIR[:2])
    slope = (CODEREPAIR[1][1] - CODEREPAIR[0][1]) / (CODEREPAIR[1][0] - CODEREPAIR[0][0])
    assert fit.slope.value == pytest.approx(slope)
    assert fit.intercept.value == pytest.approx(CODEREPAIR[0][1] - slope * CODEREPAIR[0][0])
    assert fit.zero_crossing.value == pytest.approx(10 ** (-fit.intercept.value / slope))
    assert fit.r_squared == 1
    for estimate in (fit.slope, fit.intercept, fit.zero_crossing):
        assert all(map(math.isnan, estimate.interval))
        assert estimate.n == 2
    assert fit.by_construction is not None
    assert "R2 is 1 by construction" in fit.by_construction


@quick
@given(points=scattered())
def test_two_models_leave_nothing_unexplained(points: list[tuple[float, float]]) -> None:
    assert fitted(points[:2]).r_squared == 1


def test_two_sizes_of_three_models_have_intervals() -> None:
    fit = fitted([(8.0, -20.0), (8.0, -22.0), (9.0, -11.0)])
    assert fit.slope.value == pytest.approx(10)
    assert all(map(math.isfinite, fit.slope.interval))
    assert fit.by_construction is None


@pytest.mark.parametrize("gain", [0.1, -23.7, 0.0])
def test_equal_gains_have_neither_slope_nor_crossing(gain: float) -> None:
    fit = fitted([(decade, gain) for decade in (8.1, 8.5, 9.3)])
    assert fit.slope == Estimate(0, 0, 0, 3)
    assert fit.intercept.value == gain
    assert math.isnan(fit.r_squared)
    assert math.isnan(fit.zero_crossing.value)
    assert fit.zero_crossing.interval == (0, math.inf)


def test_a_crossing_beyond_all_numbers_is_infinite() -> None:
    assert fitted([(8.0, -20.0), (9.0, -19.99)]).zero_crossing.value == math.inf
    assert fitted([(8.0, 20.0), (9.0, 20.01)]).zero_crossing.value == 0


@pytest.mark.parametrize(
    ("parameters", "gains", "said"),
    [
        ([], [], "not 0 models; add one of another size"),
        ([135e6], [-20.0], "not 1 model of 1.35e+08 parameters; add one of another size"),
        ([135e6] * 3, [-20.0] * 3, "not 3 models of 1.35e+08 parameters; add"),
        ([135e6, 360e6], [-20.0], "there are 2 parameter counts and 1 gains; give one of each"),
        ([135e6, 0.0], [-20.0, 1.0], "0.0 is no parameter count; give a number such as 135e6"),
        ([135e6, -1.0], [-20.0, 1.0], "-1.0 is no parameter count"),
        ([math.nan, 135e6], [-20.0, 1.0], "nan is no parameter count"),
        ([135e6, math.inf], [-20.0, 1.0], "inf is no parameter count"),
        ([135e6, 360e6], [-20.0, math.nan], "the model with 3.6e+08 parameters is nan; leave out"),
    ],
)
def test_what_can_not_be_fitted_is_said(
    parameters: list[float], gains: list[float], said: str
) -> None:
    with pytest.raises(UsageError) as raised:
        fit_scaling(parameters, gains)
    assert said in str(raised.value)


def test_without_scipy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    with pytest.raises(UsageError, match=r"pip install 'pytest-failgain\[study\]'"):
        fitted(TOOLSHED)
    # Two models have no interval to look up.
    assert fitted(TOOLSHED[:2]).slope.n == 2
