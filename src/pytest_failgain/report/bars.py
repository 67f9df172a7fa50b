"""Where the interval bars of a table are drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from pytest_failgain.statistics import Estimate

_WIDTH = 220.0
# Half of a label of the axis has to fit beside its ends.
_MARGIN = 14.0
_MOST_TICKS = 5
_LEAST_RANGE = 0.1


@dataclass(frozen=True, slots=True)
class Bar:
    """Positions in the drawing's units; `low` and `high` are None without an interval."""

    point: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled position on the axis."""

    position: float
    label: str


@dataclass(frozen=True, slots=True)
class Axis:
    """A linear scale from `low` to `high`, which holds 0, in nats per token."""

    low: float
    high: float

    @classmethod
    def over(cls, estimates: Iterable[Estimate]) -> Axis:
        """The scale that all of `estimates` and their intervals fit on."""
        values = [0.0]
        for estimate in estimates:
            values += filter(math.isfinite, (estimate.value, *estimate.interval))
        low, high = min(values), max(values)
        missing = max(0.0, _LEAST_RANGE - (high - low)) / 2
        return cls(low - missing, high + missing)

    @property
    def width(self) -> float:
        """Of the whole drawing."""
        return _WIDTH

    @property
    def zero(self) -> float:
        return self._position(0.0)

    @property
    def ticks(self) -> list[Tick]:
        """Round values, 0 among them."""
        step = _round_step((self.high - self.low) / _MOST_TICKS)
        decimals = max(0, -math.floor(math.log10(step)))
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return [
            Tick(self._position(n * step), f"{n * step:+.{decimals}f}" if n else "0")
            for n in range(first, last + 1)
        ]

    def bar(self, estimate: Estimate) -> Bar | None:
        """The bar of `estimate`; None where nothing is known."""
        if not math.isfinite(estimate.value):
            return None
        known = all(map(math.isfinite, estimate.interval))
        return Bar(
            point=self._position(estimate.value),
            low=self._position(estimate.low) if known else None,
            high=self._position(estimate.high) if known else None,
        )

    def _position(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(_MARGIN + share * (_WIDTH - 2 * _MARGIN), 1)


def _round_step(least: float) -> float:
    """The smallest of 1, 2 or 5 times a power of ten that is no less than `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= least)
