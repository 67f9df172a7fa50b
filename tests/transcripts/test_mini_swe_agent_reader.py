from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_failgain.transcripts.mini_swe_agent import NO_ACTION
from pytest_failgain.transcripts.read import read_transcript

SYSTEM = {"role": "system", "content": "Answer with one bash block."}
GOAL = {"role": "user", "content": "Serve the site."}


def said(command: str, fence: str = "bash") -> dict[str, Any]:
    return {"role": "assistant", "content": f"THOUGHT: I try.\n\n```{fence}\n{command}\n```"}


def got(output: str, code: int) -> dict[str, Any]:
    content = f"<returncode>{code}</returncode>\n<output>\n{output}\n</output>"
    return {"role": "user", "content": content}


@pytest.mark.parametrize("fence", ["bash", "mswea_bash_command"])
def test_command_and_output_are_read_without_their_frames(fence: str) -> None:
    transcript = read_transcript([SYSTEM, GOAL, said("webd start", fence), got("no port", 1)])
    (case,) = transcript.failures
    assert transcript.format == "mini-swe-agent"
    assert case.failed.action.text == "webd start"
    assert case.failed.lead == f"THOUGHT: I try.\n\n```{fence}\n"
    assert case.failed.observation == "no port"
    assert any("returncode" in note for note in transcript.notes)


def test_tagged_command_is_an_action() -> None:
    reply = {"role": "assistant", "content": "THOUGHT: x\n\n<bash_code>ls -la</bash_code>"}
    (case,) = read_transcript([SYSTEM, GOAL, reply, got("no", 2)]).failures
    assert case.failed.action.text == "ls -la"


def test_return_code_is_believed_whatever_the_output_says() -> None:
    transcript = read_transcript(
        [SYSTEM, GOAL, said("cat log"), got("Error: old", 0), said("grep x y"), got("fine", 1)]
    )
    assert [case.failed.action.text for case in transcript.failures] == ["grep x y"]


@pytest.mark.parametrize(
    "content",
    [
        "<returncode>1</returncode>\n<output>\n</output>",
        "<returncode>1</returncode>\n<warning>\nlong\n</warning><output_head>\na\n</output_head>",
        "<exception>boom</exception>\n<returncode>-1</returncode>\n<output>\na</output>",
        "The last command <command>sleep 99</command> timed out and has been killed.",
        "Observation: {'output': 'no', 'returncode': 2}",
    ],
)
def test_answer_without_plain_output_is_the_error_as_a_whole(content: str) -> None:
    first = [said("ls"), got("ok", 0)]
    answer = {"role": "user", "content": content}
    transcript = read_transcript([SYSTEM, GOAL, *first, said("sleep 99"), answer])
    (case,) = transcript.failures
    assert case.failed.observation == content


@pytest.mark.parametrize(
    "content",
    [
        "Command not executed. The user rejected your command with the following message: no",
        "Commands not executed. Switching to human mode",
        "Interrupted by user: stop",
        "<exception>action was not executed</exception>\n<returncode>-1</returncode>",
    ],
)
def test_rejected_command_is_no_failure(content: str) -> None:
    answer = {"role": "user", "content": content}
    transcript = read_transcript([SYSTEM, GOAL, said("ls"), got("ok", 0), said("rm x"), answer])
    assert not transcript.failures
    assert transcript.notes[0].startswith("a rejected or cancelled call")


def test_reply_with_two_commands_is_no_case_and_said() -> None:
    two = {"role": "assistant", "content": "```bash\nls\n```\n```bash\npwd\n```"}
    turned_down = {"role": "user", "content": "Please always provide EXACTLY ONE action, found 2"}
    transcript = read_transcript([SYSTEM, GOAL, two, turned_down, said("ls"), got("no", 1)])
    assert [case.failed.action.text for case in transcript.failures] == ["ls"]
    assert any(NO_ACTION in note for note in transcript.notes)


def native(arguments: str, call_id: str) -> dict[str, Any]:
    function = {"name": "bash", "arguments": arguments}
    call = {"id": call_id, "type": "function", "function": function}
    return {
        "role": "assistant",
        "content": "I try.",
        "tool_calls": [call],
        "extra": {"actions": [], "response": {"id": "x"}},
    }


def document(*messages: dict[str, Any]) -> dict[str, Any]:
    leave = {"role": "exit", "content": "", "extra": {"exit_status": "Submitted"}}
    return {"info": {"mini_version": "2.2.7"}, "messages": [SYSTEM, GOAL, *messages, leave]}


def test_native_call_takes_its_mark_from_beside_the_message() -> None:
    answer = {
        "role": "tool",
        "tool_call_id": "c1",
        "content": '{\n  "returncode": 1,\n  "output": "no port"\n}',
        "extra": {"returncode": 1, "raw_output": "no port"},
    }
    transcript = read_transcript(document(native('{"command":"webd"}', "c1"), answer))
    (case,) = transcript.failures
    assert case.failed.action.calls[0].arguments == '{"command":"webd"}'
    assert case.failed.observation == answer["content"]
    after = transcript.recorded[0].after.messages
    assert after is not None
    assert all("extra" not in message and message["role"] != "exit" for message in after)
    neutral = replace(case.failed, observation="It was run.", failed=False)
    prompt = transcript.as_recorded(case.trajectory.then(neutral))
    assert prompt.messages is not None
    assert prompt.messages[-1]["content"] == "It was run."


def test_refused_tool_call_fails_by_the_format_error() -> None:
    answer = {
        "role": "user",
        "content": "Tool call error:\n\n<error>\nUnknown tool 'sh'.\n</error>",
        "extra": {"interrupt_type": "FormatError"},
    }
    transcript = read_transcript(document(native("{}", "c1"), answer))
    (case,) = transcript.failures
    assert case.failed.observation == answer["content"]
    assert any("format error" in note for note in transcript.notes)


def test_items_of_the_responses_api_are_read() -> None:
    response = {
        "object": "response",
        "output": [
            {"type": "reasoning", "summary": []},
            {"type": "message", "content": [{"type": "output_text", "text": "I try."}]},
            {"type": "function_call", "name": "bash", "arguments": "{ }", "call_id": "c1"},
        ],
    }
    answer = {
        "type": "function_call_output",
        "call_id": "c1",
        "output": "<returncode>3</returncode>",
    }
    transcript = read_transcript(document(response, answer))
    (case,) = transcript.failures
    assert case.failed.action.calls[0].arguments == "{ }"
    assert case.failed.reply == "I try."


def test_rerun_that_works_after_a_fix_is_no_second_failure() -> None:
    transcript = read_transcript(
        [
            SYSTEM,
            GOAL,
            said("webd start"),
            got("no port", 1),
            said("echo port > site.conf"),
            got("", 0),
            said("webd start"),
            got("started", 0),
        ]
    )
    assert len(transcript.failures) == 1
