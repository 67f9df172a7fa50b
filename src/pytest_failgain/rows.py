"""What was scored: one row for each candidate under each condition of a case."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pytest_failgain.spans import action_spans
from pytest_failgain.trajectory import FailureCase


@dataclass(frozen=True, slots=True)
class Row:
    """One candidate scored in one condition of one case.

    `logprob` is in nats and summed over `n_tokens`, of which `argmax_matches` are the model's first
    choice at their place; `greedy` tells whether greedy decoding emits exactly this candidate.
    `text`, `token_logprobs` and `token_spans` are as in `Score`.
    """

    case_id: str
    condition: str
    candidate: str
    logprob: float
    n_tokens: int
    context_tokens: int
    argmax_matches: int
    text: str
    token_logprobs: tuple[float, ...]
    token_spans: tuple[tuple[int, int], ...]

    @property
    def greedy(self) -> bool:
        return self.argmax_matches == self.n_tokens


@dataclass(frozen=True)
class CaseRows:
    """The rows of one case, by condition and candidate. What was not scored is NaN."""

    case: FailureCase
    rows: Mapping[tuple[str, str], Row]

    def row(self, condition: str, candidate: str = "failed") -> Row | None:
        return self.rows.get((condition, candidate))

    def logprob(self, condition: str, candidate: str = "failed") -> float:
        """Summed log-probability, in nats."""
        row = self.row(condition, candidate)
        return math.nan if row is None else row.logprob

    def argument_logprob(self, condition: str) -> float:
        """Summed log-probability of the failed action's argument tokens, in nats."""
        row = self.row(condition)
        if row is None:
            return math.nan
        return math.fsum(row.token_logprobs[index] for index in self._argument_tokens)

    def context_tokens(self, condition: str) -> float:
        row = self.row(condition)
        return math.nan if row is None else row.context_tokens

    def greedy(self, condition: str) -> float:
        """1 where greedy decoding emits exactly the failed action, else 0."""
        row = self.row(condition)
        return math.nan if row is None else float(row.greedy)

    @cached_property
    def n_tokens(self) -> int:
        """The failed action's number of tokens, which is the same in all conditions."""
        return next(row.n_tokens for (_, name), row in self.rows.items() if name == "failed")

    @property
    def n_argument_tokens(self) -> int:
        """How many of the failed action's tokens belong to its arguments."""
        return len(self._argument_tokens)

    @cached_property
    def _argument_tokens(self) -> list[int]:
        # All conditions have the same text and tokens; a case in which they differ is skipped.
        row = next(row for (_, name), row in self.rows.items() if name == "failed")
        spans = action_spans(row.text)
        return [i for i, token in enumerate(row.token_spans) if spans.in_arguments(token)]
