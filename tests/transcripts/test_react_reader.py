from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_failgain.transcripts.react import NO_ACTION
from pytest_failgain.transcripts.read import ReadTranscript, read_transcript

INSTRUCTIONS = """Answer with the tools.

Use the following format:

Question: the input question you must answer
Thought: you should always think about what to do
Action: the action to take, should be one of [find, open]
Action Input: the input to the action
Observation: the result of the action
... (this Thought/Action/Action Input/Observation can repeat N times)
Thought: I now know the final answer
Final Answer: the final answer to the original input question

Begin!

"""
ASKED = f"{INSTRUCTIONS}Question: Who lives in Oslo?\nThought:"
FIRST = " I look it up.\nAction: find\nAction Input: Oslo"
FAILED = "\nObservation: Error: the index is closed\nThought:"
SECOND = " I try once more.\nAction: open\nAction Input:\n```sql\nSELECT 1\n```"
WORKED = "\nObservation: 3 people\nThought:"
DONE = " I now know.\nFinal Answer: three"
MADE_UP = "Observation: 2 people\nAction: open\nAction Input: them"
WHOLE = f"{ASKED}{FIRST}{FAILED}{SECOND}{WORKED}{DONE}"


def in_one_message(text: str) -> list[dict[str, Any]]:
    return [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]


def prompts(transcript: ReadTranscript) -> tuple[Any, Any]:
    (case,) = transcript.failures
    before = transcript.as_recorded(case.trajectory)
    return before, transcript.as_recorded(case.trajectory.then(case.failed))


def test_scratchpad_in_one_message_is_read_step_by_step() -> None:
    transcript = read_transcript(in_one_message(WHOLE))
    (case,) = transcript.failures
    assert transcript.format == "react"
    assert case.failed.action.text == "Action: find\nAction Input: Oslo"
    assert case.failed.lead == " I look it up.\n"
    assert case.failed.observation == "Error: the index is closed"
    assert case.trajectory.system == "Be brief."
    assert case.trajectory.goal.endswith("Question: Who lives in Oslo?")


def test_prompts_are_the_message_as_far_as_it_had_grown() -> None:
    before, after = prompts(read_transcript(in_one_message(WHOLE)))
    system = {"role": "system", "content": "Be brief."}
    assert before.messages == (system, {"role": "user", "content": ASKED})
    assert after.messages == (system, {"role": "user", "content": f"{ASKED}{FIRST}{FAILED}"})


def test_other_answer_stands_in_place_of_the_error() -> None:
    transcript = read_transcript(in_one_message(WHOLE))
    (case,) = transcript.failures
    neutral = replace(case.failed, observation="Received.", failed=False)
    prompt = transcript.as_recorded(case.trajectory.then(neutral))
    assert prompt.messages is not None
    assert prompt.messages[-1]["content"].endswith("\nObservation: Received.\nThought:")


@pytest.mark.parametrize("end", ["", "\n", "\nThought:"])
def test_prompt_after_the_last_observation_ends_as_the_log_does(end: str) -> None:
    text = f"{ASKED}{FIRST}\nObservation: Error: the index is closed{end}"
    _, after = prompts(read_transcript(in_one_message(text)))
    assert after.messages[-1]["content"] == text


def test_plain_text_is_a_prompt_of_text() -> None:
    transcript = read_transcript(WHOLE)
    before, after = prompts(transcript)
    assert (before.text, after.text) == (ASKED, f"{ASKED}{FIRST}{FAILED}")


def test_model_that_writes_its_own_labels_is_prompted_up_to_them() -> None:
    text = "Question: x\nAction: find\nAction Input: y\nObservation: Error: the index is closed\n"
    before, after = prompts(read_transcript(text))
    assert (before.text, after.text) == ("Question: x\n", text)


def test_instructions_alone_are_no_steps() -> None:
    assert read_transcript(in_one_message(ASKED)).format == "openai-chat"


def test_turn_by_turn_is_replayed_as_messages() -> None:
    messages = [
        {"role": "system", "content": INSTRUCTIONS},
        {"role": "user", "content": "Question: Who lives in Oslo?"},
        {"role": "assistant", "content": f"Thought:{FIRST}\n{MADE_UP}"},
        {"role": "user", "content": "Observation: Error: the index is closed"},
        {"role": "assistant", "content": f"Thought:{DONE}"},
    ]
    transcript = read_transcript(messages)
    (case,) = transcript.failures
    assert transcript.format == "react"
    assert case.failed.action.text == "Action: find\nAction Input: Oslo"
    assert case.failed.observation == "Error: the index is closed"
    assert prompts(transcript)[1].messages == tuple(messages[:4])


@pytest.mark.parametrize(
    "action",
    [
        "Action: Search[Oslo]",
        "Action 1: Search[Oslo]",
        'Action:\n```json\n{"action": "find", "action_input": "Oslo"}\n```',
        'Action: {"action": "find"}',
        "**Action:** find\n**Action Input:** Oslo",
        'Action: find\nAction Input: {"q": "[a]",\n "n": 1}',
        "Action: find\nAction Input:",
    ],
)
def test_variants_of_an_action_are_read_as_they_stand(action: str) -> None:
    text = f"Question: x\nThought: I look.\n{action}\nObservation 1: Error: the index is closed\n"
    (case,) = read_transcript(text).failures
    assert case.failed.action.text == action


def test_observation_may_be_a_list_or_markup() -> None:
    text = (
        f"{ASKED}{FIRST}\nObservation: [{{'id': 1}}]\nThought:{SECOND}\nObservation: <p>Error</p>"
    )
    assert not read_transcript(text).failures
    assert len(read_transcript(text).trajectories[0].steps) == 2


def test_observation_after_no_action_is_said() -> None:
    text = f"{WHOLE}\nThought: hm\nObservation: Invalid Format: Missing 'Action:'\nThought:"
    assert any(NO_ACTION in note for note in read_transcript(text).notes)


def test_prompts_logged_one_by_one_count_each_failure_once() -> None:
    grown = [
        {"messages": in_one_message(text)}
        for text in (ASKED, f"{ASKED}{FIRST}{FAILED}", f"{ASKED}{FIRST}{FAILED}{SECOND}{WORKED}")
    ]
    assert len(read_transcript(grown).failures) == 1


def test_examples_before_the_question_are_not_read_in_a_prompt() -> None:
    example = f"Question: y\nThought:{FIRST}\nObservation: Error: the index is closed\n{DONE}\n\n"
    transcript = read_transcript(in_one_message(f"{example}{WHOLE}"))
    (case,) = transcript.failures
    assert example in case.trajectory.goal


words = st.text(st.characters(blacklist_categories=["Cs", "Cc"], blacklist_characters=":"))


@given(st.lists(st.tuples(words, words, st.booleans()), min_size=1, max_size=5))
@settings(max_examples=60, deadline=None)
def test_prompts_of_a_text_are_its_beginnings(steps: list[tuple[str, str, bool]]) -> None:
    text = "Question: x\nThought:"
    failures = []
    for thought, written, failed in steps:
        replied = f"{text} {thought}\nAction: find\nAction Input: x{written}"
        seen = "Error: the index is closed" if failed else "found it"
        if failed:
            failures.append((text, f"{replied}\nObservation: {seen}\nThought:"))
        text = f"{replied}\nObservation: {seen}\nThought:"
    transcript = read_transcript(in_one_message(text), format="react")
    found = [
        tuple((prompt.messages or ())[-1]["content"] for prompt in (one.before, one.after))
        for one in transcript.recorded
    ]
    assert found == failures
