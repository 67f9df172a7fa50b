"""What an agent did, read from the requests that it sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_failgain.capture.chat import read_chat
from pytest_failgain.capture.exchange import Exchange
from pytest_failgain.capture.request import Request, extends
from pytest_failgain.capture.responses import chat_messages, read_responses
from pytest_failgain.errors import TranscriptError
from pytest_failgain.transcripts.read import ReadTranscript, read_transcript


def read_exchanges(exchanges: Sequence[Exchange]) -> ReadTranscript:
    """The conversations that the requests tell of, each as its longest request tells it.

    What was answered last belongs to it. A request that another one goes on from is told by that.

    Raises:
        TranscriptError: when there is no request, or none of a format that is known.
    """
    if not exchanges:
        raise TranscriptError(
            "the endpoint got no request, so there is nothing to read: was the agent's client led "
            "to the endpoint's base_url?"
        )
    requests = [_request(exchange) for exchange in exchanges]
    told = [
        _told(request, exchange)
        for index, (request, exchange) in enumerate(zip(requests, exchanges, strict=True))
        if not any(_goes_on(later, request) for later in requests[index + 1 :])
    ]
    return read_transcript(told[0] if len(told) == 1 else told)


def _request(exchange: Exchange) -> Request:
    return (read_chat if exchange.api == "chat" else read_responses)(exchange.body)


def _goes_on(later: Request, earlier: Request) -> bool:
    return later.messages == earlier.messages or extends(later, earlier)


def _told(request: Request, exchange: Exchange) -> dict[str, Any]:
    return {
        "messages": [*request.messages, *_answered(exchange)],
        "tools": [tool.as_function() for tool in request.tools],
    }


def _answered(exchange: Exchange) -> list[Mapping[str, Any]]:
    if exchange.api == "responses":
        return list(chat_messages({"input": exchange.answer.get("output")}))
    choices = exchange.answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    return [message] if isinstance(message, dict) else []
