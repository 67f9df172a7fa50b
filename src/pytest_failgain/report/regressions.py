"""What got worse since the baseline, case by case, for the reports that people read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_failgain.baseline.comparison import Comparison, Verdict
from pytest_failgain.baseline.worst import CasePair, record_diff, worst_pairs
from pytest_failgain.report.characters import shortened

# What fails a build comes first, and of that what says why.
_ORDER: Sequence[Verdict] = ("regression", "not comparable", "missing", "updated", "no regression")
# A record may be one line of any length.
_LINE_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class RecordDiff:
    """How the record of a case changed: lines that begin with `-` (baseline), `+` (now) or a blank.

    There are none where it did not change. The last line of a long one says how many it lacks.
    """

    case_id: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Regression:
    """The worst of the `n` cases of a comparison that got worse, and the first of their records."""

    comparison: Comparison
    n: int
    worst: tuple[CasePair, ...]
    diffs: tuple[RecordDiff, ...]

    @property
    def fails(self) -> bool:
        """Whether it fails a test, which it does not while the baseline is written."""
        return self.comparison.verdict == "regression"


def by_urgency(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """`comparisons` with the regressions first, then what says nothing, then the others."""
    return sorted(comparisons, key=lambda one: _ORDER.index(one.verdict))


def regressions(
    comparisons: Iterable[Comparison], worst_shown: int, diffs_shown: int
) -> list[Regression]:
    """Those that got worse, each with so many cases and so many changes of records."""
    return [
        _regression(one, worst_shown, diffs_shown)
        for one in by_urgency(comparisons)
        if any(change.regressed for change in one.changes)
    ]


def _regression(comparison: Comparison, worst_shown: int, diffs_shown: int) -> Regression:
    pairs = worst_pairs(comparison)
    return Regression(
        comparison=comparison,
        n=len(pairs),
        worst=tuple(pairs[:worst_shown]),
        diffs=tuple(map(_diff, pairs[:diffs_shown])),
    )


def _diff(pair: CasePair) -> RecordDiff:
    # The first two lines name the two sides, which the reports say in words.
    lines = record_diff(pair)[2:]
    return RecordDiff(pair.case_id, tuple(shortened(line, _LINE_CHARACTERS) for line in lines))
