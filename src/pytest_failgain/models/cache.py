"""The cache folder: converted models, each there whole or not at all, and checksums worth keeping.

models/gguf-<sha256>/     a converted model, with a manifest that says it is complete
models/.<pid>.part/       one in the making; its maker holds the lock `models/.lock`
checksums/                the SHA-256 of large files, known again by size and time of change
hub/                      downloads from the model hub, in the hub library's own layout
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_failgain.errors import ModelError
from pytest_failgain.models import directory
from pytest_failgain.progress import Progress, job

_MANIFEST = "failgain.json"
CONVERSION = 1
"""Counts up when a conversion would come out differently, so that older results are made again."""
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@dataclass(frozen=True)
class Cache:
    """The cache folder `root`. Nothing is created before something is written."""

    root: Path

    @property
    def models(self) -> Path:
        """Where converted models are."""
        return self.root / "models"

    def find(self, key: str) -> Path | None:
        """The folder of the model stored under `key`, if it is there and complete."""
        path = self.models / key
        manifest = _read_json(path / _MANIFEST)
        whole = manifest.get("format") == CONVERSION and manifest.get("sizes") == _sizes(path)
        return path if whole else None

    def build(self, key: str, make: Callable[[Path, Path], None], progress: Progress) -> Path:
        """The model stored under `key`, made by `make(folder, scratch)` if it is not there.

        Of processes that ask at once, one makes it and the others wait. It is made aside and moved
        into place in one step, so a process killed on the way leaves nothing that could pass for a
        model; what it does leave is removed by the next one to get the lock.

        Raises:
            ModelError: when the cache can't be written, and what `make` raises.
        """
        with self.writing():
            self.models.mkdir(parents=True, exist_ok=True)
            with _lock(self.models / ".lock", progress):
                if ready := self.find(key):
                    return ready
                for leftover in self.models.glob(".*.part"):
                    shutil.rmtree(leftover, ignore_errors=True)
                return self._build(key, make)

    def _build(self, key: str, make: Callable[[Path, Path], None]) -> Path:
        part = self.models / f".{os.getpid()}.part"
        folder, scratch, target = part / "model", part / "scratch", self.models / key
        try:
            folder.mkdir(parents=True)
            scratch.mkdir()
            make(folder, scratch)
            manifest = {"format": CONVERSION, "sizes": _sizes(folder)}
            (folder / _MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
            # Only a model that `find` refused can be in the way: damaged, or of an older format.
            shutil.rmtree(target, ignore_errors=True)
            os.replace(folder, target)
        finally:
            shutil.rmtree(part, ignore_errors=True)
        return target

    def sha256(self, path: Path, progress: Progress) -> str:
        """The SHA-256 of a file, computed again only when its size or time of change differs.

        Raises:
            ModelError: when the file can't be read.
        """
        try:
            path = path.resolve()
            stat = path.stat()
            known = {"path": str(path), "size": stat.st_size, "mtime_ns": stat.st_mtime_ns}
            record = self.root / "checksums" / f"{hashlib.sha256(bytes(path)).hexdigest()}.json"
            remembered = _read_json(record)
            if known.items() <= remembered.items():
                return str(remembered["sha256"])
            with job(progress, f"reading {path.name}", stat.st_size) as advance:
                digest = sha256_of(path, advance)
        except OSError as error:
            raise ModelError(f"can't read {path}: {error.strerror}") from error
        _remember(record, {**known, "sha256": digest})
        return digest

    def require_room(self, size: int) -> None:
        """Make sure that `size` more bytes fit, before the work that would produce them.

        Raises:
            ModelError: when they don't.
        """
        require_room(self.root, size)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Turn the errors of a full or unwritable disk into ones that say what to do.

        Raises:
            ModelError: in place of an `OSError` from the body.
        """
        with writing_to(self.root):
            yield


@contextlib.contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Turn the errors of a full or unwritable disk under `folder` into ones that say what to do.

    Raises:
        ModelError: in place of an `OSError` from the body.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise ModelError(
                f"the disk of the cache folder {folder} is full: free some space, or choose "
                "another folder with --failgain-cache-dir"
            ) from error
        raise ModelError(
            f"can't write to the cache folder {folder} ({error.strerror or error}): make it "
            "writable, or choose another with --failgain-cache-dir"
        ) from error


def require_room(folder: Path, size: int) -> None:
    """Make sure that `size` more bytes fit on the disk of `folder`, which need not exist yet.

    Raises:
        ModelError: when they don't.
    """
    with writing_to(folder):
        existing = next(place for place in (folder, *folder.parents) if place.exists())
        free = shutil.disk_usage(existing).free
    if free < size:
        raise ModelError(
            f"the disk of the cache folder {folder} has {megabytes(free)} free, and "
            f"{megabytes(size)} are needed: free some space, or choose another folder with "
            "--failgain-cache-dir"
        )


def sha256_of(path: Path, advance: Callable[[int], None] | None = None) -> str:
    """The SHA-256 of a file's content."""
    digest, done = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
            done += len(block)
            if advance:
                advance(done)
    return digest.hexdigest()


def megabytes(size: int) -> str:
    """A size for people to read."""
    return f"{size / 1e6:,.0f} MB" if size >= 1e6 else f"{size / 1e3:,.0f} kB"


@contextlib.contextmanager
def _lock(path: Path, progress: Progress) -> Iterator[None]:
    # With asyncio in tow, it would slow down all who find their model converted.
    from filelock import FileLock, Timeout

    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        with job(progress, "waiting for another process that is preparing a model"):
            lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _sizes(folder: Path) -> dict[str, int]:
    return {name: (folder / name).stat().st_size for name in directory.model_files(folder)}


def _read_json(path: Path) -> dict[str, Any]:
    """The object in a file; an empty one if there is none, or none that can be read."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _remember(record: Path, value: dict[str, Any]) -> None:
    aside = record.with_suffix(f".{os.getpid()}")
    # A model on disk can be used without a cache; all that is lost is the time to read it again.
    with contextlib.suppress(OSError):
        record.parent.mkdir(parents=True, exist_ok=True)
        aside.write_text(json.dumps(value), encoding="utf-8")
        os.replace(aside, record)
