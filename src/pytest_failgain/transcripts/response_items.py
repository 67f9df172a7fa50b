"""Items of the Responses API, which Codex logs as well, as turns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_failgain.trajectory import Action, ToolCall
from pytest_failgain.transcripts.arguments import (
    DUMPED,
    arguments_text,
    as_json,
    broken_arguments,
)
from pytest_failgain.transcripts.conversation import Call, Result, Turn
from pytest_failgain.transcripts.draft import THOUGHTS, Draft, text_in
from pytest_failgain.transcripts.members import as_dict, as_dicts, as_text

HOSTED = "a tool that the API runs itself: its call left out"
UNKNOWN = "an item of a kind that is not known left out"
REFERENCE = "an item that the log only refers to left out"

# By the kind of a call, the member that has its arguments, and whether those are JSON.
_CALLS = {
    "function_call": ("arguments", True),
    "custom_tool_call": ("input", False),
    "local_shell_call": ("action", True),
    "shell_call": ("action", True),
    "apply_patch_call": ("operation", True),
    "computer_call": ("action", True),
    "mcp_call": ("arguments", True),
    "tool_search_call": ("arguments", True),
}
_OUTPUT = "_call_output"
_HOSTED = (
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
)
_SILENT = ("compaction", "compaction_summary", "ghost_snapshot", "context_compaction")

Judge = Callable[[Mapping[str, Any], str], Result]
"""The result that an output item and its text are."""


def is_item(value: Any) -> bool:
    """Whether a value is an item that a request or a response of the API may have."""
    if not isinstance(value, dict):
        return False
    kind = value.get("type")
    if kind is None:
        return isinstance(value.get("role"), str) and "content" in value
    return is_call_item(value) or kind in ("message", "reasoning", "item_reference", *_HOSTED)


def is_call_item(value: Any) -> bool:
    """Whether a value is an item of a call or of its output, which no other format has."""
    kind = value.get("type") if isinstance(value, dict) else None
    return isinstance(kind, str) and (kind in _CALLS or kind.endswith(_OUTPUT))


def plain_result(item: Mapping[str, Any], text: str) -> Result:
    """The result of an output item, as far as the API marks it."""
    call_id = identity(item)
    if item.get("status") == "failed":
        return Result(text, call_id, True, "status")
    for part in as_dicts(item.get("output")):
        outcome = as_dict(part.get("outcome"))
        if outcome.get("type") == "timeout":
            return Result(text, call_id, True, "outcome")
        if isinstance(outcome.get("exit_code"), int):
            return Result(text, call_id, outcome["exit_code"] != 0, "outcome")
    success = as_dict(item.get("output")).get("success")
    if isinstance(success, bool):
        return Result(text, call_id, not success, "success")
    return Result(text, call_id)


def identity(item: Mapping[str, Any]) -> str | None:
    """The id by which a call and its output find each other."""
    return as_text(item.get("call_id")) or as_text(item.get("id"))


@dataclass(slots=True)
class ItemTurns:
    """Turns that are made of items; those of the assistant that stand together are of one."""

    draft: Draft = field(default_factory=Draft)
    judge: Judge = plain_result
    said: str = ""
    calls: list[Call] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def add(self, items: Iterable[Any]) -> None:
        for item in items:
            if isinstance(item, dict):
                self._add(item)

    def end_of_turn(self) -> None:
        if self.said or self.calls:
            turn = Turn(
                "assistant",
                self.said,
                tuple(self.calls),
                tuple(self.results),
                remarks=tuple(self.remarks),
            )
            self.draft.turns.append(turn)
        self.said = ""
        for kept in (self.calls, self.results, self.remarks):
            kept.clear()

    def _add(self, item: Mapping[str, Any]) -> None:
        kind, role = item.get("type"), item.get("role")
        if isinstance(kind, str) and kind in _CALLS:
            self._call(item, *_CALLS[kind])
        elif isinstance(kind, str) and kind.endswith(_OUTPUT):
            self.end_of_turn()
            self.draft.answer(self.judge(item, self._output(item)))
        elif kind == "reasoning":
            self.draft.note(THOUGHTS)
        elif kind == "item_reference":
            self.draft.note(REFERENCE)
        elif kind in _HOSTED:
            self.draft.note(HOSTED)
        elif kind in _SILENT:
            pass
        elif isinstance(role, str):
            self._message(role, text_in(item.get("content"), self.draft))
        else:
            self.draft.note(UNKNOWN)

    def _message(self, role: str, text: str) -> None:
        if role != "assistant":
            self.end_of_turn()
            self.draft.say("system" if role in ("system", "developer") else "user", text)
            return
        if self.calls:
            self.end_of_turn()
        self.said += text

    def _call(self, item: Mapping[str, Any], member: str, is_json: bool) -> None:
        logged = item.get(member)
        text = arguments_text(logged)
        if logged is not None and not isinstance(logged, str):
            self.remarks.append(DUMPED)
        name = as_text(item.get("name")) or str(item["type"]).removesuffix("_call")
        broken = broken_arguments(text) if is_json else ""
        # The answer of a tool that the API calls itself stands in the item.
        problem = item.get("error")
        made = Action(calls=(ToolCall(name, text),))
        self.calls.append(Call(made, identity(item), broken=broken))
        if item["type"] == "mcp_call" and (problem or item.get("output") is not None):
            output = text_in(problem or item.get("output"), self.draft)
            self.results.append(Result(output, identity(item), bool(problem), "error"))

    def _output(self, item: Mapping[str, Any]) -> str:
        output = item.get("output")
        if isinstance(output, list) and any("stdout" in part for part in as_dicts(output)):
            return "".join(
                f"{part.get('stdout') or ''}{part.get('stderr') or ''}" for part in as_dicts(output)
            )
        if isinstance(output, dict) and "type" not in output and "content" not in output:
            return as_json(output)
        return text_in(output, self.draft)


def of_items(items: Sequence[Any], judge: Judge = plain_result) -> ItemTurns:
    """The turns of a list of items."""
    turns = ItemTurns(judge=judge)
    turns.add(items)
    turns.end_of_turn()
    return turns
