"""Scores that were computed already: remedies share most of their prompts with verbatim."""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from pytest_failgain.scoring.token_tree import Tokens

TokenScores = tuple[NDArray[np.float64], NDArray[np.bool_]]


class ScoreCache:
    """Token scores of (context, action) pairs of one model, the last used `capacity` of them.

    An entry is about 1 kB, so the cache is bounded whatever the number of cases.
    """

    def __init__(self, capacity: int = 20_000) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[bytes, TokenScores] = OrderedDict()

    def get(self, context: Tokens, action: Tokens) -> TokenScores | None:
        """The scores of the pair, or None if they are not here."""
        key = _key(context, action)
        scores = self._entries.get(key)
        if scores is not None:
            self._entries.move_to_end(key)
        return scores

    def put(self, context: Tokens, action: Tokens, scores: TokenScores) -> None:
        """Keep the scores of the pair; the longest unused entry makes room."""
        self._entries[_key(context, action)] = scores
        if len(self._entries) > self._capacity:
            self._entries.popitem(last=False)


def _key(context: Tokens, action: Tokens) -> bytes:
    # The context's length stands in front, so that the same tokens split elsewhere differ.
    tokens = np.array([len(context), *context, *action], dtype=np.int64)
    return blake2b(tokens.tobytes(), digest_size=16).digest()
