"""The pairs that every engine scores: the same prompts and actions, as text and as tokens."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_failgain.conditions import BEFORE, FAILED, NEUTRAL, SUCCEEDED
from pytest_failgain.environments import build_environment
from pytest_failgain.harness_checks import render
from pytest_failgain.harnesses import VERBATIM
from pytest_failgain.scoring.protocol import Pair
from pytest_failgain.scoring.rendering import Renderer
from pytest_failgain.trajectory import FailureCase

_CONDITIONS = (BEFORE, FAILED, NEUTRAL, SUCCEEDED)

Sequences = Sequence[tuple[tuple[int, ...], tuple[int, ...]]]


@dataclass(frozen=True, slots=True)
class Workload:
    """Pairs, and the tokens of each one's context and action, in the same order."""

    pairs: Sequence[Pair]
    sequences: Sequences

    def __len__(self) -> int:
        return len(self.pairs)

    def sample(self, size: int) -> tuple[Workload, list[int]]:
        """At most `size` pairs, drawn with a fixed seed, and their places here."""
        places = sorted(random.Random(0).sample(range(len(self)), min(size, len(self))))
        chosen = Workload([self.pairs[i] for i in places], [self.sequences[i] for i in places])
        return chosen, places


def office_pairs(count: int) -> list[Pair]:
    """Every candidate of `count` cases of the office workspace, in four conditions.

    They come case by case, then condition by condition, as a measurement makes them.
    """
    return [pair for case in office_cases(count) for pair in _pairs_of(case)]


def office_cases(count: int) -> Sequence[FailureCase]:
    return build_environment("tool_calls").cases(count)


def _pairs_of(case: FailureCase) -> list[Pair]:
    pairs: list[Pair] = []
    for condition in _CONDITIONS:
        trajectory = condition.trajectory(case)
        if trajectory is not None:
            prompt = render(VERBATIM, trajectory, case_id=case.case_id)
            pairs.extend(Pair(prompt, action) for action in case.candidates().values())
    return pairs


def tokenised(pairs: Sequence[Pair], renderer: Renderer) -> Workload:
    sequences = []
    for pair in pairs:
        rendered = renderer.render(pair.prompt)
        emitted = renderer.emit(pair.prompt, rendered, pair.action)
        sequences.append((rendered.tokens, emitted.tokens))
    return Workload(pairs, sequences)
