"""A small log of every transcript format, as long as is asked for: each step of it fails.

The texts are the same in all formats, so that what differs is the format.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

SYSTEM = "You keep a calendar. Use the tools."
TASK = "Add 'Dentist' on 12 Oct at 09:30."
TOOL = "create_event"
ERROR = "Error: 'date' must be YYYY-MM-DD, got '12 Oct'"

Json = dict[str, Any]


def _arguments(step: int) -> Json:
    return {"title": "Dentist", "date": "12 Oct", "time": "09:30", "try": step}


def _written(step: int) -> str:
    return json.dumps(_arguments(step))


def _lines(entries: list[Json]) -> str:
    return "".join(f"{json.dumps(entry)}\n" for entry in entries)


def _chat(reply: Callable[[int], Json], answer: Callable[[int], Json], steps: int) -> list[Json]:
    begins = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": TASK}]
    return begins + [one for step in range(steps) for one in (reply(step), answer(step))]


def _openai_chat(steps: int) -> str:
    def reply(step: int) -> Json:
        function = {"name": TOOL, "arguments": _written(step)}
        call = {"id": f"c{step}", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    def answer(step: int) -> Json:
        return {"role": "tool", "tool_call_id": f"c{step}", "content": ERROR}

    return json.dumps(_chat(reply, answer, steps))


def _openai_responses(steps: int) -> str:
    items: list[Json] = [{"role": "user", "content": TASK}]
    for step in range(steps):
        call = {"type": "function_call", "name": TOOL, "call_id": f"c{step}"}
        items.append({**call, "arguments": _written(step)})
        items.append({"type": "function_call_output", "call_id": f"c{step}", "output": ERROR})
    return json.dumps({"model": "m", "instructions": SYSTEM, "input": items})


def _anthropic(steps: int) -> str:
    def reply(step: int) -> Json:
        use = {"type": "tool_use", "id": f"t{step}", "name": TOOL, "input": _arguments(step)}
        return {"role": "assistant", "content": [{"type": "text", "text": "I add it."}, use]}

    def answer(step: int) -> Json:
        result = {"type": "tool_result", "tool_use_id": f"t{step}", "content": ERROR}
        return {"role": "user", "content": [{**result, "is_error": True}]}

    messages = _chat(reply, answer, steps)[1:]
    return json.dumps({"model": "m", "system": SYSTEM, "messages": messages})


def _claude_code(steps: int) -> str:
    lines = [{"type": "user", "uuid": "u", "message": {"role": "user", "content": TASK}}]
    parent = "u"
    for step in range(steps):
        use = {"type": "tool_use", "id": f"t{step}", "name": TOOL, "input": _arguments(step)}
        result = {"type": "tool_result", "tool_use_id": f"t{step}", "content": ERROR}
        said = {"id": f"m{step}", "role": "assistant", "content": [use]}
        heard = {"role": "user", "content": [{**result, "is_error": True}]}
        for kind, message in (("assistant", said), ("user", heard)):
            uuid = f"{kind}{step}"
            lines.append({"type": kind, "uuid": uuid, "parentUuid": parent, "message": message})
            parent = uuid
    return _lines([{"sessionId": "s", "isSidechain": False, "parentUuid": None} | x for x in lines])


def _codex(steps: int) -> str:
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": TASK}]}
    items: list[Json] = [said]
    for step in range(steps):
        call = {"type": "function_call", "name": TOOL, "call_id": f"c{step}"}
        items.append({**call, "arguments": _written(step)})
        items.append({"type": "function_call_output", "call_id": f"c{step}", "output": ERROR})
    meta = {"type": "session_meta", "payload": {"id": "s", "cwd": "/", "cli_version": "0.147.0"}}
    return _lines([meta, *({"type": "response_item", "payload": item} for item in items)])


def _langchain(steps: int) -> str:
    messages: list[Json] = [{"type": "human", "data": {"content": TASK, "type": "human"}}]
    for step in range(steps):
        call = {"name": TOOL, "args": _arguments(step), "id": f"c{step}", "type": "tool_call"}
        said = {"content": "", "type": "ai", "tool_calls": [call], "invalid_tool_calls": []}
        heard = {"content": ERROR, "type": "tool", "tool_call_id": f"c{step}", "status": "error"}
        messages += [{"type": "ai", "data": said}, {"type": "tool", "data": heard}]
    return json.dumps(messages)


def _pi(steps: int) -> str:
    said = {"role": "user", "content": [{"type": "text", "text": TASK}]}
    messages: list[Json] = [said]
    for step in range(steps):
        call = {"type": "toolCall", "id": f"c{step}", "name": TOOL, "arguments": _arguments(step)}
        result = {"role": "toolResult", "toolCallId": f"c{step}", "toolName": TOOL}
        heard = {**result, "content": [{"type": "text", "text": ERROR}], "isError": True}
        messages += [{"role": "assistant", "content": [call]}, heard]
    session = {"type": "session", "id": "s", "cwd": "/"}
    entries = [
        {"type": "message", "id": f"m{number}", "message": message}
        for number, message in enumerate(messages)
    ]
    return _lines([session, *entries])


def _gemini_cli(steps: int) -> str:
    messages: list[Json] = [{"id": "u", "type": "user", "content": TASK}]
    for step in range(steps):
        response = {"id": f"c{step}", "name": TOOL, "response": {"error": ERROR}}
        call = {"id": f"c{step}", "name": TOOL, "args": _arguments(step), "status": "error"}
        made = {**call, "result": [{"functionResponse": response}]}
        messages.append({"id": f"g{step}", "type": "gemini", "content": "", "toolCalls": [made]})
    return json.dumps({"sessionId": "s", "projectHash": "h", "messages": messages})


def _otel(steps: int) -> str:
    """One span that tells all: what spans repeat is no longer than a log without them."""
    messages: list[Json] = [{"role": "user", "parts": [{"type": "text", "content": TASK}]}]
    for step in range(steps):
        call = {"type": "tool_call", "id": f"c{step}", "name": TOOL, "arguments": _arguments(step)}
        response = {"type": "tool_call_response", "id": f"c{step}", "response": ERROR}
        messages += [{"role": "assistant", "parts": [call]}, {"role": "tool", "parts": [response]}]
    value = {"stringValue": json.dumps(messages)}
    span = {"name": "chat m", "traceId": "t", "spanId": "s"}
    attributes = [{"key": "gen_ai.input.messages", "value": value}]
    spans = [{**span, "attributes": attributes}]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})


def _pydantic_ai(steps: int) -> str:
    asked = [
        {"part_kind": "system-prompt", "content": SYSTEM},
        {"part_kind": "user-prompt", "content": TASK},
    ]
    messages: list[Json] = [{"kind": "request", "parts": asked}]
    for step in range(steps):
        named = {"tool_name": TOOL, "tool_call_id": f"c{step}"}
        call = {"part_kind": "tool-call", "args": _written(step), **named}
        retry = {"part_kind": "retry-prompt", "content": ERROR, **named}
        messages.append({"kind": "response", "parts": [call]})
        messages.append({"kind": "request", "parts": [retry]})
    return json.dumps(messages)


def _inspect_ai(steps: int) -> str:
    def reply(step: int) -> Json:
        call = {"id": f"c{step}", "function": TOOL, "arguments": _arguments(step)}
        return {"role": "assistant", "content": "I add it.", "tool_calls": [call]}

    def answer(step: int) -> Json:
        error = {"type": "unknown", "message": ERROR}
        named = {"tool_call_id": f"c{step}", "function": TOOL}
        return {"role": "tool", "content": "", **named, "error": error}

    sample = {"id": 1, "epoch": 1, "messages": _chat(reply, answer, steps)}
    return json.dumps({"version": 2, "eval": {"task": "t"}, "samples": [sample]})


def _atif(steps: int) -> str:
    told: list[Json] = [{"step_id": 1, "source": "user", "message": TASK}]
    for step in range(steps):
        call = {"tool_call_id": f"c{step}", "function_name": TOOL, "arguments": _arguments(step)}
        result = {"source_call_id": f"c{step}", "content": ERROR, "extra": {"success": False}}
        acted = {"step_id": step + 2, "source": "agent", "message": "I add it."}
        told.append({**acted, "tool_calls": [call], "observation": {"results": [result]}})
    agent = {"name": "a", "version": "1"}
    return json.dumps({"schema_version": "ATIF-v1.7", "agent": agent, "steps": told})


def _smolagents(steps: int) -> str:
    told: list[Json] = [{"system_prompt": SYSTEM}, {"task": TASK}]
    for step in range(steps):
        code = f"create_event(title='Dentist', date='12 Oct', time='09:30', attempt={step})"
        acted = {"step_number": step + 1, "code_action": code, "observations": None}
        said = f"Thought: I add it.\n<code>\n{code}\n</code>"
        error = {"type": "AgentExecutionError", "message": ERROR}
        told.append({**acted, "model_output": said, "tool_calls": [], "error": error})
    return json.dumps(told)


def _swe_agent(steps: int) -> str:
    def command(step: int) -> str:
        return f"calendar add Dentist '12 Oct' {step}"

    def reply(step: int) -> Json:
        content = f"I add it.\n\n```\n{command(step)}\n```"
        return {"role": "assistant", "content": content, "action": f"{command(step)}\n"}

    def answer(step: int) -> Json:
        return {"role": "user", "content": f"OBSERVATION:\n{ERROR}\n(Open file: n/a)\nbash-$"}

    history = _chat(reply, answer, steps)
    trajectory = [
        {"action": f"{command(step)}\n", "observation": ERROR, "response": reply(step)["content"]}
        for step in range(steps)
    ]
    info = {"exit_status": None}
    return json.dumps({"trajectory": trajectory, "history": history, "info": info})


def _mini_swe_agent(steps: int) -> str:
    def reply(step: int) -> Json:
        content = f"THOUGHT: I add it.\n\n```bash\ncalendar add '12 Oct' {step}\n```"
        return {"role": "assistant", "content": content}

    def answer(step: int) -> Json:
        content = f"<returncode>1</returncode>\n<output>\n{ERROR}\n</output>"
        return {"role": "user", "content": content}

    messages = _chat(reply, answer, steps)
    return json.dumps({"info": {"mini_version": "1.14.0"}, "messages": messages})


def _cline(steps: int) -> str:
    def text(*told: str) -> list[Json]:
        return [{"type": "text", "text": one} for one in told]

    def reply(step: int) -> Json:
        run = f"<command>calendar add '12 Oct' {step}</command>"
        said = text(f"I add it.\n\n<execute_command>\n{run}\n</execute_command>")
        return {"role": "assistant", "content": said}

    def answer(step: int) -> Json:
        heading = f"[execute_command for 'calendar add '12 Oct' {step}'] Result:"
        failed = "The tool execution failed with the following error:"
        error = f"{failed}\n<error>\n{ERROR}\n</error>"
        return {"role": "user", "content": text(heading, error)}

    return json.dumps(_chat(reply, answer, steps)[1:])


def _autogpt(steps: int) -> str:
    def reply(step: int) -> Json:
        command = {"name": TOOL, "args": _arguments(step)}
        content = json.dumps({"thoughts": {"text": "I add it."}, "command": command})
        return {"role": "assistant", "content": content}

    def answer(step: int) -> Json:
        return {"role": "system", "content": f"Command {TOOL} returned: {ERROR}"}

    return json.dumps(_chat(reply, answer, steps))


def _react(steps: int) -> str:
    told = [f"Question: {TASK}\n"]
    for step in range(steps):
        action = f"Thought: I add it.\nAction: {TOOL}\nAction Input: {_written(step)}\n"
        told.append(f"{action}Observation: {ERROR}\n")
    return "".join(told)


def _aider(steps: int) -> str:
    told = ["\n# aider chat started at 2026-01-01 00:00:00\n\n", f"#### {TASK}  \n\n"]
    for step in range(steps):
        search = f"<<<<<<< SEARCH\nday = {step}\n=======\nday = 12\n>>>>>>> REPLACE"
        told.append(f"I change it.\n\ncal.py\n```python\n{search}\n```\n\n")
        failed = "# 1 SEARCH/REPLACE block failed to match!"
        why = "## SearchReplaceNoExactMatch: This SEARCH block failed to exactly match lines"
        lines = f"{failed}\n\n{why} in cal.py\n{search}\n".split("\n")
        told.append("".join(f"> {line}  \n" for line in lines) + "\n")
    return "".join(told)


LOGS: dict[str, Callable[[int], str]] = {
    "aider": _aider,
    "atif": _atif,
    "smolagents": _smolagents,
    "pydantic-ai": _pydantic_ai,
    "inspect-ai": _inspect_ai,
    "otel-genai": _otel,
    "gemini-cli": _gemini_cli,
    "swe-agent": _swe_agent,
    "mini-swe-agent": _mini_swe_agent,
    "cline": _cline,
    "autogpt": _autogpt,
    "react": _react,
    "openai-responses": _openai_responses,
    "openai-chat": _openai_chat,
    "anthropic": _anthropic,
    "claude-code": _claude_code,
    "codex": _codex,
    "langchain": _langchain,
    "pi": _pi,
}
"""By the name of the format: the text of a log with a number of failing steps."""
