"""Telling failures from other results where a format has no mark for them: each rule has a name."""

from __future__ import annotations

import re
from collections.abc import Callable

# A result may be megabytes long; what tells of a failure stands at one of its ends.
_LOOKED_AT = 2000

_EXIT_CODE = re.compile(
    r"(?:exited with code|exit(?: code|_code|ed)?|returncode)\W{1,4}(-?\d{1,10})\b", re.I
)
_ERROR_WORD = re.compile(
    r"\W{0,8}(?:[\w ]{0,40}\b)?(?:error|exception|failed|failure|rejected|refused|denied|invalid)\b"
    r"|\W{0,8}(?:unknown|no such|there is no|no tool|cannot|can't|could not|unable to)\b",
    re.I,
)
_TRACEBACK = re.compile(r"^Traceback \(most recent call last\)", re.M)


def _exit_code(text: str) -> bool | None:
    found = _EXIT_CODE.search(text)
    return None if found is None else int(found.group(1)) != 0


def _traceback(text: str) -> bool | None:
    return True if _TRACEBACK.search(text) else None


def _error_word(text: str) -> bool | None:
    first = text.lstrip().partition("\n")[0]
    return True if _ERROR_WORD.match(first) else None


HEURISTICS: dict[str, Callable[[str], bool | None]] = {
    "exit code": _exit_code,
    "traceback": _traceback,
    "error word": _error_word,
}
"""By name, in the order in which they are asked; None from one leaves it to the next."""


def judge(text: str) -> tuple[bool, str]:
    """Whether a result that nothing marks tells of a failure, and the rule that says so.

    A result that no rule knows is none.
    """
    long = len(text) > 2 * _LOOKED_AT
    looked_at = f"{text[:_LOOKED_AT]}\n{text[-_LOOKED_AT:]}" if long else text
    for name, rule in HEURISTICS.items():
        verdict = rule(looked_at)
        if verdict is not None:
            return verdict, name
    return False, ""
