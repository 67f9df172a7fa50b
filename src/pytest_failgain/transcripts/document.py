"""What a transcript's source holds, before its format is known."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

from pytest_failgain.errors import TranscriptError

Source: TypeAlias = (
    str | bytes | os.PathLike[str] | IO[str] | IO[bytes] | Mapping[str, Any] | Sequence[Any]
)


@dataclass(frozen=True, slots=True)
class Document:
    """A source as readers look at it.

    `values` are its JSON values: one for a JSON document, one a line for JSON Lines, none where the
    source is no JSON. `text` is the source as text, empty where it came as values. `name` is what
    errors and case ids call it. `broken_lines` counts lines of JSON Lines that are no JSON.
    """

    name: str
    text: str = ""
    values: tuple[Any, ...] = ()
    broken_lines: int = 0

    @property
    def value(self) -> Any:
        """The one JSON value; None where there is none, or more than one."""
        return self.values[0] if len(self.values) == 1 else None

    @property
    def entries(self) -> Sequence[Any]:
        """What the source lists: the lines of JSON Lines, or the entries of one JSON array."""
        if len(self.values) == 1 and isinstance(self.values[0], list):
            return self.values[0]
        return self.values


def open_document(source: Source) -> Document:
    """The document that `source` is: a path, text, bytes, an open file, or parsed JSON.

    A `str` is a path where it is one line that does not look like JSON and names a file.

    Raises:
        TranscriptError: when it can't be read, or is empty.
    """
    if isinstance(source, bytes | bytearray):
        return _of_text(bytes(source).decode(errors="replace"), "transcript")
    if isinstance(source, os.PathLike):
        return _of_file(Path(source))
    if isinstance(source, str):
        return _of_file(Path(source)) if _is_path(source) else _of_text(source, "transcript")
    if hasattr(source, "read"):
        content = source.read()
        name = Path(str(getattr(source, "name", "transcript"))).stem
        text = content.decode(errors="replace") if isinstance(content, bytes) else content
        return _of_text(text, name)
    if isinstance(source, Mapping):
        return Document("transcript", values=(dict(source),))
    return Document("transcript", values=(list(source),))


def _is_path(text: str) -> bool:
    if "\n" in text or text.lstrip()[:1] in ("{", "["):
        return False
    return len(text) < 4096 and "\0" not in text


def _of_file(path: Path) -> Document:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise TranscriptError(
            f"there is no transcript {os.fspath(path)!r}; give a path, or the transcript's content"
        ) from None
    except OSError as error:
        raise TranscriptError(
            f"can't read the transcript {os.fspath(path)!r}: {error.strerror}"
        ) from error
    return _of_text(content.decode(errors="replace"), path.stem)


def _of_text(text: str, name: str) -> Document:
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise TranscriptError(f"the transcript {name!r} is empty")
    try:
        return Document(name, text, (json.loads(text),))
    except (ValueError, RecursionError):
        pass
    values, broken = [], 0
    for line in text.split("\n"):
        if not line.strip():
            continue
        try:
            values.append(json.loads(line))
        except (ValueError, RecursionError):
            broken += 1
    # A text in which a number stands alone on a line is no JSON Lines.
    if any(isinstance(value, dict) for value in values):
        return Document(name, text, tuple(values), broken)
    return Document(name, text)
