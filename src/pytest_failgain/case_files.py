"""Failure cases in files: JSON Lines, one case a line, made to be read and compared by people.

A line, with everything that a case can have:

    {"failgain_case": 1,                     the version of this format
     "case_id": "refund-42",
     "task_id": "refund",                    left out: the same as case_id
     "environment": "", "operator": "", "template": "",
     "system": "You are …", "goal": "Refund order 42",
     "tools": [{"name": "refund", "description": "…", "parameters": {…JSON Schema…}}],
     "steps": [{"action": ACTION, "observation": "paid", "failed": false,
                "error_family": "type_error", "tool": "refund", "records": {"described": "…"},
                "reply": "the whole turn, where the action is a part of it"},
               {"user": "a user turn between two steps"}],
     "failed": {"action": ACTION, "observation": "TypeError: …", …as in a step…},
     "correct": ACTION, "distractors": [ACTION, …],
     "other_failed": {"action": ACTION, …as in failed…},
     "observations": {"neutral": "…", "success": "…", "terse": "…", "verbose": "…", "echoed": "…",
                      "padding": "exact"}}

ACTION is a string, the exact text that the model emits, or, for structured calls,
{"text": "…", "calls": [{"name": "refund", "arguments": "{\\"order\\": 42}"}]}, where `arguments` is
the JSON text as the model wrote it. Whatever has its default value is left out. Only
`failgain_case`, `case_id`, `goal` and `failed` must be there.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pytest_failgain.atomic import write_atomically
from pytest_failgain.errors import CaseError
from pytest_failgain.json_fields import Fields
from pytest_failgain.published import case_from_item, text_action
from pytest_failgain.trajectory import (
    Action,
    FailureCase,
    Observations,
    Step,
    Tool,
    ToolCall,
    Trajectory,
    UserTurn,
)

CASE_FORMAT = 1

_CASE_KEYS = (
    "failgain_case",
    "case_id",
    "task_id",
    "environment",
    "operator",
    "template",
    "system",
    "goal",
    "tools",
    "steps",
    "failed",
    "correct",
    "distractors",
    "other_failed",
    "observations",
)
_STEP_KEYS = ("action", "observation", "failed", "error_family", "tool", "records", "reply")
_OBSERVATION_KEYS = ("neutral", "success", "terse", "verbose", "echoed", "padding")


def load_cases(path: str | os.PathLike[str]) -> list[FailureCase]:
    """The cases in the file at `path`, in its order.

    A line is a case as `save_cases` writes it, or an item of the published experiment, told apart
    line by line. Blank lines and a byte order mark do not matter.

    Raises:
        CaseError: naming the file and the line, when the file can't be read, holds no case, or a
            line is not JSON, is of an unknown version, has a missing, unknown or mistyped field,
            or repeats a case id.
    """
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise CaseError(f"there is no case file {os.fspath(path)}") from None
    except OSError as error:
        raise CaseError(f"can't read the case file {os.fspath(path)}: {error.strerror}") from error
    cases: dict[str, FailureCase] = {}
    lines: dict[str, int] = {}
    # Split as bytes: text would also be split at separators that may stand inside a JSON string.
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            case = _case_from_line(line)
            if case.case_id in cases:
                raise CaseError(
                    f"the case id {case.case_id!r} already stands on line {lines[case.case_id]}; "
                    "each case needs its own"
                )
        except CaseError as error:
            raise CaseError(f"{os.fspath(path)}:{number}: {error}") from None
        cases[case.case_id] = case
        lines[case.case_id] = number
    if not cases:
        raise CaseError(f"the case file {os.fspath(path)} is empty; it needs at least one case")
    return list(cases.values())


def save_cases(cases: Iterable[FailureCase], path: str | os.PathLike[str]) -> None:
    """Write `cases` to `path`, which then holds all of them, or, on any error, what it held before.

    Raises:
        CaseError: when there is no case, two have the same id, one can't be written as JSON, or
            the file can't be written.
    """
    lines: dict[str, str] = {}
    for case in cases:
        if case.case_id in lines:
            raise CaseError(f"two cases have the id {case.case_id!r}; each needs its own")
        lines[case.case_id] = case_line(case)
    if not lines:
        raise CaseError(f"there are no cases to write to {os.fspath(path)}")
    try:
        write_atomically(Path(path), "".join(lines.values()).encode())
    except OSError as error:
        raise CaseError(f"can't write the case file {os.fspath(path)}: {error.strerror}") from error


def case_line(case: FailureCase) -> str:
    """The line of `case` in a file, its end included.

    Raises:
        CaseError: when it can't be written as JSON.
    """
    try:
        # Keys are not sorted: the order inside `parameters` is part of what the model is shown.
        line = json.dumps(_written(case), ensure_ascii=False, allow_nan=False, default=_as_dict)
        _refuse_surrogates(line)
    except (CaseError, TypeError, ValueError, RecursionError) as error:
        raise CaseError(f"case {case.case_id!r} can't be written as JSON: {error}") from error
    return f"{line}\n"


def _as_dict(value: object) -> dict[Any, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} has no form in JSON")


_SURROGATE = re.compile("[\ud800-\udfff]")


def _refuse_surrogates(text: str) -> None:
    found = _SURROGATE.search(text)
    if found:
        raise CaseError(
            f"it contains half a character (the lone surrogate U+{ord(found[0]):04X} after "
            f"{text[max(0, found.start() - 20) : found.start()]!r}), which no tokenizer takes; "
            "replace it"
        )


def _written(case: FailureCase) -> dict[str, Any]:
    trajectory = case.trajectory
    observed = {key: getattr(case.observations, key) for key in _OBSERVATION_KEYS}
    defaults = Observations()
    return {
        "failgain_case": CASE_FORMAT,
        "case_id": case.case_id,
        **_unless(case.case_id, task_id=case.task_id),
        **_unless("", environment=case.environment, operator=case.operator, template=case.template),
        **_unless("", system=trajectory.system),
        "goal": trajectory.goal,
        **_unless([], tools=[_written_tool(tool) for tool in trajectory.tools]),
        **_unless([], steps=[_written_step(step) for step in trajectory.steps]),
        "failed": _written_step(case.failed, default_failed=True),
        **({} if case.correct is None else {"correct": _written_action(case.correct)}),
        **_unless([], distractors=[_written_action(action) for action in case.distractors]),
        **(
            {}
            if case.other_failed is None
            else {"other_failed": _written_step(case.other_failed, default_failed=True)}
        ),
        **_unless(
            {},
            observations={
                key: text for key, text in observed.items() if text != getattr(defaults, key)
            },
        ),
    }


def _unless(default: object, **fields: Any) -> dict[str, Any]:
    """Those of `fields` that do not have their default value."""
    return {key: value for key, value in fields.items() if value != default}


def _written_tool(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        **_unless("", description=tool.description),
        **_unless({}, parameters=tool.parameters),
    }


def _written_step(step: Step | UserTurn, default_failed: bool = False) -> dict[str, Any]:
    if isinstance(step, UserTurn):
        return {"user": step.text}
    return {
        "action": _written_action(step.action),
        **_unless(None, observation=step.observation),
        **_unless(default_failed, failed=step.failed),
        **_unless(None, error_family=step.error_family, tool=step.tool),
        **_unless({}, records=dict(step.records)),
        **_unless("", reply=step.reply),
    }


def _written_action(action: Action) -> str | dict[str, Any]:
    if not action.calls:
        return action.text
    return {
        **_unless("", text=action.text),
        "calls": [{"name": call.name, "arguments": call.arguments} for call in action.calls],
    }


def _case_from_line(line: bytes) -> FailureCase:
    value = _parsed(line)
    if isinstance(value, dict):
        if "failgain_case" in value:
            # Before any other key: those of another version are not known here.
            _check_version(value["failgain_case"])
        elif "item_id" in value:
            return case_from_item(value)
    fields = Fields(value, _CASE_KEYS)
    fields.required("failgain_case", f"the format version, {CASE_FORMAT}")
    case_id = fields.text("case_id")
    correct, other_failed = fields.value("correct"), fields.value("other_failed")
    return FailureCase(
        case_id=case_id,
        task_id=fields.text("task_id", case_id),
        trajectory=Trajectory(
            system=fields.text("system", ""),
            goal=fields.text("goal"),
            steps=tuple(_read_turn(entry, at) for at, entry in fields.entries("steps")),
            tools=tuple(_read_tool(entry, at) for at, entry in fields.entries("tools")),
        ),
        failed=_read_step(fields.required("failed", "a step"), "failed", default_failed=True),
        correct=None if correct is None else _read_action(correct, "correct"),
        distractors=tuple(_read_action(entry, at) for at, entry in fields.entries("distractors")),
        observations=_read_observations(fields.mapping("observations")),
        environment=fields.text("environment", ""),
        operator=fields.text("operator", ""),
        template=fields.text("template", ""),
        other_failed=(
            None
            if other_failed is None
            else _read_step(other_failed, "other_failed", default_failed=True)
        ),
    )


def _parsed(line: bytes) -> object:
    try:
        value = json.loads(
            line.decode(), object_pairs_hook=_object, parse_constant=_refuse_constant
        )
        _refuse_surrogates(json.dumps(value, ensure_ascii=False))
    except UnicodeDecodeError as error:
        raise CaseError(f"not UTF-8: {error.reason} at byte {error.start + 1}") from None
    except json.JSONDecodeError as error:
        raise CaseError(
            f"not JSON: {error.msg} at column {error.colno}; each line must be one whole case"
        ) from None
    except (ValueError, RecursionError) as error:
        raise CaseError(f"not JSON that can be read: {error}") from None
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for key, entry in pairs:
        if key in value:
            raise CaseError(f"the key {key!r} stands twice in one object")
        value[key] = entry
    return value


def _refuse_constant(name: str) -> None:
    raise CaseError(f"not JSON: {name} is no JSON number")


def _check_version(version: object) -> None:
    if type(version) is not int or version != CASE_FORMAT:
        raise CaseError(
            f"'failgain_case' is {version!r}, but this version of pytest-failgain reads case "
            f"format {CASE_FORMAT} only; update pytest-failgain, or write the file anew"
        )


def _read_turn(value: object, at: str) -> Step | UserTurn:
    if isinstance(value, dict) and "user" in value:
        return UserTurn(Fields(value, ("user",), at).text("user"))
    return _read_step(value, at)


def _read_step(value: object, at: str, default_failed: bool = False) -> Step:
    fields = Fields(value, _STEP_KEYS, at)
    return Step(
        action=_read_action(fields.required("action", "an action"), fields.path("action")),
        observation=fields.text_or_none("observation"),
        failed=fields.flag("failed", default_failed),
        error_family=fields.text_or_none("error_family"),
        tool=fields.text_or_none("tool"),
        records=fields.texts_by_name("records"),
        reply=fields.text("reply", ""),
    )


def _read_action(value: object, at: str) -> Action:
    if isinstance(value, str):
        return text_action(value, at)
    fields = Fields(value, ("text", "calls"), at)
    calls = tuple(_read_call(entry, place) for place, entry in fields.entries("calls"))
    return Action(fields.text("text", ""), calls) if calls else text_action(fields.text("text"), at)


def _read_call(value: object, at: str) -> ToolCall:
    fields = Fields(value, ("name", "arguments"), at)
    return ToolCall(fields.text("name"), fields.text("arguments"))


def _read_tool(value: object, at: str) -> Tool:
    fields = Fields(value, ("name", "description", "parameters"), at)
    return Tool(fields.text("name"), fields.text("description", ""), fields.mapping("parameters"))


def _read_observations(value: object) -> Observations:
    fields = Fields(value, _OBSERVATION_KEYS, "observations")
    return Observations(
        neutral=fields.text("neutral", Observations().neutral),
        success=fields.text_or_none("success"),
        terse=fields.text_or_none("terse"),
        verbose=fields.text_or_none("verbose"),
        echoed=fields.text_or_none("echoed"),
        padding=fields.text("padding", Observations().padding),
    )
