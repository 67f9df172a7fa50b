"""The noise floor: how far the same numbers lie apart when only the way of computing them differs.

The same cases are measured with other numbers of threads, other lengths of passes, and pairs in
other orders. What a comparison of two runs may call a difference has to be larger than this.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from benchmarks.figures import Figure, NotRunError, Verdict
from pytest_failgain.environments import build_environment
from pytest_failgain.harnesses import VERBATIM
from pytest_failgain.measurement import Measurement
from pytest_failgain.measurement import measure as measure_harness
from pytest_failgain.scoring.local import LocalScorer
from pytest_failgain.scoring.protocol import ModelIdentity, Pair, Refusal, Score

_SMALL_BUDGET, _BUDGET = 64, 256

CASES = {"tool_calls": 30, "program_repair": 10}


@dataclass(frozen=True, slots=True)
class Way:
    """A way to compute the same: threads, longest pass in tokens, and what shuffles the cases, and
    so which are computed together, and the pairs of each such batch."""

    threads: int
    budget: int = _BUDGET
    order: int | None = None

    def __str__(self) -> str:
        order = "" if self.order is None else f", in order {self.order}"
        return f"{self.threads} threads, passes of {self.budget} tokens{order}"


REFERENCE = Way(threads=1)
OTHERS = (
    Way(threads=2),
    Way(threads=1, budget=_SMALL_BUDGET),
    Way(threads=2, budget=_SMALL_BUDGET),
    Way(threads=1, order=1),
    Way(threads=2, order=2),
)


@dataclass(frozen=True, slots=True)
class Shuffled:
    """A scorer that is given the pairs of each call in another order."""

    scorer: LocalScorer
    order: int

    @property
    def identity(self) -> ModelIdentity:
        return self.scorer.identity

    def score(self, pairs: Sequence[Pair]) -> list[Score | Refusal]:
        places = random.Random(self.order).sample(range(len(pairs)), len(pairs))
        scores = self.scorer.score([pairs[place] for place in places])
        by_place = dict(zip(places, scores, strict=True))
        return [by_place[place] for place in range(len(pairs))]


@dataclass(frozen=True, slots=True)
class Gap:
    """The largest differences: of summed log-probabilities (nats), gains (nats a token) and repeat
    probabilities; and how many greedy flags differ."""

    logprob: float = 0.0
    gain_per_token: float = 0.0
    repeat_probability: float = 0.0
    flags: int = 0

    def wider(self, other: Gap) -> Gap:
        """The larger of both in each."""
        return Gap(
            max(self.logprob, other.logprob),
            max(self.gain_per_token, other.gain_per_token),
            max(self.repeat_probability, other.repeat_probability),
            max(self.flags, other.flags),
        )

    def __str__(self) -> str:
        return (
            f"log-probability {self.logprob:.1e} nats, gain {self.gain_per_token:.1e} nats per "
            f"token, repeat probability {self.repeat_probability:.1e}, greedy flags {self.flags}"
        )


def measure(
    scorer: LocalScorer, cases: Mapping[str, int], show: Callable[[str], None]
) -> list[Figure]:
    """The gaps between ways to measure so many `cases` of each environment. Nothing is promised."""
    figures, threads = [], torch.get_num_threads()
    try:
        for environment, count in cases.items():
            figures.append(_noise(scorer, environment, count, show))
    finally:
        torch.set_num_threads(threads)
    return figures


def _noise(
    scorer: LocalScorer, environment: str, count: int, show: Callable[[str], None]
) -> Figure:
    chosen = build_environment(environment).cases(count)

    def measured(way: Way) -> Measurement:
        torch.set_num_threads(way.threads)
        fresh = LocalScorer.of(scorer.model, scorer.tokenizer, scorer.identity, budget=way.budget)
        used = fresh if way.order is None else Shuffled(fresh, way.order)
        cases = list(chosen)
        if way.order is not None:
            random.Random(way.order).shuffle(cases)
        result = measure_harness(used, VERBATIM, cases)
        if result.skips:
            raise NotRunError(result.skips[0].reason)
        return result

    reference, widest = measured(REFERENCE), Gap()
    for way in OTHERS:
        gap = gap_between(reference, measured(way))
        show(f"{environment}, {way}: {gap}")
        widest = widest.wider(gap)
    what = f"noise: {len(reference.rows):,} scores of {count} cases of {environment}"
    return Figure(what, "-", str(widest), Verdict.NONE)


def gap_between(one: Measurement, other: Measurement) -> Gap:
    """How far two measurements of the same cases lie apart."""
    pairs = [(row, other.by_key[key]) for key, row in one.by_key.items()]
    logprobs = [abs(sum(a.token_logprobs) - sum(b.token_logprobs)) for a, b in pairs]
    return Gap(
        logprob=max(logprobs),
        gain_per_token=_widest(one, other, "corrective_gain_per_token"),
        repeat_probability=max(
            _widest(one, other, "repeat_probability_before"),
            _widest(one, other, "repeat_probability_after"),
        ),
        flags=sum(a.greedy != b.greedy for a, b in pairs),
    )


def _widest(one: Measurement, other: Measurement, values: str) -> float:
    """The largest difference of any case's value; the cases may be in another order."""
    place = {case_id: index for index, case_id in enumerate(other.values.case_ids)}
    order = [place[case_id] for case_id in one.values.case_ids]
    theirs = getattr(other.values, values)[order]
    return float(np.nanmax(np.abs(getattr(one.values, values) - theirs)))
