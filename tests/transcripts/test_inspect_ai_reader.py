from __future__ import annotations

from typing import Any

import pytest

from pytest_failgain.errors import TranscriptError
from pytest_failgain.transcripts.read import read_transcript

SYSTEM = {"role": "system", "content": "You work."}
USER = {"role": "user", "content": "Run it."}


def reply(**more: Any) -> dict[str, Any]:
    call = {"id": "c1", "function": "bash", "arguments": {"cmd": "ls x"}, **more}
    return {"role": "assistant", "content": "I run it.", "tool_calls": [call]}


def answer(content: Any = "", **more: Any) -> dict[str, Any]:
    return {
        "role": "tool",
        "tool_call_id": "c1",
        "function": "bash",
        "content": content,
        **more,
    }


def error(kind: str, message: str = "no x") -> dict[str, str]:
    return {"type": kind, "message": message}


def sample(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "a", "epoch": 1, "messages": [SYSTEM, USER, *messages], **more}


def log(*samples: dict[str, Any]) -> dict[str, Any]:
    return {"version": 2, "status": "success", "eval": {"task": "t"}, "samples": list(samples)}


def test_error_marks_a_failure_and_is_sent_with_its_word_before_it() -> None:
    transcript = read_transcript(log(sample(reply(), answer(error=error("timeout")))))
    (case,) = transcript.failures
    assert transcript.format == "inspect-ai"
    assert case.failed.observation == "no x"
    assert case.failed.reply == "I run it."
    prompt = transcript.as_recorded(case.trajectory.then(case.failed))
    assert prompt.messages is not None
    assert prompt.messages[-1]["content"] == "Error: no x"
    assert any("error timeout" in note for note in transcript.notes)


def test_rejected_call_is_no_failure() -> None:
    transcript = read_transcript(log(sample(reply(), answer(error=error("approval")))))
    assert not transcript.failures
    assert any("cancelled" in note for note in transcript.notes)


@pytest.mark.parametrize(
    ("text", "failed"), [("bash: ls: command not found", 1), ("a.txt\nb.txt", 0)]
)
def test_output_without_an_error_is_judged_by_its_text(text: str, failed: int) -> None:
    assert len(read_transcript(log(sample(reply(), answer(text)))).failures) == failed


def test_each_sample_is_a_conversation() -> None:
    one, two = (sample(reply(), answer(error=error("unknown", told))) for told in ("a", "b"))
    transcript = read_transcript(log(one, two))
    assert [case.failed.observation for case in transcript.failures] == ["a", "b"]
    assert len(transcript.trajectories) == 2
    assert len(read_transcript(one).failures) == 1
    assert len(read_transcript([one, two]).failures) == 2


def test_call_that_could_not_be_parsed_fails_once() -> None:
    broken = reply(parse_error="bad JSON")
    answered = log(sample(broken, answer(error=error("parsing", "bad JSON!"))))
    ended = log(sample(broken))
    assert [c.failed.observation for c in read_transcript(answered).failures] == ["bad JSON!"]
    assert [c.failed.observation for c in read_transcript(ended).failures] == ["bad JSON"]


def test_old_logs_mark_with_tool_error() -> None:
    (case,) = read_transcript(log(sample(reply(), answer(tool_error="no x")))).failures
    assert case.failed.observation == "no x"


def test_attachments_are_put_back() -> None:
    held = {"f00": "bash: x: command not found", "beef": "a long command"}
    made = reply(arguments={"cmd": "attachment://beef"})
    one = sample(made, answer("attachment://f00"), attachments=held)
    (case,) = read_transcript(log(one)).failures
    assert case.failed.observation == held["f00"]
    assert case.failed.action.calls[0].arguments == '{"cmd": "a long command"}'


def test_reasoning_and_images_are_told_of() -> None:
    content = [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "I run it."}]
    shown = [{"type": "text", "text": "Error: see "}, {"type": "image", "image": "data:x"}]
    transcript = read_transcript(log(sample({**reply(), "content": content}, answer(shown))))
    (case,) = transcript.failures
    assert case.failed.reply == "I run it."
    assert case.failed.observation == "Error: see [image]"
    assert any("thoughts" in note for note in transcript.notes)


def test_tools_come_from_the_events() -> None:
    tool = {"name": "bash", "description": "d", "parameters": {"type": "object"}}
    event = {"event": "model", "tools": [tool]}
    one = sample(reply(), answer(error=error("unknown")), events=[{"event": "state"}, event])
    (case,) = read_transcript(log(one)).failures
    assert [tool.name for tool in case.trajectory.tools] == ["bash"]


def test_log_without_samples_is_an_error() -> None:
    with pytest.raises(TranscriptError, match="inspect-ai"):
        read_transcript(log(), format="inspect-ai")
