"""What a transcript's source holds, before its format is known."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

from pytest_failgain.errors import TranscriptError, UsageError

Source: TypeAlias = (
    str | bytes | os.PathLike[str] | IO[str] | IO[bytes] | Mapping[str, Any] | Iterable[Any]
)

# No log nests so deep; what does could not be walked without exhausting the stack.
DEEPEST = 200

_NAME = "transcript"
_OBJECT = re.compile(r"\s*\{")
# Most lines of a text that is none are told from JSON by how they begin, in a tenth of the time.
_JSON = re.compile(r"\s*[\[{\"\d\-tfnNI]")


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

    A `str` is a path where it is one line that does not look like JSON. Parsed values may hold the
    message objects of a client library, as far as they have a `model_dump()`.

    Raises:
        TranscriptError: when it can't be read, is empty, or is nested too deeply.
        UsageError: when it is of a type that no transcript comes in.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        return _of_text(_decoded(bytes(source)), _NAME)
    if isinstance(source, os.PathLike):
        return _of_file(Path(source))
    if isinstance(source, str):
        return _of_file(Path(source)) if _is_path(source) else _of_text(source, _NAME)
    if hasattr(source, "read"):
        return _of_open_file(source)
    if isinstance(source, Mapping):
        _check_depth(source, _NAME)
        return _of_value(_plain(source))
    if isinstance(source, Iterable):
        entries = list(source)
        _check_depth(entries, _NAME)
        return _of_value([_plain(entry) for entry in entries])
    raise UsageError(
        f"can't read a transcript from a {type(source).__name__}; give a path, text, bytes, an "
        "open file, or parsed JSON"
    )


def _is_path(text: str) -> bool:
    if "\n" in text or text.removeprefix("\ufeff").lstrip()[:1] in ("{", "[", ""):
        return False
    return len(text) < 4096 and "\0" not in text


def _of_file(path: Path) -> Document:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise TranscriptError(
            f"there is no transcript {os.fspath(path)!r}; give a path, or the transcript's content "
            "(text of one line is taken for a path unless it is JSON)"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TranscriptError(f"can't read the transcript {os.fspath(path)!r}: {reason}") from error
    return _of_text(_decoded(content), path.stem)


def _of_open_file(source: Any) -> Document:
    name = Path(str(getattr(source, "name", _NAME))).stem or _NAME
    try:
        content = source.read()
    except (OSError, ValueError) as error:
        raise TranscriptError(f"can't read the transcript {name!r}: {error}") from error
    if isinstance(content, bytes | bytearray):
        return _of_text(_decoded(bytes(content)), name)
    if isinstance(content, str):
        return _of_text(content, name)
    raise UsageError(
        f"can't read the transcript {name!r}: its read() gave a {type(content).__name__}, not text "
        "or bytes"
    )


def _decoded(content: bytes) -> str:
    # What a redirection in a Windows shell leaves.
    utf16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    return content.decode("utf-16" if utf16 else "utf-8", errors="replace")


def _plain(value: Any) -> Any:
    """`value` with the objects of client libraries in it as plain dicts."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        try:
            value = dump()
        except Exception as error:
            raise TranscriptError(
                f"model_dump() of a {type(value).__name__} in the transcript raised "
                f"{type(error).__name__}: {error}; give its messages as dicts"
            ) from error
    if isinstance(value, Mapping):
        messages = value.get("messages")
        listed = (
            {"messages": [*map(_plain, messages)]} if isinstance(messages, list | tuple) else {}
        )
        return {**value, **listed}
    return list(value) if isinstance(value, tuple) else value


def _of_value(value: Any) -> Document:
    if not value:
        raise TranscriptError("the transcript is empty")
    _check_depth(value, _NAME)
    return Document(_NAME, values=(value,))


def _of_text(text: str, name: str) -> Document:
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise TranscriptError(f"the transcript {name!r} is empty")
    values, broken = _json_values(text)
    _check_depth(values, name)
    return Document(name, text, tuple(values), broken)


def _json_values(text: str) -> tuple[list[Any], int]:
    """The JSON values of a text, and the number of lines between them that are none."""
    try:
        return [json.loads(text)], 0
    except (ValueError, RecursionError):
        pass
    values, broken = [], 0
    for line in text.split("\n"):
        if not line.strip():
            continue
        if not _JSON.match(line):
            broken += 1
            continue
        try:
            values.append(json.loads(line))
        except (ValueError, RecursionError):
            broken += 1
    # A text in which a number stands alone on a line is no JSON Lines.
    if any(isinstance(value, dict) for value in values):
        return values, broken
    return _concatenated(text), 0


def _concatenated(text: str) -> list[Any]:
    """JSON documents of several lines, one behind the other; none where the text is anything else.

    What a log's end that was cut off leaves is passed over.
    """
    decoder, values, at = json.JSONDecoder(), list[Any](), 0
    while start := _OBJECT.match(text, at):
        try:
            value, at = decoder.raw_decode(text, start.end() - 1)
        except (ValueError, RecursionError):
            return values
        values.append(value)
    return [] if text[at:].strip() else values


def _check_depth(value: Any, name: str) -> None:
    level = [value]
    for _ in range(DEEPEST):
        inner = (
            child
            for one in level
            for child in (one.values() if isinstance(one, dict) else one)
            if isinstance(child, dict | list | tuple) and child
        )
        # By identity, since parsed values may hold one object many times.
        level = [*{id(child): child for child in inner}.values()]
        if not level:
            return
    raise TranscriptError(
        f"the transcript {name!r} is nested more than {DEEPEST} levels deep, as no log of an agent "
        "is; if it holds itself, give the messages alone"
    )
