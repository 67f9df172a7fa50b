from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from pytest_failgain.errors import FailgainError
from pytest_failgain.transcripts.read import read_transcript

ERROR = 'Traceback (most recent call last):\n  File "r.py", line 1\nNameError: x'
FRAMED = f"OBSERVATION:\n{ERROR}\n(Open file: n/a)\n(Current directory: /repo)\nbash-$"


def user(content: str, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, "agent": "main", **more}


def reply(command: str, thought: str = "I will run it.", **more: Any) -> dict[str, Any]:
    content = f"{thought}\n\n```\n{command}\n```"
    return {"role": "assistant", "content": content, "action": f"{command}\n", **more}


def step(command: str, observation: str, **more: Any) -> dict[str, Any]:
    content = reply(command)["content"]
    return {"action": f"{command}\n", "observation": observation, "response": content, **more}


def run(history: list[dict[str, Any]], steps: list[dict[str, Any]]) -> dict[str, Any]:
    return {"trajectory": steps, "history": history, "info": {"exit_status": None}}


SYSTEM = {"role": "system", "content": "You are in a shell.", "agent": "main"}
GOAL = user("Fix the bug.")


def with_agent(message: dict[str, Any]) -> dict[str, Any]:
    return {**message, "agent": "main"}


FAILED_RUN = run(
    [SYSTEM, GOAL, with_agent(reply("python r.py")), user(FRAMED)], [step("python r.py", ERROR)]
)


def test_old_run_is_read_to_its_command_and_its_bare_observation() -> None:
    transcript = read_transcript(FAILED_RUN)
    (case,) = transcript.failures
    assert transcript.format == "swe-agent"
    assert case.failed.action.text == "python r.py\n"
    assert case.failed.lead == "I will run it.\n\n```\n"
    assert case.failed.observation == ERROR
    assert (case.trajectory.system, case.trajectory.goal) == ("You are in a shell.", "Fix the bug.")


def test_prompts_are_what_was_sent_without_what_was_noted_beside_it() -> None:
    transcript = read_transcript(FAILED_RUN)
    (case,) = transcript.failures
    prompt = transcript.as_recorded(case.trajectory.then(case.failed))
    assert prompt.messages == (
        {"role": "system", "content": "You are in a shell."},
        {"role": "user", "content": "Fix the bug."},
        {"role": "assistant", "content": reply("python r.py")["content"]},
        {"role": "user", "content": FRAMED},
    )


def test_other_answer_is_put_into_the_frame() -> None:
    transcript = read_transcript(FAILED_RUN)
    (case,) = transcript.failures
    neutral = replace(case.failed, observation="It was run.", failed=False)
    prompt = transcript.as_recorded(case.trajectory.then(neutral))
    assert prompt.messages is not None
    assert prompt.messages[-1]["content"] == FRAMED.replace(ERROR, "It was run.")


def test_observation_is_found_in_any_frame() -> None:
    framed = user(f"The shell says {ERROR}. What next?")
    history = [*FAILED_RUN["history"][:3], framed]
    (case,) = read_transcript({**FAILED_RUN, "history": history}).failures
    assert case.failed.observation == ERROR


def test_frame_is_cut_off_where_the_steps_do_not_tell_the_observation() -> None:
    transcript = read_transcript({**FAILED_RUN, "trajectory": []})
    assert [case.failed.observation for case in transcript.failures] == [ERROR]


def test_native_calls_are_structured_and_answered_by_id() -> None:
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "bash", "arguments": '{"command":"python  r.py"}'},
    }
    history = [
        SYSTEM,
        GOAL,
        {"role": "assistant", "content": "I run.", "tool_calls": [call], "agent": "main"},
        {"role": "tool", "content": FRAMED, "tool_call_ids": ["c1"], "agent": "main"},
    ]
    steps = [{"action": "python r.py", "observation": ERROR, "response": "I run."}]
    transcript = read_transcript(run(history, steps))
    (case,) = transcript.failures
    assert case.failed.action.calls[0].arguments == '{"command":"python  r.py"}'
    assert case.failed.observation == ERROR
    assert transcript.recorded[0].after.messages is not None
    assert transcript.recorded[0].after.messages[-1] == {
        "role": "tool",
        "content": FRAMED,
        "tool_call_id": "c1",
    }


@pytest.mark.parametrize(
    ("content", "action"),
    [
        ("I look.\n<command>\nls -F\n</command>\n", "ls -F"),
        (
            "I look.\n<function=bash>\n<parameter=command>ls</parameter>\n</function> Bye",
            "<function=bash>\n<parameter=command>ls</parameter>\n</function>",
        ),
        ("Like\n```\nold\n```\nnow\n```bash\nls\n```", "ls\n"),
        ("ls -F", "ls -F"),
    ],
)
def test_action_is_found_where_the_noted_one_is_not_in_the_reply(content: str, action: str) -> None:
    said = {"role": "assistant", "content": content, "action": "bash <<EOF", "agent": "main"}
    history = [SYSTEM, GOAL, said, user("Error: not now")]
    steps = [{"action": "bash <<EOF", "observation": "Error: not now", "response": content}]
    (case,) = read_transcript(run(history, steps)).failures
    assert case.failed.action.text == action


def test_logged_queries_are_the_prompts() -> None:
    short = [SYSTEM, user("Old environment output: (3 lines omitted)")]
    steps = [
        step("python r.py", ERROR, query=short),
        step("ls", "r.py", query=[*short, user("later")]),
    ]
    history = [*FAILED_RUN["history"], with_agent(reply("ls")), user("r.py")]
    transcript = read_transcript(run(history, steps))
    (recorded,) = transcript.recorded
    assert recorded.before.messages is not None
    assert recorded.after.messages is not None
    assert [m["content"] for m in recorded.before.messages] == [m["content"] for m in short]
    assert recorded.after.messages[-1]["content"] == "later"


def test_prompt_after_the_last_query_is_that_query_and_the_turns_since() -> None:
    short = [SYSTEM, user("Old environment output: (3 lines omitted)")]
    transcript = read_transcript(
        run(FAILED_RUN["history"], [step("python r.py", ERROR, query=short)])
    )
    after = transcript.recorded[0].after.messages
    assert after is not None
    assert [m["content"] for m in after] == [
        *[m["content"] for m in short],
        reply("python r.py")["content"],
        FRAMED,
    ]


def test_demonstrations_hold_no_failures() -> None:
    demo = [with_agent({**reply("cat x"), "is_demo": True}), user("Error: not x", is_demo=True)]
    transcript = read_transcript(run([SYSTEM, *demo, *FAILED_RUN["history"][1:]], []))
    assert len(transcript.failures) == 1


def test_each_attempt_counts_once() -> None:
    attempts = {"attempts": [FAILED_RUN, FAILED_RUN], **FAILED_RUN}
    assert len(read_transcript(attempts).failures) == 2


def test_run_without_history_is_told_by_its_steps() -> None:
    steps = [step("python r.py", ERROR), step("ls", "r.py")]
    transcript = read_transcript({"trajectory": steps, "info": {}})
    (case,) = transcript.failures
    assert case.failed.observation == ERROR
    assert any("no history" in note for note in transcript.notes)


def test_repeated_edit_is_two_failures_each_before_its_own_turn() -> None:
    twice = [with_agent(reply("python r.py")), user(FRAMED)] * 2
    transcript = read_transcript(run([SYSTEM, GOAL, *twice], [step("python r.py", ERROR)] * 2))
    assert [len(case.trajectory.steps) for case in transcript.failures] == [0, 1]


@pytest.mark.parametrize(
    "broken",
    [
        {"trajectory": [{"action": None, "observation": 3, "response": []}], "history": [{}]},
        {"trajectory": [{"action": [], "observation": {}}], "history": "no"},
        {"trajectory": [], "history": [GOAL], "info": None},
        {"trajectory": [step("ls", "x", query=[{"role": 3}, None])], "history": [SYSTEM]},
    ],
)
def test_broken_run_is_a_result_or_a_typed_error(broken: dict[str, Any]) -> None:
    for source in (broken, json.dumps(broken)):
        try:
            transcript = read_transcript(source, format="swe-agent")
        except FailgainError:
            continue
        assert not transcript.failures
