"""The nearest of what there is, for those who mistyped it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(value: str, choices: Iterable[str], cutoff: float = 0.6) -> str:
    """The end of a refusal, which names the choice nearest to `value`; empty if none is near."""
    nearest = difflib.get_close_matches(value, tuple(choices), n=1, cutoff=cutoff)
    return f"; did you mean {nearest[0]!r}?" if nearest else ""


def nearest_or_all(value: str, choices: Iterable[str]) -> str:
    """The end of a refusal, which names the choice nearest to `value`, or else all of them."""
    known = tuple(choices)
    return did_you_mean(value, known) or f"; there are: {', '.join(known)}"
