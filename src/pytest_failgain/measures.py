"""What is derived from the scores of one case: every measure of the published experiment.

f(c) and g(c) are the log-probabilities, in nats, of the failed and of the correct action under the
condition c. A measure has a value for each condition that it applies to; which, and what the paper
calls it, stands beside it. A value is NaN where the case lacks a row that it needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from pytest_failgain.conditions import CONDITIONS
from pytest_failgain.rows import CaseRows

ALL = tuple(CONDITIONS)
AFTER = tuple(name for name in ALL if name != "before")
# The conditions that show the action's text without its failure.
CONTROLS = ("neutral", "neutral-padded", "succeeded")
# The other ways to write the failure.
VARIANTS = tuple(name for name in AFTER if name not in (*CONTROLS, "failed"))


@dataclass(frozen=True, slots=True)
class Measure:
    """A value of each case under each of `conditions`.

    `signed` tells that 0 means no effect, so that a test against 0 makes sense. `paper` holds the
    paper's name of the measure, by condition, where it has one.
    """

    name: str
    unit: str
    value: Callable[[CaseRows, str], float]
    conditions: tuple[str, ...] = ALL
    signed: bool = False
    paper: Mapping[str, str] = field(default_factory=dict)


def gain(case: CaseRows, condition: str) -> float:
    """f(before) - f(c): by how much the condition makes the failed action less likely."""
    return case.logprob("before") - case.logprob(condition)


def gain_per_token(case: CaseRows, condition: str) -> float:
    return gain(case, condition) / case.n_tokens


def argument_gain_per_token(case: CaseRows, condition: str) -> float:
    """The gain on the tokens of the action's arguments, divided by their number."""
    return case.argument_logprob("before") - case.argument_logprob(condition)


def negative(case: CaseRows, condition: str) -> float:
    """1 where the gain is negative, else 0."""
    value = gain(case, condition)
    return math.nan if math.isnan(value) else float(value < 0)


def change_from_failed(case: CaseRows, condition: str) -> float:
    """f(c) - f(failed): what writing the failure in another way changes."""
    return case.logprob(condition) - case.logprob("failed")


def change_from_failed_per_token(case: CaseRows, condition: str) -> float:
    return change_from_failed(case, condition) / case.n_tokens


def surface(case: CaseRows, control: str) -> float:
    """f(control) - f(before): what the action's text does without its failure."""
    return case.logprob(control) - case.logprob("before")


def surface_per_token(case: CaseRows, control: str) -> float:
    return surface(case, control) / case.n_tokens


def semantic(case: CaseRows, control: str) -> float:
    """f(failed) - f(control): what being marked as failed adds. -gain = surface + semantic."""
    return case.logprob("failed") - case.logprob(control)


def semantic_per_token(case: CaseRows, control: str) -> float:
    return semantic(case, control) / case.n_tokens


def repair(case: CaseRows, condition: str) -> float:
    """g(c) - g(before): by how much the correct action becomes more likely."""
    return case.logprob(condition, "correct") - case.logprob("before", "correct")


def margin(case: CaseRows, condition: str) -> float:
    """g(c) - f(c): by how much the correct action is more likely than the failed one."""
    return case.logprob(condition, "correct") - case.logprob(condition)


def margin_shift(case: CaseRows, condition: str) -> float:
    return margin(case, condition) - margin(case, "before")


def repeat_probability(case: CaseRows, condition: str) -> float:
    """The failed action's share in a softmax over all candidates of the case."""
    return _share(case, condition, case.case.candidates())


def published_repeat_probability(case: CaseRows, condition: str) -> float:
    """The share over the candidates that the paper scored there, to compare with its tables.

    It scored distractors under `before` and `failed` only. Shares over candidate sets of different
    sizes don't compare with each other.
    """
    wide = condition in ("before", "failed")
    names = [name for name in case.case.candidates() if wide or name in ("failed", "correct")]
    return _share(case, condition, names)


def _share(case: CaseRows, condition: str, candidates: Iterable[str]) -> float:
    logprobs = np.array([case.logprob(condition, name) for name in candidates])
    if len(logprobs) < 2 or np.isnan(logprobs).any():
        return math.nan
    shares = np.exp(logprobs - logprobs.max())
    return float(shares[0] / shares.sum())


def repeat_probability_shift(case: CaseRows, condition: str) -> float:
    return repeat_probability(case, condition) - repeat_probability(case, "before")


def greedy_repeat(case: CaseRows, condition: str) -> float:
    """1 where greedy decoding emits exactly the failed action, else 0."""
    return case.greedy(condition)


def record_tokens(case: CaseRows, condition: str) -> float:
    """By how many tokens the condition lengthens the prompt."""
    return case.context_tokens(condition) - case.context_tokens("before")


def padding_gap(case: CaseRows, condition: str) -> float:
    """By how many tokens the condition's prompt is longer than the failed one's."""
    return case.context_tokens(condition) - case.context_tokens("failed")


def _paper(pattern: str, *conditions: str) -> dict[str, str]:
    return {name: pattern.format(CONDITIONS[name].paper_name) for name in conditions}


_NATS, _PER_TOKEN, _PROBABILITY, _SHARE, _TOKENS = (
    "nats",
    "nats per token",
    "probability",
    "share of cases",
    "tokens",
)

MEASURES = {
    measure.name: measure
    for measure in (
        Measure("gain", _NATS, gain, AFTER, True, {"failed": "G", **_paper("G_{}", *VARIANTS)}),
        Measure(
            "gain_per_token", _PER_TOKEN, gain_per_token, AFTER, True, {"failed": "G_per_token"}
        ),
        Measure("argument_gain_per_token", _PER_TOKEN, argument_gain_per_token, AFTER, True),
        Measure("negative", _SHARE, negative, AFTER, paper={"failed": "G_negative"}),
        Measure(
            "change_from_failed",
            _NATS,
            change_from_failed,
            VARIANTS,
            True,
            _paper("delta_{}", *VARIANTS),
        ),
        Measure(
            "change_from_failed_per_token",
            _PER_TOKEN,
            change_from_failed_per_token,
            VARIANTS,
            True,
        ),
        Measure(
            "surface",
            _NATS,
            surface,
            CONTROLS,
            True,
            {"neutral": "copy", "neutral-padded": "copy_pad", "succeeded": "copy_succ"},
        ),
        Measure(
            "surface_per_token",
            _PER_TOKEN,
            surface_per_token,
            CONTROLS,
            True,
            {"neutral": "copy_per_token"},
        ),
        Measure(
            "semantic",
            _NATS,
            semantic,
            CONTROLS,
            True,
            {"neutral": "sem", "neutral-padded": "sem_pad", "succeeded": "sem_succ"},
        ),
        Measure(
            "semantic_per_token",
            _PER_TOKEN,
            semantic_per_token,
            CONTROLS,
            True,
            {"neutral": "sem_per_token"},
        ),
        Measure(
            "repair",
            _NATS,
            repair,
            AFTER,
            True,
            {"failed": "repair", "described": "repair_abstract"},
        ),
        Measure("margin", _NATS, margin, ALL, True, _paper("margin_{}", *ALL)),
        Measure("margin_shift", _NATS, margin_shift, AFTER, True, {"failed": "margin_shift"}),
        Measure("repeat_probability", _PROBABILITY, repeat_probability),
        Measure(
            "published_repeat_probability",
            _PROBABILITY,
            published_repeat_probability,
            paper=_paper("p_repeat_{}", *ALL),
        ),
        Measure(
            "repeat_probability_shift",
            _PROBABILITY,
            repeat_probability_shift,
            AFTER,
            True,
            {"failed": "p_repeat_shift"},
        ),
        Measure("greedy_repeat", _SHARE, greedy_repeat, paper=_paper("greedy_repeat_{}", *ALL)),
        Measure("record_tokens", _TOKENS, record_tokens, AFTER),
        Measure("padding_gap", _TOKENS, padding_gap, ("neutral-padded",)),
    )
}
