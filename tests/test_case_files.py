from __future__ import annotations

import json
import math
import os
import re
import stat
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_failgain.case_files import load_cases, save_cases
from pytest_failgain.errors import CaseError
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
from strategies import cases, quick

PLAIN = FailureCase(
    case_id="refund-42",
    task_id="refund-42",
    trajectory=Trajectory(system="", goal="Refund order 42"),
    failed=Step(Action("refund(order='42')"), "TypeError: order must be int", failed=True),
)
LINE: dict[str, Any] = {
    "failgain_case": 1,
    "case_id": "refund-42",
    "goal": "Refund order 42",
    "failed": {"action": "refund(order='42')", "observation": "TypeError: order must be int"},
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cases.jsonl"


def write(path: Path, *lines: object) -> None:
    text = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    path.write_text(text, encoding="utf-8")


def error_of(path: Path) -> str:
    with pytest.raises(CaseError) as caught:
        load_cases(path)
    message = str(caught.value)
    assert "\n" not in message
    return message


def error_of_line(path: Path, line: object) -> str:
    """The error that a file with this one line gives, without where it is."""
    write(path, line)
    message = error_of(path)
    assert message.startswith(f"{path}:1: ")
    return message.removeprefix(f"{path}:1: ")


@quick
@given(kept=st.lists(cases(), min_size=1, max_size=3, unique_by=lambda case: case.case_id))
def test_loading_what_was_saved_gives_the_same_cases(
    kept: list[FailureCase], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("cases") / "cases.jsonl"
    save_cases(kept, path)
    assert load_cases(path) == kept
    assert path.read_bytes().count(b"\n") == len(kept)


@quick
@given(case=cases())
def test_saving_again_gives_the_same_bytes(
    case: FailureCase, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("cases") / "cases.jsonl"
    save_cases([case], path)
    first = path.read_bytes()
    save_cases(load_cases(path), path)
    assert path.read_bytes() == first


def test_schema_keeps_the_order_of_its_keys(path: Path) -> None:
    schema = {"type": "object", "properties": {"z": {}, "a": {}}, "required": ["z"]}
    tools = (Tool("refund", "Pays back.", schema),)
    save_cases([replaced(trajectory=Trajectory("", "Refund order 42", tools=tools))], path)
    [loaded] = load_cases(path)
    assert json.dumps(loaded.trajectory.tools[0].parameters) == json.dumps(schema)


def replaced(**fields: Any) -> FailureCase:
    given = {name: getattr(PLAIN, name) for name in PLAIN.__dataclass_fields__}
    return FailureCase(**{**given, **fields})


def test_what_has_its_default_value_is_left_out(path: Path) -> None:
    save_cases([PLAIN], path)
    assert path.read_text(encoding="utf-8") == json.dumps(LINE) + "\n"


def test_a_full_case_is_written_in_the_documented_schema(path: Path) -> None:
    case = FailureCase(
        case_id="refund-42",
        task_id="refund",
        trajectory=Trajectory(
            system="You handle orders.",
            goal="Refund order 42",
            steps=(
                Step(Action("lookup(42)"), "", True, "type_error", "lookup", {"described": "No."}),
                UserTurn("Go on, “please”."),
            ),
            tools=(Tool("refund", "Pays back.", {"type": "object"}),),
        ),
        failed=Step(Action("So:", (ToolCall("refund", '{"order":"42"}'),)), "", failed=True),
        correct=Action(calls=(ToolCall("refund", '{"order":42}'),)),
        distractors=(Action("refund()"),),
        observations=Observations(neutral="Noted.", success="", padding="published"),
        environment="shop",
        operator="type_swap",
        template="refund",
        other_failed=Step(Action("refund()"), "", True, "missing_argument", "refund"),
    )
    save_cases([case], path)
    assert "“please”" in path.read_text(encoding="utf-8")
    assert list(json.loads(path.read_text(encoding="utf-8")).items()) == [
        ("failgain_case", 1),
        ("case_id", "refund-42"),
        ("task_id", "refund"),
        ("environment", "shop"),
        ("operator", "type_swap"),
        ("template", "refund"),
        ("system", "You handle orders."),
        ("goal", "Refund order 42"),
        (
            "tools",
            [{"name": "refund", "description": "Pays back.", "parameters": {"type": "object"}}],
        ),
        (
            "steps",
            [
                {
                    "action": "lookup(42)",
                    "observation": "",
                    "failed": True,
                    "error_family": "type_error",
                    "tool": "lookup",
                    "records": {"described": "No."},
                },
                {"user": "Go on, “please”."},
            ],
        ),
        (
            "failed",
            {
                "action": {
                    "text": "So:",
                    "calls": [{"name": "refund", "arguments": '{"order":"42"}'}],
                },
                "observation": "",
            },
        ),
        ("correct", {"calls": [{"name": "refund", "arguments": '{"order":42}'}]}),
        ("distractors", ["refund()"]),
        (
            "other_failed",
            {
                "action": "refund()",
                "observation": "",
                "error_family": "missing_argument",
                "tool": "refund",
            },
        ),
        ("observations", {"neutral": "Noted.", "success": "", "padding": "published"}),
    ]
    assert load_cases(path) == [case]


def test_a_schema_that_is_no_dict_is_written_as_one(path: Path) -> None:
    properties: Mapping[str, Any] = types.MappingProxyType({"order": {}})
    frozen: Mapping[str, Any] = types.MappingProxyType({"properties": properties})
    tools = (Tool("refund", "", frozen),)
    save_cases([replaced(trajectory=Trajectory("", "Refund order 42", tools=tools))], path)
    [loaded] = load_cases(path)
    assert loaded.trajectory.tools[0].parameters == {"properties": {"order": {}}}


@pytest.mark.parametrize(
    ("value", "said"), [({1, 2}, "a set has no form in JSON"), (math.nan, "float values are not")]
)
def test_a_case_that_json_cannot_hold_is_named(path: Path, value: object, said: str) -> None:
    tools = (Tool("refund", "", {"enum": value}),)
    case = replaced(trajectory=Trajectory("", "Refund order 42", tools=tools))
    with pytest.raises(CaseError, match=rf"case 'refund-42' can't be written as JSON: .*{said}"):
        save_cases([case], path)


def test_half_a_character_is_refused_both_ways(path: Path) -> None:
    case = replaced(failed=Step(Action("cat x"), "bytes: \udcff", failed=True))
    with pytest.raises(CaseError, match=r"case 'refund-42' .*lone surrogate U\+DCFF after .*bytes"):
        save_cases([case], path)
    assert not path.exists()
    assert "lone surrogate U+D83D" in error_of_line(path, json.dumps({**LINE, "goal": "\ud83d"}))


def test_a_whole_character_in_two_escapes_is_read(path: Path) -> None:
    write(path, json.dumps({**LINE, "goal": "🦊"}, ensure_ascii=True))
    assert load_cases(path)[0].trajectory.goal == "🦊"


def test_a_failed_save_leaves_the_old_file_and_nothing_else(path: Path) -> None:
    save_cases([PLAIN], path)
    with pytest.raises(CaseError, match="two cases have the id 'refund-42'"):
        save_cases([PLAIN, PLAIN], path)
    with pytest.raises(CaseError, match="there are no cases to write"):
        save_cases([], path)
    assert load_cases(path) == [PLAIN]
    assert os.listdir(path.parent) == [path.name]


def test_an_interrupted_replacement_leaves_the_old_file_and_nothing_else(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_cases([PLAIN], path)

    def interrupted(source: object, target: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_cases([replaced(case_id="other")], path)
    assert load_cases(path) == [PLAIN]
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such file modes")
def test_a_replaced_file_keeps_its_mode(path: Path) -> None:
    save_cases([PLAIN], path)
    path.chmod(0o640)
    save_cases([PLAIN], path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
def test_saving_through_a_link_keeps_the_link(path: Path) -> None:
    link = path.with_name("link.jsonl")
    link.symlink_to(path)
    save_cases([PLAIN], link)
    assert link.is_symlink()
    assert load_cases(path) == [PLAIN]


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match=r"can't write the case file .*No such file"):
        save_cases([PLAIN], tmp_path / "none" / "cases.jsonl")


def test_blank_lines_a_mark_and_windows_line_ends_do_not_matter(path: Path) -> None:
    second = json.dumps({**LINE, "case_id": "second"})
    path.write_bytes(f"\ufeff\r\n{json.dumps(LINE)}\r\n \t\r\n{second}".encode())
    assert [case.case_id for case in load_cases(path)] == ["refund-42", "second"]


def test_defaults_are_those_of_the_data_model(path: Path) -> None:
    write(path, LINE)
    assert load_cases(path) == [PLAIN]


def test_a_text_without_calls_may_be_written_long(path: Path) -> None:
    write(path, {**LINE, "correct": {"text": "refund(order=42)", "calls": []}})
    assert load_cases(path)[0].correct == Action("refund(order=42)")


def test_no_file(path: Path) -> None:
    assert error_of(path) == f"there is no case file {path}"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    assert error_of(tmp_path).startswith(f"can't read the case file {tmp_path}: ")


@pytest.mark.parametrize("content", [b"", b"\n \r\n", b"\xef\xbb\xbf"])
def test_a_file_without_cases(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert error_of(path) == f"the case file {path} is empty; it needs at least one case"


def test_a_line_that_is_not_json_is_named_by_number(path: Path) -> None:
    write(path, LINE, "", '{"failgain_case": 1,')
    assert error_of(path) == (
        f"{path}:3: not JSON: Expecting property name enclosed in double quotes at column 21; "
        "each line must be one whole case"
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[1]", "expected an object on the line, got a list"),
        ("null", "expected an object on the line, got null"),
        ('{"goal": NaN}', "not JSON: NaN is no JSON number"),
        ('{"goal": "a", "goal": "b"}', "the key 'goal' stands twice in one object"),
        pytest.param("[" * 200_000, "not JSON that can be read: ", id="deep"),
        pytest.param("1" * 5_000, "not JSON that can be read: ", id="long-number"),
    ],
)
def test_lines_that_are_no_object(path: Path, line: str, said: str) -> None:
    assert error_of_line(path, line).startswith(said)


def test_a_line_that_is_not_utf8(path: Path) -> None:
    path.write_bytes(json.dumps(LINE).encode() + b"\n\xff\n")
    assert error_of(path) == f"{path}:2: not UTF-8: invalid start byte at byte 1"


@pytest.mark.parametrize("version", [2, 0, "1", True, 1.0, None])
def test_an_unknown_version_is_told_before_its_unknown_fields(path: Path, version: object) -> None:
    said = error_of_line(path, {**LINE, "failgain_case": version, "new_field": 1})
    assert said == (
        f"'failgain_case' is {version!r}, but this version of pytest-failgain reads case format 1 "
        "only; update pytest-failgain, or write the file anew"
    )


CALL = {"name": "refund", "arguments": "{}"}


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("case_id", 7, "the field 'case_id' must be a string, got the number 7"),
        ("task_id", None, "the field 'task_id' must be a string, got null"),
        ("goal", ["a"], "the field 'goal' must be a string, got a list"),
        ("system", True, "the field 'system' must be a string, got true"),
        ("steps", {}, "the field 'steps' must be a list, got an object"),
        ("steps", ["a"], "expected an object as 'steps[0]', got the string 'a'"),
        (
            "steps",
            [{"user": "a"}, {"user": 2}],
            "the field 'steps[1].user' must be a string, got the number 2",
        ),
        (
            "steps",
            [{"action": "a", "failed": "no"}],
            "the field 'steps[0].failed' must be true or false, got the string 'no'",
        ),
        (
            "steps",
            [{"action": "a", "records": {"described": 1}}],
            "the field 'steps[0].records.described' must be a string, got the number 1",
        ),
        ("steps", [{"observation": "a"}], "the field 'steps[0].action' is missing; it must be an"),
        ("failed", "a", "expected an object as 'failed', got the string 'a'"),
        ("failed", {"action": 3}, "expected an object as 'failed.action', got the number 3"),
        ("failed", {"action": " "}, "the field 'failed.action': the action ' ' is empty or only"),
        ("failed", {"action": "a"}, "case 'refund-42': the failed step has no observation"),
        (
            "failed",
            {"action": "a", "observation": None, "failed": False},
            "case 'refund-42': the failed step is not marked failed=True",
        ),
        ("correct", {"calls": []}, "the field 'correct.text' is missing; it must be a string"),
        ("correct", {"calls": CALL}, "the field 'correct.calls' must be a list, got an object"),
        (
            "correct",
            {"calls": [{"name": "refund", "arguments": {"order": 42}}]},
            "the field 'correct.calls[0].arguments' must be a string, got an object",
        ),
        (
            "distractors",
            ["a", {"calls": [{"name": "b"}]}],
            "the field 'distractors[1].calls[0].arguments' is missing; it must be a string",
        ),
        ("distractors", ["a", "a"], "case 'refund-42': two candidates are the same action"),
        (
            "tools",
            [{"name": "a", "parameters": []}],
            "the field 'tools[0].parameters' must be an object, got a list",
        ),
        ("other_failed", "a", "expected an object as 'other_failed', got the string 'a'"),
        (
            "other_failed",
            {"observation": "E"},
            "the field 'other_failed.action' is missing; it must be an action",
        ),
        (
            "other_failed",
            {"action": "a"},
            "case 'refund-42': the other failed step has no observation",
        ),
        (
            "other_failed",
            {"action": "a", "observation": "E", "failed": False},
            "case 'refund-42': the other failed step is not marked failed=True",
        ),
        (
            "other_failed",
            LINE["failed"],
            "case 'refund-42': the other failed step has the failed action \"refund(order='42')\"",
        ),
        ("observations", None, "the field 'observations' must be an object, got null"),
        (
            "observations",
            {"padding": None},
            "the field 'observations.padding' must be a string, got null",
        ),
        (
            "observations",
            {"success": False},
            "the field 'observations.success' must be a string or null, got false",
        ),
    ],
)
def test_a_field_of_the_wrong_type(path: Path, field: str, value: object, said: str) -> None:
    assert error_of_line(path, {**LINE, field: value}).startswith(said)


def test_an_unknown_padding_brings_the_line_and_the_choices(path: Path) -> None:
    write(path, LINE, {**LINE, "case_id": "second", "observations": {"padding": "exactly"}})
    assert error_of(path) == (
        f"{path}:2: there is no padding 'exactly'; there are: exact, published"
    )


def test_another_failure_that_is_null_is_none(path: Path) -> None:
    write(path, {**LINE, "other_failed": None})
    assert load_cases(path) == [PLAIN]


@pytest.mark.parametrize("field", ["failgain_case", "case_id", "goal", "failed"])
def test_a_missing_field(path: Path, field: str) -> None:
    line = {key: value for key, value in LINE.items() if key != field}
    assert error_of_line(path, line).startswith(f"the field {field!r} is missing; it must be ")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({**LINE, "gaol": "x"}, "there is no field 'gaol'; did you mean 'goal'?"),
        ({**LINE, "zzz": "x"}, "there is no field 'zzz'; there are: failgain_case, case_id,"),
        (
            {**LINE, "steps": [{"action": "a", "observaton": "x"}]},
            "there is no field 'steps[0].observaton'; did you mean 'observation'?",
        ),
        (
            {**LINE, "observations": {"sucess": "x"}},
            "there is no field 'observations.sucess'; did you mean 'success'?",
        ),
        (
            {**LINE, "tools": [{"name": "a", "parameter": {}}]},
            "there is no field 'tools[0].parameter'; did you mean 'parameters'?",
        ),
    ],
)
def test_an_unknown_field_brings_the_nearest(path: Path, line: object, said: str) -> None:
    assert error_of_line(path, line).startswith(said)


def test_a_doubled_case_id_names_both_lines(path: Path) -> None:
    write(path, LINE, "", {**LINE, "goal": "another"})
    assert error_of(path) == (
        f"{path}:3: the case id 'refund-42' already stands on line 1; each case needs its own"
    )


def test_published_items_and_cases_may_share_a_file(path: Path) -> None:
    item = {
        "item_id": "t-0-s0-drop_arg-0",
        "task_id": "t-0",
        "system_prompt": "You call tools.",
        "goal": "Read it.",
        "failed_action": "read_file()",
        "obs_fail": "TypeError: missing 'path'",
    }
    write(path, LINE, item)
    own, published = load_cases(path)
    assert own == PLAIN
    assert published.case_id == "t-0-s0-drop_arg-0"
    assert published.trajectory.system == "You call tools."
    write(path, LINE, {**item, "goal": 1})
    assert re.search(r":2: the field 'goal' must be a string, got the number 1$", error_of(path))
