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
from pytest_failgain.errors import UsageError
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
    of: Callable[[CaseRows, str], float]
    conditions: tuple[str, ...] = ALL
    signed: bool = False
    paper: Mapping[str, str] = field(default_factory=dict)


def gain(measured: CaseRows, condition: str) -> float:
    """f(before) - f(c): by how much the condition makes the failed action less likely."""
    return measured.logprob("before") - measured.logprob(condition)


def gain_per_token(measured: CaseRows, condition: str) -> float:
    return gain(measured, condition) / measured.n_tokens


def argument_gain_per_token(measured: CaseRows, condition: str) -> float:
    """The gain on the tokens of the action's arguments, divided by their number."""
    moved = measured.argument_logprob("before") - measured.argument_logprob(condition)
    return moved / measured.n_argument_tokens if measured.n_argument_tokens else math.nan


def negative(measured: CaseRows, condition: str) -> float:
    """1 where the gain is negative, else 0."""
    value = gain(measured, condition)
    return math.nan if math.isnan(value) else float(value < 0)


def change_from_failed(measured: CaseRows, condition: str) -> float:
    """f(c) - f(failed): what writing the failure in another way changes."""
    return measured.logprob(condition) - measured.logprob("failed")


def change_from_failed_per_token(measured: CaseRows, condition: str) -> float:
    return change_from_failed(measured, condition) / measured.n_tokens


def surface(measured: CaseRows, control: str) -> float:
    """f(control) - f(before): what the action's text does without its failure."""
    return measured.logprob(control) - measured.logprob("before")


def surface_per_token(measured: CaseRows, control: str) -> float:
    return surface(measured, control) / measured.n_tokens


def semantic(measured: CaseRows, control: str) -> float:
    """f(failed) - f(control): what being marked as failed adds. -gain = surface + semantic."""
    return measured.logprob("failed") - measured.logprob(control)


def semantic_per_token(measured: CaseRows, control: str) -> float:
    return semantic(measured, control) / measured.n_tokens


def repair(measured: CaseRows, condition: str) -> float:
    """g(c) - g(before): by how much the correct action becomes more likely."""
    return measured.logprob(condition, "correct") - measured.logprob("before", "correct")


def margin(measured: CaseRows, condition: str) -> float:
    """g(c) - f(c): by how much the correct action is more likely than the failed one."""
    return measured.logprob(condition, "correct") - measured.logprob(condition)


def margin_shift(measured: CaseRows, condition: str) -> float:
    return margin(measured, condition) - margin(measured, "before")


def repeat_probability(measured: CaseRows, condition: str) -> float:
    """The failed action's share in a softmax over all candidates of the case."""
    return _share(measured, condition, measured.case.candidates())


def published_repeat_probability(measured: CaseRows, condition: str) -> float:
    """The share over the candidates that the paper scored there, to compare with its tables.

    It scored distractors under `before` and `failed` only. Shares over candidate sets of different
    sizes don't compare with each other.
    """
    wide = condition in ("before", "failed")
    names = [name for name in measured.case.candidates() if wide or name in ("failed", "correct")]
    return _share(measured, condition, names)


def _share(measured: CaseRows, condition: str, candidates: Iterable[str]) -> float:
    logprobs = np.array([measured.logprob(condition, name) for name in candidates])
    if len(logprobs) < 2 or np.isnan(logprobs).any():
        return math.nan
    shares = np.exp(logprobs - logprobs.max())
    return float(shares[0] / shares.sum())


def repeat_probability_shift(measured: CaseRows, condition: str) -> float:
    return repeat_probability(measured, condition) - repeat_probability(measured, "before")


def greedy_repeat(measured: CaseRows, condition: str) -> float:
    """1 where greedy decoding emits exactly the failed action, else 0."""
    return measured.greedy(condition)


def greedy_repeat_shift(measured: CaseRows, condition: str) -> float:
    return greedy_repeat(measured, condition) - greedy_repeat(measured, "before")


def record_tokens(measured: CaseRows, condition: str) -> float:
    """By how many tokens the condition lengthens the prompt."""
    return measured.context_tokens(condition) - measured.context_tokens("before")


def padding_gap(measured: CaseRows, condition: str) -> float:
    """By how many tokens the condition's prompt is longer than the failed one's."""
    return measured.context_tokens(condition) - measured.context_tokens("failed")


def _paper(pattern: str, *conditions: str) -> dict[str, str]:
    return {name: pattern.format(CONDITIONS[name].paper_name) for name in conditions}


_NATS, _PER_TOKEN = "nats", "nats per token"
_PROBABILITY, _SHARE, _TOKENS = "probability", "share of cases", "tokens"

_ALL_MEASURES = (
    Measure(
        "gain",
        _NATS,
        gain,
        AFTER,
        signed=True,
        paper={"failed": "G", **_paper("G_{}", *VARIANTS)},
    ),
    Measure(
        "gain_per_token",
        _PER_TOKEN,
        gain_per_token,
        AFTER,
        signed=True,
        paper={"failed": "G_per_token"},
    ),
    Measure("argument_gain_per_token", _PER_TOKEN, argument_gain_per_token, AFTER, signed=True),
    Measure("negative", _SHARE, negative, AFTER, paper={"failed": "G_negative"}),
    Measure(
        "change_from_failed",
        _NATS,
        change_from_failed,
        VARIANTS,
        signed=True,
        paper=_paper("delta_{}", *VARIANTS),
    ),
    Measure(
        "change_from_failed_per_token",
        _PER_TOKEN,
        change_from_failed_per_token,
        VARIANTS,
        signed=True,
    ),
    Measure(
        "surface",
        _NATS,
        surface,
        CONTROLS,
        signed=True,
        paper={"neutral": "copy", "neutral-padded": "copy_pad", "succeeded": "copy_succ"},
    ),
    Measure(
        "surface_per_token",
        _PER_TOKEN,
        surface_per_token,
        CONTROLS,
        signed=True,
        paper={"neutral": "copy_per_token"},
    ),
    Measure(
        "semantic",
        _NATS,
        semantic,
        CONTROLS,
        signed=True,
        paper={"neutral": "sem", "neutral-padded": "sem_pad", "succeeded": "sem_succ"},
    ),
    Measure(
        "semantic_per_token",
        _PER_TOKEN,
        semantic_per_token,
        CONTROLS,
        signed=True,
        paper={"neutral": "sem_per_token"},
    ),
    Measure(
        "repair",
        _NATS,
        repair,
        AFTER,
        signed=True,
        paper={"failed": "repair", "described": "repair_abstract"},
    ),
    Measure(
        "margin",
        _NATS,
        margin,
        signed=True,
        paper=_paper("margin_{}", "before", "failed", "described"),
    ),
    Measure(
        "margin_shift",
        _NATS,
        margin_shift,
        AFTER,
        signed=True,
        paper={"failed": "margin_shift"},
    ),
    Measure("repeat_probability", _PROBABILITY, repeat_probability),
    Measure(
        "published_repeat_probability",
        _PROBABILITY,
        published_repeat_probability,
        paper=_paper("p_repeat_{}", "before", "failed", "succeeded", "neutral", "described"),
    ),
    Measure(
        "repeat_probability_shift",
        _PROBABILITY,
        repeat_probability_shift,
        AFTER,
        signed=True,
        paper={"failed": "p_repeat_shift"},
    ),
    Measure(
        "greedy_repeat",
        _SHARE,
        greedy_repeat,
        paper=_paper("greedy_repeat_{}", "before", "failed", "described"),
    ),
    Measure("greedy_repeat_shift", _SHARE, greedy_repeat_shift, AFTER, signed=True),
    Measure("record_tokens", _TOKENS, record_tokens, AFTER),
    Measure("padding_gap", _TOKENS, padding_gap, ("neutral-padded",)),
)
MEASURES = {measure.name: measure for measure in _ALL_MEASURES}


def measure_named(name: str) -> Measure:
    """The measure called `name`.

    Raises:
        UsageError: when there is none.
    """
    if name not in MEASURES:
        raise UsageError(f"there is no measure {name!r}; there are: {', '.join(MEASURES)}")
    return MEASURES[name]
