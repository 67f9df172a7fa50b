"""What a scorer is given and what it gives back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pytest_failgain.blocking.block import Block
from pytest_failgain.errors import UsageError
from pytest_failgain.prompt import Prompt
from pytest_failgain.replies import ReplyStyle
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
    the ways in which prompt or action had to be changed for the model's chat template. `context`
    is the prompt as the text that the model was given, empty where a scorer does not tell.
    """

    text: str
    token_logprobs: tuple[float, ...]
    argmax: tuple[bool, ...]
    token_spans: tuple[tuple[int, int], ...]
    context_tokens: int
    adaptations: tuple[str, ...] = ()
    context: str = ""

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
    """Which model gave the numbers, as far as it decides them.

    `template` is a short hash of the chat template that writes its prompts, empty without one.
    """

    name: str
    source: str
    revision: str | None
    fingerprint: str
    dtype: str
    device: str
    template: str = ""


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


@dataclass(frozen=True, slots=True)
class Sampling:
    """Draw replies at a temperature above 0.

    The noise is a function of `key` and of the token's place in the reply, nothing else: requests
    with the same key are decoded with the same luck, whatever their prompts are.

    Raises:
        UsageError: when `temperature` is not a finite number above 0.
    """

    temperature: float
    key: str

    def __post_init__(self) -> None:
        if not 0 < self.temperature < math.inf:
            raise UsageError(
                f"the temperature to draw at must be above 0 and finite, not {self.temperature}"
            )


@dataclass(frozen=True, slots=True)
class ReplyRequest:
    """A reply that is wanted: at most `max_tokens` tokens after `prompt`, read in `style`.

    It is decoded greedily without `sampling`. `block` makes some actions impossible.
    """

    prompt: Prompt
    style: ReplyStyle
    max_tokens: int
    block: Block | None = None
    sampling: Sampling | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said, and how it came to an end.

    `ended` is "stop" (the model ended its turn), "line" (the action's line was over), "length" (no
    more tokens were allowed) or "dead end" (the block left nothing to say; `text` is empty then if
    it would be a blocked action). `n_tokens` counts the tokens of the reply, `n_decoded` also the
    one that ended it and those that a search went back from, and `blocked` how often the block
    stepped in.
    """

    text: str
    ended: str
    n_tokens: int
    n_decoded: int
    prompt_tokens: int
    blocked: int = 0
    adaptations: tuple[str, ...] = ()


@runtime_checkable
class Decoder(Protocol):
    """Lets a model write replies."""

    @property
    def identity(self) -> ModelIdentity: ...

    def decode(self, requests: Sequence[ReplyRequest]) -> list[Reply | Refusal]:
        """One result a request, in the order of `requests`; equal requests are decoded once.

        Raises:
            ScoringError: when a prompt can't be rendered, or a number is impossible.
        """
        ...
