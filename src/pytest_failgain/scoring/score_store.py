"""Scores kept on disk, so that a killed run loses nothing that was finished.

One SQLite file for all models, in write-ahead mode: many processes may use it at once, and a writer
that is killed leaves it whole. A store that can't be read or written is worth a warning and no
more: the scores are then kept in memory only.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import weakref
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from pytest_failgain.scoring.score_cache import ScoreCache, TokenScores, pair_key
from pytest_failgain.scoring.token_tree import Tokens

# In the file's name, so that a later format does not meet an earlier one's rows.
FORMAT = 1

_BUSY_SECONDS = 30.0
_MOST_ROWS = 500_000  # about 150 MB

_log = logging.getLogger(__name__)


class ScoreStore:
    """Token scores of (context, action) pairs of the model `model`, in the file at `path`.

    `model` has to tell apart whatever gives other numbers: weights, tokenizer, dtype. `remembered`
    holds what this process has used; the file holds all.
    """

    def __init__(self, path: Path, model: str, most_rows: int = _MOST_ROWS) -> None:
        self.path = path
        self._model = model.encode()
        self._remembered = ScoreCache()
        self._connection = self._opened(most_rows)
        if self._connection is not None:
            weakref.finalize(self, self._connection.close)

    def get(self, context: Tokens, action: Tokens) -> TokenScores | None:
        """The scores of the pair, or None if they are not known."""
        scores = self._remembered.get(context, action)
        if scores is not None or self._connection is None:
            return scores
        try:
            row = self._connection.execute(
                "SELECT logprobs, matches FROM scores WHERE key = ?", [self._key(context, action)]
            ).fetchone()
        except sqlite3.Error as error:
            self._give_up("read", error)
            return None
        if row is None:
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
        if self._connection is None or not rows:
            return
        try:
            with self._connection:
                self._connection.executemany("INSERT OR IGNORE INTO scores VALUES (?, ?, ?)", rows)
        except sqlite3.Error as error:
            self._give_up("written", error)

    def _key(self, context: Tokens, action: Tokens) -> bytes:
        return pair_key(context, action, self._model)

    def _opened(self, most_rows: int) -> sqlite3.Connection | None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return _connect(self.path, most_rows)
        except sqlite3.OperationalError as error:
            self._give_up("opened", error)
        except sqlite3.DatabaseError as error:
            # Not a database any more. What it held can be computed again.
            aside = self.path.with_suffix(".damaged")
            _log.warning("%s is damaged (%s): moved to %s, begun anew", self.path, error, aside)
            with contextlib.suppress(OSError):
                self.path.replace(aside)
                for extra in ("-wal", "-shm"):
                    Path(f"{self.path}{extra}").unlink(missing_ok=True)
            with contextlib.suppress(sqlite3.Error):
                return _connect(self.path, most_rows)
        except OSError as error:
            self._give_up("opened", error)
        return None

    def _give_up(self, what: str, error: Exception) -> None:
        _log.warning(
            "scores can't be %s at %s (%s): this run keeps them in memory only; free the disk, or "
            "choose another folder with --failgain-cache-dir",
            what,
            self.path,
            error,
        )
        self._connection = None


def _connect(path: Path, most_rows: int) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        with connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS scores "
                "(key BLOB PRIMARY KEY, logprobs BLOB NOT NULL, matches BLOB NOT NULL)"
            )
            # The oldest rows make room.
            connection.execute(
                "DELETE FROM scores WHERE rowid <= (SELECT max(rowid) FROM scores) - ?",
                [most_rows],
            )
    except BaseException:
        connection.close()
        raise
    return connection
