"""`assert_no_regression`: fails when the record does more harm than it did in the baseline."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from pytest_failgain.assertions import check_share, check_tolerance, require_cases
from pytest_failgain.baseline.comparison import Change, Comparison, Limits
from pytest_failgain.baseline.keeper import BaselineKeeper
from pytest_failgain.errors import UsageError
from pytest_failgain.measurement import Measurement

_WORST_SHOWN = 5
_DIFFS_SHOWN = 2


def assert_no_regression(
    result: Measurement,
    max_increase: float = 0.05,
    *,
    max_gain_drop: float = 0.1,
    baseline: str | PathLike[str] | None = None,
) -> None:
    """The record must not do more harm than it did when the baseline was written.

    Cases are paired by their ids with those of the same harness and environment in the baseline
    file: the one of this run, or that at `baseline`. It fails when the mean repeat probability or
    the greedy repeat rate rose by more than `max_increase` (a share), or the gain fell by more than
    `max_gain_drop` (nats per token), and the 95% interval of the paired differences excludes zero.

    Raises:
        AssertionError: when it does; when the baseline has no such entry, or one of another model,
            chat template, dtype or set of cases, which can't be compared; or when no case was
            measured.
        UsageError: when a limit does not fit, there is no baseline to compare with, or its file
            can't be used.
    """
    __tracebackhide__ = True
    check_share("max_increase", max_increase)
    check_tolerance(max_gain_drop, "0 or more nats per token", "max_gain_drop")
    require_cases(result)
    keeper = result.baseline if baseline is None else BaselineKeeper(Path(baseline))
    if keeper is None:
        raise UsageError(
            "there is no baseline to compare with: measure with the fixture `failgain`, or give "
            "assert_no_regression(…, baseline=PATH)"
        )
    comparison = keeper.compare(result, Limits(max_increase, max_gain_drop))
    problem = "\n".join(_problem(comparison, keeper))
    if problem:
        raise AssertionError(problem)


def _problem(comparison: Comparison, keeper: BaselineKeeper) -> Iterator[str]:
    """The lines of the failure, none where there is none."""
    label, file = comparison.label, keeper.path.name
    wanted = f"if that is wanted, write the baseline anew: {keeper.command}"
    if comparison.verdict == "missing":
        yield f"{label}: no baseline in {keeper.path}; write it with: {keeper.command}"
    elif comparison.verdict == "not comparable":
        yield f"{label}: not comparable with {file}: {comparison.reason}"
        yield f"nothing was concluded; {wanted}"
    elif comparison.verdict == "regression":
        first, *others = (_changed(one) for one in comparison.changes if one.regressed)
        yield f"{label}: regression against {file}: {first}"
        yield from (f"also: {other}" for other in others)
        held = [one for one in comparison.changes if not one.regressed]
        yield from (f"not by itself: {_changed(one)}" for one in held)
        yield from _worst(comparison)
        yield from (f"note: {note}" for note in comparison.notes)
        yield f"try: take back what changed in the record; {wanted}"


def _changed(change: Change) -> str:
    moved = change.difference
    sign = "-" if change.measure == "gain per token" else "+"
    return (
        f"{change.measure} {change.before:.3f} -> {change.now:.3f}, {moved.value:+.3f} "
        f"[{moved.low:+.3f}, {moved.high:+.3f}], n = {moved.n} ({sign}{change.allowed:g} allowed)"
    )


def _worst(comparison: Comparison) -> Iterator[str]:
    """The cases that got worst, and how the records of the first of them changed."""
    before = comparison.before
    assert before is not None
    pairs = [
        (case_id, before.cases[case_id], now)
        for case_id, now in comparison.now.cases.items()
        if case_id in before.cases
    ]
    pairs.sort(key=lambda pair: pair[2].gain_per_token - pair[1].gain_per_token)
    yield "worst cases:           gain/token         repeat p  greedy"
    for case_id, old, new in pairs[:_WORST_SHOWN]:
        gains = f"{old.gain_per_token:+.3f} -> {new.gain_per_token:+.3f}"
        shares = f"{_share(old.repeat_probability)} -> {_share(new.repeat_probability)}"
        greedy = "repeat" if new.greedy_repeat else "-"
        yield f"              {gains:>19}  {shares:>13}  {greedy:<6}  {case_id}"
    for case_id, old, new in pairs[:_DIFFS_SHOWN]:
        if old.record == new.record:
            yield f"record of {case_id}: as before, so the prompt before it has changed"
            continue
        yield f"record of {case_id}:"
        lines = difflib.unified_diff(
            old.record.splitlines(), new.record.splitlines(), "baseline", "now", lineterm="", n=9
        )
        yield from (f"  {line}" for line in lines if not line.startswith("@@"))


def _share(share: float | None) -> str:
    return "-" if share is None or math.isnan(share) else f"{share:.2f}"
