"""What was measured beside what was wanted, and how both are printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import quantiles


class NotRunError(Exception):
    """Something can't be measured here; the message says why."""


class Verdict(Enum):
    MET = "met"
    NOT_MET = "not met"
    NOT_RUN = "not run"
    # Shown beside the others; nothing is promised.
    NONE = "-"

    @staticmethod
    def of(met: bool) -> Verdict:
        return Verdict.MET if met else Verdict.NOT_MET


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of the outcome.

    For a figure that was not measured, `measured` says why. `optional` marks one that is not
    expected to be.
    """

    what: str
    wanted: str
    measured: str
    verdict: Verdict
    optional: bool = False

    @property
    def missing(self) -> bool:
        """Whether it ought to have been measured and was not."""
        return self.verdict is Verdict.NOT_RUN and not self.optional


def not_run(what: str, wanted: str, reason: str, *, optional: bool = False) -> Figure:
    return Figure(what, wanted, reason, Verdict.NOT_RUN, optional)


def verdict_table(figures: Sequence[Figure]) -> str:
    rows = [(one.what, one.wanted, one.measured, one.verdict.value) for one in figures]
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
