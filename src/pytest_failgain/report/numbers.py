"""Estimates as people read them, the same in every report."""

from __future__ import annotations

import math
from typing import Protocol


class Interval(Protocol):
    """A value with its 95% interval, over `n` cases."""

    @property
    def value(self) -> float: ...

    @property
    def low(self) -> float: ...

    @property
    def high(self) -> float: ...

    @property
    def n(self) -> int: ...


def signed(estimate: Interval, decimals: int = 3) -> str:
    """`-1.184 [-1.511, -0.881]`, `[unknown]` without an interval, or `-` without a value."""
    if not estimate.n or math.isnan(estimate.value):
        return "-"
    value, low, high = (
        f"{number:+.{decimals}f}" for number in (estimate.value, estimate.low, estimate.high)
    )
    return f"{value} [unknown]" if math.isnan(estimate.low) else f"{value} [{low}, {high}]"


def signed_value(estimate: Interval) -> str:
    """`-1.184`, or `-` where nothing is known."""
    return f"{estimate.value:+.3f}" if estimate.n else "-"


def number(estimate: Interval, decimals: int) -> str:
    """`3.4`, or `-` where nothing is known."""
    return f"{estimate.value:.{decimals}f}" if estimate.n else "-"


def share(value: float | None) -> str:
    """`0.83`, or `-` where it is not known."""
    return "-" if value is None or math.isnan(value) else f"{value:.2f}"


def percent(share: float) -> str:
    """`83%`, or `-` where nothing is known."""
    # A rounded zero has no sign.
    return f"{round(share, 2) + 0.0:.0%}" if math.isfinite(share) else "-"


def percents(estimate: Interval) -> str:
    """`105% [104%, 106%]`, `[unknown]` without an interval, or `-` without a value."""
    if not estimate.n:
        return "-"
    value = percent(estimate.value)
    if not math.isfinite(estimate.low):
        return f"{value} [unknown]"
    return f"{value} [{percent(estimate.low)}, {percent(estimate.high)}]"


def change(before: float, after: Interval) -> str:
    """`0.14 -> 0.94`, or `-` where nothing is known."""
    # A rounded zero has no sign.
    return f"{round(before, 2) + 0.0:.2f} -> {after.value:.2f}" if after.n else "-"
