"""Turns as chat messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_failgain.prompt import Message, Prompt
from pytest_failgain.transcripts.conversation import Conversation, Turn
from pytest_failgain.transcripts.pairing import Place


def as_chat(turns: Sequence[Turn], conversation: Conversation) -> Prompt:
    """The turns as chat messages, each as it was sent where the source has it so."""
    messages = tuple(message for turn in turns for message in _messages(turn))
    notes = tuple(dict.fromkeys(conversation.notes))
    return Prompt(messages, tools=conversation.tools, adaptations=notes)


def message_index(turns: Sequence[Turn], result: Place) -> int:
    """Where `as_chat` has the message of a result, counted from 0."""
    index, number = result
    before = sum(1 for turn in turns[:index] for _ in _messages(turn))
    return before + (number + _first_result(turns[index]) if _stand_alone(turns[index]) else 0)


def _messages(turn: Turn) -> Iterator[Message]:
    if turn.message is not None:
        yield turn.message
        return
    if _first_result(turn):
        yield _message(turn)
    if not _stand_alone(turn):
        yield _message(turn)
        return
    for result in turn.results:
        yield {"role": "tool", "tool_call_id": result.call_id or "", "content": result.text}


def _stand_alone(turn: Turn) -> bool:
    """Whether each of the turn's results is a message of its own."""
    if turn.message is not None:
        return False
    return turn.role == "tool" or bool(turn.results and (turn.calls or not turn.text))


def _first_result(turn: Turn) -> int:
    """How many messages stand before the turn's first result: that of the calls beside it."""
    return int(_stand_alone(turn) and bool(turn.calls))


def _message(turn: Turn) -> Message:
    message: dict[str, object] = {"role": turn.role, "content": turn.text}
    structured = [call for call in turn.calls if call.action.calls]
    if structured:
        message["tool_calls"] = [
            {
                "id": call.call_id or "",
                "type": "function",
                "function": {"name": made.name, "arguments": made.arguments},
            }
            for call in structured
            for made in call.action.calls
        ]
    return message
