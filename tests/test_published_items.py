"""The published items, rebuilt through the same conditions and harness as any other case."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from published_rows import FILES, PublishedFile, our_candidate
from pytest_failgain.case_files import load_cases
from pytest_failgain.conditions import CONDITIONS, FAILED, Condition
from pytest_failgain.errors import CaseError
from pytest_failgain.harnesses import VERBATIM, RemediedHarness, remedied
from pytest_failgain.padding import CountTokens
from pytest_failgain.published import case_from_item
from pytest_failgain.trajectory import Action, FailureCase, Observations, Step, Trajectory

if TYPE_CHECKING:
    from pytest_failgain.scoring.local import LocalScorer

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


INSTRUCTION = (
    "Important: some of your earlier tool calls failed. Do not repeat a call that has already "
    "failed; change the call before trying again."
)
RECORDS = {"described": "record_abstract", "described-minimal": "record_abstract_min"}


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
                "instructed": INSTRUCTION,
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
            padding="published",
        ),
        environment="toolshed",
        operator="type_swap",
        template="convert",
        other_failed=Step(Action("convert_units()"), "TypeError: other", failed=True),
    )


def failed_prompt(item: dict[str, Any], remedy: str) -> Sequence[Any]:
    failed = FAILED.trajectory(case_from_item(item))
    assert failed is not None
    messages = remedied(remedy)(failed)
    assert isinstance(messages, list)
    return messages


@pytest.mark.parametrize(("remedy", "key"), RECORDS.items())
def test_a_record_that_the_item_holds_is_the_one_that_is_written(remedy: str, key: str) -> None:
    turn = {"role": "user", "content": "as in the item"}
    assert failed_prompt({**ITEM, key: "as in the item"}, remedy)[-1] == turn


def test_the_instruction_is_the_experiments_own() -> None:
    system = f"You call tools.\n{INSTRUCTION}"
    assert failed_prompt(ITEM, "instructed")[0] == {"role": "system", "content": system}


PHRASES = {
    "unknown_tool": "no such tool",
    "missing_argument": "a required argument was missing",
    "unexpected_argument": "an argument name was not recognised",
    "type_error": "an argument had the wrong type",
    "format_error": "an argument was badly formatted",
    "permission_error": "the target was read-only",
    "unsupported_conversion": "that conversion is not supported",
    "contact_not_found": "no such contact",
    "file_not_found": "no such file",
    "team_not_found": "no such team",
    "event_not_found": "no such event",
    "attendee_not_found": "no such attendee",
    "test_failure": "the code did not pass the tests",
    "runtime_error": "the code raised an exception",
    "syntax_error": "the code did not compile",
    "timeout": "the call failed",
    None: "the call failed",
}


@pytest.mark.parametrize(("error_type", "phrase"), PHRASES.items())
@pytest.mark.parametrize(("tool", "name"), [("send", "send"), (None, "the tool")])
def test_without_a_record_the_experiments_own_is_written_anew(
    error_type: str | None, phrase: str, tool: str | None, name: str
) -> None:
    described = f"[attempt 1 failed: {name} — {phrase}; that call is not repeatable]"
    null = {**ITEM, **dict.fromkeys(RECORDS.values()), "error_type": error_type, "tool": tool}
    left_out = {key: value for key, value in null.items() if value is not None}
    for item in (null, left_out):
        written = [failed_prompt(item, remedy)[-1]["content"] for remedy in RECORDS]
        assert written == [described, "[attempt 1 failed]"]


def test_the_other_failure_is_the_first_distractor_with_its_error() -> None:
    other = case_from_item(ITEM).other_failed
    assert other == Step(Action("convert_units()"), "TypeError: other", failed=True)
    # The experiment took the item's own error where there was none for the distractor.
    for item in (without("obs_fail_other"), {**ITEM, "obs_fail_other": ""}):
        other = case_from_item(item).other_failed
        assert other == Step(Action("convert_units()"), ITEM["obs_fail"], failed=True)


def test_without_a_distractor_nothing_else_failed() -> None:
    for item in (without("distractors"), {**ITEM, "distractors": []}):
        assert case_from_item(item).other_failed is None


def test_only_the_decision_point_and_the_failure_are_needed() -> None:
    needed = ("item_id", "task_id", "system_prompt", "goal", "failed_action", "obs_fail")
    case = case_from_item({key: ITEM[key] for key in needed})
    assert case.candidates() == {"failed": Action("convert_units(value='5')")}
    assert case.observations == Observations(padding="published")
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


def prompt_of(
    case: FailureCase, condition: Condition, count_tokens: CountTokens = len
) -> Sequence[Any]:
    trajectory = condition.context(case, count_tokens)
    assert trajectory is not None
    remedies = () if condition.remedy is None else (condition.remedy,)
    messages = RemediedHarness("", VERBATIM, remedies)(trajectory)
    assert isinstance(messages, list)
    return messages


def released(oracle: Path, name: str, tmp_path: Path) -> tuple[PublishedFile, list[FailureCase]]:
    """A published file, and the cases that its released lines load as."""
    file = PublishedFile(oracle, name)
    path = tmp_path / "items.jsonl"
    path.write_text(file.lines(), encoding="utf-8")
    return file, load_cases(path)


@pytest.mark.parametrize("name", FILES)
def test_released_lines_load(name: str, oracle: Path, tmp_path: Path) -> None:
    file, cases = released(oracle, name, tmp_path)
    assert [case.case_id for case in cases] == [item["item_id"] for item in file.items]


@pytest.mark.parametrize("name", FILES)
def test_records_are_the_published_ones_without_being_told(name: str, oracle: Path) -> None:
    # The two records are no part of the files that the paper released.
    file = PublishedFile(oracle, name)
    assert len(file.items) == {"toolshed": 13, "coderepair": 6}[name]
    for item in file.items:
        bare = {key: value for key, value in item.items() if key not in RECORDS.values()}
        case = case_from_item(bare)
        for condition, key in RECORDS.items():
            turn = {"role": "user", "content": item[key]}
            assert prompt_of(case, CONDITIONS[condition])[-1] == turn
        system, *others = prompt_of(case, CONDITIONS["instructed"])
        assert system["content"] == f"{item['system_prompt']}\n{file.instruction}"
        assert others == prompt_of(case, FAILED)[1:]


@pytest.mark.model
@pytest.mark.parametrize("name", FILES)
def test_contexts_and_candidates_have_the_published_lengths(
    name: str, oracle: Path, tmp_path: Path, smollm2: LocalScorer
) -> None:
    file, cases = released(oracle, name, tmp_path)
    tokenizer, compared = smollm2.tokenizer, set()
    for case in cases:
        for row in file.rows[case.case_id]:
            condition = CONDITIONS[file.our_names[row["condition"]]]
            text = tokenizer.apply_chat_template(
                list(prompt_of(case, condition, smollm2.count_tokens)),
                add_generation_prompt=True,
                tokenize=False,
            )
            action = case.candidates()[our_candidate(row["candidate"])].text
            lengths = [
                len(tokenizer(part, add_special_tokens=False)["input_ids"])
                for part in (text, action)
            ]
            assert lengths == [row["ctx_tokens"], row["n_tokens"]], (case.case_id, row)
            compared.add((case.case_id, row["condition"], row["candidate"]))
    assert len(compared) == {"toolshed": 362, "coderepair": 78}[name]
