"""Conversations that tell of each other's turns again, as traces do with each request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from pytest_failgain.action_key import action_key
from pytest_failgain.transcripts.conversation import Turn


def told_once(conversations: Sequence[Sequence[Turn]]) -> list[tuple[Turn, ...]]:
    """The conversations that say something new, the longest first, with what they share shared.

    Two turns are one where all before them are the same, and also where both make the same calls
    with the same ids: a system prompt with the time in it must not make two failures of one. A
    conversation whose every call is made in longer ones is left out.
    """
    beginning = _Place()
    known: dict[Hashable, Turn] = {}
    kept = []
    acts = any(turn.calls for turns in conversations for turn in turns)
    for turns in sorted(conversations, key=len, reverse=True):
        times: Counter[Hashable] = Counter()
        place, shared = beginning, []
        for turn in turns:
            place = place.following.setdefault(_told(turn), _Place())
            calls = _identified(turn)
            if calls is not None:
                times[calls] += 1
                turn = known.setdefault((calls, times[calls]), place.turn or turn)
            place.turn = place.turn or turn
            shared.append(place.turn)
        fresh = [turn for turn, one in zip(turns, shared, strict=True) if turn is one]
        if any(turn.calls or not acts for turn in fresh):
            kept.append(tuple(shared))
    return kept


@dataclass(slots=True)
class _Place:
    """A turn behind all that came before it, and what follows on it."""

    turn: Turn | None = None
    following: dict[Hashable, _Place] = field(default_factory=dict)


def _told(turn: Turn) -> Hashable:
    return turn.role, turn.text, _made(turn), turn.results


def _identified(turn: Turn) -> Hashable | None:
    """The calls of a turn where their ids tell them from the same calls of another."""
    return _made(turn) if turn.calls and all(call.call_id for call in turn.calls) else None


def _made(turn: Turn) -> Hashable:
    return tuple((call.call_id, action_key(call.action)) for call in turn.calls)
