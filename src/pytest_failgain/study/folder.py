"""The folder of a study: where everything is, and writing it whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from pytest_failgain.errors import UsageError
from pytest_failgain.measurement import Measurement
from pytest_failgain.rows import Row
from pytest_failgain.scoring.work import Work
from pytest_failgain.study.tables import EstimateRow, GroupRow

_WORK = "work.json"
# Of a nat; single precision gives no more.
_DECIMALS = 6


class StudyFolder:
    """The files of a study under `path`, which is made if it is not there.

    Scores are kept in the folder as they come, so a study that was killed goes on where it was.

    Raises:
        UsageError: when `path` can't be written to.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"the study can't be written to {path} ({error.strerror}); choose another folder "
                "with --out"
            ) from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder against a second study.

        Raises:
            UsageError: when another process holds it.
        """
        lock = FileLock(self.path / ".lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise UsageError(
                f"another study is writing to {self.path}; wait for it, or choose another folder "
                "with --out"
            ) from None
        try:
            yield
        finally:
            lock.release()

    @property
    def figures(self) -> Path:
        return self.path / "figures"

    def work(self, key: str) -> Work:
        """What was computed for `key` so far, in this run and earlier ones."""
        return Work(**self._works().get(key, {}))

    def add_work(self, key: str, work: Work) -> None:
        """Add what was computed just now."""
        works = self._works()
        works[key] = asdict(Work(**works.get(key, {})) + work)
        self._write(_WORK, json.dumps(works, indent=1))

    def _works(self) -> dict[str, Any]:
        try:
            works: dict[str, Any] = json.loads((self.path / _WORK).read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return works

    def write_rows(self, model: str, environment: str, measurement: Measurement) -> Path:
        """The scores as JSON Lines, one object a row, in the order in which they were asked for."""
        lines = (json.dumps(_row_fields(model, environment, row)) for row in measurement.rows)
        name = f"{_file_name(model)}--{_file_name(environment)}.jsonl"
        return self._write(f"rows/{name}", "".join(f"{line}\n" for line in lines))

    def write_table(
        self, name: str, rows: Sequence[EstimateRow] | Sequence[GroupRow] | Sequence[Any]
    ) -> None:
        """The rows, of one dataclass, as `tables/<name>.csv` and, rounded, `tables/<name>.md`."""
        if not rows:
            return
        heads = [column.name for column in fields(rows[0])]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(heads)
        cells = [[getattr(row, head) for head in heads] for row in rows]
        writer.writerows([_csv_cell(cell) for cell in line] for line in cells)
        self._write(f"tables/{name}.csv", text.getvalue())
        lines = [heads, ["---"] * len(heads), *([_short(cell) for cell in line] for line in cells)]
        table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
        self._write(f"tables/{name}.md", table)

    def write_json(self, name: str, value: Mapping[str, Any]) -> None:
        self._write(name, json.dumps(value, indent=1, ensure_ascii=False) + "\n")

    def write_text(self, name: str, text: str) -> Path:
        return self._write(name, text)

    def _write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.tmp")
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
        return path


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.=-]+", "-", name).strip("-.") or "model"


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
    """A table cell for people: four significant digits, and no break of the table's lines."""
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.4g}"
    return str(value).replace("|", r"\|")
