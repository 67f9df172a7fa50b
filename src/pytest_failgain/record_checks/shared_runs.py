"""The longest runs of tokens that two texts share, in time linear in their lengths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Stands between the sequences that are looked for; no token is this.
_BORDER = ""


@dataclass(frozen=True, slots=True)
class Run:
    """A run of `length` tokens that ends before the token at `end` of a text."""

    length: int
    end: int


NO_RUN = Run(0, 0)


class SharedRuns:
    """All runs of tokens of the `wanted` sequences, to be found in texts.

    It is a suffix automaton: a state stands for runs that end at the same places of what is wanted,
    and the longest run that ends at a token of a text is known after one step for each token.
    """

    def __init__(self, wanted: Iterable[Sequence[str]]) -> None:
        self._next: list[dict[str, int]] = [{}]
        self._length = [0]
        self._shorter = [-1]
        last = 0
        for sequence in wanted:
            for token in (*sequence, _BORDER):
                last = self._extended(last, token)
        self._by_length = sorted(range(1, len(self._length)), key=self._length.__getitem__)

    def _extended(self, last: int, token: str) -> int:
        state = self._added({}, self._length[last] + 1, 0)
        while last >= 0 and token not in self._next[last]:
            self._next[last][token] = state
            last = self._shorter[last]
        if last >= 0:
            self._shorter[state] = self._split(last, token)
        return state

    def _split(self, last: int, token: str) -> int:
        """The state of the run at `last` with `token` behind it, and of no longer run."""
        found = self._next[last][token]
        if self._length[found] == self._length[last] + 1:
            return found
        copied = dict(self._next[found])
        copy = self._added(copied, self._length[last] + 1, self._shorter[found])
        self._shorter[found] = copy
        while last >= 0 and self._next[last].get(token) == found:
            self._next[last][token] = copy
            last = self._shorter[last]
        return copy

    def _added(self, following: dict[str, int], length: int, shorter: int) -> int:
        self._next.append(following)
        self._length.append(length)
        self._shorter.append(shorter)
        return len(self._length) - 1

    def longest_surplus(
        self, texts: Sequence[Sequence[str]], others: Iterable[Sequence[str]]
    ) -> list[Run]:
        """For each of `texts` its longest run that all of them have more often than `others`.

        Of runs that are equally long the last is given.
        """
        found = [self._longest_at(text) for text in texts]
        more = Counter[tuple[int, int]]()
        for ends in found:
            more.update((state, length) for state, length, _ in ends)
        for other in others:
            more.subtract((state, length) for state, length, _ in self._longest_at(other))
        is_surplus = self._surplus(more)
        return [
            max(
                (Run(length, end) for state, length, end in ends if is_surplus[state, length]),
                key=lambda run: (run.length, run.end),
                default=NO_RUN,
            )
            for ends in found
        ]

    def _longest_at(self, text: Sequence[str]) -> list[tuple[int, int, int]]:
        """The longest run at each token that ends one: its state, its length and its end."""
        following, shorter, lengths = self._next, self._shorter, self._length
        known = following[0]
        found = []
        state = length = 0
        for end, token in enumerate(text, start=1):
            if token not in known:
                state = length = 0
                continue
            while token not in following[state]:
                state = shorter[state]
                length = lengths[state]
            state = following[state][token]
            length += 1
            found.append((state, length, end))
        return found

    def _surplus(self, more: Counter[tuple[int, int]]) -> dict[tuple[int, int], bool]:
        """Whether each run, which also ends where longer ones do, stands more often."""
        by_state: dict[int, list[tuple[int, int]]] = {}
        for (state, length), times in more.items():
            by_state.setdefault(state, []).append((length, times))
        below = [0] * len(self._length)
        found = {}
        for state in reversed(self._by_length):
            total = below[state]
            for length, times in sorted(by_state.get(state, ()), reverse=True):
                total += times
                found[state, length] = total > 0
            below[self._shorter[state]] += total
        return found
