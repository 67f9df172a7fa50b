"""The arguments of a call, as the text that the model wrote."""

from __future__ import annotations

import json
from typing import Any

from pytest_failgain.errors import TranscriptError

DUMPED = "arguments that the log has as an object, written as JSON with their keys in its order"


def arguments_text(logged: Any) -> str:
    """The text of a call's arguments: a string letter for letter, an object as JSON.

    Raises:
        TranscriptError: when they are an object that JSON has no words for.
    """
    if isinstance(logged, str):
        return logged
    return "{}" if logged is None else as_json(logged)


def as_json(
    value: Any, *, separators: tuple[str, str] | None = None, indent: int | None = None
) -> str:
    """`value` as JSON, its keys in their order and its letters as they are.

    Raises:
        TranscriptError: when JSON has no words for it.
    """
    try:
        return json.dumps(value, ensure_ascii=False, separators=separators, indent=indent)
    except (TypeError, ValueError, RecursionError) as error:
        raise TranscriptError(
            f"the transcript holds what can't be written as JSON: {error}; give it as it was "
            "logged, or in plain values"
        ) from error


def broken_arguments(text: str) -> str:
    """How a call's arguments are no JSON, as an error text; empty where they are, or are none."""
    if not text.strip():
        return ""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"arguments are not valid JSON: {error}"
    except (ValueError, RecursionError):
        # JSON that Python can't hold.
        return ""
    return ""
