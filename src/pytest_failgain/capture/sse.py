"""Server-sent events: written, and read back from what passed through."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

DONE = b"data: [DONE]\n\n"
_PIECE = 24


def event(data: dict[str, Any], name: str | None = None) -> bytes:
    """One event, with its name where it has one."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def events_in(stream: bytes) -> Iterator[dict[str, Any]]:
    """The JSON objects of a stream's events, in order; the rest is left out.

    Lines may end in any of the three ways that the format allows, and data may take several.
    """
    text = stream.decode(errors="replace").removeprefix("\ufeff")
    lines: list[str] = []
    for line in (*text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), ""):
        field, _, value = line.partition(":")
        if field == "data":
            lines.append(value.removeprefix(" "))
        elif not line and lines:
            try:
                data = json.loads("\n".join(lines))
            except (ValueError, RecursionError):
                data = None
            if isinstance(data, dict):
                yield data
            lines = []


def in_pieces(text: str) -> list[str]:
    """`text` cut as a model would send it, bit by bit; one that can be is cut in two at least."""
    size = min(_PIECE, max(1, (len(text) + 1) // 2))
    return [text[start : start + size] for start in range(0, len(text), size)]
