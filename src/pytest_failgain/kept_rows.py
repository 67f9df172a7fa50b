"""Rows kept on disk, so that a killed run loses nothing that was finished.

An SQLite file in write-ahead mode: many processes may use it at once, and a writer that is killed
leaves it whole. A file that can't be read or written is worth a warning and no more.

A damaged file is never replaced under its own name: another process may still have it open, and
would take the files that SQLite keeps beside the new one for its own. The rows go on in a file of
the next number, which all processes find that meet the damage.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path

_BUSY_SECONDS = 30.0
# What SQLite keeps beside a file while it is in use.
_BESIDE = ("-wal", "-shm")
_MOST_LOG_BYTES = 2**24

_log = logging.getLogger(__name__)


class _DamagedError(sqlite3.DatabaseError):
    """The file holds something else than rows of ours."""


class KeptRows:
    """Rows of bytes under keys of bytes, in the table `name` of the SQLite file at `path`.

    Of more than `most_rows` rows the oldest make room, which later rows take. `name` and `columns`
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
        self._given_path = path
        self._warn = warn or _log.warning
        self._name = name
        self._columns = ["key", *columns]
        self._most_rows = most_rows
        self._connection: sqlite3.Connection | None = None
        self._writable = True
        self._identity: tuple[int, int] | None = None
        self._closing: Callable[[], object] | None = None
        self.path = _newest(path)
        self._open()

    def get(self, key: bytes) -> tuple[bytes, ...] | None:
        """The row under `key`, or None if there is none."""
        columns = ", ".join(self._columns[1:])
        read = f"SELECT {columns} FROM {self._name} WHERE key = ?"
        try:
            return None if self._connection is None else self._execute(read, key).fetchone()
        except sqlite3.OperationalError as error:
            self._give_up("read", error)
        except sqlite3.DatabaseError as error:
            _check_damage(error)
            self.begin_anew(str(error))
        return None

    def put_all(self, rows: Sequence[tuple[bytes, ...]]) -> None:
        """Keep these rows, each with its key first: when this returns, all are on disk or none."""
        if self._connection is None or not self._writable or not rows:
            return
        try:
            self._write(rows)
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                self._warn_of_lock()
            else:
                self._only_read("written", error)
        except sqlite3.DatabaseError as error:
            _check_damage(error)
            self.begin_anew(str(error))
            if self._connection is not None and self._writable:
                with contextlib.suppress(sqlite3.Error):
                    self._write(rows)

    def _warn_of_lock(self) -> None:
        self._warn(
            f"{self._name} were not written at {self.path}: another process held the file for over "
            f"{_BUSY_SECONDS:g} seconds; what this run computed meanwhile is computed again by the "
            "next"
        )

    def begin_anew(self, problem: str) -> None:
        """Set the file aside, which is damaged as `problem` says, and go on with an empty one."""
        self._close()
        damaged, self.path = self.path, _after(self._given_path, self.path)
        aside = self._set_aside(damaged)
        where = f"moved to {aside}" if aside else "it could not be moved, or was already"
        self._warn(f"{damaged} is damaged ({problem}): {where}; begun anew at {self.path.name}")
        self._open(again=True)

    def _set_aside(self, damaged: Path) -> Path | None:
        """Where the damaged file is now, None where it was not moved."""
        aside = self._given_path.with_suffix(".damaged")  # in place of an older one
        try:
            # There first, so that nobody begins a file under the old name in between.
            self.path.touch()
            if self._identity != _identity(damaged):
                return None  # another process has moved it, and this is somebody's good one
            os.replace(damaged, aside)
        except OSError:
            return None
        for extra in _BESIDE:
            with contextlib.suppress(OSError):
                Path(f"{damaged}{extra}").unlink()
        return aside

    def _open(self, again: bool = False) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._use(self._connected())
        except (sqlite3.OperationalError, OSError) as error:
            self._only_read("opened", error)
        except sqlite3.DatabaseError as error:
            _check_damage(error)
            if again:
                self._give_up("opened", error)
            else:
                self.begin_anew(str(error))

    def _use(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._closing = weakref.finalize(self, connection.close)

    def _close(self) -> None:
        if self._closing is not None:
            self._closing()
        self._connection = self._closing = None

    def _connected(self) -> sqlite3.Connection:
        connection = _connect(self.path)
        try:
            self._identity = _identity(self.path)
            _write_ahead(connection)
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(f"PRAGMA journal_size_limit = {_MOST_LOG_BYTES}")
            blobs = ", ".join(f"{column} BLOB NOT NULL" for column in self._columns[1:])
            with connection:
                connection.execute(
                    f"CREATE TABLE IF NOT EXISTS {self._name} (key BLOB PRIMARY KEY, {blobs})"
                )
            self._check_columns(connection)
            with connection:
                self._make_room(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_columns(self, connection: sqlite3.Connection) -> None:
        found = [row[1] for row in connection.execute(f"PRAGMA table_info({self._name})")]
        if found != self._columns:
            raise _DamagedError(f"its table {self._name} has the columns {', '.join(found)}")

    def _write(self, rows: Sequence[tuple[bytes, ...]]) -> None:
        assert self._connection is not None
        places = ", ".join("?" for _ in self._columns)
        with self._connection:
            self._connection.executemany(
                f"INSERT OR IGNORE INTO {self._name} VALUES ({places})", rows
            )
            self._make_room(self._connection)

    def _make_room(self, connection: sqlite3.Connection) -> None:
        connection.execute(
            f"DELETE FROM {self._name} WHERE rowid <= (SELECT max(rowid) FROM {self._name}) - ?",
            [self._most_rows],
        )

    def _execute(self, command: str, *values: object) -> sqlite3.Cursor:
        assert self._connection is not None
        return self._connection.execute(command, values)

    def _only_read(self, what: str, error: Exception) -> None:
        """Read what is there, if that can be done; what is new is not kept."""
        self._writable = False
        if self._connection is None:
            with contextlib.suppress(sqlite3.Error, OSError):
                self._use(self._connected_to_read())
        if self._connection is None:
            self._give_up(what, error)
            return
        self._warn(
            f"{self._name} can't be written at {self.path} ({error}): those that are there are "
            "read, and this run keeps new ones in memory only; free the disk, make the file and "
            "its folder writable, or choose another folder with --failgain-cache-dir"
        )

    def _connected_to_read(self) -> sqlite3.Connection:
        """A connection for a file whose folder can't be written.

        SQLite would make the files beside it, in which readers and writers tell of each other.
        Where they are there, it reads them; where they are not, nobody is writing, and the file
        stands as it is.
        """
        log = Path(f"{self.path}-wal")
        at_rest = not log.exists() or log.stat().st_size == 0
        for mode in ("mode=ro", "immutable=1") if at_rest else ("mode=ro",):
            connection = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?{mode}",
                uri=True,
                timeout=_BUSY_SECONDS,
                check_same_thread=False,
            )
            try:
                self._check_columns(connection)
            except sqlite3.OperationalError:
                connection.close()
                continue
            except BaseException:
                connection.close()
                raise
            return connection
        raise sqlite3.OperationalError("it can't be read either")

    def _give_up(self, what: str, error: Exception) -> None:
        self._close()
        self._warn(
            f"{self._name} can't be {what} at {self.path} ({error}): this run keeps them in memory "
            "only; free the disk, or choose another folder with --failgain-cache-dir"
        )


def _connect(path: Path) -> sqlite3.Connection:
    # Used by one thread at a time, but closed by whichever one collects the garbage.
    return sqlite3.connect(path, timeout=_BUSY_SECONDS, check_same_thread=False)


def _write_ahead(connection: sqlite3.Connection) -> None:
    # Processes that make a file at once get in each other's way here, and SQLite does not wait.
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.02)


def _check_damage(error: sqlite3.DatabaseError) -> None:
    """Raise `error` again unless it tells of a damaged file: its subclasses tell other things."""
    if type(error) not in (sqlite3.DatabaseError, _DamagedError):
        raise error


def _newest(path: Path) -> Path:
    """The file that rows are kept in: `path`, or the last of those that followed a damaged one."""
    numbered = path.parent.glob(f"{path.stem}.*{path.suffix}")
    return max((path, *numbered), key=lambda one: _number(path, one))


def _after(path: Path, damaged: Path) -> Path:
    """The file that takes the place of `damaged`."""
    following = _number(path, damaged) + 1
    latest = _newest(path)
    return latest if _number(path, latest) >= following else _numbered(path, following)


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.stem}.{number}{path.suffix}")


def _number(path: Path, one: Path) -> int:
    """How many damaged files came before `one`, -1 if it is none of these files."""
    if one == path:
        return 0
    middle = one.name[len(path.stem) + 1 : len(one.name) - len(path.suffix)]
    return int(middle) if middle.isdecimal() else -1


def _identity(path: Path) -> tuple[int, int]:
    """What tells a file from another one that has its name later."""
    stat = path.stat()
    return stat.st_dev, stat.st_ino
