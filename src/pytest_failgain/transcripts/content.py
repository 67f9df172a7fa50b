"""The text of a message's content, whatever shape it has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# What a model reads as text, though it comes as a part with a type of its own.
_SPOKEN = ("text", "content", "refusal", "output", "summary")


def content_text(content: Any) -> str:
    """A message's content as text: a string, a list of parts, or nothing.

    What is no text, such as an image, becomes a placeholder that names its type, as "[image]".
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list | tuple):
        return "".join(map(content_text, content))
    if not isinstance(content, dict):
        return ""
    said = _said(content)
    if isinstance(said, str):
        return said
    if isinstance(said, list | tuple):
        return content_text(said)
    kind = _kind(content)
    return f"[{kind}]" if kind else ""


def placeholders(content: Any) -> Iterator[str]:
    """What `content_text` puts in place of each part that is no text, as "[image]"."""
    if isinstance(content, list | tuple):
        for part in content:
            yield from placeholders(part)
    elif isinstance(content, dict):
        said = _said(content)
        if isinstance(said, list | tuple):
            yield from placeholders(said)
        elif not isinstance(said, str) and _kind(content):
            yield f"[{_kind(content)}]"


def _said(part: dict[str, Any]) -> Any:
    return next((part[key] for key in _SPOKEN if isinstance(part.get(key), str | list)), None)


def _kind(part: dict[str, Any]) -> str:
    kind = part.get("type")
    return kind.removeprefix("input_").removesuffix("_url") if isinstance(kind, str) else ""
