"""A measurement beside what the baseline keeps of it: what changed, and whether for the worse.

Cases are paired by their ids. A measure has regressed where its mean over the pairs moved the wrong
way by more than is allowed *and* the interval of the paired differences, which resamples tasks,
excludes zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pytest_failgain.baseline.entry import NOISE, Entry, KeptCase, Model
from pytest_failgain.statistics import ClusterBootstrap, Estimate

GAIN = "gain per token"

Verdict = Literal["no regression", "regression", "not comparable", "missing", "updated"]

# With a smaller share of its cases a baseline says nothing of the rest, which may have got worse.
_LEAST_PAIRED = 0.8
# What is added up in another order differs by less.
_DECIMALS = 9
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Limits:
    """What may change for the worse: shares by `max_increase`, gains by `max_gain_drop` (nats)."""

    max_increase: float = 0.05
    max_gain_drop: float = 0.1


@dataclass(frozen=True, slots=True)
class Change:
    """One measure, before and now over the paired cases; `difference` is now minus before.

    It `exceeds` what is `allowed` in its mean, and has `regressed` where that is not chance.
    """

    measure: str
    before: float
    now: float
    difference: Estimate
    allowed: float
    exceeds: bool
    regressed: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """`now` against `before`, which is None where the baseline has nothing of this name.

    `reason` says why the two can't be compared, where that is so. `added` and `removed` are ids of
    cases that only one of the two has. `path` is the file that `before` is from.
    """

    now: Entry
    before: Entry | None
    verdict: Verdict
    changes: tuple[Change, ...] = ()
    reason: str | None = None
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    path: Path | None = None

    @property
    def label(self) -> str:
        """What was measured, for people."""
        return self.now.label

    @property
    def notes(self) -> tuple[str, ...]:
        """What has to be said beside the verdict, each one line."""
        ids = (("not in the baseline", self.added), ("only in the baseline", self.removed))
        within_chance = [one for one in self.changes if one.exceeds and not one.regressed]
        return (
            *(f"over the limit, but within chance: {change_line(one)}" for one in within_chance),
            *(
                f"{len(cases)} case{'s' * (len(cases) != 1)} {what}: {named(cases)}"
                for what, cases in ids
                if cases
            ),
        )


@dataclass(frozen=True, slots=True)
class _Measure:
    name: str
    of: Callable[[KeptCase], float]
    worse: Literal[1, -1]
    allowed: Callable[[Limits], float]


_MEASURES = (
    _Measure(
        "repeat probability",
        lambda case: math.nan if case.repeat_probability is None else case.repeat_probability,
        1,
        lambda limits: limits.max_increase,
    ),
    _Measure(GAIN, lambda case: case.gain_per_token, -1, lambda limits: limits.max_gain_drop),
    _Measure(
        "greedy repeat", lambda case: float(case.greedy_repeat), 1, lambda one: one.max_increase
    ),
)


def compare(
    now: Entry,
    before: Entry | None,
    limits: Limits | None = None,
    skipped: Mapping[str, str] | None = None,
) -> Comparison:
    """What changed from `before` to `now`, and whether it is more than `limits` allow.

    `skipped` has the reasons for which cases could not be measured now, by their ids.
    """
    if before is None:
        return Comparison(now, None, "missing")
    added = tuple(case_id for case_id in now.cases if case_id not in before.cases)
    removed = tuple(case_id for case_id in before.cases if case_id not in now.cases)
    reason = _incomparable(now, before, skipped or {})
    if reason:
        return Comparison(
            now, before, "not comparable", reason=reason, added=added, removed=removed
        )
    paired = [case_id for case_id in now.cases if case_id in before.cases]
    bootstrap = ClusterBootstrap.over([now.cases[case_id].task for case_id in paired])
    changes = []
    for measure in _MEASURES:
        old = np.array([measure.of(before.cases[case_id]) for case_id in paired])
        new = np.array([measure.of(now.cases[case_id]) for case_id in paired])
        changes.append(_change(measure, old, new, bootstrap, limits or Limits()))
    return Comparison(
        now=now,
        before=before,
        verdict="regression" if any(one.regressed for one in changes) else "no regression",
        changes=tuple(changes),
        added=added,
        removed=removed,
    )


def level(change: Change, value: float) -> str:
    """A value of the measure as people read it: gains have a sign, shares have none."""
    return f"{value:+.3f}" if change.measure == GAIN else f"{value:.3f}"


def change_line(change: Change) -> str:
    """A change with its interval, the number of pairs, and what is allowed."""
    moved = change.difference
    sign = "-" if change.measure == GAIN else "+"
    return (
        f"{change.measure} {level(change, change.before)} -> {level(change, change.now)}, "
        f"{moved.value:+.3f} [{moved.low:+.3f}, {moved.high:+.3f}], n = {moved.n} "
        f"({sign}{change.allowed:g} allowed)"
    )


def _change(
    measure: _Measure,
    old: NDArray[np.float64],
    new: NDArray[np.float64],
    bootstrap: ClusterBootstrap,
    limits: Limits,
) -> Change:
    moved = new - old
    difference = bootstrap.mean(np.where(np.abs(moved) <= NOISE, 0.0, moved))
    known = np.isfinite(moved)
    worsening = difference.value * measure.worse
    nearest = difference.low if measure.worse > 0 else -difference.high
    allowed = measure.allowed(limits)
    exceeds = round(worsening, _DECIMALS) > allowed
    return Change(
        measure=measure.name,
        before=float(old[known].mean()) if known.any() else math.nan,
        now=float(new[known].mean()) if known.any() else math.nan,
        difference=difference,
        allowed=allowed,
        exceeds=exceeds,
        # Without an interval nothing speaks for chance.
        regressed=exceeds and not nearest <= 0,
    )


def _incomparable(now: Entry, before: Entry, skipped: Mapping[str, str]) -> str | None:
    """Why nothing can be said of the difference, or None."""
    return (
        _other_setting(now, before, "prompt_format", "prompt format")
        or _other_model(now.model, before.model)
        or _other_cases(now, before, skipped)
    )


def _other_setting(now: Entry, before: Entry, name: str, what: str) -> str | None:
    """That another setting made other prompts, where it did."""
    old, new = before.settings.get(name), now.settings.get(name)
    if before.model.template == now.model.template or old == new:
        return None
    return f"the {what} is {old!r} in the baseline and {new!r} now"


def _other_model(now: Model, before: Model) -> str | None:
    for name, what in (("weights", "weights"), ("template", "chat template"), ("dtype", "dtype")):
        old, new = getattr(before, name), getattr(now, name)
        if old != new:
            return (
                f"the model's {what} differ{'s' * (name != 'weights')}: {old or 'none'} in the "
                f"baseline ({_described(before)}), {new or 'none'} now ({_described(now)})"
            )
    return None


def _other_cases(now: Entry, before: Entry, skipped: Mapping[str, str]) -> str | None:
    lost = [case_id for case_id in before.cases if case_id in skipped]
    if lost:
        return (
            f"{len(lost)} of {len(before.cases)} cases of the baseline could not be measured now: "
            f"{named(lost)} ({skipped[lost[0]]})"
        )
    paired = [case_id for case_id in now.cases if case_id in before.cases]
    if len(paired) < _LEAST_PAIRED * len(before.cases) or not paired:
        missing = [case_id for case_id in before.cases if case_id not in now.cases]
        return (
            f"only {len(paired)} of {len(before.cases)} cases of the baseline were measured now, "
            f"at least {_LEAST_PAIRED:.0%} are needed; missing: {named(missing)}"
            f"{_seeds(now, before)} (several tests can't share an entry: give each a name of its "
            "own, assert_no_regression(…, name=…))"
        )
    changed = [
        case_id for case_id in paired if _is_another(now.cases[case_id], before.cases[case_id])
    ]
    if changed:
        return (
            f"{len(changed)} of {len(paired)} cases are about something else than in the baseline "
            f"(another goal, other steps or other candidates): {named(changed)}"
        )
    return None


def _seeds(now: Entry, before: Entry) -> str:
    old, new = before.settings.get("seed"), now.settings.get("seed")
    return "" if old == new else f" (seed {old} in the baseline, {new} now)"


def _is_another(now: KeptCase, before: KeptCase) -> bool:
    has_share = now.repeat_probability is not None, before.repeat_probability is not None
    return now.decision != before.decision or has_share[0] != has_share[1]


def _described(model: Model) -> str:
    return ", ".join(filter(None, (model.name, model.source, model.dtype)))


def named(case_ids: Sequence[str] | Mapping[str, object]) -> str:
    """The first few of some ids."""
    shown = list(case_ids)[:_NAMED]
    more = len(case_ids) - len(shown)
    return ", ".join([*shown, *([f"and {more} more"] if more else [])])
