"""OpenAI's chat completions: a request read, an answer written."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_failgain.capture.request import Answer, Request
from pytest_failgain.transcripts.conversation import tool_from

_MOST_CHOICES = 16
UNNAMED_MODEL = "failgain"


def read_chat(body: Mapping[str, Any], earlier: Sequence[Request] = ()) -> Request:
    """The request that `body` is. What is unknown or of another shape is left out."""
    messages = body.get("messages")
    tools = body.get("tools", body.get("functions"))
    choice = body.get("tool_choice", body.get("function_call"))
    stop = body.get("stop")
    return Request(
        "chat",
        tuple(one for one in _listed(messages) if isinstance(one, dict)),
        tuple(filter(None, map(tool_from, _listed(tools)))),
        choice,
        tuple(one for one in ([stop] if isinstance(stop, str) else _listed(stop)) if _is_text(one)),
        bool(body.get("stream")),
        body,
        tuple(earlier),
    )


def write_chat(answer: Answer, request: Request, number: int) -> dict[str, Any]:
    """The completion that says `answer`; `number` tells it from other answers."""
    message, finish = _message(answer, request)
    wanted = request.body.get("n")
    count = wanted if isinstance(wanted, int) and 1 <= wanted <= _MOST_CHOICES else 1
    return {
        "id": f"chatcmpl-failgain{number:04}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model_of(request),
        "choices": [
            {"index": index, "message": message, "finish_reason": finish, "logprobs": None}
            for index in range(count)
        ],
        "usage": _usage(answer, request),
        "system_fingerprint": None,
    }


def _message(answer: Answer, request: Request) -> tuple[dict[str, Any], str]:
    message = {"role": "assistant", "content": answer.content, "refusal": None}
    if not answer.calls:
        # Null beside nothing would be no answer at all.
        return {**message, "content": answer.content or ""}, "stop"
    functions = [{"name": call.name, "arguments": call.arguments} for call in answer.calls]
    if "functions" in request.body and "tools" not in request.body:
        return {**message, "function_call": functions[0]}, "function_call"
    calls = [
        {"id": call_id, "type": "function", "function": function}
        for call_id, function in zip(ids_of(answer, request), functions, strict=True)
    ]
    return {**message, "tool_calls": calls}, "tool_calls"


def ids_of(answer: Answer, request: Request) -> tuple[str, ...]:
    """The ids of the answer's calls: its own, or the same made-up ones for the same request."""
    if len(answer.call_ids) == len(answer.calls):
        return answer.call_ids
    digest = hashlib.sha256(request.text.encode(errors="surrogatepass")).hexdigest()[:12]
    return tuple(f"call_{digest}{index}" for index in range(len(answer.calls)))


def model_of(request: Request) -> str:
    """The model that the client asked for."""
    model = request.body.get("model")
    return model if isinstance(model, str) and model else UNNAMED_MODEL


def counted_tokens(answer: Answer, request: Request) -> tuple[int, int]:
    """About as many tokens as the request and the answer have, each at least 1."""
    said = "".join([answer.content or "", *(call.name + call.arguments for call in answer.calls)])
    return max(1, len(request.text) // 4), max(1, len(said) // 4)


def _usage(answer: Answer, request: Request) -> dict[str, Any]:
    asked, said = counted_tokens(answer, request)
    return {
        "prompt_tokens": asked,
        "completion_tokens": said,
        "total_tokens": asked + said,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_text(value: Any) -> bool:
    return isinstance(value, str)
