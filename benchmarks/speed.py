"""Scoring speed against other engines: the same pairs, model, threads and run, in turns."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median

import torch

from benchmarks.engines import (
    Engine,
    OurScorer,
    PlainPasses,
    PrefixCache,
    counted,
    evaluation_harness,
)
from benchmarks.figures import Figure, NotRunError, Verdict, not_run, table
from benchmarks.workload import Workload, office_pairs, tokenised
from pytest_failgain.scoring.local import LocalScorer

_BATCH_SIZES = (1, 8)
_WANTED_NATS = 1e-3
_PREFIX_CACHE, _HARNESS, _VLLM = 3.0, 12.0, 25.0
_WHAT = "scoring speed, times that of"


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured: `cases` cases, `repeats` rounds.

    The slow engines get a sample of the pairs, `sample` for lm-evaluation-harness and `reference`
    for the plain passes, and are compared by their rate.
    """

    cases: int
    repeats: int
    sample: int
    reference: int


FULL = Effort(cases=8, repeats=3, sample=32, reference=64)
QUICK = Effort(cases=4, repeats=1, sample=8, reference=16)


@dataclass(frozen=True, slots=True)
class Rate:
    """Pairs a second: of the clock, and of processor time, which neighbours disturb less."""

    clock: float
    cpu: float


@dataclass(slots=True)
class Contestant:
    """An engine, what it is to score, and how it did in each round."""

    engine: Engine
    workload: Workload
    places: Sequence[int]
    threads: int
    rates: list[Rate] = field(default_factory=list)
    tokens: int = 0
    sums: dict[int, float] = field(default_factory=dict)

    def run(self, model: torch.nn.Module) -> None:
        engine = self.engine.fresh()
        with _threads(self.threads), counted(model) as count:
            clock, cpu = time.perf_counter(), time.process_time()
            sums = engine.sums(self.workload)
            clock, cpu = time.perf_counter() - clock, time.process_time() - cpu
        self.rates.append(Rate(len(self.workload) / clock, len(self.workload) / cpu))
        self.tokens = count.tokens
        self.sums = dict(zip(self.places, sums, strict=True))

    def largest_difference(self, reference: Contestant) -> float:
        """Largest |difference| of the sums in nats, over the pairs that both have."""
        common = self.sums.keys() & reference.sums.keys()
        return max((abs(self.sums[i] - reference.sums[i]) for i in common), default=math.nan)


def measure(
    scorer: LocalScorer, threads: int, effort: Effort, show: Callable[[str], None]
) -> list[Figure]:
    """The figures of scoring speed. `show` is told about progress and is given the details."""
    workload = tokenised(office_pairs(effort.cases), scorer.renderer)
    model, everything = scorer.model, range(len(workload))
    ours = Contestant(OurScorer(scorer), workload, everything, threads)
    prefix = Contestant(PrefixCache(model), workload, everything, threads)
    contestants = [ours, prefix]
    alone = None
    if threads > 1:
        engine = PrefixCache(model, f"{prefix.engine.name}, one thread")
        alone = Contestant(engine, workload, everything, 1)
        contestants.append(alone)
    harness, no_harness = None, ""
    sample, places = workload.sample(effort.sample)
    try:
        show("choosing lm-evaluation-harness's batch size")
        harness = Contestant(_best_harness(scorer, sample, threads), sample, places, threads)
        contestants.append(harness)
    except NotRunError as error:
        no_harness = str(error)
    _warm_up(contestants, workload)
    for index in range(effort.repeats):
        shift = index % len(contestants)
        for contestant in (*contestants[shift:], *contestants[:shift]):
            show(f"round {index + 1} of {effort.repeats}: {contestant.engine.name}")
            contestant.run(model)
    known, known_places = workload.sample(effort.reference)
    plain = Contestant(PlainPasses(model), known, known_places, threads)
    show(plain.engine.name)
    plain.run(model)
    contestants.append(plain)
    show(f"\n{_described(workload, effort, threads)}\n\n{_details(contestants, ours, plain)}\n")
    return [
        _ratio_figure(ours, prefix, _PREFIX_CACHE),
        *([_ratio_figure(ours, alone, None)] if alone else []),
        _ratio_figure(ours, harness, _HARNESS)
        if harness
        else not_run(f"{_WHAT} lm-evaluation-harness", f">= {_HARNESS:g}", no_harness),
        not_run(
            f"{_WHAT} vLLM on the CPU",
            f">= {_VLLM:g}",
            "vLLM is not among this benchmark's requirements",
            optional=True,
        ),
        _exactness_figure(ours, plain),
    ]


def _best_harness(scorer: LocalScorer, sample: Workload, threads: int) -> Engine:
    """lm-evaluation-harness with the batch size that is fastest on the first few pairs."""
    few = Workload(sample.pairs[:8], sample.sequences[:8])
    rates = {}
    for batch_size in _BATCH_SIZES:
        engine = evaluation_harness(scorer.model, scorer.tokenizer, batch_size)
        trial = Contestant(engine, few, range(len(few)), threads)
        trial.run(scorer.model)
        rates[trial.rates[0].cpu] = engine
    return rates[max(rates)]


def _warm_up(contestants: Sequence[Contestant], workload: Workload) -> None:
    few = Workload(workload.pairs[:2], workload.sequences[:2])
    for contestant in contestants:
        with _threads(contestant.threads):
            contestant.engine.sums(few)


@contextmanager
def _threads(count: int) -> Iterator[None]:
    usual = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(usual)


def _ratios(ours: Contestant, other: Contestant) -> tuple[list[float], list[float]]:
    """How many times as fast ours was, a round each: by the clock and by processor time."""
    both = list(zip(ours.rates, other.rates, strict=False))
    return [a.clock / b.clock for a, b in both], [a.cpu / b.cpu for a, b in both]


def _ratio_figure(ours: Contestant, other: Contestant, wanted: float | None) -> Figure:
    clock, cpu = _ratios(ours, other)
    rounds = len(clock)
    scatter = (
        f"{min(clock):.2f} to {max(clock):.2f} in {rounds} rounds" if rounds > 1 else "1 round"
    )
    return Figure(
        f"{_WHAT} {other.engine.name}",
        f">= {wanted:g}" if wanted else "-",
        f"{median(clock):.2f} ({scatter}; by CPU time {median(cpu):.2f})",
        Verdict.of(median(clock) >= wanted) if wanted else Verdict.NONE,
    )


def _exactness_figure(ours: Contestant, plain: Contestant) -> Figure:
    gap = ours.largest_difference(plain)
    return Figure(
        "scoring: sums against plain uncached passes",
        f"within {_WANTED_NATS:g} nats",
        f"{gap:.1e} nats at most, over {len(plain.workload)} pairs",
        Verdict.of(gap < _WANTED_NATS),
    )


def _described(workload: Workload, effort: Effort, threads: int) -> str:
    contexts = {context for context, _ in workload.sequences}
    lengths = [len(context) + len(action) for context, action in workload.sequences]
    plural = "s" if threads > 1 else ""
    return (
        f"{len(workload)} pairs from {effort.cases} cases: {len(contexts)} contexts, "
        f"{sum(lengths) / len(lengths):.0f} tokens a pair; float32, {threads} thread{plural}.\n"
        "Engines on fewer pairs have a sample drawn with a fixed seed, and are compared by rate.\n"
        "lm-evaluation-harness is given the token ids (see engines.py)."
    )


def _details(contestants: Sequence[Contestant], ours: Contestant, plain: Contestant) -> str:
    rows = []
    for one in contestants:
        ratio = "" if one is ours else f"{median(_ratios(ours, one)[0]):.2f}"
        gap = "" if one is plain else f"{one.largest_difference(plain):.0e}"
        rows.append(
            (
                one.engine.name,
                str(len(one.workload)),
                f"{median(rate.clock for rate in one.rates):.2f}",
                f"{median(rate.cpu for rate in one.rates):.2f}",
                ratio,
                f"{one.tokens:,}",
                f"{one.tokens / len(one.workload):.0f}",
                gap,
            )
        )
    head = (
        "engine",
        "pairs",
        "pairs/s",
        "pairs/CPU s",
        "ours / its",
        "tokens",
        "a pair",
        "max diff (nats)",
    )
    return table(head, rows)
