"""Which result answers which call."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from pytest_failgain.transcripts.conversation import Result, Turn

Place: TypeAlias = tuple[int, int]
"""A turn, and a call's or result's place among those of that turn; both count from 0."""

FURTHER = "a further result for a call that has one: left out"
ORPHAN = "a result without a call: left out"
EARLY = "a result that stands before its call"
OTHER_ID = "a result whose id no call has: taken for that of the oldest open call before it"


@dataclass(frozen=True, slots=True)
class Pairing:
    """For the place of each answered call, that of its result, and what there is to note."""

    answers: dict[Place, Place]
    notes: Counter[str]


def paired(turns: Sequence[Turn]) -> Pairing:
    """The results in `turns`, each with its call.

    By id first. An id that several turns use means the last of them before the result that has an
    open call, or one behind it where none stands before it. Results that no id leads to a call
    belong to the oldest open one of the last turn with calls before them.
    """
    pairs = _Pairs(turns)
    for step in (pairs.by_id, pairs.by_later_id, pairs.by_order):
        step()
    return Pairing(pairs.answers, pairs.notes)


@dataclass(slots=True)
class _Pairs:
    """Each step takes the results that the one before it has `left`."""

    turns: Sequence[Turn]
    answers: dict[Place, Place] = field(default_factory=dict)
    notes: Counter[str] = field(default_factory=Counter)
    left: list[tuple[Place, Result]] = field(default_factory=list)
    by_identity: dict[str, list[deque[Place]]] = field(default_factory=lambda: defaultdict(list))

    def by_id(self) -> None:
        for index, turn in enumerate(self.turns):
            for identity, places in _ids(index, turn).items():
                self.by_identity[identity].append(places)
            for number, result in enumerate(turn.results):
                if not self._answer(result, (index, number)):
                    self.left.append(((index, number), result))

    def by_later_id(self) -> None:
        left, self.left = self.left, []
        for place, result in left:
            if self._answer(result, place):
                self.notes[EARLY] += 1
            elif result.call_id in self.by_identity:
                self.notes[FURTHER] += 1
            else:
                self.left.append((place, result))

    def by_order(self) -> None:
        opened = _OpenCalls(self.turns, self.answers)
        for place, result in self.left:
            call = opened.before(place[0], result.tool)
            if call is None:
                self.notes[ORPHAN] += 1
                continue
            self.answers[call] = place
            self.notes[OTHER_ID] += result.call_id is not None

    def _answer(self, result: Result, place: Place) -> bool:
        groups = self.by_identity.get(result.call_id, []) if result.call_id is not None else []
        while groups and not groups[-1]:
            groups.pop()
        if not groups:
            return False
        self.answers[groups[-1].popleft()] = place
        return True


def _ids(index: int, turn: Turn) -> dict[str, deque[Place]]:
    found: dict[str, deque[Place]] = {}
    for number, call in enumerate(turn.calls):
        if call.call_id is not None:
            found.setdefault(call.call_id, deque()).append((index, number))
    return found


class _OpenCalls:
    """The calls that no result answers yet, asked for from the first turn to the last."""

    def __init__(self, turns: Sequence[Turn], answers: dict[Place, Place]) -> None:
        self._with_calls = _with_calls(turns)
        self._given: set[Place] = set()
        self._queues: dict[tuple[int, str | None], deque[Place]] = defaultdict(deque)
        for index, turn in enumerate(turns):
            for number, call in enumerate(turn.calls):
                if (index, number) not in answers:
                    for tool in {None, call.tool}:
                        self._queues[index, tool].append((index, number))

    def before(self, index: int, tool: str | None) -> Place | None:
        """The oldest open call of the last turn with calls before `index`, of `tool` if it can."""
        turn = self._with_calls[index]
        if turn is None:
            return None
        own = self._next(turn, tool) if tool is not None else None
        return own or self._next(turn, None)

    def _next(self, turn: int, tool: str | None) -> Place | None:
        queue = self._queues[turn, tool]
        while queue:
            place = queue.popleft()
            if place not in self._given:
                self._given.add(place)
                return place
        return None


def _with_calls(turns: Sequence[Turn]) -> list[int | None]:
    """For each turn, the last one before it that makes calls."""
    found: list[int | None] = []
    last = None
    for index, turn in enumerate(turns):
        found.append(last)
        if turn.calls:
            last = index
    return found
