"""Members of parsed JSON taken for what they should be, whatever a log really holds there."""

from __future__ import annotations

from typing import Any


def as_dict(value: Any) -> dict[str, Any]:
    """`value` where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_dicts(value: Any) -> list[dict[str, Any]]:
    """The objects in `value` where it is an array, else none."""
    listed = value if isinstance(value, list | tuple) else ()
    return [one for one in listed if isinstance(one, dict)]


def as_text(value: Any) -> str | None:
    """`value` where it is a text, else None."""
    return value if isinstance(value, str) else None
