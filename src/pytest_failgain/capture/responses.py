"""OpenAI's Responses API: a request read as chat messages, an answer written."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_failgain.capture.chat import counted_tokens, ids_of, model_of
from pytest_failgain.capture.request import Answer, Request
from pytest_failgain.prompt import Message
from pytest_failgain.transcripts.content import content_text
from pytest_failgain.transcripts.conversation import tool_from

_ECHOED: dict[str, Any] = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": None,
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}


def read_responses(body: Mapping[str, Any], earlier: Sequence[Request] = ()) -> Request:
    """The request that `body` is, where its "input" already stands in full."""
    tools = body.get("tools")
    return Request(
        "responses",
        tuple(chat_messages(body)),
        tuple(filter(None, map(tool_from, tools if isinstance(tools, list) else []))),
        body.get("tool_choice"),
        (),
        bool(body.get("stream")),
        body,
        tuple(earlier),
    )


def chat_messages(body: Mapping[str, Any]) -> Iterator[Message]:
    """The instructions and the input as chat messages; calls that stand together are of one."""
    instructions = body.get("instructions")
    if isinstance(instructions, str) and instructions:
        yield {"role": "system", "content": instructions}
    calls: list[dict[str, Any]] = []
    said: Any = None
    for item in input_items(body):
        made = _call(item)
        if made is not None:
            calls.append(made)
            continue
        message = _message(item)
        if message is None:
            continue
        if calls or said is not None:
            yield _assistant(said, calls)
            calls, said = [], None
        if message["role"] == "assistant":
            said = message["content"]
        else:
            yield message
    if calls or said is not None:
        yield _assistant(said, calls)


def input_items(body: Mapping[str, Any]) -> list[Any]:
    """The items of "input"; a text is the user's message."""
    value = body.get("input")
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    return list(value) if isinstance(value, list) else []


def _call(item: Any) -> dict[str, Any] | None:
    if not isinstance(item, dict) or item.get("type") not in ("function_call", "custom_tool_call"):
        return None
    arguments = item.get("arguments", item.get("input"))
    function = {"name": item.get("name"), "arguments": arguments}
    return {"id": item.get("call_id"), "type": "function", "function": function}


def _message(item: Any) -> dict[str, Any] | None:
    if not isinstance(item, dict):
        return None
    if str(item.get("type", "")).endswith("_call_output"):
        output = content_text(item.get("output"))
        return {"role": "tool", "tool_call_id": item.get("call_id"), "content": output}
    role = item.get("role")
    if not isinstance(role, str):
        return None  # such as reasoning, which no chat message has
    return {"role": role, "content": content_text(item.get("content"))}


def _assistant(said: Any, calls: list[dict[str, Any]]) -> Message:
    message: dict[str, Any] = {"role": "assistant", "content": said}
    return {**message, "tool_calls": calls} if calls else message


def write_responses(answer: Answer, request: Request, number: int) -> dict[str, Any]:
    """The response that says `answer`; `number` tells it from other answers."""
    asked, said = counted_tokens(answer, request)
    return {
        "id": f"resp_failgain{number:04}",
        "object": "response",
        "created_at": int(time.time()),
        "completed_at": int(time.time()),
        "status": "completed",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "model": model_of(request),
        **{key: request.body.get(key, usual) for key, usual in _ECHOED.items()},
        "output": list(_output(answer, request, number)),
        "usage": {
            "input_tokens": asked,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": said,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": asked + said,
        },
    }


def _output(answer: Answer, request: Request, number: int) -> Iterator[dict[str, Any]]:
    if answer.content is not None or not answer.calls:
        part = {"type": "output_text", "text": answer.content or "", "annotations": []}
        yield {
            "id": f"msg_failgain{number:04}",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{**part, "logprobs": []}],
        }
    for call_id, call in zip(ids_of(answer, request), answer.calls, strict=True):
        yield {
            "id": f"fc_{call_id}",
            "type": "function_call",
            "status": "completed",
            "call_id": call_id,
            "name": call.name,
            "arguments": call.arguments,
        }
