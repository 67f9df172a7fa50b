"""What a scorer is given and what it gives back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pytest_failgain.prompt import Prompt
from pytest_failgain.trajectory import Action


@dataclass(frozen=True, slots=True)
class Pair:
    """An action to be scored after a prompt."""

    prompt: Prompt
    action: Action


@dataclass(frozen=True, slots=True)
class Score:
    """How likely one action is after one prompt, token by token.

    `text` is the action as it was scored (a structured call as the chat template writes it) and
    `token_spans` are the tokens' character ranges in it. `token_logprobs` are natural logarithms.
    `argmax` tells for each token whether it is the model's first choice there. `adaptations` are
    the ways in which prompt or action had to be changed for the model's chat template.
    """

    text: str
    token_logprobs: tuple[float, ...]
    argmax: tuple[bool, ...]
    token_spans: tuple[tuple[int, int], ...]
    context_tokens: int
    adaptations: tuple[str, ...] = ()

    @property
    def logprob(self) -> float:
        """Summed log-probability of the action, in nats."""
        return math.fsum(self.token_logprobs)

    @property
    def argmax_matches(self) -> int:
        """How many of the tokens are the model's first choice at their place."""
        return sum(self.argmax)

    @property
    def n_tokens(self) -> int:
        return len(self.token_logprobs)

    @property
    def greedy(self) -> bool:
        """Whether greedy decoding emits exactly this action: the argmax equals it everywhere."""
        return all(self.argmax)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a pair can't be scored, as a reason that a report can print."""

    reason: str


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """Which model gave the numbers, as far as it decides them."""

    name: str
    source: str
    revision: str | None
    fingerprint: str
    dtype: str
    device: str


@runtime_checkable
class TokenCounter(Protocol):
    """Tells the length of texts and of prompts in the tokens of its model."""

    def count_tokens(self, text: str) -> int:
        """The number of tokens of `text` by itself."""
        ...

    def count_prompt_tokens(self, prompt: Prompt) -> int:
        """The number of tokens of `prompt`, as `Score.context_tokens` has it."""
        ...


class Scorer(Protocol):
    """Gives log-probabilities of actions after prompts.

    One that is a `TokenCounter` as well can measure the condition `neutral-padded`.
    """

    @property
    def identity(self) -> ModelIdentity: ...

    def score(self, pairs: Sequence[Pair]) -> list[Score | Refusal]:
        """One result a pair, in the order of `pairs`.

        Raises:
            ScoringError: when a prompt can't be rendered, or a number is impossible.
        """
        ...
