"""No framework: a loop over plain HTTP requests, as many small agents are written."""

from __future__ import annotations

import json
from typing import Any

import httpx

from gallery.calendar_tools import CREATE_EVENT, INSTRUCTIONS, LIST_EVENTS, Calendar

TOOLS = [{"type": "function", "function": tool} for tool in (CREATE_EVENT, LIST_EVENTS)]


def run_agent(base_url: str, task: str, observation: str | None = None) -> str:
    """Let the model at `base_url` work on `task`, and give its last words."""
    calendar = Calendar(observation)
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": INSTRUCTIONS},
        {"role": "user", "content": task},
    ]
    with httpx.Client(base_url=base_url, timeout=30) as client:
        for _ in range(8):
            body = {"model": "any", "messages": messages, "tools": TOOLS}
            response = client.post("/chat/completions", json=body).raise_for_status()
            message = response.json()["choices"][0]["message"]
            messages.append(message)
            if not message.get("tool_calls"):
                return str(message["content"])
            messages += [_answer(calendar, call) for call in message["tool_calls"]]
    return "too many steps"


def _answer(calendar: Calendar, call: dict[str, Any]) -> dict[str, Any]:
    function = call["function"]
    try:
        result = calendar.tool(function["name"])(**json.loads(function["arguments"]))
    except Exception as error:
        result = json.dumps({"error": type(error).__name__, "message": str(error)})
    return {"role": "tool", "tool_call_id": call["id"], "content": result}
