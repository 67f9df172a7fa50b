"""Pairs of real requests, before and after a failed call, become cases."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conftest import SHARED
from fake_scorer import FakeScorer
from pytest_failgain import CaseError, FailingCall, TranscriptError
from pytest_failgain.capture.outcome import outcome_of
from pytest_failgain.capture.pair import CapturedPair, captured_pair
from pytest_failgain.measurement import measure
from pytest_failgain.transcripts.openai_responses import TOLD
from pytest_failgain.transcripts.recorded import AsRecorded

CAPTURES = SHARED / "captures"
ERROR = "'date' must be YYYY-MM-DD, got '12 Oct'"
ADD = FailingCall(
    "create_event", '{"title": "Dentist", "date": "12 Oct", "time": "09:30"}', error=ERROR
)
COMMAND = 'python3 cal.py add --title "Dentist" --date "12 Oct" --time 09:30'
BASH = FailingCall("bash", json.dumps({"command": COMMAND}), error=ERROR)
CODE = "result = create_event(title='Dentist', date='12 Oct', time='09:30')\nprint(result)"

# Of each pair: the call, the kinds of record, and a text that stands in what it observes.
PAIRS: dict[str, tuple[FailingCall, set[str], str]] = {
    "agents_chat": (ADD, {"native", "error hidden"}, "An error occurred while running the tool."),
    "agents_default": (
        ADD,
        {"native", "error hidden"},
        "An error occurred while running the tool.",
    ),
    "agno_chat": (ADD, {"native"}, ERROR),
    "autogen_iter": (ADD, {"native"}, ERROR),
    "crew_chat": (ADD, {"native"}, f"Error executing tool: {ERROR}"),
    "langchain_create-handled": (ADD, {"native"}, f"Tool error: {ERROR}"),
    "langchain_create-handled-responses": (ADD, {"native"}, f"Tool error: {ERROR}"),
    "litellm_chat": (ADD, {"native"}, f"Error: {ERROR}"),
    "mini_chat": (BASH, {"native"}, '"returncode": 1'),
    "mini_text": (
        FailingCall(
            text=f"THOUGHT: I will add the event.\n\n```mswea_bash_command\n{COMMAND}\n```",
            action_text=COMMAND,
            error=ERROR,
        ),
        {"text"},
        "<returncode>1</returncode>",
    ),
    "openai_chat": (ADD, {"native"}, f"Error: {ERROR}"),
    "openai_responses": (ADD, {"native"}, f"Error: {ERROR}"),
    "pydantic_chat-modelretry-retries": (ADD, {"native"}, ERROR),
    "pydantic_responses-modelretry-retries": (ADD, {"native"}, ERROR),
    "smol_code": (
        FailingCall(
            text="Thought: I will create the event with the create_event tool.\n"
            f"<code>\n{CODE}\n</code>",
            action_text=CODE,
            error=ERROR,
        ),
        {"text"},
        "Now let's retry",
    ),
    "smol_tool": (ADD, {"merged into an earlier message", "call not echoed"}, "Now let's retry"),
}

needs_captures = pytest.mark.skipif(
    not CAPTURES.is_dir(), reason=f"no recorded requests in {CAPTURES}"
)


def bodies(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    before, after = (
        json.loads((CAPTURES / f"{name}_{which}.json").read_text("utf-8"))
        for which in ("before", "after")
    )
    return before, after


def paired(name: str) -> CapturedPair:
    return captured_pair(*bodies(name), PAIRS[name][0])


@needs_captures
def test_every_recorded_pair_is_looked_at() -> None:
    assert {path.name.removesuffix("_before.json") for path in CAPTURES.glob("*_before.json")} == {
        *PAIRS
    }


@needs_captures
@pytest.mark.parametrize("name", PAIRS)
def test_a_recorded_pair_is_a_case_with_its_kind_of_record(name: str) -> None:
    call, kinds, observed = PAIRS[name]
    pair = paired(name)
    assert {*outcome_of(pair, call).kinds} == kinds
    assert pair.case.failed.action == call.action
    assert observed in (pair.case.failed.observation or "")
    assert "Dentist" in pair.case.trajectory.goal
    assert pair.case.trajectory.steps == ()


@needs_captures
@pytest.mark.parametrize("name", PAIRS)
def test_a_recorded_pair_can_be_measured_and_lists_what_was_adapted(name: str) -> None:
    recorded = paired(name).recorded
    result = measure(FakeScorer(), AsRecorded((recorded,)), [recorded.case])
    assert {row.condition for row in result.rows} == {"before", "failed", "neutral"}
    adaptations = dict(result.adaptations)
    assert (TOLD in adaptations) == ("input" in bodies(name)[0])


@needs_captures
@pytest.mark.parametrize("name", [name for name in PAIRS if name not in ("smol_tool", "smol_code")])
def test_chat_requests_are_replayed_as_they_were_sent(name: str) -> None:
    before, after = bodies(name)
    if "input" in before:
        return
    recorded = paired(name).recorded
    assert list(recorded.before.messages or ()) == before["messages"]
    assert list(recorded.after.messages or ()) == after["messages"]


@needs_captures
def test_arguments_that_a_client_writes_anew_are_told() -> None:
    (note,) = paired("pydantic_chat-modelretry-retries").notes
    assert note.startswith("the client writes the call's arguments anew")
    assert paired("openai_chat").notes == ()


def test_a_body_that_is_no_request_is_refused() -> None:
    with pytest.raises(TranscriptError, match="has no messages"):
        captured_pair({"prompt": "x"}, {"prompt": "y"}, ADD)


def test_a_correct_action_that_is_the_failing_call_is_refused() -> None:
    body = {"messages": [{"role": "user", "content": "Go."}]}
    call = FailingCall("add", "{}", correct=FailingCall("add", "{}").action)
    with pytest.raises(CaseError, match="also given as the correct action"):
        captured_pair(body, body, call)
