"""A response as a stream of named events, and the response that a stream tells of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pytest_failgain.capture.sse import event, in_pieces

_ENDS = ("response.completed", "response.incomplete", "response.failed")


def stream_responses(response: dict[str, Any]) -> Iterator[bytes]:
    """The events in which `response` comes to a client that asked for a stream."""
    for number, (kind, rest) in enumerate(_events(response)):
        yield event({"type": kind, "sequence_number": number, **rest}, kind)


def _events(response: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    begun = {**response, "status": "in_progress", "completed_at": None, "output": [], "usage": None}
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}
    for index, item in enumerate(response["output"]):
        written = _call_events if item["type"] == "function_call" else _message_events
        yield from written(item, index)
        yield "response.output_item.done", {"output_index": index, "item": item}
    yield "response.completed", {"response": response}


def _call_events(item: dict[str, Any], index: int) -> Iterator[tuple[str, dict[str, Any]]]:
    begun = {**item, "status": "in_progress", "arguments": ""}
    yield "response.output_item.added", {"output_index": index, "item": begun}
    place = {"item_id": item["id"], "output_index": index}
    for piece in in_pieces(item["arguments"]):
        yield "response.function_call_arguments.delta", {**place, "delta": piece}
    done = {**place, "name": item["name"], "arguments": item["arguments"]}
    yield "response.function_call_arguments.done", done


def _message_events(item: dict[str, Any], index: int) -> Iterator[tuple[str, dict[str, Any]]]:
    begun = {**item, "status": "in_progress", "content": []}
    yield "response.output_item.added", {"output_index": index, "item": begun}
    for number, part in enumerate(item["content"]):
        place = {"item_id": item["id"], "output_index": index, "content_index": number}
        yield "response.content_part.added", {**place, "part": {**part, "text": ""}}
        for piece in in_pieces(part["text"]):
            yield "response.output_text.delta", {**place, "delta": piece, "logprobs": []}
        yield "response.output_text.done", {**place, "text": part["text"], "logprobs": []}
        yield "response.content_part.done", {**place, "part": part}


def response_of(events: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The response at a stream's end; {} where it tells of none.

    Of a stream that broke off it is the response as it was begun, with the items that were done.
    """
    response: dict[str, Any] = {}
    items: dict[int, Any] = {}
    for one in events:
        if isinstance(one.get("response"), dict):
            response = one["response"]
        if one.get("type") == "response.output_item.done":
            items[one.get("output_index", len(items))] = one.get("item")
        if one.get("type") in _ENDS:
            break
    if items and not response.get("output"):
        return {**response, "output": [item for _, item in sorted(items.items())]}
    return response
