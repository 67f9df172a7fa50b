"""A chat completion as a stream of chunks, and chunks put together again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pytest_failgain.capture.sse import DONE, event, in_pieces


def stream_chat(completion: dict[str, Any], *, include_usage: bool) -> Iterator[bytes]:
    """The events in which `completion` comes to a client that asked for a stream."""
    common = {key: completion[key] for key in ("id", "created", "model", "system_fingerprint")}
    common["object"] = "chat.completion.chunk"
    # With usage asked for, chunks before the last say that theirs is still to come.
    pending = {"usage": None} if include_usage else {}
    for choice in completion["choices"]:
        place = {"index": choice["index"], "logprobs": None}
        for delta in _deltas(choice["message"]):
            chosen = {**place, "delta": delta, "finish_reason": None}
            yield event({**common, "choices": [chosen], **pending})
        chosen = {**place, "delta": {}, "finish_reason": choice["finish_reason"]}
        yield event({**common, "choices": [chosen], **pending})
    if include_usage:
        yield event({**common, "choices": [], "usage": completion["usage"]})
    yield DONE


def _deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    content = message["content"]
    yield {"role": "assistant", "content": "" if content else content, "refusal": None}
    for piece in in_pieces(content or ""):
        yield {"content": piece}
    if "function_call" in message:
        function = message["function_call"]
        yield {"function_call": {"name": function["name"], "arguments": ""}}
        for piece in in_pieces(function["arguments"]):
            yield {"function_call": {"arguments": piece}}
    for index, call in enumerate(message.get("tool_calls", ())):
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        begun = {"id": call["id"], "type": "function", "function": {"name": name, "arguments": ""}}
        yield {"tool_calls": [{"index": index, **begun}]}
        for piece in in_pieces(arguments):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def completion_of(chunks: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The completion that a stream's chunks make; {} where there are none."""
    completion: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        given = (item for item in chunk.items() if item[0] != "choices" and item[1] is not None)
        completion.update(given)
        for choice in chunk.get("choices") or ():
            if isinstance(choice, dict):
                _take(choices.setdefault(choice.get("index", 0), _empty_choice()), choice)
    if choices or completion.get("object") == "chat.completion.chunk":
        completion["object"] = "chat.completion"
        completion["choices"] = [
            {"index": index, **choice} for index, choice in sorted(choices.items())
        ]
    return completion


def _empty_choice() -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": None}, "finish_reason": None}


def _take(whole: dict[str, Any], choice: dict[str, Any]) -> None:
    whole["finish_reason"] = choice.get("finish_reason") or whole["finish_reason"]
    delta, message = choice.get("delta"), whole["message"]
    for key, value in delta.items() if isinstance(delta, dict) else ():
        if key == "tool_calls" and isinstance(value, list):
            _take_calls(message.setdefault("tool_calls", []), value)
        elif key == "function_call" and isinstance(value, dict):
            _join(message.setdefault("function_call", {}), value)
        elif key != "role":
            _join(message, {key: value})


def _take_calls(calls: list[dict[str, Any]], parts: list[Any]) -> None:
    for part in parts:
        if not isinstance(part, dict):
            continue
        index = part.get("index", 0)
        # A gap in the indices is left to nobody: the next free place is taken.
        while not isinstance(index, int) or index >= len(calls):
            calls.append({"function": {"name": "", "arguments": ""}})
            index = min(index, len(calls) - 1) if isinstance(index, int) else len(calls) - 1
        call = calls[index]
        for key, value in part.items():
            if key == "function" and isinstance(value, dict):
                _join(call["function"], value)
            elif key != "index" and value is not None:
                call[key] = value


def _join(whole: dict[str, Any], part: dict[str, Any]) -> None:
    """Take in `part`, its texts behind those that are there already."""
    for key, value in part.items():
        if isinstance(value, str) and isinstance(whole.get(key), str):
            whole[key] += value
        elif value is not None:
            whole[key] = value
