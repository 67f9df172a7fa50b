"""How much a scorer had to compute."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Work:
    """What went through a model: pairs that were not known, tokens, and the seconds it took."""

    pairs: int = 0
    tokens: int = 0
    seconds: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(
            self.pairs + other.pairs, self.tokens + other.tokens, self.seconds + other.seconds
        )

    def __sub__(self, other: Work) -> Work:
        return Work(
            self.pairs - other.pairs, self.tokens - other.tokens, self.seconds - other.seconds
        )
