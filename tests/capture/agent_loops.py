"""Agents for tests, each a loop over plain HTTP that treats a failed call in its own way."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

ERROR = "'date' must be YYYY-MM-DD, got '12 Oct'"
TOOL = {
    "type": "function",
    "function": {
        "name": "add",
        "parameters": {"type": "object", "properties": {"date": {"type": "string"}}},
    },
}

Messages = list[dict[str, Any]]
Record = Callable[[Messages, dict[str, Any], str], Messages]


def post(base_url: str, body: dict[str, Any]) -> dict[str, Any]:
    """The assistant's message that answers `body`."""
    request = urllib.request.Request(
        f"{base_url}/chat/completions",
        json.dumps({"model": "any", **body}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as response:
        answer: dict[str, Any] = json.load(response)
    message: dict[str, Any] = answer["choices"][0]["message"]
    return message


def native(messages: Messages, message: dict[str, Any], result: str) -> Messages:
    """The call as it came, and its result in a tool's message."""
    answer = {
        "role": "tool",
        "tool_call_id": message["tool_calls"][0]["id"],
        "content": result,
    }
    return [*messages, message, answer]


def merged(messages: Messages, message: dict[str, Any], result: str) -> Messages:
    """The result at the end of the task."""
    task = messages[-1]
    return [*messages[:-1], {**task, "content": f"{task['content']}\n{result}"}]


def as_text(messages: Messages, message: dict[str, Any], result: str) -> Messages:
    """The call in words of the assistant's, the result in the user's."""
    function = message["tool_calls"][0]["function"]
    said = f"I call {function['name']}({function['arguments']})"
    return [
        *messages,
        {"role": "assistant", "content": said},
        {"role": "user", "content": result},
    ]


def hidden(messages: Messages, message: dict[str, Any], result: str) -> Messages:
    """The call as it came, without what its tool said."""
    return native(messages, message, "Something failed. Try again.")


@dataclass(frozen=True)
class LoopAgent:
    """An agent that records a failed call with `record`."""

    record: Record = native
    drops_tools: bool = False
    name: str = "loop_agent"

    def __call__(self, base_url: str, task: str, observation: str | None = None) -> None:
        """Run the agent; its tool answers `observation` where that is not None."""
        messages: Messages = [
            {"role": "system", "content": "Keep the calendar."},
            {"role": "user", "content": task},
        ]
        tools = [TOOL]
        for _ in range(4):
            message = post(base_url, {"messages": messages, **({"tools": tools} if tools else {})})
            if not message.get("tool_calls"):
                return
            result = f"Error: {ERROR}" if observation is None else observation
            messages = self.record(messages, message, result)
            if self.drops_tools:
                tools = []
