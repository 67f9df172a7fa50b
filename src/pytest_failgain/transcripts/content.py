"""The text of a message's content, whatever shape it has."""

from __future__ import annotations

from typing import Any


def content_text(content: Any) -> str:
    """A message's content as text: a string, a list of parts, or nothing.

    What is no text, such as an image, becomes a placeholder that names its type, as "[image]".
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(map(_part_text, content))
    return _part_text(content)


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return ""
    for key in ("text", "content"):
        if isinstance(part.get(key), str):
            return str(part[key])
    kind = part.get("type")
    return f"[{kind.removeprefix('input_')}]" if isinstance(kind, str) else ""
