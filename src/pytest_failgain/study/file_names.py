"""Names of models and cases as names of files."""

from __future__ import annotations

import hashlib
from urllib.parse import quote

# Most file systems take 255 bytes, and two names and an ending stand in one.
_LONGEST = 100


def file_name(name: str) -> str:
    """`name` so that every file system takes it, and that two names never give one file."""
    quoted = quote(name, safe="")
    if len(quoted) <= _LONGEST:
        return quoted
    return f"{quoted[:_LONGEST]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
