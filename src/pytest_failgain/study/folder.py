"""The folder of a study: where everything is, and writing it whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from pytest_failgain.atomic import write_atomically
from pytest_failgain.errors import UsageError
from pytest_failgain.measurement import Measurement
from pytest_failgain.report.markdown import markdown_table
from pytest_failgain.rows import Row
from pytest_failgain.scoring.work import Work
from pytest_failgain.study.file_names import file_name

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_WORK, _RECORD, _PAGE = "work.json", "study.json", "summary.md"
# Of a nat; single precision gives no more.
_DECIMALS = 6


class FolderError(UsageError):
    """The folder can't be used, for whatever model and cases."""


class StudyFolder:
    """The files of a study under `path`, which is made if it is not there.

    Scores are kept in the folder as they come, so a study that was killed goes on where it was.

    Raises:
        FolderError: when `path` holds anything else, can't be written to, or what it says of
            earlier work can't be read. Every method that writes raises it, too.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._written: list[str] = []
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self.unwritable(error) from error
        self._earlier = self._earlier_files()
        self._works()

    def unwritable(self, error: OSError) -> FolderError:
        """What to raise where the system refuses to write here."""
        return FolderError(
            f"the study can't be written to {self.path} ({error.strerror}); choose another folder "
            "with --out"
        )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder against a second study.

        Raises:
            FolderError: when another process holds it, or it can't be written to.
        """
        lock = FileLock(self.path / ".lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise FolderError(
                f"another study is writing to {self.path}; wait for it, or choose another folder "
                "with --out"
            ) from None
        except OSError as error:
            raise self.unwritable(error) from error
        try:
            yield
        finally:
            lock.release()

    @property
    def figures(self) -> Path:
        return self.path / "figures"

    def work(self, key: str) -> Work:
        """What was computed for `key` so far, in this run and earlier ones."""
        return self._works().get(key, Work())

    def add_work(self, key: str, work: Work) -> None:
        """Add what was computed just now."""
        works = self._works()
        works[key] = works.get(key, Work()) + work
        self._write(_WORK, json.dumps({name: asdict(work) for name, work in works.items()}))

    def _works(self) -> dict[str, Work]:
        path = self.path / _WORK
        try:
            value = json.loads(path.read_text("utf-8"))
            return {key: Work(**work) for key, work in value.items()}
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise FolderError(
                f"{path}, which counts what was computed, can't be read ({error}); remove it to "
                "count from here on, the scores are kept elsewhere"
            ) from error

    def write_rows(self, model: str, environment: str, measurement: Measurement) -> None:
        """The scores as JSON Lines, one object a row, in the order in which they were asked for."""
        lines = (json.dumps(_row_fields(model, environment, row)) for row in measurement.rows)
        name = f"{file_name(model)}--{file_name(environment)}.jsonl"
        self._write(f"rows/{name}", "".join(f"{line}\n" for line in lines))

    def write_table(self, name: str, rows: Sequence[DataclassInstance]) -> None:
        """The rows, of one dataclass, as `tables/<name>.csv` and, rounded, `tables/<name>.md`.

        Without any rows there is no file.
        """
        if not rows:
            return
        heads = [column.name for column in fields(rows[0])]
        cells = [[getattr(row, head) for head in heads] for row in rows]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(heads)
        writer.writerows([_csv_cell(cell) for cell in line] for line in cells)
        self._write(f"tables/{name}.csv", text.getvalue())
        short = ([_short(cell) for cell in line] for line in cells)
        self._write(f"tables/{name}.md", markdown_table(heads, short))

    def write_page(self, text: str) -> None:
        self._write(_PAGE, text)

    def begin(self, record: Mapping[str, Any]) -> None:
        """Say that a study is under way: what an earlier one came to stands here no longer."""
        if _PAGE in self._earlier:
            (self.path / _PAGE).unlink(missing_ok=True)
        self._write_record(record, {*self._earlier, *self._written})

    def finish(self, record: Mapping[str, Any], figures: Sequence[Path]) -> None:
        """Write the study's record, and remove what an earlier study wrote here and this did not.

        The record names every file, so that nothing of anybody else is removed.
        """
        drawn = {path.relative_to(self.path).as_posix() for path in figures}
        files = {*self._written, *drawn}
        for name in self._earlier:
            if name not in files:
                (self.path / name).unlink(missing_ok=True)
        self._write_record(record, files)

    def _write_record(self, record: Mapping[str, Any], files: set[str]) -> None:
        named = {**record, "files": sorted(files - {_WORK, _RECORD})}
        self._write(_RECORD, json.dumps(named, indent=1, ensure_ascii=False) + "\n")

    def _earlier_files(self) -> list[str]:
        """What the record of an earlier study names.

        Raises:
            FolderError: when the folder is not empty and no study's.
        """
        try:
            record = json.loads((self.path / _RECORD).read_text("utf-8"))
            files: list[str] = record["files"] if record["failgain_study"] else []
            root = self.path.resolve()
            return [name for name in files if (self.path / name).resolve().is_relative_to(root)]
        except (OSError, ValueError, TypeError, KeyError):
            others = [path.name for path in self.path.iterdir() if not path.name.startswith(".")]
        if others and not any(name == _WORK or name.startswith("scores-") for name in others):
            raise FolderError(
                f"{self.path} holds other files ({', '.join(sorted(others)[:3])}); choose an empty "
                "or a new folder with --out"
            )
        return []

    def _write(self, name: str, text: str) -> None:
        path = self.path / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, text.encode())
        except OSError as error:
            raise self.unwritable(error) from error
        self._written.append(name)


def _row_fields(model: str, environment: str, row: Row) -> dict[str, Any]:
    return {
        "model": model,
        "environment": environment,
        "case_id": row.case_id,
        "condition": row.condition,
        "candidate": row.candidate,
        "logprob": row.logprob,
        "n_tokens": row.n_tokens,
        "argmax_matches": row.argmax_matches,
        "greedy": row.greedy,
        "context_tokens": row.context_tokens,
        "token_logprobs": [round(logprob, _DECIMALS) for logprob in row.token_logprobs],
    }


def _csv_cell(value: object) -> object:
    return "" if isinstance(value, float) and math.isnan(value) else value


def _short(value: object) -> str:
    """A number in four significant digits, for people."""
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.4g}"
    return str(value)
