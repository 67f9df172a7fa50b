from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_failgain.transcripts.read import read_transcript

COMMAND = '{"name": "browse",  "args": {"url": "x"}}'
REPLY = f'{{"thoughts": {{"text": "I look \\"there\\"."}}, "command": {COMMAND}}}'
ASKED = {"role": "user", "content": "Determine which next command to use."}


def session(reply: str, answer: str, role: str = "system") -> list[dict[str, Any]]:
    return [
        {"role": "system", "content": "You are Fund-Bot."},
        ASKED,
        {"role": "assistant", "content": REPLY},
        {"role": "system", "content": "Command browse returned: a page"},
        ASKED,
        {"role": "assistant", "content": reply},
        {"role": role, "content": answer},
        ASKED,
    ]


FAILED = "Command browse returned: Error: the page is gone"


def test_command_is_the_object_in_the_reply_as_it_was_written() -> None:
    transcript = read_transcript(session(REPLY, FAILED))
    (case,) = transcript.failures
    assert transcript.format == "autogpt"
    assert case.failed.action.text == COMMAND
    assert case.failed.lead == REPLY[: REPLY.index(COMMAND)]
    assert case.failed.observation == FAILED


def test_prompts_are_the_messages() -> None:
    messages = session(REPLY, FAILED)
    transcript = read_transcript(messages)
    (recorded,) = transcript.recorded
    assert recorded.before.messages == tuple(messages[:5])
    assert recorded.after.messages == tuple(messages)


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        (f"Here it is:\n```json\n{REPLY}\n```", COMMAND),
        (f'{{"command": {COMMAND}, "thoughts": {{}}}}', COMMAND),
        (f'{{"thoughts": {{}}, "use_tool": {COMMAND}}}', COMMAND),
        (f'{{"thoughts": {{"text": "broken}}, "command": {COMMAND}, }}', COMMAND),
        (f'{{"thoughts": {{}} "command": {COMMAND[:-4]}', COMMAND[:-4]),
        (f'{{"thoughts": {{"text": "two\nlines"}}, "command": {COMMAND}}}', COMMAND),
    ],
)
def test_command_is_found_in_variants_and_broken_replies(reply: str, action: str) -> None:
    (case,) = read_transcript(session(reply, FAILED)).failures
    assert case.failed.action.text == action
    assert case.failed.action.text in reply


@pytest.mark.parametrize(
    ("answer", "role"),
    [
        ("Command browse threw the following error: slow", "system"),
        ("Action failed: 'slow'", "user"),
        ("Command browse returned: Unknown command browse", "user"),
        ("Unable to execute command", "system"),
        ("Command browse returned: HTTP error 404", "function"),
    ],
)
def test_errors_of_its_versions_are_failures(answer: str, role: str) -> None:
    messages = session(REPLY, answer, role)
    assert [case.failed.observation for case in read_transcript(messages).failures] == [answer]


@pytest.mark.parametrize(
    "answer",
    [
        "Human feedback: use another site, this one failed",
        'The user interrupted the action with the following feedback: "no"',
    ],
)
def test_feedback_in_place_of_running_is_no_failure(answer: str) -> None:
    transcript = read_transcript(session(REPLY, answer))
    assert not transcript.failures
    assert transcript.notes[0].startswith("a rejected or cancelled call")


def test_system_messages_about_the_state_are_no_results() -> None:
    messages = session(REPLY, FAILED)
    messages.insert(6, {"role": "system", "content": "The current time and date is: Error"})
    (case,) = read_transcript(messages).failures
    assert case.failed.observation == FAILED


def test_text_after_the_reply_is_no_result_but_the_users() -> None:
    messages = session(REPLY, "Error handling is what I want.", "user")
    messages[-2]["content"] = "Go on, please: it failed before."
    assert not read_transcript(messages).failures


def test_reply_with_raw_line_ends_is_known() -> None:
    reply = f'{{"thoughts": {{"text": "two\nlines"}}, "command": {COMMAND}}}'
    messages = [
        ASKED,
        {"role": "assistant", "content": reply},
        {"role": "system", "content": FAILED},
    ]
    assert read_transcript(messages).format == "autogpt"


def test_json_replies_without_a_command_are_not_taken_for_it() -> None:
    reply = json.dumps({"thoughts": "x", "answer": 3})
    messages = [ASKED, {"role": "assistant", "content": reply}]
    assert read_transcript(messages).format == "openai-chat"
