from __future__ import annotations

from typing import Any

import pytest

from pytest_failgain.transcripts.atif import ENVIRONMENT
from pytest_failgain.transcripts.draft import NOT_TEXT, THOUGHTS
from pytest_failgain.transcripts.read import read_transcript

USER = {"step_id": 1, "source": "user", "message": "Say ok."}


def call(call_id: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_call_id": call_id, "function_name": "run", "arguments": arguments}


def agent(*results: dict[str, Any], message: Any = "", **more: Any) -> dict[str, Any]:
    observation = {"results": list(results)}
    return {
        "step_id": 2,
        "source": "agent",
        "message": message,
        "observation": observation,
        **more,
    }


def trajectory(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"schema_version": "ATIF-v1.7", "agent": {"name": "a"}, "steps": [USER, *steps], **more}


@pytest.mark.parametrize(
    ("extra", "failed"),
    [
        ({"success": False}, True),
        ({"success": True}, False),
        ({"is_error": True}, True),
        ({"is_error": False}, False),
        ({"exit_code": 1}, True),
        ({"exit_code": 0}, False),
    ],
)
def test_extra_marks_a_result_against_what_its_text_says(
    extra: dict[str, Any], failed: bool
) -> None:
    text = "fine" if failed else "Error: gone"
    step = agent({"source_call_id": "k", "content": text, "extra": extra}, tool_calls=[call("k")])
    transcript = read_transcript(trajectory(step))
    assert transcript.format == "atif"
    assert len(transcript.failures) == failed
    key = next(iter(extra))
    assert any(f"extra.{key}" in note for note in transcript.notes) == failed


def test_mark_beside_the_step_counts_where_it_has_one_result() -> None:
    marked = {"extra": {"tool_result_is_error": True}}
    one = agent({"content": "odd"}, tool_calls=[call("k")], **marked)
    two = agent({"content": "a"}, {"content": "b"}, tool_calls=[call("k"), call("l")], **marked)
    assert len(read_transcript(trajectory(one)).failures) == 1
    assert not read_transcript(trajectory(two)).failures


def test_results_without_ids_pair_with_the_calls_in_order() -> None:
    step = agent(
        {"content": "done"}, {"content": "Error: no b"}, tool_calls=[call("k"), call("l", b=1)]
    )
    (case,) = read_transcript(trajectory(step)).failures
    assert case.failed.action.calls[0].arguments == '{"b": 1}'
    assert case.failed.observation == "Error: no b"


def test_agent_without_structured_calls_acts_by_its_message() -> None:
    said = '{"commands": [{"keystrokes": "ls x\\n"}]}'
    step = agent({"content": "ls: cannot access 'x': No such file or directory"}, message=said)
    transcript = read_transcript(trajectory(step))
    (case,) = transcript.failures
    assert case.failed.action.text == said
    prompt = transcript.as_recorded(case.trajectory.then(case.failed))
    assert prompt.messages is not None
    assert [message["role"] for message in prompt.messages] == ["user", "assistant", "user"]
    assert prompt.messages[-1]["content"] == case.failed.observation


def test_call_from_an_object_keeps_its_key_order_and_letters() -> None:
    step = agent({"content": "Error: é"}, tool_calls=[call("k", z="é", a=[1])])
    transcript = read_transcript(trajectory(step))
    assert transcript.failures[0].failed.action.calls[0].arguments == '{"z": "é", "a": [1]}'
    assert any("written as JSON" in note for note in transcript.notes)


def test_subagents_are_conversations_of_their_own() -> None:
    failing = agent({"content": "Error: gone"}, tool_calls=[call("k")])
    inner = trajectory(failing)
    transcript = read_transcript(trajectory(failing, subagent_trajectories=[inner]))
    assert len(transcript.trajectories) == 2
    assert len(transcript.failures) == 2


def test_what_no_step_asked_for_is_told_and_noted() -> None:
    system = {"step_id": 2, "source": "system", "message": "Reset.", "observation": {"results": []}}
    system["observation"] = {"results": [{"content": "Error: reset"}]}
    transcript = read_transcript(trajectory(system))
    assert not transcript.failures
    assert any(ENVIRONMENT in note for note in transcript.notes)
    assert "Error: reset" in str(transcript.trajectories[0].steps)


def test_images_and_thoughts_are_told_of() -> None:
    content = [{"type": "text", "text": "Error: "}, {"type": "image", "source": {"path": "a.png"}}]
    step = agent({"content": content}, tool_calls=[call("k")], reasoning_content="hm")
    transcript = read_transcript(trajectory(step))
    assert transcript.failures[0].failed.observation == "Error: [image]"
    for said in (NOT_TEXT, THOUGHTS):
        assert any(said in note for note in transcript.notes)


def test_tools_come_from_the_agent() -> None:
    tool = {"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}
    agent_of = {"name": "a", "tool_definitions": [tool]}
    step = agent({"content": "Error: gone"}, tool_calls=[call("k")])
    (case,) = read_transcript(trajectory(step, agent=agent_of)).failures
    assert [tool.name for tool in case.trajectory.tools] == ["run"]


def test_trajectory_without_a_version_is_told_by_its_steps() -> None:
    step = agent({"content": "Error: gone"}, tool_calls=[call("k")])
    assert read_transcript({"steps": [USER, step]}).format == "atif"
