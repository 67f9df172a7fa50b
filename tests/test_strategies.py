"""The strategies that users get: what they make, how it shrinks, and what they refuse."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import jsonschema
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from pytest_failgain.errors import TranscriptError, UsageError
from pytest_failgain.harness_checks import render
from pytest_failgain.harnesses import VERBATIM
from pytest_failgain.strategies import (
    actions,
    chat_messages,
    chat_requests,
    error_texts,
    failure_cases,
    json_values,
    schema_values,
    schemas,
    steps,
    texts,
    tool_calls,
    tools,
    trajectories,
    words,
)
from pytest_failgain.trajectory import Action, FailureCase, Step, Tool, ToolCall, UserTurn
from pytest_failgain.transcripts.read import read_transcript
from strategies import quick

# Shrinking has its own pace: nothing is kept from run to run, and every run finds the same.
finding = settings(deadline=None, database=None, derandomize=True, max_examples=500)


def smallest(strategy: st.SearchStrategy[Any], condition: Any) -> Any:
    return find(strategy, condition, settings=finding)


def fits(value: object, schema: Any) -> bool:
    return jsonschema.Draft202012Validator(schema).is_valid(value)


TREE = {
    "type": "object",
    "properties": {"of": {"$ref": "#/$defs/node"}},
    "required": ["of"],
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 2}
            },
            "required": ["kids"],
        }
    },
}
SCHEMAS: dict[str, Any] = {
    "anything": {},
    "true": True,
    "any object": {"type": "object"},
    "a constant": {"const": {"a": [1]}},
    "an enum": {"enum": [1, "one", None]},
    "an enum of one type": {"type": "string", "enum": ["low", 3, "high"]},
    "two types": {"type": ["integer", "null"]},
    "nullable": {"type": "integer", "nullable": True, "enum": [1, 2]},
    "limits": {"type": "number", "minimum": -1, "maximum": 1},
    "open limits": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "whole numbers in steps": {
        "type": "integer",
        "exclusiveMinimum": 0,
        "maximum": 9,
        "multipleOf": 3,
    },
    "lengths": {"type": "string", "minLength": 40, "maxLength": 41},
    "a pattern": {"type": "string", "pattern": r"^\d{4}-\d\d$"},
    "a pattern of a length": {"type": "string", "pattern": "^[a-z]+$", "minLength": 9},
    "a pattern and a length": {"type": "string", "pattern": "^(ab?)+$", "maxLength": 9},
    "a list": {"type": "array", "items": {"type": "boolean"}, "minItems": 4, "maxItems": 5},
    "a set": {"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True, "minItems": 2},
    "no type": {"minLength": 2},
    "further properties": {"type": "object", "additionalProperties": {"type": "integer"}},
    "any of": {
        "anyOf": [
            {"type": "null"},
            {"properties": {"x": {"type": "string", "maxLength": 3}}, "required": ["x"]},
        ],
        "type": ["object", "null"],
    },
    "one of": {"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 3}]},
    "all of": {
        "allOf": [
            {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
            {"properties": {"a": {"minimum": 3}, "b": {"enum": [1]}}, "required": ["b"]},
        ]
    },
    "a tree": TREE,
    "remarks": {"type": "string", "format": "date", "title": "T", "default": 1, "x-order": 1},
}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS.keys())
def test_values_fit_their_schema(schema: Any) -> None:
    @settings(quick, max_examples=25)
    @given(schema_values(schema))
    def check(value: object) -> None:
        if schema != SCHEMAS["nullable"]:  # which is of OpenAPI, and unknown to JSON Schema
            assert fits(value, schema)
        assert json.loads(json.dumps(value)) == value

    check()


@quick
@given(tools().flatmap(lambda tool: st.tuples(st.just(tool), tool_calls(tool))))
def test_calls_fit_the_tool(drawn: tuple[Tool, ToolCall]) -> None:
    tool, made = drawn
    assert made.name == tool.name
    assert fits(json.loads(made.arguments), tool.parameters)


def _fault(made: ToolCall, schema: Any, name: str = "call") -> str:
    if made.name != name:
        return "name"
    try:
        return "" if fits(json.loads(made.arguments), schema) else "arguments"
    except ValueError:
        return "no JSON"


@quick
@given(schemas().flatmap(lambda s: st.tuples(st.just(s), tool_calls(s, valid=False))))
def test_invalid_calls_have_a_slip(drawn: tuple[Any, ToolCall]) -> None:
    schema, made = drawn
    assert _fault(made, schema)


STRICT = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 1, "maximum": 9},
        "size": {"enum": ["low", "high"]},
        "note": {"type": "string", "maxLength": 3},
    },
    "required": ["id", "size", "note"],
    "additionalProperties": False,
}


SLIPS: dict[str, Any] = {
    "another name": lambda made: made.name == "call_unknown",
    "broken off": lambda made: _fault(made, STRICT) == "no JSON",
    "one too many": lambda made: "unexpected" in made.arguments,
    "missing": lambda made: '"size"' not in made.arguments,
    "too small": lambda made: '"id": 0' in made.arguments,
    "too large": lambda made: '"id": 10' in made.arguments,
    "too long": lambda made: '"aaaa"' in made.arguments,
    "not in the enum": lambda made: '"size": "wrong"' in made.arguments,
    "another type": lambda made: '"id": null' in made.arguments,
}


def kinds_met(strategy: st.SearchStrategy[Any], kinds: dict[str, Any]) -> set[str]:
    """Which of the conditions some of what is drawn meets."""
    met: set[str] = set()

    @settings(max_examples=500, deadline=None, database=None, derandomize=True)
    @given(strategy)
    def look(drawn: object) -> None:
        if met != kinds.keys():
            met.update(name for name, condition in kinds.items() if condition(drawn))

    look()
    return met


def test_every_kind_of_slip_is_made() -> None:
    assert kinds_met(tool_calls(STRICT, valid=False), SLIPS) == SLIPS.keys()


def test_a_slip_stays_one() -> None:
    @quick
    @given(tool_calls(STRICT, valid=False))
    def check(made: ToolCall) -> None:
        fault = _fault(made, STRICT)
        if fault == "arguments":
            errors = list(
                jsonschema.Draft202012Validator(STRICT).iter_errors(json.loads(made.arguments))
            )
            assert len(errors) == 1

    check()


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        (Tool("look", parameters=STRICT), "look"),
        ({"type": "function", "function": {"name": "look", "parameters": STRICT}}, "look"),
        ({"name": "look", "input_schema": STRICT}, "look"),
        (STRICT, "call"),
        (Tool("look"), "look"),
    ],
)
def test_a_tool_can_be_given_in_any_shape(tool: Any, name: str) -> None:
    made = smallest(tool_calls(tool), lambda made: True)
    assert made.name == name
    least = '{"id": 1, "size": "low", "note": ""}'
    assert made.arguments == (least if tool != Tool("look") else "{}")


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"not": {}}, r"^the schema: values for 'not' can't be made; give a simpler schema"),
        ({"properties": {"a": {"if": {}}}}, r"^the schema, a: values for 'if'"),
        ({"type": "strin"}, r"^the schema: there is no type 'strin'; there are: null,"),
        ({"$ref": "http://x"}, r"the reference 'http://x' leads out of the schema"),
        ({"$ref": "#/$defs/a"}, r"the reference '#/\$defs/a' leads nowhere in the schema"),
        (3, r"^the schema: 3 is no JSON schema; give a dict, or true or false"),
        ({"type": "integer", "minimum": 3, "maximum": 1}, r"no number between its limits"),
        ({"type": "number", "minimum": 3, "exclusiveMaximum": 3}, r"no number between its limits"),
        ({"enum": ["a"], "type": "integer"}, r"no value of the enum \['a'\] fits the rest"),
        ({"allOf": [{"type": "string"}, {"type": "integer"}]}, r"two parts of it ask for another"),
    ],
)
def test_what_a_schema_asks_in_vain_is_told(schema: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        schema_values(schema)


def test_what_is_no_tool_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"^tool_calls takes a Tool or a schema, not a str: 'look'"
    ):
        tool_calls("look")  # type: ignore[arg-type]


@quick
@given(failure_cases())
def test_cases_can_be_rendered_and_kept(case: FailureCase) -> None:
    render(VERBATIM, case.trajectory.then(case.failed), case_id=case.case_id)
    for text in (case.failed.observation or "", str(case.failed.action), case.trajectory.goal):
        assert text.encode("utf-8").decode("utf-8") == text


@quick
@given(words(), texts(3), json_values())
def test_texts_are_what_they_are_said_to_be(word: str, text: str, value: Any) -> None:
    assert word.strip()
    assert not any("\ud800" <= character <= "\udfff" for character in text)
    assert json.loads(json.dumps(value)) == value


WANTED: dict[str, Any] = {
    "structured": lambda case: case.failed.action.calls,
    "of two calls": lambda case: len(case.failed.action.calls) == 2,
    "in text": lambda case: not case.failed.action.calls,
    "of a long argument": lambda case: len(str(case.failed.action)) > 500,
    "of arguments in arguments": lambda case: '"deep"' in case.failed.action.text,
    "of arguments that are no JSON": lambda case: (
        case.failed.action.calls and case.failed.action.calls[0].arguments[-1:] not in ("}", "]")
    ),
    "without an error's text": lambda case: case.failed.observation == "",
    "with a traceback": lambda case: "Traceback" in case.failed.observation,
    "that quotes the action": lambda case: (
        len(str(case.failed.action)) > 3 and str(case.failed.action) in case.failed.observation
    ),
    "with an astral character": lambda case: any(c > "\uffff" for c in case.failed.observation),
    "from right to left": lambda case: {*"שم"} & {*repr(case)},
    "with a lead": lambda case: case.failed.lead and not case.failed.action.calls,
    "after an earlier failure": lambda case: any(
        isinstance(step, Step) and step.failed for step in case.trajectory.steps
    ),
    "after a user's turn": lambda case: any(
        isinstance(step, UserTurn) for step in case.trajectory.steps
    ),
    "with tools": lambda case: len(case.trajectory.tools) == 2,
    "with another failure": lambda case: case.other_failed,
    "with everything to compare with": lambda case: case.correct and case.distractors,
}


def test_there_are_cases_of_every_kind() -> None:
    assert kinds_met(failure_cases(), WANTED) == WANTED.keys()


def test_what_fails_becomes_small_and_readable() -> None:
    case = smallest(failure_cases(), lambda case: len(case.failed.observation) > 0)
    assert case == FailureCase(
        case_id="a",
        task_id="a",
        trajectory=case.trajectory,
        failed=Step(Action("a"), "Error", failed=True),
        observations=case.observations,
    )
    assert not case.trajectory.steps
    assert not case.trajectory.tools
    assert case.observations.success is None


@pytest.mark.parametrize(
    ("strategy", "condition", "written"),
    [
        (error_texts(), lambda text: text, "'Error'"),
        (
            actions(),
            lambda action: action.calls,
            "Action(text='', calls=(ToolCall(name='look', arguments='{}'),))",
        ),
        (actions(), lambda action: True, "Action(text='a', calls=())"),
        (
            trajectories(),
            lambda trajectory: True,
            "Trajectory(system='', goal='', steps=(), tools=())",
        ),
        (
            trajectories(),
            lambda trajectory: trajectory.steps,
            "Trajectory(system='', goal='', steps=(UserTurn(text=''),), tools=())",
        ),
        (
            steps(failed=False),
            lambda step: step.observation,
            (
                "Step(action=Action(text='a', calls=()), observation='a', failed=False, "
                "error_family=None, tool=None, records={}, reply='')"
            ),
        ),
        (tool_calls(), lambda made: True, "ToolCall(name='look', arguments='{}')"),
        (
            tool_calls(STRICT),
            lambda made: '"high"' in made.arguments,
            'ToolCall(name=\'call\', arguments=\'{"id": 1, "size": "high", "note": ""}\')',
        ),
        (
            chat_messages(),
            lambda messages: True,
            "[{'role': 'user', 'content': ''}]",
        ),
    ],
)
def test_the_smallest_is_short(strategy: Any, condition: Any, written: str) -> None:
    assert repr(smallest(strategy, condition)) == written


@quick
@given(chat_messages() | chat_requests(), st.booleans())
def test_messages_are_read_or_refused_by_name(sent: Any, as_text: bool) -> None:
    try:
        read = read_transcript(json.dumps(sent) if as_text else sent)
    except TranscriptError:
        return
    assert all(case.failed.failed for case in read.failures)


VARIATIONS: dict[str, Any] = {
    "a developer": lambda message: message["role"] == "developer",
    "a function": lambda message: message["role"] == "function",
    "null": lambda message: message["content"] is None,
    "parts": lambda message: isinstance(message["content"], list) and message["content"][1:],
    "no id": lambda message: message.get("tool_call_id", "") is None,
    "further keys": lambda message: "refusal" in message,
    "an object": lambda message: (
        message.get("tool_calls")
        and isinstance(message["tool_calls"][0]["function"]["arguments"], dict)
    ),
}


def test_messages_vary_as_clients_do() -> None:
    kinds = {
        name: lambda messages, one=condition: any(map(one, messages))
        for name, condition in VARIATIONS.items()
    }
    assert kinds_met(chat_messages(), kinds) == kinds.keys()
    assert kinds_met(chat_requests(), {"tools": lambda body: "tools" in body}) == {"tools"}


def test_without_hypothesis_the_way_to_it_is_told() -> None:
    code = """
import sys
sys.modules["hypothesis"] = None
import pytest_failgain, pytest_failgain.laws
try:
    import pytest_failgain.strategies
except ImportError as error:
    assert isinstance(error, pytest_failgain.UsageError)
    print(error)
try:
    class Mine(pytest_failgain.laws.HarnessLaws):
        harness = staticmethod(str)
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    told = (
        "pytest_failgain.strategies needs hypothesis, which is not installed here; pip install "
        "'pytest-failgain[strategies]'"
    )
    assert done.stdout.splitlines() == [told, told]
    assert done.stderr == ""


def test_laws_and_checks_do_not_load_hypothesis() -> None:
    code = (
        "import pytest_failgain.laws, pytest_failgain.record_checks.assertions, sys; "
        "print([name for name in ('hypothesis', 'torch', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
