from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_failgain.transcripts.read import read_transcript

TASK = "<task>\nrun the tests\n</task>"
ENVIRONMENT = "<environment_details>\n# Error log\nnone\n</environment_details>"
RUN = "<execute_command>\n<command>npm test</command>\n</execute_command>"
EDIT = "<replace_in_file>\n<path>a.ts</path>\n<diff>\n<<<<\n</diff>\n</replace_in_file>"
TOOL_ERROR = (
    "The tool execution failed with the following error:\n<error>\nno match in a.ts\n</error>"
)


def parts(*texts: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text} for text in texts]


def session(reply: str, *answer: str) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": parts(TASK, ENVIRONMENT), "ts": 1},
        {"role": "assistant", "content": parts(reply), "ts": 2},
        {"role": "user", "content": parts(*answer), "ts": 3},
    ]


def test_tool_error_is_a_failure_of_the_call_in_the_text() -> None:
    transcript = read_transcript(
        session(
            f"I edit.\n\n{EDIT}", "[replace_in_file for 'a.ts'] Result:", TOOL_ERROR, ENVIRONMENT
        )
    )
    (case,) = transcript.failures
    assert transcript.format == "cline"
    assert case.failed.action.text == EDIT
    assert case.failed.lead == "I edit.\n\n"
    assert case.failed.observation == TOOL_ERROR
    assert any("a tool error" in note for note in transcript.notes)


def test_heading_and_error_may_stand_in_one_block() -> None:
    answer = f"[replace_in_file for 'a.ts'] Result:\n{TOOL_ERROR}"
    (case,) = read_transcript(session(EDIT, answer, ENVIRONMENT)).failures
    assert case.failed.observation == TOOL_ERROR


def test_prompts_are_the_messages_as_they_were_sent() -> None:
    messages = session(EDIT, "[replace_in_file for 'a.ts'] Result:", TOOL_ERROR)
    transcript = read_transcript(messages)
    (case,) = transcript.failures
    prompt = transcript.as_recorded(case.trajectory.then(case.failed))
    assert prompt.messages is not None
    assert [dict(one) for one in prompt.messages] == [
        {key: one[key] for key in ("role", "content")} for one in messages
    ]
    neutral = replace(case.failed, observation="Received.", failed=False)
    prompt = transcript.as_recorded(case.trajectory.then(neutral))
    assert prompt.messages is not None
    assert prompt.messages[-1]["content"][1]["text"] == "Received."


@pytest.mark.parametrize(
    ("answer", "failed"),
    [
        ("Command executed in terminal within '/a'. Exit code: 1\nOutput:\nno", True),
        ("Command executed in terminal within '/a'. Exit code: 0\nOutput:\nError: x", False),
        ("Command executed.\nOutput:\nnpm ERR! missing script: test", True),
        ("Command executed.\nOutput:\n12 passing", False),
    ],
)
def test_command_is_judged_by_what_it_put_out(answer: str, failed: bool) -> None:
    transcript = read_transcript(
        session(RUN, f"[execute_command for 'npm test'] Result:\n{answer}")
    )
    assert len(transcript.failures) == failed


def test_file_that_looks_like_an_error_is_no_failure_of_reading_it() -> None:
    reply = "<read_file>\n<path>error.log</path>\n</read_file>"
    answer = "[read_file for 'error.log'] Result:\nError: the disk is full"
    assert not read_transcript(session(reply, answer)).failures


def test_file_that_is_not_there_is_a_failure_of_reading_it() -> None:
    reply = "<read_file>\n<args><file><path>a</path></file></args>\n</read_file>"
    answer = "[read_file for 'a'] Result:\n<files>\n<file><path>a</path><error>gone</error></file>"
    assert len(read_transcript(session(reply, answer)).failures) == 1


@pytest.mark.parametrize(
    "answer",
    [
        "The user denied this operation.",
        "The user denied this operation and provided the following feedback:\n<feedback>\nno",
    ],
)
def test_denied_call_is_no_failure(answer: str) -> None:
    transcript = read_transcript(session(RUN, "[execute_command for 'npm test'] Result:", answer))
    assert not transcript.failures
    assert transcript.notes[0].startswith("a rejected or cancelled call")


@pytest.mark.parametrize(
    "skipped",
    [
        "Skipping tool [execute_command for 'npm test'] due to user rejecting a previous tool.",
        "Tool [execute_command] was not executed because a tool has already been used. Wait.",
    ],
)
def test_only_the_call_that_ran_fails(skipped: str) -> None:
    reply = f"First {EDIT} then {RUN}"
    answer = f"[replace_in_file for 'a.ts'] Result:\n{TOOL_ERROR}\n{skipped}"
    (case,) = read_transcript(session(reply, answer)).failures
    assert case.failed.action.text == EDIT
    assert case.failed.observation == TOOL_ERROR


def test_heading_may_quote_a_command_of_several_lines() -> None:
    command = "cat <<EOF\n[x]\nEOF"
    reply = f"<execute_command>\n<command>{command}</command>\n</execute_command>"
    answer = f"[execute_command for '{command}'] Result:\nExit code: 2"
    (case,) = read_transcript(session(reply, answer)).failures
    assert case.failed.observation == "Exit code: 2"


def test_tool_that_is_only_named_before_is_no_call() -> None:
    reply = f"<thinking>I need <execute_command> here.</thinking>\n{RUN}"
    answer = "[execute_command for 'npm test'] Result:\nExit code: 2"
    (case,) = read_transcript(session(reply, answer)).failures
    assert case.failed.action.text == RUN


def test_unknown_tool_is_known_by_its_answer() -> None:
    reply = f"{RUN.replace('execute_command', 'run_it')}"
    messages = session(RUN, "[execute_command for 'npm test'] Result:\nok")
    answer = {"role": "user", "content": f"[run_it] Result:\n{TOOL_ERROR}"}
    messages += [{"role": "assistant", "content": reply}, answer]
    (case,) = read_transcript(messages).failures
    assert case.failed.action.text == reply


def test_reply_without_a_tool_is_said() -> None:
    messages = session(EDIT, "[replace_in_file for 'a.ts'] Result:", TOOL_ERROR)
    messages += [
        {"role": "assistant", "content": "I am done."},
        {"role": "user", "content": "[ERROR] You did not use a tool in your previous response!"},
    ]
    assert any("without a tool call" in note for note in read_transcript(messages).notes)


def test_plain_messages_are_not_taken_for_it() -> None:
    messages = [
        {"role": "user", "content": "What is <read_file>?"},
        {"role": "assistant", "content": "A tag: <read_file>x</read_file>"},
        {"role": "user", "content": "Thanks"},
    ]
    assert read_transcript(messages).format != "cline"
