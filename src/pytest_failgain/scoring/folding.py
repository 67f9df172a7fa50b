"""Bringing chat messages into a form that a chat template writes out in full.

Each function does one thing to a list of messages, for one thing that some templates can't do, and
each has a name that a measurement lists: nothing is folded silently.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from pytest_failgain.prompt import Message
from pytest_failgain.trajectory import Action, Tool, ToolCall

TOLD_ROLES = "developer and function messages told as system and tool messages"
PLACEHOLDERS = "parts of messages that are no text replaced by their kind, such as [image]"
LATER_SYSTEM = "system messages that are not first told as user turns (template refuses them)"
JOINED_SYSTEM = "system messages at the head joined (template takes one)"
FOLDED_SYSTEM = "system prompt put at the head of the first user turn (template has no system role)"
FOLDED_TOOLS = "tool schemas written into the system prompt (template takes no tools)"
FOLDED_CALLS = "tool calls written as JSON text (template has no tool calls)"
FOLDED_BROKEN = "calls whose arguments are no JSON object written as text (template takes objects)"
FOLDED_RESULTS = "tool results put into user turns (template has no tool role)"
FOLDED_LONE_RESULTS = "tool results without their call put into user turns (template refuses them)"
SPLIT_CALLS = "calls of one turn told one after another (template takes one call a turn)"
RENAMED_IDS = "ids of calls replaced by others (template wants ids of one form)"
NULL_CONTENT = "null content told as an empty text (template needs a text)"
JOINED_TURNS = "user turns that follow one another joined (template wants roles to alternate)"
JOINED_ANSWERS = "assistant turns that follow one another joined (template wants them to alternate)"
FILLED_TURNS = "empty turns put in where roles do not alternate (template refuses them as they are)"
LED_IN = "an empty user turn put before the first answer (template wants the user to begin)"

_ROLES = {"developer": "system", "function": "tool", "ipython": "tool", "model": "assistant"}


def with_known_roles(messages: Sequence[Message]) -> list[Message]:
    """Other names of the usual roles as templates know them."""
    return [
        {**message, "role": _ROLES[message["role"]]} if message["role"] in _ROLES else message
        for message in messages
    ]


def has_other_parts(message: Message) -> bool:
    """Whether a message has parts that are no text."""
    content = message.get("content")
    return isinstance(content, list) and any("text" not in part for part in content)


def with_text_content(message: Message) -> Message:
    """A message whose content is one text, or None; what is no text leaves its kind in brackets."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    return {**message, "content": "".join(map(_part_text, content))}


def _part_text(part: Mapping[str, Any]) -> str:
    if "text" in part:
        return str(part["text"])
    kind = str(part.get("type", "part")).removeprefix("input_")
    return f"[{kind.removesuffix('_url')}]"


def with_one_system(messages: Sequence[Message]) -> list[Message]:
    """The system messages at the head as one."""
    head = _head(messages)
    if head < 2:
        return list(messages)
    text = "\n\n".join(str(message["content"]) for message in messages[:head])
    return [{**messages[0], "content": text}, *messages[head:]]


def with_later_systems_told(messages: Sequence[Message]) -> list[Message]:
    """System messages that do not stand at the head, as turns of the user."""
    head = _head(messages)
    return [
        {**message, "role": "user"} if index >= head and message["role"] == "system" else message
        for index, message in enumerate(messages)
    ]


def _head(messages: Sequence[Message]) -> int:
    count = 0
    while count < len(messages) and messages[count]["role"] == "system":
        count += 1
    return count


def with_system_folded(messages: Sequence[Message]) -> list[Message]:
    """The system prompt at the head of the first user turn."""
    system = "\n\n".join(str(m["content"]) for m in messages if m["role"] == "system")
    rest = [message for message in messages if message["role"] != "system"]
    for index, message in enumerate(rest):
        if message["role"] == "user":
            folded = {**message, "content": f"{system}\n\n{message['content']}"}
            return [*rest[:index], folded, *rest[index + 1 :]]
    return [{"role": "user", "content": system}, *rest]


def with_tools_described(messages: Sequence[Message], tools: Sequence[Tool]) -> list[Message]:
    """The tools as text at the end of the system prompt."""
    schemas = "\n".join(json.dumps(tool.as_function()["function"]) for tool in tools)
    text = (
        'To use a tool, answer with one JSON object {"name": …, "arguments": {…}} and nothing '
        f"else. The tools:\n{schemas}"
    )
    if messages and messages[0]["role"] == "system":
        head = {**messages[0], "content": f"{messages[0]['content']}\n\n{text}"}
        return [head, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]


def call_text(call: ToolCall) -> str:
    """A call as JSON text, its arguments letter for letter."""
    return f'{{"name": {json.dumps(call.name)}, "arguments": {call.arguments}}}'


def calls_as_text(action: Action) -> str:
    """What is said and the calls, each on a line of its own."""
    return "\n".join(part for part in (action.text, *map(call_text, action.calls)) if part)


def call_as_content(message: Message) -> Message:
    """An assistant's turn with its calls as JSON text."""
    calls = message.get("tool_calls")
    if not calls:
        return message
    written = []
    for call in calls:
        function: Mapping[str, Any] = call["function"]
        arguments = function["arguments"]
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        written.append(call_text(ToolCall(str(function["name"]), text)))
    content = "\n".join(part for part in (message.get("content") or "", *written) if part)
    return {"role": message["role"], "content": content}


def is_broken(arguments: object) -> bool:
    """Whether arguments are no JSON object, so that they stay text."""
    return isinstance(parsed_arguments(arguments), str)


def with_broken_calls_told(messages: Sequence[Message]) -> list[Message]:
    """Turns with a call whose arguments are no JSON object, as text, with their results."""
    told: list[Message] = []
    ids: set[object] = set()
    for message in messages:
        calls = message.get("tool_calls") or ()
        if any(is_broken(call["function"]["arguments"]) for call in calls):
            ids.update(call.get("id") for call in calls)
            told.append(call_as_content(message))
        elif message["role"] == "tool" and message.get("tool_call_id") in ids:
            told.append(result_as_user(message))
        else:
            told.append(message)
    return told


def result_as_user(message: Message) -> Message:
    """A tool's result as a turn of the user."""
    if message["role"] != "tool":
        return message
    name = message.get("name")
    label = f"Result of {name}" if name else "Tool result"
    return {"role": "user", "content": f"{label}: {message.get('content') or ''}"}


def with_lone_results_told(messages: Sequence[Message]) -> list[Message]:
    """Results that no call stands before, as turns of the user."""
    told: list[Message] = []
    open_turn = False
    for message in messages:
        if message["role"] == "tool" and not open_turn:
            told.append(result_as_user(message))
            continue
        if message["role"] != "tool":
            open_turn = bool(message.get("tool_calls"))
        told.append(message)
    return told


def with_calls_split(messages: Sequence[Message]) -> list[Message]:
    """Turns of several calls as turns of one, each with its own result behind it."""
    split: list[Message] = []
    rest = list(messages)
    while rest:
        message, *rest = rest
        calls = message.get("tool_calls") or ()
        if len(calls) < 2:
            split.append(message)
            continue
        end = next((i for i, other in enumerate(rest) if other["role"] != "tool"), len(rest))
        results, rest = rest[:end], rest[end:]
        for index, call in enumerate(calls):
            said = message.get("content") if index == 0 else ""
            split.append({**message, "content": said, "tool_calls": [call]})
            own = [one for one in results if one.get("tool_call_id") == call.get("id")]
            # Without ids that tell them apart, results come in the order of their calls.
            own = own[:1] or results[:1]
            split += own
            results = [one for one in results if not any(one is taken for taken in own)]
        split += results
    return split


def with_plain_ids(messages: Sequence[Message]) -> list[Message]:
    """Ids of nine letters and digits, the one form that every known template takes."""
    ids: dict[object, str] = {}

    def plain(given: object) -> str:
        return ids.setdefault(given, f"call{len(ids):05d}")

    renamed: list[Message] = []
    for message in messages:
        if message.get("tool_calls"):
            calls = [{**call, "id": plain(call.get("id"))} for call in message["tool_calls"]]
            renamed.append({**message, "tool_calls": calls})
        elif message["role"] == "tool":
            renamed.append({**message, "tool_call_id": plain(message.get("tool_call_id"))})
        else:
            renamed.append(message)
    return renamed


def with_texts(messages: Sequence[Message]) -> list[Message]:
    """Messages whose content is never null."""
    return [
        message if isinstance(message.get("content"), str) else {**message, "content": ""}
        for message in messages
    ]


def with_turns_joined(messages: Sequence[Message], role: str) -> list[Message]:
    """Turns of one role that follow one another as one, but for those with calls."""
    joined: list[Message] = []
    for own, group in groupby(
        messages, key=lambda one: one["role"] == role and not one.get("tool_calls")
    ):
        turns = list(group)
        if own and len(turns) > 1:
            text = "\n\n".join(str(turn.get("content") or "") for turn in turns)
            turns = [{**turns[0], "content": text}]
        joined += turns
    return joined


def with_turns_filled(messages: Sequence[Message]) -> list[Message]:
    """Empty turns wherever user and assistant do not take turns; calls and results aside."""
    filled: list[Message] = []
    wanted = "user"
    for message in messages:
        counts = message["role"] in ("user", "assistant") and not message.get("tool_calls")
        if counts and message["role"] != wanted:
            filled.append({"role": wanted, "content": ""})
        if counts:
            wanted = "assistant" if message["role"] == "user" else "user"
        filled.append(message)
    return filled


def led_in(messages: Sequence[Message]) -> list[Message]:
    """An empty turn of the user before an assistant's that begins."""
    head = _head(messages)
    if head < len(messages) and messages[head]["role"] == "assistant":
        return [*messages[:head], {"role": "user", "content": ""}, *messages[head:]]
    return list(messages)


def parsed_arguments(arguments: object) -> Any:
    """The arguments as an object where they are one: templates loop over its entries."""
    if not isinstance(arguments, str):
        return arguments
    if not arguments.strip():  # how some clients write that there are none
        return {}
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    return value if isinstance(value, dict) else arguments


def with_parsed_arguments(message: Message) -> Message:
    """A message whose calls have objects for arguments, as far as they are such."""
    calls = message.get("tool_calls")
    if not calls:
        return message
    parsed = []
    for call in calls:
        function = dict(call["function"])
        function["arguments"] = parsed_arguments(function["arguments"])
        parsed.append({**call, "function": function})
    return {**message, "tool_calls": parsed}
