"""Sessions whose entries name the one before them: the ways from a beginning to an end."""

from __future__ import annotations

from collections.abc import Sequence

SHORTENED = (
    "a branch told only from where it leaves the session, which has too many long ones to tell "
    "each as a whole"
)

# How many entries the ways through a session may have in all, for each entry that it has: enough
# for any real session, and few enough for one in which every entry begins a branch.
_SPARE = 4
_ALWAYS = 10_000


def ways(parents: Sequence[int | None]) -> tuple[list[list[int]], int]:
    """The ways through a session, each from its beginning to an entry that nothing follows.

    `parents` has the index of the entry before each, None at a beginning. The way that ends last
    comes first, since that is where the session went on; an entry that only leads back to itself
    begins a way. Also given is the number of ways that are cut short at their beginning.
    """
    followed = {parent for parent in parents if parent is not None}
    ends = [index for index in range(len(parents)) if index not in followed]
    spare = _ALWAYS + _SPARE * len(parents)
    told: set[int] = set()
    found: list[list[int]] = []
    shortened = 0
    for end in (*reversed(ends), *range(len(parents) - 1, -1, -1)):
        if end in told:
            continue
        way, own = _way(end, parents, told, whole=spare > 0)
        shortened += spare <= 0 and parents[way[0]] is not None
        spare -= len(way) - own
        told.update(way)
        found.append(way)
    return found, shortened


def _way(
    end: int, parents: Sequence[int | None], told: set[int], *, whole: bool
) -> tuple[list[int], int]:
    """The way to `end`, the whole of it or only what is not told yet; and how much is not."""
    way: dict[int, None] = {}
    own = 0
    at: int | None = end
    while at is not None and at not in way and (whole or at not in told):
        way[at] = None
        own += at not in told
        at = parents[at]
    return [*reversed(way)], own
