"""Writing a file whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from hashlib import blake2b
from pathlib import Path


def check_writable(path: Path) -> None:
    """Try whether `write_atomically` could write to `path`, and leave no trace of it.

    Raises:
        OSError: when the system refuses, or a folder is there.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if _is_special(path):
        return
    probe = _beside(path.resolve())
    try:
        probe.write_bytes(b"")
    finally:
        probe.unlink(missing_ok=True)


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file()


def _beside(path: Path) -> Path:
    # Opened by name, not by `tempfile`, whose files nobody but their owner may read.
    return path.with_name(f".{_mark(path)}-{secrets.token_hex(8)}.tmp")


def _mark(path: Path) -> str:
    # Not the name itself, which may be as long as names can be.
    return blake2b(os.fsencode(path.name), digest_size=6).hexdigest()


def write_atomically(path: Path, content: bytes) -> None:
    """Replace the file at `path`, which then holds `content` or, on any error, what it held before.

    What is no regular file, such as a pipe or /dev/stdout, is written to and not replaced.

    Raises:
        OSError: when the system refuses.
    """
    if _is_special(path):
        path.write_bytes(content)
        return
    path = path.resolve()  # what a symbolic link points to is replaced, not the link
    temporary = _beside(path)
    try:
        temporary.write_bytes(content)
        if path.exists():
            shutil.copymode(path, temporary)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def remove_leftovers(path: Path) -> None:
    """Delete what writers of the file at `path` that were killed have left beside it.

    Only for those who know that nobody else is writing to it.
    """
    path = path.resolve()
    for leftover in path.parent.glob(f".{_mark(path)}-*.tmp"):
        with contextlib.suppress(OSError):  # it does no harm
            leftover.unlink()
