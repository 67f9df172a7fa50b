"""Logs of real kinds of faults, each with the failed call and the error that must come out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from conftest import SHARED
from pytest_failgain.errors import NotRecordedError
from pytest_failgain.trajectory import FailureCase, Step, Trajectory
from pytest_failgain.transcripts.read import NO_FAILURE, ReadTranscript, read_transcript

CASES = sorted((SHARED / "cases").glob("*.json"))

pytestmark = pytest.mark.skipif(not CASES, reason=f"the logs are not in {SHARED / 'cases'}")

# The formats that the files say they are of, by how the file names begin.
FORMATS = {
    "01": "pi",
    "03": "openai-chat",
    "04": "swe-agent",
    "06": "claude-code",
    "07": "aider",
    "08": "react",
    "09": "smolagents",
    "10": "openai-chat",
    "12": "codex",
    "14": "langchain",
    "15": "mini-swe-agent",
    "16": "anthropic",
    "18": "autogpt",
    "21": "openai-chat",
    "23": "atif",
}
# Failures in a file beside those of the call that it is about.
OTHERS = {"12": 1, "14": 1}


def log(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def is_the_call(wanted: Any, case: FailureCase) -> bool:
    action = case.failed.action
    if not isinstance(wanted, dict):
        return action.text.strip() == str(wanted).strip()
    arguments = wanted.get("arguments", wanted.get("args"))
    if not action.calls:
        # A call that is text of the reply: JSON with the name and the arguments.
        return bool(json.loads(action.text) == {"name": wanted["name"], "args": arguments})
    (call,) = action.calls
    if "arguments_raw" in wanted:
        return (call.name, call.arguments) == (wanted["name"], wanted["arguments_raw"])
    return bool(call.name == wanted["name"] and json.loads(call.arguments) == arguments)


def those_of(transcript: ReadTranscript, wanted: Any) -> Sequence[FailureCase]:
    return [case for case in transcript.failures if is_the_call(wanted, case)]


every_log = pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
every_failing_log = pytest.mark.parametrize(
    "path",
    [path for path in CASES if "expected" not in log(path)],
    ids=lambda path: path.stem,
)


@every_log
def test_format_is_told_by_the_content(path: Path) -> None:
    assert read_transcript(log(path)["transcript"]).format == FORMATS[path.name[:2]]


@every_log
def test_failures_are_those_of_the_call_that_the_log_is_about(path: Path) -> None:
    told = log(path)
    transcript = read_transcript(told["transcript"])
    if "expected" in told:
        assert not transcript.failures
        assert NO_FAILURE in transcript.notes
        return
    found = those_of(transcript, told["failed_call"])
    assert len(found) == told.get("n_failures", 1)
    assert len(transcript.failures) == len(found) + OTHERS.get(path.name[:2], 0)
    for case in found:
        assert case.failed.observation is not None
        assert told["error"].strip() in case.failed.observation
    if path.name[:2] not in ("07", "08", "10"):
        assert found[0].failed.observation == told["error"]


@every_log
def test_failures_are_the_same_from_text_and_from_values(path: Path) -> None:
    transcript = log(path)["transcript"]
    if isinstance(transcript, str):
        return
    written = read_transcript(json.dumps(transcript))
    assert written.failures == read_transcript(transcript).failures
    if isinstance(transcript, list):
        lines = read_transcript("\n".join(map(json.dumps, transcript)))
        assert (lines.format, lines.failures) == (written.format, written.failures)


@every_failing_log
def test_what_was_sent_is_replayed_before_and_after_each_failure(path: Path) -> None:
    transcript = read_transcript(log(path)["transcript"])
    for case, recorded in zip(transcript.failures, transcript.recorded, strict=True):
        assert transcript.as_recorded(case.trajectory) == recorded.before
        after = transcript.as_recorded(case.trajectory.then(case.failed))
        assert after == recorded.after
        assert after != recorded.before


@every_failing_log
def test_another_answer_takes_the_place_of_the_error(path: Path) -> None:
    transcript = read_transcript(log(path)["transcript"])
    for case in transcript.failures:
        neutral = Step(case.failed.action, "It was received.", tool=case.failed.tool)
        if case.failed.action.calls and case.failed.action.calls[0].name == "search":
            # The call never reached a tool, so no message brings its error.
            with pytest.raises(NotRecordedError):
                transcript.as_recorded(case.trajectory.then(neutral))
            continue
        prompt = transcript.as_recorded(case.trajectory.then(neutral))
        assert "It was received." in str(prompt.messages or prompt.text)


@every_log
def test_reading_changes_nothing_and_is_repeatable(path: Path) -> None:
    transcript = log(path)["transcript"]
    first = read_transcript(transcript)
    assert read_transcript(transcript).failures == first.failures
    assert transcript == log(path)["transcript"]


def test_control_whose_rerun_works_has_one_failure_and_a_step_that_worked() -> None:
    path = next(path for path in CASES if path.name.startswith("16"))
    transcript = read_transcript(log(path)["transcript"])
    (whole,) = transcript.trajectories
    edits = [step for step in steps_of(whole) if step.tool == "Edit"]
    assert [step.failed for step in edits] == [True, False]
    assert edits[0].action == edits[1].action


def steps_of(trajectory: Trajectory) -> list[Step]:
    return [step for step in trajectory.steps if isinstance(step, Step)]
