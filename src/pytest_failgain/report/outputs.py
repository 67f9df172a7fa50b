"""Whether the files that a run is to leave can be written: found out before it measures."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_failgain.atomic import check_writable
from pytest_failgain.options import Settings

_ENDINGS = {"json": (".json",), "html": (".html", ".htm")}


def check_outputs(settings: Settings, rootpath: Path) -> None:
    """Try whether each file that `settings` ask for can be written. Missing folders get made later.

    Raises:
        pytest.UsageError: naming the option and the path, when one can't, or when two are the same.
    """
    reports = {name: path for name in ("json", "html") if (path := getattr(settings, name))}
    baseline = settings.baseline_file(rootpath)
    for name, path in reports.items():
        _check_kind(name, path, settings.source(name))
        _check(path, f"{settings.source(name)}: can't write the report")
    if settings.update_baseline:
        _check(baseline, f"{settings.source('update_baseline')}: can't write the baseline")
    taken: dict[Path, str] = {}
    for name, path in {"baseline": baseline, **reports}.items():
        source = settings.source(name) or "the baseline"
        other = taken.setdefault(path.resolve(), source)
        if other != source:
            raise pytest.UsageError(
                f"{other} and {source}: both would go to {path}; give each a file of its own"
            )


def _check_kind(name: str, path: Path, source: str | None) -> None:
    """Refuse to replace what was hardly meant: the next word of a command, such as a test file."""
    endings = _ENDINGS[name]
    if path.is_file() and path.suffix.lower() not in endings:
        raise pytest.UsageError(
            f"{source}: {path} is there already and no {endings[0]} file, so it is not replaced by "
            f"a report; write {source}=FILE{endings[0]}"
        )


def _check(path: Path, problem: str) -> None:
    try:
        folder = next(one for one in path.resolve().parents if one.exists())
        check_writable(path if folder == path.resolve().parent else folder / "report")
    except OSError as error:
        raise pytest.UsageError(
            f"{problem} {path}: {error.strerror or error}; make it writable, or give another path"
        ) from None
