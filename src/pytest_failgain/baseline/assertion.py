"""`assert_no_regression`: fails when the record does more harm than it did in the baseline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from os import PathLike
from pathlib import Path

from pytest_failgain.assertions import check_share, check_tolerance, require_cases
from pytest_failgain.baseline.comparison import Comparison, Limits, change_line
from pytest_failgain.baseline.keeper import BaselineKeeper
from pytest_failgain.baseline.worst import RECORD_UNCHANGED, record_diff, worst_pairs
from pytest_failgain.errors import UsageError
from pytest_failgain.measurement import Measurement
from pytest_failgain.report.characters import visible
from pytest_failgain.report.numbers import share

_WORST_SHOWN = 5
_DIFFS_SHOWN = 2


def assert_no_regression(
    result: Measurement,
    max_increase: float = 0.05,
    *,
    max_gain_drop: float = 0.1,
    name: str | None = None,
    baseline: str | PathLike[str] | None = None,
) -> None:
    """The record must not do more harm than it did when the baseline was written.

    Cases are paired by their ids with those of the same harness and environment in the baseline
    file: the one of this run, or that at `baseline`. It fails when the mean repeat probability or
    the greedy repeat rate rose by more than `max_increase` (a share), or the gain fell by more than
    `max_gain_drop` (nats per token), and the 95% interval of the paired differences excludes zero.

    The entry is found by the harness and the environment, or by the harness and `name`: where two
    tests measure one harness on different cases of one environment, each needs a name of its own.

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
    keeper = result.baseline
    if baseline is not None:
        keeper = replace(keeper or BaselineKeeper(Path(baseline)), path=Path(baseline))
    if keeper is None:
        raise UsageError(
            "there is no baseline to compare with: measure with the fixture `failgain`, or give "
            "assert_no_regression(…, baseline=PATH)"
        )
    comparison = keeper.compare(result, Limits(max_increase, max_gain_drop), name)
    problem = "\n".join(_problem(comparison, keeper, result))
    if problem:
        raise AssertionError(problem)


def _problem(comparison: Comparison, keeper: BaselineKeeper, result: Measurement) -> Iterator[str]:
    """The lines of the failure, none where there is none."""
    label, file = visible(comparison.label), keeper.path.name
    if comparison.verdict == "missing":
        yield f"{label}: no baseline: {comparison.reason}; write it with: {keeper.command}"
    elif comparison.verdict == "not comparable":
        yield f"{label}: not comparable with {file}: {comparison.reason}"
        yield (
            "nothing was concluded: measure as the baseline was, or, if it shall be like this from "
            f"now on, write it anew: {keeper.command}"
        )
    elif comparison.verdict == "regression":
        first, *others = (change_line(one) for one in comparison.changes if one.regressed)
        yield f"{label}: regression against {file}: {first}"
        yield from (f"also: {other}" for other in others)
        yield from _worst(comparison)
        notes = (*comparison.notes, *result.warnings)
        yield from (f"note: {note}" for note in notes)
        yield (
            "try: take back what changed in the prompt; if it shall be like this from now on, "
            f"write the baseline anew: {keeper.command}"
        )


def _worst(comparison: Comparison) -> Iterator[str]:
    """The cases that got worst, and how the records of the first of them changed."""
    pairs = worst_pairs(comparison)
    yield "worst cases:           gain/token         repeat p  greedy"
    for pair in pairs[:_WORST_SHOWN]:
        old, new = pair.before, pair.now
        gains = f"{old.gain_per_token:+.3f} -> {new.gain_per_token:+.3f}"
        shares = f"{share(old.repeat_probability)} -> {share(new.repeat_probability)}"
        greedy = "repeat" if new.greedy_repeat else "-"
        yield f"              {gains:>19}  {shares:>13}  {greedy:<6}  {visible(pair.case_id)}"
    for pair in pairs[:_DIFFS_SHOWN]:
        diff = record_diff(pair)
        name = f"record of {visible(pair.case_id)}"
        if not diff:
            yield f"{name}: {RECORD_UNCHANGED}"
            continue
        yield f"{name}:"
        yield from (f"  {line}" for line in diff)
