"""The kinds of block by name, as they stand in the names of harnesses."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_failgain.blocking.block import MATCHES, WAYS


@dataclass(frozen=True, slots=True)
class BlockKind:
    """How failed actions are to be blocked, before any has failed; `Block` explains the fields."""

    way: str
    match: str = "canonical"

    @property
    def name(self) -> str:
        """The way, and the match unless it is the usual one: "masked", "masked-exact", …"""
        return self.way if self.match == "canonical" else f"{self.way}-{self.match}"

    @property
    def by_construction(self) -> str:
        """What the block makes certain before anything is decoded."""
        words = " in the same words" if self.match == "exact" else ""
        return f"no failed action is made again{words}: the decoder forbids it"


BLOCKS = {
    kind.name: kind
    for kind in (BlockKind(way, match) for way in WAYS for match in reversed(MATCHES))
}
