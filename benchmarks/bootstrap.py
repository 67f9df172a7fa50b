"""The cluster bootstrap against the same resampling written as a loop over draws, in turns."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from benchmarks.figures import Figure, NotRunError, Verdict
from pytest_failgain.statistics import DRAWS, SEED, ClusterBootstrap, Estimate

_CASES, _TASKS = 275, 58
# Of one effect with its draws made first, and of another effect of the same cases.
_WANTED_FIRST, _WANTED_FURTHER = 3.0, 50.0
# It takes less than a millisecond, and a busy machine's pauses are longer: the median of many.
_FURTHER = 100
# Quantiles of two sets of draws differ by chance, by a few hundredths of a standard error.
_SAME = 0.2


@dataclass(frozen=True, slots=True)
class Seconds:
    """Of the clock, and of processor time, which neighbours disturb less."""

    clock: float
    cpu: float


def measure(repeats: int, draws: int = DRAWS) -> list[Figure]:
    """How many times as fast as a loop effects are: the first of some cases, and a further one."""
    rng = np.random.default_rng(SEED)
    tasks = rng.permutation(np.arange(_CASES) % _TASKS)
    values = rng.normal(-1, 2, _CASES) + rng.normal(size=_TASKS)[tasks]
    drawn = ClusterBootstrap.over(tasks.tolist(), draws)

    def first() -> Estimate:
        return ClusterBootstrap.over(tasks.tolist(), draws).effect(values)

    def further() -> Estimate:
        return drawn.effect(values)

    def loop() -> Estimate:
        return looped(values, tasks, draws)

    _check(first(), loop())
    times = [(_seconds(first), _seconds(further, _FURTHER), _seconds(loop)) for _ in range(repeats)]
    firsts, furthers, loops = zip(*times, strict=True)
    of = f"{draws:,} draws of {_CASES} cases in {_TASKS} tasks"
    return [
        _ratio_figure(f"bootstrap: {of}, times as fast as a loop", firsts, loops, _WANTED_FIRST),
        _ratio_figure("bootstrap: another mean of them", furthers, loops, _WANTED_FURTHER),
    ]


def _ratio_figure(
    what: str, ours: Sequence[Seconds], loops: Sequence[Seconds], wanted: float
) -> Figure:
    """The ratio of the times of a loop to ours, taken in the same rounds."""
    both = list(zip(ours, loops, strict=True))
    clock = [loop.clock / our.clock for our, loop in both]
    cpu = median(loop.cpu / our.cpu for our, loop in both)
    rounds = len(clock)
    scatter = (
        f"{min(clock):.1f} to {max(clock):.1f} in {rounds} rounds" if rounds > 1 else "1 round"
    )
    milliseconds = 1000 * median(our.clock for our in ours)
    return Figure(
        what,
        f">= {wanted:g}",
        f"{median(clock):.1f} ({scatter}; by CPU time {cpu:.1f}; {milliseconds:.2f} ms)",
        Verdict.of(median(clock) >= wanted),
    )


def looped(values: NDArray[np.float64], tasks: NDArray[np.int64], draws: int) -> Estimate:
    """The mean of `values`, shape (cases,), with its interval, one draw at a time."""
    members = [values[tasks == task] for task in np.unique(tasks)]
    rng = np.random.default_rng(SEED)
    means = np.empty(draws)
    for draw in range(draws):
        chosen = rng.integers(len(members), size=len(members))
        means[draw] = np.concatenate([members[task] for task in chosen]).mean()
    low, high = np.quantile(means, (0.025, 0.975))
    return Estimate(float(values.mean()), float(low), float(high), len(values))


def _check(ours: Estimate, other: Estimate) -> None:
    """Speed counts only between procedures that agree."""
    chance = _SAME * (other.high - other.low) / 3.92
    ends = max(abs(ours.low - other.low), abs(ours.high - other.high))
    if not (math.isclose(ours.value, other.value) and ends <= chance):
        raise NotRunError(f"the bootstraps disagree: {ours} and {other}")


def _seconds(run: Callable[[], object], times: int = 1) -> Seconds:
    """The medians of `times` runs."""
    clocks, cpus = [], []
    for _ in range(times):
        clock, cpu = time.perf_counter(), time.process_time()
        run()
        clocks.append(time.perf_counter() - clock)
        cpus.append(time.process_time() - cpu)
    return Seconds(median(clocks), median(cpus))
