"""Which replies a block forbids: a question about text alone, whatever tokens it is made of."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from pytest_failgain.errors import UsageError
from pytest_failgain.replies import ReplyStyle

WAYS = ("masked", "searched")
MATCHES = ("exact", "canonical")


@dataclass(frozen=True, slots=True)
class Block:
    """Earlier failed actions that a reply must not make again.

    `actions` are their texts, read in `style`. `match` tells what counts as the same action:
    "exact" the same text, "canonical" also another spelling of it, such as other quotes or another
    order of arguments. `way` is what a decoder does about it: "masked" forbids the token that would
    complete a failed action, "searched" goes back and takes the likeliest other branch.

    Raises:
        UsageError: when `actions` is one text, or there is no such way or match.
    """

    actions: Sequence[str]
    style: ReplyStyle
    match: str = "canonical"
    way: str = "masked"
    _texts: frozenset[str] = field(init=False, repr=False, compare=False)
    _keys: frozenset[Hashable] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.actions, str):
            raise UsageError(f"the actions to block are one text, not several: {self.actions!r}")
        for name, value, known in (("way", self.way, WAYS), ("match", self.match, MATCHES)):
            if value not in known:
                raise UsageError(
                    f"there is no {name} {value!r} to block; take {' or '.join(known)}"
                )
        texts = frozenset(filter(None, map(self.style.action, self.actions)))
        keys = frozenset(map(self.style.canonical, texts)) if self.match == "canonical" else ()
        object.__setattr__(self, "_texts", texts)
        object.__setattr__(self, "_keys", frozenset(keys))

    def __bool__(self) -> bool:
        """Whether there is anything to forbid."""
        return bool(self._texts)

    def repeats(self, reply: str) -> bool:
        """Whether `reply`, if it ends here, makes a failed action again."""
        return self._is_failed(self.style.action(reply))

    def forbids(self, reply: str, *, over: bool = False) -> bool:
        """Whether a decoder must not let its reply become `reply`.

        `over` says that nothing can come after it. Before that only an action that ends itself is
        forbidden, so that another one which begins alike stays within reach.
        """
        action = self.style.action(reply)
        ended = over or self.style.is_over(reply)
        return self._is_failed(action) and (ended or self.style.ends_itself(action))

    def _is_failed(self, action: str) -> bool:
        return action in self._texts or (
            self.match == "canonical" and self.style.canonical(action) in self._keys
        )
