"""Comparisons with the baseline, in words."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_failgain.baseline.comparison import Change, Comparison


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
    return f"{comparison.label}: {comparison.verdict}{f': {said}' if said else ''}"


def _moved(change: Change) -> str:
    if not change.difference.n:
        return f"{change.measure} unknown"
    return f"{change.measure} {change.before:+.3f} -> {change.now:+.3f}".replace("+0.", "0.")
