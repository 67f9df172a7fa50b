"""What was said before a response that a client refers to by its id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_failgain.capture.responses import input_items


@dataclass(slots=True)
class StoredResponses:
    """The items before and in each response, by the response's id and by a conversation's.

    Not safe for several threads; the endpoint looks after that.
    """

    by_response: dict[str, list[Any]] = field(default_factory=dict)
    by_conversation: dict[str, list[Any]] = field(default_factory=dict)
    items: dict[str, Any] = field(default_factory=dict)
    answered: dict[str, tuple[bytes, list[Any]]] = field(default_factory=dict)

    def whole(self, body: dict[str, Any], raw: bytes) -> tuple[dict[str, Any], int, str]:
        """`body` with all of its input, how many items were put in, and what could not be.

        A body that refers to nothing stays as it is.
        """
        given = input_items(body)
        earlier, problem = self._earlier(body, raw)
        resolved = [self._resolved(item) for item in given]
        replaced = sum(new is not old for new, old in zip(resolved, given, strict=True))
        if not earlier and not replaced:
            return body, 0, problem
        return {**body, "input": [*earlier, *resolved]}, len(earlier) + replaced, problem

    def keep(self, body: Mapping[str, Any], raw: bytes, response: Mapping[str, Any]) -> None:
        """Remember `response`, the answer to the whole `body`, for what refers to it later."""
        output = response.get("output")
        made = output if isinstance(output, list) else []
        before = input_items(body)
        for item in (*before, *made):
            if isinstance(item, dict) and isinstance(item.get("id"), str):
                self.items[item["id"]] = item
        if isinstance(response.get("id"), str):
            self.by_response[response["id"]] = [*before, *made]
        conversation = _conversation(body)
        if conversation is not None:
            held = self.by_conversation.get(conversation, [])
            last = self.answered.get(conversation)
            self.answered[conversation] = (raw, last[1] if last and last[0] == raw else held)
            self.by_conversation[conversation] = [*before, *made]

    def _earlier(self, body: Mapping[str, Any], raw: bytes) -> tuple[list[Any], str]:
        previous, conversation = body.get("previous_response_id"), _conversation(body)
        if isinstance(previous, str) and previous:
            if previous in self.by_response:
                return self.by_response[previous], ""
            return [], f"the request goes on from a response {previous!r} that is not known here"
        if conversation is None:
            return [], ""
        # The same post once more was answered on what came before it, not on itself.
        last = self.answered.get(conversation)
        if last is not None and last[0] == raw:
            return last[1], ""
        return self.by_conversation.get(conversation, []), ""

    def _resolved(self, item: Any) -> Any:
        if isinstance(item, dict) and item.get("type") == "item_reference":
            return self.items.get(str(item.get("id")), item)
        return item


def _conversation(body: Mapping[str, Any]) -> str | None:
    value = body.get("conversation")
    if isinstance(value, dict):
        value = value.get("id")
    return value if isinstance(value, str) and value else None
