"""Where interval bars and their axis are drawn."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_failgain.report.bars import Axis
from pytest_failgain.statistics import Estimate
from strategies import quick

estimates = st.builds(
    lambda value, below, above: Estimate(value, value - below, value + above, 9),
    st.floats(-50, 50),
    st.floats(0, 20),
    st.floats(0, 20),
)


@quick
@given(st.lists(estimates, max_size=4))
def test_all_bars_and_labels_are_within_the_drawing(drawn: list[Estimate]) -> None:
    axis = Axis.over(drawn)
    positions = [axis.zero, *(tick.position for tick in axis.ticks)]
    for estimate in drawn:
        bar = axis.bar(estimate)
        assert bar is not None
        assert bar.low is not None
        assert bar.high is not None
        assert bar.low <= bar.point <= bar.high
        positions += [bar.low, bar.high]
    assert all(0 < position < axis.width for position in positions)
    assert 1 <= len(axis.ticks) <= 6
    assert [tick.position for tick in axis.ticks if tick.label == "0"] == [axis.zero]


def test_the_axis_is_linear_and_its_labels_are_round() -> None:
    axis = Axis.over([Estimate(-1.2, -1.5, -0.9, 30), Estimate(0.1, 0.0, 0.5, 30)])
    assert [tick.label for tick in axis.ticks] == ["-1.5", "-1.0", "-0.5", "0", "+0.5"]
    gaps = [b.position - a.position for a, b in zip(axis.ticks, axis.ticks[1:], strict=False)]
    assert gaps == [pytest.approx(gaps[0], abs=0.2)] * 4
    bar = axis.bar(Estimate(-1.0, -1.5, 0.5, 30))
    assert bar is not None
    ticks = {tick.label: tick.position for tick in axis.ticks}
    assert (bar.low, bar.point, bar.high) == (ticks["-1.5"], ticks["-1.0"], ticks["+0.5"])


def test_what_is_not_known_is_not_drawn() -> None:
    unknown = Estimate(math.nan, math.nan, math.nan, 0)
    alone = Estimate(-1.0, math.nan, math.nan, 1)
    axis = Axis.over([unknown, alone])
    assert axis.low == -1.0
    assert axis.bar(unknown) is None
    bar = axis.bar(alone)
    assert bar is not None
    assert bar.low is None
    assert bar.high is None


def test_an_axis_of_nothing_but_zero_has_room_on_both_sides() -> None:
    axis = Axis.over([Estimate(0.0, 0.0, 0.0, 30)])
    assert axis.zero == pytest.approx(axis.width / 2)
