"""A measurement beside what the baseline keeps of it: what changed, and whether for the worse.

Cases are paired by their ids. A measure has regressed where its mean over the pairs moved the wrong
way by more than is allowed *and* the interval of the paired differences, which resamples tasks,
excludes zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pytest_failgain.baseline.entry import NOISE, Entry, KeptCase, Model, Setting
from pytest_failgain.statistics import ClusterBootstrap, Estimate

Verdict = Literal["no regression", "regression", "not comparable", "missing", "updated"]

# Settings that write other prompts for the same model.
_DECISIVE_SETTINGS = ("prompt_format", "fold_system")
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Limits:
    """What may change for the worse: shares by `max_increase`, gains by `max_gain_drop` (nats)."""

    max_increase: float = 0.05
    max_gain_drop: float = 0.1


@dataclass(frozen=True, slots=True)
class Change:
    """One measure, before and now over the paired cases; `difference` is now minus before."""

    measure: str
    before: float
    now: float
    difference: Estimate
    allowed: float
    regressed: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """`now` against `before`, which is None where the baseline has nothing of this name.

    `reason` says why the two can't be compared, where that is so. `added` and `removed` are ids of
    cases that only one of the two has.
    """

    now: Entry
    before: Entry | None
    verdict: Verdict
    changes: tuple[Change, ...] = ()
    reason: str | None = None
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What was measured, for people."""
        return self.now.label

    @property
    def notes(self) -> tuple[str, ...]:
        """What has to be said beside the verdict, each one line."""
        ids = (("not in the baseline", self.added), ("only in the baseline", self.removed))
        return tuple(
            f"{len(cases)} case{'s' * (len(cases) != 1)} {what}: {named(cases)}"
            for what, cases in ids
            if cases
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
    _Measure(
        "gain per token", lambda case: case.gain_per_token, -1, lambda limits: limits.max_gain_drop
    ),
    _Measure(
        "greedy repeat", lambda case: float(case.greedy_repeat), 1, lambda one: one.max_increase
    ),
)


def compare(now: Entry, before: Entry | None, limits: Limits | None = None) -> Comparison:
    """What changed from `before` to `now`, and whether it is more than `limits` allow."""
    if before is None:
        return Comparison(now, None, "missing")
    reason = _incomparable(now, before)
    if reason:
        return Comparison(now, before, "not comparable", reason=reason)
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
        added=tuple(case_id for case_id in now.cases if case_id not in before.cases),
        removed=tuple(case_id for case_id in before.cases if case_id not in now.cases),
    )


def _change(
    measure: _Measure,
    old: np.ndarray[tuple[int], np.dtype[np.float64]],
    new: np.ndarray[tuple[int], np.dtype[np.float64]],
    bootstrap: ClusterBootstrap,
    limits: Limits,
) -> Change:
    moved = new - old
    difference = bootstrap.mean(np.where(np.abs(moved) <= NOISE, 0.0, moved))
    known = np.isfinite(moved)
    worsening = difference.value * measure.worse
    nearest = difference.low if measure.worse > 0 else -difference.high
    allowed = measure.allowed(limits)
    return Change(
        measure=measure.name,
        before=float(old[known].mean()) if known.any() else math.nan,
        now=float(new[known].mean()) if known.any() else math.nan,
        difference=difference,
        allowed=allowed,
        # Without an interval nothing speaks for chance.
        regressed=worsening > allowed and not nearest <= 0,
    )


def _incomparable(now: Entry, before: Entry) -> str | None:
    """Why nothing can be said of the difference, or None."""
    for name, what in (("weights", "weights"), ("template", "chat template"), ("dtype", "dtype")):
        old, new = getattr(before.model, name), getattr(now.model, name)
        if old != new:
            return (
                f"the model's {what} differ{'s' * (name != 'weights')}: {old or 'none'} in the "
                f"baseline ({_described(before.model)}), {new or 'none'} now "
                f"({_described(now.model)})"
            )
    setting = _other_setting(now.settings, before.settings)
    if setting:
        return setting
    paired = [case_id for case_id in now.cases if case_id in before.cases]
    if not paired:
        return (
            f"no case is in both: {len(before.cases)} in the baseline "
            f"({named(before.cases)}), {len(now.cases)} now ({named(now.cases)})"
        )
    changed = [
        case_id
        for case_id in paired
        if now.cases[case_id].decision != before.cases[case_id].decision
    ]
    if changed:
        return (
            f"{len(changed)} of {len(paired)} cases are about something else than in the baseline "
            f"(another goal, other steps or other candidates): {named(changed)}"
        )
    return None


def _other_setting(now: Mapping[str, Setting], before: Mapping[str, Setting]) -> str | None:
    for name in _DECISIVE_SETTINGS:
        if name in now and name in before and now[name] != before[name]:
            return f"the setting {name} is {before[name]!r} in the baseline and {now[name]!r} now"
    return None


def _described(model: Model) -> str:
    return ", ".join(filter(None, (model.name, model.source, model.dtype)))


def named(case_ids: Sequence[str] | Mapping[str, object]) -> str:
    """The first few of some ids."""
    shown = list(case_ids)[:_NAMED]
    more = len(case_ids) - len(shown)
    return ", ".join([*shown, *([f"and {more} more"] if more else [])])
