"""Conversations with a common beginning, as a log of requests has them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

from pytest_failgain.transcripts.arguments import as_json
from pytest_failgain.transcripts.conversation import Conversation, Turn


@dataclass(slots=True)
class _Place:
    """A turn behind all that came before it, what follows on it, and the tools offered there."""

    turn: Turn | None = None
    following: dict[Hashable, _Place] = field(default_factory=dict)
    tools: set[str] = field(default_factory=set)


def joined(conversations: Sequence[Conversation]) -> list[Conversation]:
    """The conversations with their common beginnings shared, in their order.

    One that a longer one goes on from, with the same tools, is left out: that one tells all of it.
    """
    beginning = _Place()
    kept: dict[int, Conversation] = {}
    # The longest first, so that what is shared is told as in the last request.
    for index in sorted(range(len(conversations)), key=lambda i: -len(conversations[i].turns)):
        conversation, place, turns = conversations[index], beginning, list[Turn]()
        tools, passed = _tools(conversation), False
        for turn in conversation.turns:
            place = place.following.setdefault(_told(turn), _Place())
            place.turn = place.turn or turn
            turns.append(place.turn)
            passed = tools in place.tools
            place.tools.add(tools)
        if turns and not passed:
            kept[index] = replace(conversation, turns=tuple(turns))
    return [kept[index] for index in sorted(kept)]


def _tools(conversation: Conversation) -> str:
    return as_json([tool.as_function() for tool in conversation.tools])


def _told(turn: Turn) -> Hashable:
    return turn.role, turn.text, turn.calls, turn.results
