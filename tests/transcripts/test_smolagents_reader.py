from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from conftest import SHARED
from pytest_failgain.transcripts.read import ReadTranscript, read_transcript
from pytest_failgain.transcripts.smolagents import NO_CODE, WHOLE_REPLY

CODE = "x = sum(prices)\nprint(x)"
SAID = f"Thought: I sum.\n<code>\n{CODE}\n</code>"
ERROR = "Code execution failed at line 'x = sum(prices)' due to: NameError: prices"
BEGINS = [{"system_prompt": "You write code."}, {"task": "Sum."}]


def interpreted(code: str, call_id: str = "call_1") -> dict[str, Any]:
    function = {"name": "python_interpreter", "arguments": code}
    return {"id": call_id, "type": "function", "function": function}


def step(said: str | None = SAID, error: str | None = ERROR, **more: Any) -> dict[str, Any]:
    told = None if error is None else {"type": "AgentExecutionError", "message": error}
    return {
        "step_number": 1,
        "model_output": said,
        "code_action": CODE if said else None,
        "tool_calls": [interpreted(CODE)] if said else [],
        "observations": None,
        "error": told,
        **more,
    }


def contents(transcript: ReadTranscript) -> list[tuple[str, str]]:
    messages = transcript.recorded[-1].after.messages
    assert messages is not None
    return [(message["role"], message["content"][0]["text"]) for message in messages]


def test_action_is_the_code_inside_the_reply() -> None:
    transcript = read_transcript([*BEGINS, step()])
    (case,) = transcript.failures
    assert transcript.format == "smolagents"
    assert case.failed.action.text == CODE
    assert case.failed.lead == "Thought: I sum.\n<code>\n"
    assert case.failed.observation == ERROR
    assert (case.trajectory.system, case.trajectory.goal) == ("You write code.", "Sum.")
    assert any("AgentExecutionError" in note for note in transcript.notes)


def test_neutral_answer_stands_where_the_error_stood() -> None:
    transcript = read_transcript([*BEGINS, step()])
    (case,) = transcript.failures
    neutral = replace(case.failed, observation="Received.", failed=False)
    prompt = transcript.as_recorded(case.trajectory.then(neutral))
    assert prompt.messages is not None
    assert "Error:\nReceived.\nNow let's retry" in prompt.messages[-1]["content"][0]["text"]
    assert ERROR not in str(prompt.messages[-1])


def test_prompt_is_the_request_that_the_library_really_sends() -> None:
    path = SHARED / "captures" / "smol_code_after.json"
    if not path.is_file():
        pytest.skip(f"the recorded request is not in {path}")
    sent = json.loads(path.read_text())["messages"]
    said, _, made = sent[2]["content"][0]["text"].partition("\nCalling tools:\n")
    call_id, _, told = sent[3]["content"][0]["text"].partition("\nError:\n")
    error = told.partition("\nNow let's retry")[0]
    code = said.partition("<code>\n")[2].partition("\n</code>")[0]
    call = interpreted(code, call_id.removeprefix("Call id: "))
    assert made == str([call])
    transcript = read_transcript(
        [
            {"system_prompt": sent[0]["content"][0]["text"]},
            {"task": sent[1]["content"][0]["text"].removeprefix("New task:\n")},
            step(said, error, code_action=code, tool_calls=[call]),
        ]
    )
    (case,) = transcript.failures
    assert transcript.recorded[0].before.messages == tuple(sent[:2])
    assert transcript.recorded[0].after.messages == tuple(sent)
    assert (case.failed.action.text, case.failed.observation) == (code, error)


def test_reply_is_sent_without_the_space_around_it() -> None:
    transcript = read_transcript([*BEGINS, step(f"\n{SAID}\n")])
    assert contents(transcript)[2][1].startswith(f"{SAID}\nCalling tools:\n")
    assert transcript.failures[0].failed.reply == f"\n{SAID}\n"


def test_step_without_code_is_no_case_but_stays_in_the_record() -> None:
    empty = step(None, "No code found.")
    transcript = read_transcript([*BEGINS, empty, step()])
    assert len(transcript.failures) == 1
    assert any(NO_CODE in note for note in transcript.notes)
    roles = [role for role, _ in contents(transcript)]
    assert roles == ["system", "user", "assistant", "user"]
    assert "New task:\nSum.\nError:\nNo code found." in contents(transcript)[1][1]


def test_step_that_worked_is_no_failure_whatever_it_prints() -> None:
    transcript = read_transcript([*BEGINS, step(error=None, observations="Error: old log")])
    assert not transcript.failures
    assert "Error: old log" in str(transcript.trajectories[0].steps)


def test_observation_and_error_of_one_step_are_both_in_the_record() -> None:
    transcript = read_transcript([*BEGINS, step(observations="Execution logs:\n1")])
    role, text = contents(transcript)[-1]
    assert role == "user"
    assert text.startswith("Observation:\nExecution logs:\n1\nCall id: call_1\nError:\n")


@pytest.mark.parametrize(
    ("said", "code", "action"),
    [
        ('{"thought": "I sum", "code": "x = 1\\ny"}', "x = 1\ny", "x = 1\\ny"),
        ("<code>x = final(1)</code>", "x = final_(1)", "x = final(1)"),
        ("Thus:\n```py\nx\n```", "x2", "x"),
        ("x = 1", "x = 1", "x = 1"),
    ],
)
def test_code_is_found_as_the_model_wrote_it(said: str, code: str, action: str) -> None:
    (case,) = read_transcript([*BEGINS, step(said, code_action=code)]).failures
    assert case.failed.action.text == action


def test_code_of_several_blocks_makes_the_whole_reply_the_action() -> None:
    said = "<code>a</code> and <code>b</code>"
    transcript = read_transcript([*BEGINS, step(said, code_action="a\n\nb")])
    assert transcript.failures[0].failed.action.text == said
    assert any(WHOLE_REPLY in note for note in transcript.notes)


def test_old_release_has_the_code_in_its_call_alone() -> None:
    old = step()
    del old["code_action"]
    (case,) = read_transcript([*BEGINS, old]).failures
    assert case.failed.action.text == CODE


def test_structured_call_is_the_models_own_and_may_be_missing_from_the_record() -> None:
    function = {"name": "add", "arguments": '{"day":"12"}'}
    replied = {"role": "assistant", "tool_calls": [{"id": "c1", "function": function}]}
    raised = step(None, "Error executing tool 'add': no day", model_output_message=replied)
    transcript = read_transcript([*BEGINS, raised])
    (case,) = transcript.failures
    assert case.failed.action.calls[0].arguments == '{"day":"12"}'
    assert [role for role, _ in contents(transcript)] == ["system", "user"]
    assert '"day"' not in str(contents(transcript))


def test_error_of_parallel_calls_is_of_the_one_that_it_names() -> None:
    calls = [
        {"id": f"c{n}", "function": {"name": name, "arguments": {}}}
        for n, name in enumerate(("look", "add"))
    ]
    raised = step("I do both.", "Error executing tool 'add': no", code_action=None)
    (case,) = read_transcript([*BEGINS, {**raised, "tool_calls": calls}]).failures
    assert case.failed.tool == "add"


def test_recorded_input_of_a_step_is_its_prompt() -> None:
    told = [
        {"role": "system", "content": [{"type": "text", "text": "Other words."}]},
        {"role": "user", "content": [{"type": "text", "text": "Sum."}]},
        {"role": "tool-response", "content": [{"type": "text", "text": "Go."}]},
    ]
    transcript = read_transcript([*BEGINS, step(model_input_messages=told)])
    before = transcript.recorded[0].before.messages
    assert before is not None
    assert [(m["role"], m["content"][0]["text"]) for m in before] == [
        ("system", "Other words."),
        ("user", "Sum.\nGo."),
    ]


def test_plan_is_told_as_it_is_sent() -> None:
    plan = {"plan": "1. Sum.", "model_input_messages": []}
    transcript = read_transcript([*BEGINS, plan, step()])
    assert contents(transcript)[2:4] == [
        ("assistant", "1. Sum."),
        ("user", "Now proceed and carry out this plan."),
    ]


def test_memory_or_result_may_hold_the_steps() -> None:
    system = {"system_prompt": "You write code."}
    for source in (
        {"system_prompt": system, "steps": [BEGINS[1], step()]},
        {"memory": {"system_prompt": system, "steps": [BEGINS[1], step()]}},
        {"output": None, "state": "success", "steps": [*BEGINS, step()]},
    ):
        (case,) = read_transcript(source).failures
        assert case.trajectory.system == "You write code."


def test_memory_of_the_library_is_written_as_it_writes_it() -> None:
    memory = pytest.importorskip("smolagents.memory", reason="smolagents is not installed")
    from smolagents.models import get_clean_message_list, tool_role_conversions
    from smolagents.monitoring import AgentLogger, LogLevel, Timing
    from smolagents.utils import AgentExecutionError

    call = memory.ToolCall("python_interpreter", CODE, "call_1")
    error = AgentExecutionError(ERROR, AgentLogger(LogLevel.OFF))
    steps = [
        memory.SystemPromptStep("You write code."),
        memory.TaskStep("Sum."),
        memory.ActionStep(
            1,
            Timing(0.0, 1.0),
            tool_calls=[call],
            error=error,
            model_output=SAID,
            code_action=CODE,
            observations="Execution logs:\n1",
        ),
    ]
    messages = [message for one in steps for message in one.to_messages()]
    sent = get_clean_message_list(messages, tool_role_conversions)
    transcript = read_transcript([one.dict() for one in steps])
    after = transcript.recorded[0].after.messages
    assert after is not None
    assert [{**one, "role": str(getattr(one["role"], "value", one["role"]))} for one in sent] == [
        dict(one) for one in after
    ]
