"""Rows kept on disk, so that a killed run loses nothing that was finished.

An SQLite file in write-ahead mode: many processes may use it at once, and a writer that is killed
leaves it whole. A file that can't be read or written is worth a warning and no more.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path

_BUSY_SECONDS = 30.0

_log = logging.getLogger(__name__)


class KeptRows:
    """Rows of bytes under keys of bytes, in the table `name` of the SQLite file at `path`.

    Of more than `most_rows` rows the oldest make room when the file is opened. `name` and `columns`
    are the program's own, `name` a plural that warnings use. `warn` is told what went wrong; the
    log is, if nobody else wants it.
    """

    def __init__(
        self,
        path: Path,
        name: str,
        columns: Sequence[str],
        most_rows: int,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        self.path = path
        self._warn = warn or _log.warning
        self._name = name
        self._read = f"SELECT {', '.join(columns)} FROM {name} WHERE key = ?"
        self._write = f"INSERT OR IGNORE INTO {name} VALUES (?{', ?' * len(columns)})"
        blobs = ", ".join(f"{column} BLOB NOT NULL" for column in columns)
        self._create = f"CREATE TABLE IF NOT EXISTS {name} (key BLOB PRIMARY KEY, {blobs})"
        self._connection = self._opened(most_rows)
        if self._connection is not None:
            weakref.finalize(self, self._connection.close)

    def get(self, key: bytes) -> tuple[bytes, ...] | None:
        """The row under `key`, or None if there is none."""
        if self._connection is None:
            return None
        try:
            row: tuple[bytes, ...] | None = self._connection.execute(self._read, [key]).fetchone()
        except sqlite3.Error as error:
            self._give_up("read", error)
            return None
        return row

    def put_all(self, rows: Sequence[tuple[bytes, ...]]) -> None:
        """Keep these rows, each with its key first: when this returns, all are on disk or none."""
        if self._connection is None or not rows:
            return
        try:
            with self._connection:
                self._connection.executemany(self._write, rows)
        except sqlite3.Error as error:
            self._give_up("written", error)

    def _opened(self, most_rows: int) -> sqlite3.Connection | None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return self._connect(most_rows)
        except sqlite3.OperationalError as error:
            self._give_up("opened", error)
        except sqlite3.DatabaseError as error:
            # Not a database any more. What it held can be computed again.
            aside = self.path.with_suffix(".damaged")
            self._warn(f"{self.path} is damaged ({error}): moved to {aside}, begun anew")
            with contextlib.suppress(OSError):
                self.path.replace(aside)
                for extra in ("-wal", "-shm"):
                    Path(f"{self.path}{extra}").unlink(missing_ok=True)
            with contextlib.suppress(sqlite3.Error):
                return self._connect(most_rows)
        except OSError as error:
            self._give_up("opened", error)
        return None

    def _connect(self, most_rows: int) -> sqlite3.Connection:
        # Used by one thread at a time, but closed by whichever one collects the garbage.
        connection = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            with connection:
                connection.execute(self._create)
                connection.execute(
                    f"DELETE FROM {self._name} "
                    f"WHERE rowid <= (SELECT max(rowid) FROM {self._name}) - ?",
                    [most_rows],
                )
        except BaseException:
            connection.close()
            raise
        return connection

    def _give_up(self, what: str, error: Exception) -> None:
        self._warn(
            f"{self._name} can't be {what} at {self.path} ({error}): this run keeps them in memory "
            "only; free the disk, or choose another folder with --failgain-cache-dir"
        )
        self._connection = None
