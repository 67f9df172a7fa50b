"""Items of OpenAI's Responses API: a request's body, a response, or a list of items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_failgain.transcripts.beginnings import joined
from pytest_failgain.transcripts.conversation import Conversation, tool_from
from pytest_failgain.transcripts.document import Document
from pytest_failgain.transcripts.members import as_dict, as_dicts
from pytest_failgain.transcripts.response_items import ItemTurns, is_call_item, is_item

TOLD = "items of the Responses API told as chat messages"
EARLIER = "a response that goes on from an earlier one by its id, which is not in the log"

_BODIES = ("body", "request", "request_body", "payload", "kwargs", "params")
_ANSWERS = ("response", "response_body", "result")


class OpenAIResponsesReader:
    """A request's body with `input`, one with the response beside it, or a list of items."""

    name = "openai-responses"

    def recognises(self, document: Document) -> bool:
        return any(True for _ in _bodies(document))

    def read(self, document: Document) -> Sequence[Conversation]:
        return joined([_conversation(body) for body in _bodies(document)])


def _bodies(document: Document) -> Iterator[Mapping[str, Any]]:
    """The requests' bodies in a document, each with `input` as all of the items that it tells."""
    entries = list(document.entries)
    if any(map(is_call_item, entries)) and all(map(is_item, entries)):
        yield {"input": entries}
        return
    for entry in entries:
        if isinstance(entry, list):
            if any(map(is_call_item, entry)) and all(map(is_item, entry)):
                yield {"input": entry}
        elif isinstance(entry, dict):
            yield from _logged(entry)


def _logged(entry: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    held = [as_dict(entry.get(key)) for key in _ANSWERS]
    answers = [one for one in (entry, *held) if _is_answer(one)]
    output = answers[0]["output"] if answers else []
    for body in (entry, *(as_dict(entry.get(key)) for key in _BODIES)):
        items = _input(body)
        if items:
            yield {**body, "input": [*items, *output]}
            return
    if output:
        yield {**answers[0], "input": output}


def _input(body: Mapping[str, Any]) -> list[Any]:
    if "messages" in body:
        return []
    items = body.get("input")
    if isinstance(items, str) and "model" in body:
        return [{"role": "user", "content": items}]
    return items if isinstance(items, list) and items and all(map(is_item, items)) else []


def _is_answer(value: Mapping[str, Any]) -> bool:
    output = value.get("output")
    return (
        value.get("object") == "response" and isinstance(output, list) and all(map(is_item, output))
    )


def _conversation(body: Mapping[str, Any]) -> Conversation:
    turns = ItemTurns()
    turns.draft.note(TOLD)
    instructions = body.get("instructions")
    if isinstance(instructions, str):
        turns.draft.say("system", instructions)
    elif isinstance(instructions, list):
        turns.add(instructions)
    if body.get("previous_response_id"):
        turns.draft.note(EARLIER)
    turns.add(body["input"])
    turns.end_of_turn()
    return turns.draft.conversation([tool_from(tool) for tool in as_dicts(body.get("tools"))])
