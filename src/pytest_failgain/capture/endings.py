"""How the scripted model ends a conversation, in the form that the client can take."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from pytest_failgain.capture.request import Answer, Request
from pytest_failgain.tool_effects import reads_only_by_name
from pytest_failgain.trajectory import Tool, ToolCall

_FINAL_TOOL = re.compile(
    r"final|finish|submit|complet|terminate|(?:^|_)(?:answer|done|end|exit|respond|return)(?:_|$)",
    re.I,
)
_DEEPEST = 20

# What an agent that reads text is told to end with, by what its prompt says of it.
_TEXT_ENDINGS = (
    (re.compile(r"COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"), "{submit}"),
    (re.compile(r"<code>[\s\S]*final_answer\("), "<code>\nfinal_answer({quoted})\n</code>"),
    (
        re.compile(r"```py[\s\S]*final_answer\("),
        "Code:\n```py\nfinal_answer({quoted})\n```<end_code>",
    ),
    (re.compile(r"Final Answer:"), "Thought: I now know the final answer\nFinal Answer: {final}"),
)
_FENCE = re.compile(r"```(mswea_bash_command|bash)\n")


def ending(request: Request, final: str, *, avoid: Collection[str] = ()) -> Answer:
    """`final` as the last answer: a call where one is demanded, JSON where a schema is, else text.

    `avoid` are tools that are called only where there is no other.
    """
    if request.demands_call and request.tools:
        tool = _ending_tool(request, avoid)
        return Answer(None, (ToolCall(tool.name, _arguments(tool, final)),))
    schema = request.demanded_schema
    if schema is not None:
        return Answer(json.dumps(least_value(schema, final), ensure_ascii=False))
    return Answer(final if request.tools else _text_ending(request, final))


def _ending_tool(request: Request, avoid: Collection[str]) -> Tool:
    named = [tool for tool in request.tools if tool.name == request.named_tool]
    final = [tool for tool in request.tools if _FINAL_TOOL.search(tool.name)]
    others = [tool for tool in request.tools if tool.name not in avoid]
    # Nobody asked for this call: better one that changes nothing.
    harmless = [tool for tool in others if reads_only_by_name(tool.name)]
    return (*named, *final, *harmless, *others, *request.tools)[0]


def _arguments(tool: Tool, final: str) -> str:
    value = least_value(tool.parameters, final)
    return json.dumps(value if isinstance(value, dict) else {}, ensure_ascii=False)


def _text_ending(request: Request, final: str) -> str:
    instructions = request.text
    for asked, form in _TEXT_ENDINGS:
        if asked.search(instructions) and not asked.search(final):
            return form.format(
                final=final, quoted=json.dumps(final), submit=_submission(instructions)
            )
    return final


def _submission(instructions: str) -> str:
    fence = _FENCE.search(instructions)
    command = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
    return f"THOUGHT: Done.\n\n```{fence.group(1) if fence else 'bash'}\n{command}\n```"


def least_value(schema: Any, text: str = "") -> Any:
    """A value that fits a JSON Schema, with as little in it as may be; `text` where a text may be.

    References are followed, patterns are not looked at. Nesting has an end.
    """
    return _least(schema, schema, text, 0)


def _least(schema: Any, root: Any, text: str, depth: int) -> Any:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return text if schema is True else None
    if "const" in schema:
        return schema["const"]
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return schema["enum"][0]
    if "default" in schema:
        return schema["default"]
    if isinstance(schema.get("$ref"), str):
        return _least(_referred(root, schema["$ref"]), root, text, depth + 1)
    for key in ("anyOf", "oneOf", "allOf"):
        choices = schema.get(key)
        if isinstance(choices, list) and choices:
            return _least(choices[0], root, text, depth + 1)
    return _of_type(schema, root, text, depth)


def _of_type(schema: Mapping[str, Any], root: Any, text: str, depth: int) -> Any:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0] if kind else None
    if kind == "object" or (kind is None and "properties" in schema):
        properties, required = schema.get("properties"), schema.get("required")
        known = properties if isinstance(properties, Mapping) else {}
        names = required if isinstance(required, list) else []
        return {
            name: _least(known.get(name, True), root, text, depth + 1)
            for name in names
            if isinstance(name, str)
        }
    if kind == "array":
        least = schema.get("minItems")
        count = min(least, 100) if isinstance(least, int) and depth < _DEEPEST else 0
        return [_least(schema.get("items", True), root, text, depth + 1) for _ in range(count)]
    if kind in ("integer", "number"):
        return schema.get("minimum", 0)
    if kind == "boolean":
        return False
    return None if kind == "null" else _fitting(text, schema)


def _fitting(text: str, schema: Mapping[str, Any]) -> str:
    least, most = schema.get("minLength"), schema.get("maxLength")
    if isinstance(least, int):
        text = text.ljust(min(least, 10_000), ".")
    return text[:most] if isinstance(most, int) and most >= 0 else text


def _referred(root: Any, reference: str) -> Any:
    value = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
