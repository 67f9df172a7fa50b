from __future__ import annotations

import pytest
from hypothesis import given

from pytest_failgain.prompt import Prompt
from pytest_failgain.records import prompt_text, record_text
from strategies import quick, texts

BEFORE = "<|system|>\nYou call.<|end|>\n<|user|>\nGo.<|end|>\n<|assistant|>\n"
AFTER = (
    "<|system|>\nYou call.<|end|>\n<|user|>\nGo.<|end|>\n<|assistant|>\nsend()<|end|>\n"
    "<|user|>\nTypeError.<|end|>\n<|assistant|>\n"
)


def test_a_record_begins_and_ends_with_its_turns() -> None:
    assert record_text(BEFORE, AFTER) == (
        "<|assistant|>\nsend()<|end|>\n<|user|>\nTypeError.<|end|>\n"
    )


def test_a_prompt_without_a_record_has_none() -> None:
    assert record_text(BEFORE, BEFORE) == ""


def test_what_is_joined_to_a_line_is_cut_out_of_it() -> None:
    assert record_text("[INST] Go. [/INST]", "[INST] Go. [/INST]send()[INST] No. [/INST]") == (
        "send()[INST] No. [/INST]"
    )
    assert record_text("user: Go.\nassistant:", "user: Go. It failed.\nassistant:") == " It failed."


def test_a_step_that_repeats_the_one_before_is_its_own_record() -> None:
    once = BEFORE.replace(
        "<|assistant|>\n", "<|assistant|>\nsend()\n<|user|>\nNo.\n<|assistant|>\n"
    )
    twice = once + "send()\n<|user|>\nNo.\n<|assistant|>\n"
    assert sorted(record_text(once, twice)) == sorted("send()\n<|user|>\nNo.\n<|assistant|>\n")


def test_a_prompt_that_was_rewritten_shows_what_took_the_place() -> None:
    assert record_text("Go.\nTry.\nNow.\n", "Go.\nIt failed.\nNow.\n") == "It failed"
    assert record_text("a b\n", "") == ""


@quick
@given(texts, texts, texts)
def test_what_stands_between_the_same_texts_is_found(head: str, record: str, tail: str) -> None:
    found = record_text(f"{head}\n{tail}", f"{head}\n{record}\n{tail}")
    # Where neighbours are alike, another cut of the same text is as good.
    assert sorted(found) == sorted(f"{record}\n")


@quick
@given(texts, texts)
def test_a_record_is_part_of_the_prompt(before: str, after: str) -> None:
    assert record_text(before, after) in after


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        (Prompt(text="Go on."), "Go on."),
        (Prompt(messages=()), ""),
        (
            Prompt(
                messages=(
                    {"role": "user", "content": "Go."},
                    {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}],
                    },
                    {"role": "user", "content": [{"type": "text", "text": "No."}]},
                )
            ),
            """\
user: Go.
assistant: {"name": "f", "arguments": "{}"}
user: [{"type": "text", "text": "No."}]
""",
        ),
    ],
)
def test_prompts_are_written_for_people(prompt: Prompt, text: str) -> None:
    assert prompt_text(prompt) == text
