"""The tokens of a failed action, and by how much the record moved each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_failgain.rows import Row


@dataclass(frozen=True, slots=True)
class Token:
    """One token: its characters' range in the action's text, and its log-probability in nats.

    `before` is without the record, `after` behind it. Several tokens may have the same characters,
    as the bytes of one do, and a token may have none.
    """

    start: int
    end: int
    before: float
    after: float

    @property
    def change(self) -> float:
        """By how many nats the record made it likelier."""
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive characters of an action, and by how many nats their tokens became likelier.

    `change` is None for characters that no token has.
    """

    text: str
    change: float | None


def tokens_of(before: Row, after: Row) -> tuple[Token, ...]:
    """The tokens of an action that was scored under both conditions."""
    return tuple(
        Token(start, end, first, second)
        for (start, end), first, second in zip(
            after.token_spans, before.token_logprobs, after.token_logprobs, strict=True
        )
    )


def pieces_of(text: str, tokens: Sequence[Token]) -> list[Piece]:
    """All of `text` in pieces, one a token; tokens that share characters are one piece.

    A token without characters counts to the piece before it, or to the first one.
    """
    pieces: list[Piece] = []
    place = 0
    for start, end, change in _runs(tokens):
        if place < start:
            pieces.append(Piece(text[place:start], None))
        pieces.append(Piece(text[start:end], change))
        place = end
    if place < len(text):
        pieces.append(Piece(text[place:], None))
    return pieces


def _runs(tokens: Sequence[Token]) -> list[tuple[int, int, float]]:
    """Ranges that don't overlap, in order, each with the change of all tokens in it (nats)."""
    runs: list[tuple[int, int, float]] = []
    waiting = 0.0
    for token in tokens:
        empty = token.start >= token.end
        if runs and (empty or token.start < runs[-1][1]):
            start, end, change = runs[-1]
            runs[-1] = (start, max(end, token.end), change + token.change)
        elif empty:
            waiting += token.change
        else:
            runs.append((token.start, token.end, token.change + waiting))
            waiting = 0.0
    return runs
