"""What happened so far, and how the model gets to read it.

A failed call can be put before the model in two ways: quoted, as this desk did at first, or
explained. See `tests/test_failure_record.py` for why the first was given up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

Message = dict[str, str]


@dataclass(frozen=True, slots=True)
class Turn:
    """One call, and what came back: None for the answer to the user, which nobody answers.

    `tool` and `problem` are as in `dispatch.Outcome`.
    """

    call: str
    result: str | None
    tool: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """A further request of the user's, after the first."""

    text: str


@dataclass(slots=True)
class History:
    """The instructions, the user's first request, and all that followed, oldest first."""

    instructions: str
    request: str
    entries: list[Turn | Request] = field(default_factory=list)


def quote_failure(turn: Turn) -> list[Message]:
    """Version 1 of the record: the failed call as it was made, then its error."""
    return [
        {"role": "assistant", "content": turn.call},
        {
            "role": "user",
            "content": f"Tool error: {turn.result}\n"
            "That call did not work. Read the error, fix the call and try again.",
        },
    ]


REASONS = {
    "CallSyntaxError": "it was not a single call with plain values",
    "UnknownToolError": "there is no tool of that name",
    "ArgumentError": "its arguments are not the ones that the tool takes",
    "UnknownPartError": "there is no such part in the catalogue",
    "UnknownOrderError": "there is no such order",
    "OrderStateError": "that order can't be changed any more",
    "StatusError": "orders have no such status",
    "DateError": "the day was not written as YYYY-MM-DD",
    "PackError": "the quantity does not make whole packs",
    "IntegrityError": "the books do not allow it, with the stock and the customers that there are",
}


def explain_failure(turn: Turn) -> list[Message]:
    """Version 2 of the record: what went wrong, without a word of the call."""
    what = f"a call to {turn.tool}" if turn.tool else "a call"
    why = REASONS.get(turn.problem or "", "it could not be carried out")
    return [
        {
            "role": "user",
            "content": f"Note from the desk: {what} was turned down, because {why}.",
        }
    ]


def render_messages(
    history: History, record: Callable[[Turn], list[Message]] = explain_failure
) -> list[Message]:
    """The chat messages that the model is given; `record` writes the calls that failed."""
    messages = [
        {"role": "system", "content": history.instructions},
        {"role": "user", "content": history.request},
    ]
    for entry in history.entries:
        if isinstance(entry, Request):
            messages.append({"role": "user", "content": entry.text})
        elif entry.problem:
            messages.extend(record(entry))
        else:
            messages.append({"role": "assistant", "content": entry.call})
            if entry.result is not None:
                messages.append({"role": "user", "content": f"Tool result: {entry.result}"})
    return _alternating(messages)


def _alternating(messages: list[Message]) -> list[Message]:
    """Neighbours of one role joined into one message, since many chat templates demand it."""
    joined: list[Message] = []
    for message in messages:
        if joined and joined[-1]["role"] == message["role"]:
            joined[-1] = {**message, "content": f"{joined[-1]['content']}\n\n{message['content']}"}
        else:
            joined.append(message)
    return joined
