"""The OpenAI SDK and a loop of one's own, as in its function calling guide."""

from __future__ import annotations

import json
from typing import Any

from openai import OpenAI

from gallery.calendar_tools import CREATE_EVENT, INSTRUCTIONS, LIST_EVENTS, Calendar

TOOLS: Any = [{"type": "function", "function": tool} for tool in (CREATE_EVENT, LIST_EVENTS)]


def run_agent(base_url: str, task: str, observation: str | None = None) -> str:
    """Let the model at `base_url` work on `task`, and give its last words."""
    calendar = Calendar(observation)
    client = OpenAI(base_url=base_url, api_key="unused")
    messages: list[Any] = [
        {"role": "system", "content": INSTRUCTIONS},
        {"role": "user", "content": task},
    ]
    for _ in range(8):
        completion = client.chat.completions.create(model="any", messages=messages, tools=TOOLS)
        message = completion.choices[0].message
        messages.append(message)
        if not message.tool_calls:
            return message.content or ""
        for call in message.tool_calls:
            assert call.type == "function"
            try:
                arguments = json.loads(call.function.arguments)
                result = calendar.tool(call.function.name)(**arguments)
            except Exception as error:
                result = f"Error: {error}"
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    return "too many steps"
