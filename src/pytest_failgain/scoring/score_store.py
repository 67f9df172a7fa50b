"""Scores kept on disk: one file for all models."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from pytest_failgain.kept_rows import KeptRows
from pytest_failgain.scoring.score_cache import ScoreCache, TokenScores, pair_key
from pytest_failgain.scoring.token_tree import Tokens

# In the file's name, so that a later format does not meet an earlier one's rows.
FORMAT = 1

_MOST_ROWS = 500_000  # about 150 MB


class ScoreStore:
    """Token scores of (context, action) pairs of the model `model`, in the file at `path`.

    `model` has to tell apart whatever gives other numbers: weights, tokenizer, dtype. `remembered`
    holds what this process has used; the file holds all. `warn` is told when the file is no use.
    """

    def __init__(
        self,
        path: Path,
        model: str,
        most_rows: int = _MOST_ROWS,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        self._model = model.encode()
        self._remembered = ScoreCache()
        self._rows = KeptRows(path, "scores", ("logprobs", "matches"), most_rows, warn)

    def get(self, context: Tokens, action: Tokens) -> TokenScores | None:
        """The scores of the pair, or None if they are not known."""
        scores = self._remembered.get(context, action)
        if scores is not None:
            return scores
        row = self._rows.get(self._key(context, action))
        if row is None:
            return None
        if (len(row[0]), len(row[1])) != (8 * len(action), len(action)):
            self._rows.begin_anew("a row is of another length than its action")
            return None
        scores = np.frombuffer(row[0], np.float64), np.frombuffer(row[1], np.bool_)
        self._remembered.put(context, action, scores)
        return scores

    def put_all(self, scored: Iterable[tuple[Tokens, Tokens, TokenScores]]) -> None:
        """Keep the scores of these pairs: all of them are on disk when this returns, or none."""
        rows = []
        for context, action, scores in scored:
            self._remembered.put(context, action, scores)
            key = self._key(context, action)
            rows.append((key, scores[0].tobytes(), scores[1].tobytes()))
        self._rows.put_all(rows)

    def _key(self, context: Tokens, action: Tokens) -> bytes:
        return pair_key(context, action, self._model)
