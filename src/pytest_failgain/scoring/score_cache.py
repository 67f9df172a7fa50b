"""Scores that were computed already: remedies share most of their prompts with verbatim."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from hashlib import blake2b
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pytest_failgain.scoring.token_tree import Tokens

TokenScores = tuple[NDArray[np.float64], NDArray[np.bool_]]


class KnownScores(Protocol):
    """Where a scorer looks before it computes, and puts what it computed."""

    def get(self, context: Tokens, action: Tokens) -> TokenScores | None: ...

    def put_all(self, scored: Iterable[tuple[Tokens, Tokens, TokenScores]]) -> None: ...


class ScoreCache:
    """Token scores of (context, action) pairs of one model, the last used `capacity` of them.

    An entry is about 1 kB, so the cache is bounded whatever the number of cases.
    """

    def __init__(self, capacity: int = 20_000) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[bytes, TokenScores] = OrderedDict()

    def get(self, context: Tokens, action: Tokens) -> TokenScores | None:
        """The scores of the pair, or None if they are not here."""
        key = pair_key(context, action)
        scores = self._entries.get(key)
        if scores is not None:
            self._entries.move_to_end(key)
        return scores

    def put(self, context: Tokens, action: Tokens, scores: TokenScores) -> None:
        """Keep the scores of the pair; the longest unused entry makes room."""
        key = pair_key(context, action)
        self._entries[key] = scores
        self._entries.move_to_end(key)
        if len(self._entries) > self._capacity:
            self._entries.popitem(last=False)

    def put_all(self, scored: Iterable[tuple[Tokens, Tokens, TokenScores]]) -> None:
        """Keep the scores of several pairs; see `put`."""
        for context, action, scores in scored:
            self.put(context, action, scores)


def pair_key(context: Tokens, action: Tokens, model: bytes = b"") -> bytes:
    """A digest of a pair, and of the model that it was scored with."""
    # The context's length stands in front, so that the same tokens split elsewhere differ.
    tokens = np.array([len(context), *context, *action], dtype=np.int64)
    return blake2b(tokens.tobytes() + model, digest_size=16).digest()
