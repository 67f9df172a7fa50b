"""The published items, rebuilt through the same conditions and harness as any other case."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_failgain.case_files import load_cases
from pytest_failgain.conditions import CONDITIONS, FAILED, Condition
from pytest_failgain.errors import CaseError
from pytest_failgain.harnesses import VERBATIM, RemediedHarness, remedied
from pytest_failgain.published import case_from_item
from pytest_failgain.trajectory import Action, FailureCase, Observations, Step, Trajectory

ORACLE = Path(__file__).parents[2] / "shared" / "oracle"
needs_oracle = pytest.mark.skipif(
    not ORACLE.is_dir(), reason=f"the published items and scores are not in {ORACLE}"
)
FILES = ("toolshed", "coderepair")
# The paper's names of the conditions that every item was scored in.
CORE_CONDITIONS = ("pre", "fail", "succ", "neut", "abstract")

ITEM: dict[str, Any] = {
    "item_id": "toolshed-0019-s1-type_swap-2",
    "env": "toolshed",
    "task_id": "toolshed-0019",
    "template": "convert",
    "step_index": 1,
    "operator": "type_swap",
    "error_type": "type_error",
    "system_prompt": "You call tools.",
    "goal": "Convert 5 km.",
    "prefix_actions": ["list_files(folder='notes')"],
    "prefix_observations": ["['todo.md']"],
    "failed_action": "convert_units(value='5')",
    "gold_action": "convert_units(value=5)",
    "obs_fail": "TypeError: convert_units(): 'value'",
    "obs_fail_terse": "Error: 'value'",
    "obs_fail_verbose": "TypeError: convert_units(): 'value' ('5')",
    "obs_fail_echo": "TypeError\n  while calling: convert_units(value='5')",
    "obs_success": "12.4274",
    "obs_neutral": "Call recorded.",
    "obs_fail_other": "TypeError: other",
    "distractors": ["convert_units()", "convert_unit(value=5)"],
    "tool": "convert_units",
    "meta": {},
    "record_abstract": "[attempt 1 failed: convert_units — wrong type]",
    "record_abstract_min": "[attempt 1 failed]",
}


def without(*keys: str) -> dict[str, Any]:
    return {key: value for key, value in ITEM.items() if key not in keys}


def test_every_part_of_an_item_finds_its_place() -> None:
    assert case_from_item(ITEM) == FailureCase(
        case_id="toolshed-0019-s1-type_swap-2",
        task_id="toolshed-0019",
        trajectory=Trajectory(
            system="You call tools.",
            goal="Convert 5 km.",
            steps=(Step(Action("list_files(folder='notes')"), "['todo.md']"),),
        ),
        failed=Step(
            Action("convert_units(value='5')"),
            "TypeError: convert_units(): 'value'",
            failed=True,
            error_family="type_error",
            tool="convert_units",
            records={
                "described": "[attempt 1 failed: convert_units — wrong type]",
                "described-minimal": "[attempt 1 failed]",
            },
        ),
        correct=Action("convert_units(value=5)"),
        distractors=(Action("convert_units()"), Action("convert_unit(value=5)")),
        observations=Observations(
            neutral="Call recorded.",
            success="12.4274",
            terse="Error: 'value'",
            verbose="TypeError: convert_units(): 'value' ('5')",
            echoed="TypeError\n  while calling: convert_units(value='5')",
        ),
        environment="toolshed",
        operator="type_swap",
        template="convert",
    )


def test_the_record_is_the_published_one() -> None:
    failed = FAILED.trajectory(case_from_item(ITEM))
    assert failed is not None
    for name, key in (
        ("described", "record_abstract"),
        ("described-minimal", "record_abstract_min"),
    ):
        assert remedied(name)(failed)[-1] == {"role": "user", "content": ITEM[key]}


@pytest.mark.parametrize("absent", ["left out", "null"])
def test_without_a_record_the_description_is_our_own(absent: str) -> None:
    keys = ("record_abstract", "record_abstract_min")
    item = without(*keys) if absent == "left out" else {**ITEM, **dict.fromkeys(keys)}
    failed = FAILED.trajectory(case_from_item(item))
    assert failed is not None
    assert remedied("described")(failed)[-1] == {
        "role": "user",
        "content": "[Attempt 1: the call to convert_units failed because an argument was of the "
        "wrong type. Make a different call.]",
    }


def test_only_the_decision_point_and_the_failure_are_needed() -> None:
    needed = ("item_id", "task_id", "system_prompt", "goal", "failed_action", "obs_fail")
    case = case_from_item({key: ITEM[key] for key in needed})
    assert case.candidates() == {"failed": Action("convert_units(value='5')")}
    assert case.observations == Observations()
    for key in needed:
        with pytest.raises(CaseError, match=f"the field '{key}' is missing"):
            case_from_item(without(key))


def test_a_tool_may_be_null() -> None:
    assert case_from_item({**ITEM, "tool": None}).failed.tool is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tool": 3}, "the field 'tool' must be a string or null, got the number 3"),
        ({"distractors": ["a", 1]}, "the field 'distractors[1]' must be a string, got the number"),
        ({"failed_action": " "}, "the field 'failed_action': the action ' ' is empty"),
        ({"prefix_observations": []}, "'prefix_actions' and 'prefix_observations' must pair up, "),
        ({"record_abstrakt": "x"}, "no field 'record_abstrakt'; did you mean 'record_abstract'?"),
        ({"gold_action": ITEM["failed_action"]}, "also given as the correct action"),
    ],
)
def test_an_unusable_item(change: dict[str, Any], said: str) -> None:
    with pytest.raises(CaseError) as caught:
        case_from_item({**ITEM, **change})
    assert said in str(caught.value)


def oracle(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((ORACLE / f"{name}.json").read_text(encoding="utf-8"))
    return content


def write_released_lines(published: dict[str, Any], path: Path) -> None:
    """Write the items as they were released: one a line, the system prompt in each."""
    lines = [
        json.dumps({**item, "system_prompt": published["system_prompt"]}, ensure_ascii=False)
        for item in published["items"]
    ]
    path.write_text("\n".join(lines), encoding="utf-8")


def prompt_of(case: FailureCase, condition: Condition) -> Sequence[Any]:
    trajectory = condition.trajectory(case)
    assert trajectory is not None
    remedies = () if condition.remedy is None else (condition.remedy,)
    return RemediedHarness("", VERBATIM, remedies)(trajectory)


@needs_oracle
@pytest.mark.parametrize("name", FILES)
def test_released_lines_load(name: str, tmp_path: Path) -> None:
    published = oracle(name)
    path = tmp_path / "items.jsonl"
    write_released_lines(published, path)
    cases = load_cases(path)
    assert [case.case_id for case in cases] == [item["item_id"] for item in published["items"]]
    for case, item in zip(cases, published["items"], strict=True):
        assert prompt_of(case, CONDITIONS["described"])[-1]["content"] == item["record_abstract"]


@needs_oracle
@pytest.mark.model
@pytest.mark.parametrize("name", FILES)
def test_contexts_and_candidates_have_the_published_lengths(
    name: str, tmp_path: Path, smollm2_tokenizer: Any
) -> None:
    published = oracle(name)
    path = tmp_path / "items.jsonl"
    write_released_lines(published, path)
    compared = 0
    for case in load_cases(path):
        candidates = {
            "gold" if name == "correct" else name: action.text
            for name, action in case.candidates().items()
        }
        for values in published["rows"][case.case_id]:
            row = dict(zip(published["row_fields"], values, strict=True))
            if row["condition"] not in CORE_CONDITIONS:
                continue
            condition = CONDITIONS[published["conditions"][row["condition"]]]
            text = smollm2_tokenizer.apply_chat_template(
                list(prompt_of(case, condition)), add_generation_prompt=True, tokenize=False
            )
            lengths = [
                len(smollm2_tokenizer(part, add_special_tokens=False)["input_ids"])
                for part in (text, candidates[row["candidate"]])
            ]
            assert lengths == [row["ctx_tokens"], row["n_tokens"]], (case.case_id, row)
            compared += 1
    assert compared == {"toolshed": 182, "coderepair": 78}[name]
