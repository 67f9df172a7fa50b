"""What was measured beside what was wanted, and how both are printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import quantiles


class NotRunError(Exception):
    """Something can't be measured here; the message says why."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of the verdict.

    `met` is None for a figure that was not measured: `measured` then says why. `optional` marks one
    that is not expected to be.
    """

    what: str
    wanted: str
    measured: str
    met: bool | None
    optional: bool = False

    @property
    def verdict(self) -> str:
        return {True: "met", False: "not met", None: "not run"}[self.met]

    @property
    def missing(self) -> bool:
        """Whether it ought to have been measured and was not."""
        return self.met is None and not self.optional


def not_run(what: str, wanted: str, reason: str, *, optional: bool = False) -> Figure:
    return Figure(what, wanted, reason, None, optional)


def verdict_table(figures: Sequence[Figure]) -> str:
    rows = [(figure.what, figure.wanted, figure.measured, figure.verdict) for figure in figures]
    return table(("figure", "wanted", "measured", "verdict"), rows)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns under `head`, as wide as their contents."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def middle_half(values: Sequence[float]) -> tuple[float, float]:
    """First and third quartile."""
    first, _, third = quantiles(values, n=4, method="inclusive")
    return first, third
