"""Rollouts of Codex: items that were sent, and events beside them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_failgain.transcripts.codex import COMPACTED, TOLD
from pytest_failgain.transcripts.read import ReadTranscript, read_transcript

META = {"type": "session_meta", "payload": {"id": "x", "cwd": "/", "instructions": "Be brief."}}


def item(**payload: Any) -> dict[str, Any]:
    return {"timestamp": "t", "type": "response_item", "payload": payload}


def event(**payload: Any) -> dict[str, Any]:
    return {"timestamp": "t", "type": "event_msg", "payload": payload}


def message(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return item(type="message", role=role, content=[{"type": kind, "text": text}])


def call(call_id: str = "a", arguments: str = '{"command":["ls"]}') -> dict[str, Any]:
    return item(type="function_call", name="shell", arguments=arguments, call_id=call_id)


def output(text: Any, call_id: str = "a") -> dict[str, Any]:
    return item(type="function_call_output", call_id=call_id, output=text)


GOAL = message("user", "List it.")
RUN = [META, GOAL, call(), output("Exit code: 2\nWall time: 0 seconds\nOutput:\nno")]


def only(transcript: ReadTranscript) -> Any:
    assert transcript.format == "codex"
    (case,) = transcript.failures
    return case


def test_rollout_is_told_as_chat_messages_and_says_so() -> None:
    lines = [*RUN[:2], event(type="user_message", message="List it."), *RUN[2:]]
    transcript = read_transcript("\n".join(map(json.dumps, lines)))
    case = only(transcript)
    assert (case.trajectory.system, case.trajectory.goal) == ("Be brief.", "List it.")
    assert case.trajectory.steps == ()
    assert case.failed.action.calls[0].arguments == '{"command":["ls"]}'
    after = transcript.as_recorded(case.trajectory.then(case.failed))
    assert after.messages is not None
    roles = [message["role"] for message in after.messages]
    assert roles == ["system", "user", "assistant", "tool"]
    assert TOLD in after.adaptations


EXEC = {"output": "no", "metadata": {"exit_code": 1, "duration_seconds": 0.1}}
DONE = {"output": "Error: a line of a log", "metadata": {"exit_code": 0}}


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        (json.dumps(EXEC), "metadata.exit_code"),
        ("Exit code: 1\nWall time: 0 seconds\nOutput:\nno", "exit code"),
        ("Exit code: 1\nOutput:\nProcess running with session ID 5", "exit code"),
        (
            "Chunk ID: f\nWall time: 0.1 seconds\nProcess exited with code 127\nOutput:\n",
            "exit code",
        ),
        ({"content": "no", "success": False}, "success"),
    ],
)
def test_outputs_of_every_version_fail_by_their_marks(text: Any, mark: str) -> None:
    transcript = read_transcript([*RUN[:3], output(text)])
    case = only(transcript)
    assert case.failed.observation == (text if isinstance(text, str) else "no")
    assert f"failed by the format's own mark ({mark}) (1)" in transcript.notes


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(DONE),
        "Exit code: 0\nWall time: 0 seconds\nOutput:\nError: a line of a log\nExit code: 1",
        "Wall time: 0.1 seconds\nProcess exited with code 0\nOutput:\nProcess exited with code 1",
        {"content": "Error: shown", "success": True},
        "Wall time: 1 seconds\nProcess running with session ID 5\nOutput:\nExit code: 1",
        "exec command rejected by user",
        "rejected by user",
        "aborted by user after 3.2s",
        "aborted",
        "user cancelled MCP tool call",
    ],
)
def test_outputs_of_what_worked_or_never_ran_are_no_failures(text: Any) -> None:
    assert not read_transcript([*RUN[:3], output(text)]).failures


@pytest.mark.parametrize(
    "text",
    [
        "unsupported call: look",
        "tool call error: -32602",
        "failed to parse function arguments: missing field",
        "apply_patch verification failed: no such line",
    ],
)
def test_errors_in_the_words_of_codex_are_failures(text: str) -> None:
    transcript = read_transcript([*RUN[:3], output(text)])
    only(transcript)
    assert "failed by the format's own mark (error text) (1)" in transcript.notes


def test_what_nothing_marks_is_judged_by_its_words() -> None:
    transcript = read_transcript([*RUN[:3], output("Error: no such project")])
    only(transcript)
    assert "failed by the heuristic 'error word' (1)" in transcript.notes


@pytest.mark.parametrize(
    "payload",
    [
        {"type": "exec_command_end", "exit_code": 1},
        {"type": "patch_apply_end", "success": False},
        {"type": "mcp_tool_call_end", "result": {"Err": "gone"}},
        {"type": "mcp_tool_call_end", "result": {"Ok": {"isError": True, "content": []}}},
    ],
)
def test_event_of_a_call_tells_that_it_failed(payload: dict[str, Any]) -> None:
    assert only(read_transcript([*RUN[:3], event(call_id="a", **payload), output("well")]))


@pytest.mark.parametrize(
    "payload",
    [
        {"type": "exec_command_end", "exit_code": 0},
        {"type": "mcp_tool_call_end", "result": {"Ok": {"content": []}}},
    ],
)
def test_event_of_a_call_tells_that_it_worked(payload: dict[str, Any]) -> None:
    lines = [*RUN[:3], event(call_id="a", **payload), output("Error: shown")]
    assert not read_transcript(lines).failures


def test_patch_comes_as_a_custom_tool() -> None:
    patch = "*** Begin Patch\n{ no JSON"
    lines = [
        META,
        GOAL,
        item(type="custom_tool_call", name="apply_patch", call_id="a", input=patch),
        item(type="custom_tool_call_output", call_id="a", output=json.dumps(EXEC)),
    ]
    assert only(read_transcript(lines)).failed.action.calls[0].arguments == patch


def test_local_shell_call_has_its_action_as_arguments() -> None:
    action = {"type": "exec", "command": ["ls"]}
    lines = [
        META,
        item(type="local_shell_call", id=None, call_id="a", status="completed", action=action),
        output("Exit code: 1\nOutput:\n"),
    ]
    call = only(read_transcript(lines)).failed.action.calls[0]
    assert (call.name, json.loads(call.arguments)) == ("local_shell", action)


def test_parallel_calls_are_cases_of_their_own() -> None:
    lines = [META, GOAL, call("a"), call("b"), output("Exit code: 1\n", "b"), RUN[3]]
    transcript = read_transcript(lines)
    assert [case.failed.observation for case in transcript.failures] == [
        RUN[3]["payload"]["output"],
        "Exit code: 1\n",
    ]
    assert {case.trajectory.steps for case in transcript.failures} == {()}


@pytest.mark.parametrize(
    "payload",
    [
        {"message": "What was done."},
        {"message": "", "replacement_history": [message("user", "What was done.")["payload"]]},
    ],
)
def test_compaction_begins_a_conversation_with_its_summary(payload: dict[str, Any]) -> None:
    lines = [
        *RUN,
        {"type": "compacted", "payload": payload},
        call("b"),
        output("Exit code: 1\n", "b"),
    ]
    transcript = read_transcript(lines)
    assert [case.trajectory.goal for case in transcript.failures] == ["List it.", "What was done."]
    assert f"{COMPACTED} (1)" in transcript.notes


def test_older_rollouts_are_items_under_a_header() -> None:
    lines = [
        {"id": "x", "timestamp": "t", "instructions": None},
        {"record_type": "state"},
        *(line["payload"] for line in RUN[1:]),
    ]
    case = only(read_transcript(lines))
    assert case.trajectory.goal == "List it."


@pytest.mark.parametrize(
    "odd",
    [
        {"type": "response_item", "payload": {"type": "function_call", "call_id": 5}},
        {"type": "response_item", "payload": {"type": "function_call_output", "output": [5, {}]}},
        {"type": "response_item", "payload": {"type": ["message"]}},
        {"type": "event_msg", "payload": {"call_id": "z", "type": "mcp_tool_call_end"}},
        {"type": "compacted", "payload": None},
        {"type": "response_item"},
    ],
    ids=range(6),
)
def test_odd_lines_are_passed_over(odd: dict[str, Any]) -> None:
    assert only(read_transcript([*RUN, odd])).failed.observation == RUN[3]["payload"]["output"]
