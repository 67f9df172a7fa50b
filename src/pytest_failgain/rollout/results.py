"""What happened in rollouts, and what is derived from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_failgain.errors import UsageError
from pytest_failgain.rollout.measures import ROLLOUT_MEASURES, rollout_measure_named
from pytest_failgain.rollout.turns import OUTCOMES, Rollout
from pytest_failgain.scoring.protocol import ModelIdentity
from pytest_failgain.statistics import ClusterBootstrap, Effect, Estimate

_FLOOR = 0.5
_FEW_TASKS = 10


@dataclass(frozen=True, slots=True)
class Setting:
    """What two sets of rollouts must have in common to be compared.

    `tasks` are the ids of the episodes, in order. `temperature` 0 is greedy decoding.
    """

    environment: str
    variant: str
    model: ModelIdentity
    tasks: tuple[str, ...]
    max_steps: int
    primed: bool
    demonstrations: int
    temperature: float
    samples: int
    seed: int


@dataclass(frozen=True, slots=True)
class NotStarted:
    """A task in which the model could not even begin, and why."""

    task_id: str
    reason: str


@dataclass(frozen=True, repr=False)
class Rollouts:
    """The rollouts of one harness, `samples` of every task.

    `block` names the decoder block, None where there is none. `adaptations` counts, by its
    description, how many rollouts needed each change for the model's chat template.
    `by_construction` is what follows from harness and decoding alone.
    """

    harness: str
    setting: Setting
    rollouts: tuple[Rollout, ...]
    not_started: tuple[NotStarted, ...] = ()
    block: str | None = None
    adaptations: tuple[tuple[str, int], ...] = ()
    by_construction: str | None = None

    @property
    def environment(self) -> str:
        return self.setting.environment

    def values_of(self, measure: str) -> NDArray[np.float64]:
        """A measure of each rollout, by name; shape (rollouts,). NaN where it is not defined.

        Raises:
            UsageError: when there is no such measure.
        """
        of = rollout_measure_named(measure).of
        return np.array([of(rollout) for rollout in self.rollouts], np.float64)

    @cached_property
    def estimates(self) -> dict[str, Estimate]:
        """Every measure's mean by name, with its interval by task and the rollouts it rests on."""
        bootstrap = ClusterBootstrap.over([rollout.task_id for rollout in self.rollouts])
        return {name: bootstrap.mean(self.values_of(name)) for name in ROLLOUT_MEASURES}

    @property
    def n_wanted(self) -> int:
        """How many rollouts there would be if each had started."""
        return len(self.rollouts) + len(self.not_started)

    @cached_property
    def outcomes(self) -> dict[str, int]:
        """How many rollouts ended in each way: see `turns.OUTCOMES`."""
        counted = Counter(rollout.outcome for rollout in self.rollouts)
        return {outcome: counted[outcome] for outcome in OUTCOMES}

    def undefined(self, measure: str) -> int:
        """In how many rollouts the measure has no value, as repeats have none without a failure."""
        return len(self.rollouts) - self.estimates[measure].n

    @property
    def on_the_floor(self) -> bool:
        """Whether fewer than half of the replies were valid, so that harnesses hardly matter."""
        return bool(self.estimates["valid_call_rate"].value < _FLOOR)

    def summary(self) -> dict[str, Any]:
        """`n`, `n_tasks`, how rollouts ended, and each mean with its 95% interval as `<name>_ci`.

        NaN stands where no rollout has a value.
        """
        summary: dict[str, Any] = {
            "n": len(self.rollouts),
            "n_tasks": len({rollout.task_id for rollout in self.rollouts}),
            **{f"ended_{outcome}": count for outcome, count in self.outcomes.items()},
        }
        for name, estimate in self.estimates.items():
            summary[name] = estimate.value
            summary[f"{name}_ci"] = estimate.interval
        return summary

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Reasons to distrust the figures, each one line."""
        return tuple(self._warnings())

    def _warnings(self) -> Iterable[str]:
        if not self.rollouts:
            yield "no rollout was run: nothing can be concluded, and every assertion fails"
            return
        if self.on_the_floor:
            valid = self.estimates["valid_call_rate"].value
            yield (
                f"on the floor: only {valid:.0%} of the replies were valid actions, so that "
                "comparing harnesses says little; give more demonstrations, or a larger model"
            )
        tasks = len({rollout.task_id for rollout in self.rollouts})
        if tasks < _FEW_TASKS:
            yield (
                f"only {tasks} task{'s' * (tasks != 1)}: intervals resample tasks, and are too "
                f"narrow with fewer than {_FEW_TASKS}"
            )
        turns = [turn for rollout in self.rollouts for turn in rollout.turns]
        for what, count in (
            ("came to a dead end, where the block left nothing to say", _ended(turns, "dead end")),
            ("were cut at the length that a reply may have", _ended(turns, "length")),
            ("held bytes that are no text", sum("\ufffd" in turn.reply for turn in turns)),
        ):
            if count:
                yield f"{count} of {len(turns)} replies {what}"

    def __repr__(self) -> str:
        # Short, since pytest prints it beside every assertion that fails.
        solved = self.estimates["success"]
        return (
            f"<Rollouts {self.harness} on {self.environment}: n={len(self.rollouts)}, "
            f"success {solved.value:.2f} [{solved.low:.2f}, {solved.high:.2f}]>"
        )


def _ended(turns: Iterable[Any], how: str) -> int:
    return sum(turn.ended == how for turn in turns)


def rollout_difference(measure: str, one: Rollouts, other: Rollouts) -> Effect:
    """The mean of `measure` in `one` minus `other`, paired by task and sample, tested against 0.

    A pair that lacks a value on either side is left out.

    Raises:
        UsageError: when there is no such measure, or the two were not run on the same tasks in the
            same way.
    """
    check_comparable(one, other)
    of = rollout_measure_named(measure).of
    known: dict[Hashable, float] = {rollout.key: of(rollout) for rollout in other.rollouts}
    pairs = [rollout for rollout in one.rollouts if rollout.key in known]
    differences = np.array([of(rollout) - known[rollout.key] for rollout in pairs], np.float64)
    return ClusterBootstrap.over([rollout.task_id for rollout in pairs]).effect(differences)


def check_comparable(one: Rollouts, other: Rollouts) -> None:
    """Refuse two sets of rollouts that were not run on the same tasks in the same way.

    Raises:
        UsageError: naming what differs.
    """
    differing = [
        name
        for name in Setting.__slots__
        if getattr(one.setting, name) != getattr(other.setting, name)
    ]
    if differing:
        raise UsageError(
            f"the rollouts of {one.harness} and {other.harness} can't be compared, since they "
            f"differ in: {', '.join(differing)}; run both on the same tasks, in the same way"
        )
