"""Whether the reports that a run is to leave can be written: found out before it measures."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_failgain.atomic import check_writable
from pytest_failgain.options import Settings


def check_outputs(settings: Settings) -> None:
    """Try whether each file that `settings` ask for can be written. Missing folders get made later.

    Raises:
        pytest.UsageError: naming the option and the path, when one can't, or when two are the same.
    """
    wanted = [(name, path) for name in ("json", "html") if (path := getattr(settings, name))]
    for name, path in wanted:
        _check(path, settings.source(name))
    if len(wanted) > len({path.resolve() for _, path in wanted}):
        sources = " and ".join(str(settings.source(name)) for name, _ in wanted)
        raise pytest.UsageError(
            f"{sources}: both reports would go to {wanted[0][1]}; give each a file of its own"
        )


def _check(path: Path, source: str | None) -> None:
    folder = next(one for one in path.resolve().parents if one.exists())
    try:
        check_writable(path if folder == path.resolve().parent else folder / "report")
    except OSError as error:
        raise pytest.UsageError(
            f"{source}: can't write the report {path}: {error.strerror or error}; make it "
            "writable, or give another path"
        ) from None
