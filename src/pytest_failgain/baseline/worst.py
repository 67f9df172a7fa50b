"""The cases that got worst since the baseline, and how their records changed."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from pytest_failgain.baseline.comparison import GAIN, Comparison
from pytest_failgain.baseline.entry import KeptCase
from pytest_failgain.report.characters import visible

RECORD_UNCHANGED = (
    "The record is as before: what changed is the system prompt, the tools or an earlier turn, "
    "which a baseline does not hold."
)
"""What is to be said where there is no difference."""

_DIFF_LINES = 40


@dataclass(frozen=True, slots=True)
class CasePair:
    """One case, in the baseline and now."""

    case_id: str
    before: KeptCase
    now: KeptCase


def worst_pairs(comparison: Comparison) -> list[CasePair]:
    """The cases that both have, the one that got worst first.

    By the gain per token, which moves in every case that got worse; by shares where they alone
    regressed.
    """
    if comparison.before is None:
        return []
    before = comparison.before.cases
    pairs = [
        CasePair(case_id, before[case_id], now)
        for case_id, now in comparison.now.cases.items()
        if case_id in before
    ]
    regressed = [change.measure for change in comparison.changes if change.regressed]
    by_gain = GAIN in regressed or not regressed
    return sorted(pairs, key=_gain_moved if by_gain else _shares_moved)


def record_diff(pair: CasePair) -> list[str]:
    """How the record of a case changed, as lines of a unified diff; none where it did not.

    What can't be seen is written out, and a long diff is cut, which its last line says.
    """
    old, new = ([*map(visible, case.record.split("\n"))] for case in (pair.before, pair.now))
    lines = difflib.unified_diff(old, new, "baseline", "now", lineterm="", n=9)
    shown = [line for line in lines if not line.startswith("@@")]
    if len(shown) <= _DIFF_LINES:
        return shown
    return [*shown[:_DIFF_LINES], f"… and {len(shown) - _DIFF_LINES} more lines"]


def _gain_moved(pair: CasePair) -> float:
    return pair.now.gain_per_token - pair.before.gain_per_token


def _shares_moved(pair: CasePair) -> tuple[float, float]:
    rise = (pair.before.repeat_probability or 0) - (pair.now.repeat_probability or 0)
    return min(rise, pair.before.greedy_repeat - pair.now.greedy_repeat), _gain_moved(pair)
