"""Comparisons with the baseline, in words."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_failgain.baseline.comparison import Change, Comparison, level


def distinct_comparisons(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """`comparisons` without those that say once more what another with the same limits said."""
    found: dict[object, Comparison] = {}
    for comparison in comparisons:
        limits = tuple(change.allowed for change in comparison.changes)
        found.setdefault((comparison_line(comparison), limits), comparison)
    return list(found.values())


def comparison_line(comparison: Comparison) -> str:
    """What became of a measurement since the baseline, with what has to be said beside it."""
    parts = [comparison.reason or ", ".join(map(_moved, comparison.changes)), *comparison.notes]
    said = "; ".join(filter(None, parts))
    return f"{comparison.label}: {verdict_words(comparison)}{f': {said}' if said else ''}"


def verdict_words(comparison: Comparison) -> str:
    """The verdict, as people read it."""
    if comparison.verdict == "missing":
        return "no baseline"
    if comparison.verdict == "updated" and any(one.regressed for one in comparison.changes):
        return "updated, though worse than its limits allow"
    return comparison.verdict


def _moved(change: Change) -> str:
    if not change.difference.n:
        return f"{change.measure} unknown"
    return f"{change.measure} {level(change, change.before)} -> {level(change, change.now)}"
