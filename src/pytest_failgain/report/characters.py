"""Text that a report shows: nothing in it is invisible, or moves what stands around it."""

from __future__ import annotations

import re

# Control characters but tab and line feed; what reorders, joins or hides text, or has no shape
# (bidi controls, zero width, fillers, variation selectors, tags); other line ends; halves of
# surrogate pairs, which can't be written to a file.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\ufffe\uffff\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    """`text` with such characters written as escapes, as `\\u202e`."""
    return _HIDDEN.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return ascii(match[0])[1:-1]


def shortened(text: str, limit: int) -> str:
    """`text`, or so many of its first characters and a word on the rest."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit:,} more characters)"
