"""Writing a file whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Replace the file at `path`, which then holds `content` or, on any error, what it held before.

    Raises:
        OSError: when the system refuses.
    """
    path = path.resolve()  # what a symbolic link points to is replaced, not the link
    # Opened by name, not by `tempfile`, whose files nobody but their owner may read. The file's own
    # name is no part of it, since it may be as long as names can be.
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        temporary.write_bytes(content)
        if path.exists():
            shutil.copymode(path, temporary)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
