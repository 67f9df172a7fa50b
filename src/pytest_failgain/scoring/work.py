"""How much a scorer had to compute."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Work:
    """What was computed of pairs that were not known, and in how many seconds.

    `tokens` went through the model, where plain uncached passes over the same pairs would have
    taken `plain_tokens`.
    """

    pairs: int = 0
    plain_tokens: int = 0
    tokens: int = 0
    seconds: float = 0.0

    @property
    def avoided(self) -> float:
        """The share of the plain tokens that was not computed; NaN where nothing had to be."""
        return 1 - self.tokens / self.plain_tokens if self.plain_tokens else math.nan

    def __add__(self, other: Work) -> Work:
        return Work(
            self.pairs + other.pairs,
            self.plain_tokens + other.plain_tokens,
            self.tokens + other.tokens,
            self.seconds + other.seconds,
        )

    def __sub__(self, other: Work) -> Work:
        return Work(
            self.pairs - other.pairs,
            self.plain_tokens - other.plain_tokens,
            self.tokens - other.tokens,
            self.seconds - other.seconds,
        )
