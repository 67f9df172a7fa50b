"""Takes out of a record what differs from run to run and from machine to machine."""

from __future__ import annotations

import re

# In this order: what an earlier rule puts in is left alone by later ones.
_RULES = (
    (re.compile(r"\b0x[0-9a-fA-F]{4,}\b"), "0x…"),
    (
        re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.I),
        "<uuid>",
    ),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"(?<![\w.])(?:[A-Za-z]:)?(?:[/\\][\w.@+-]+){2,}"), "<path>"),
    (re.compile(r"(<path>\W{1,3},? ?line )\d+"), r"\1<n>"),
    (re.compile(r"\b\d+(?:\.\d+)?(?= ?(?:ms|seconds|secs|s)\b)"), "<n>"),
)
_IDENTITY = re.compile(r"\b(?:call|chatcmpl|msg|resp|fc|run|toolu)[_-]\w{4,}")


def normalised(text: str) -> str:
    """`text` with placeholders for addresses, times, paths, line numbers and random ids.

    The same id gets the same number wherever it stands.
    """
    for pattern, put in _RULES:
        text = pattern.sub(put, text)
    numbers: dict[str, int] = {}
    return _IDENTITY.sub(lambda found: f"<id {numbers.setdefault(found[0], len(numbers))}>", text)
