"""An agent is run unchanged against a scripted model, and its own record is measured."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from typing import Any

import pytest
from agent_loops import ERROR, LoopAgent, Record, as_text, hidden, merged, native, post

from fake_scorer import FakeScorer
from pytest_failgain import Failgain, FailingCall, UsageError, capture_agent
from pytest_failgain.assertions import assert_corrective_gain_nonnegative
from pytest_failgain.capture.agent import Capture
from pytest_failgain.transcripts.recorded import REPLACED

CALL = FailingCall(
    "add",
    '{"date": "12 Oct"}',
    task="Add the dentist on 12 Oct.",
    error=ERROR,
    neutral="Noted.",
    success="Added.",
)


def captured(run_agent: Any, call: FailingCall = CALL, **options: Any) -> Capture:
    (capture,) = capture_agent(run_agent, [call], **options)
    return capture


@pytest.mark.parametrize(
    ("record", "kinds"),
    [
        (native, {"native"}),
        (hidden, {"native", "error hidden"}),
        (as_text, {"text"}),
        (merged, {"merged into an earlier message", "call not echoed"}),
    ],
    ids=["native", "hidden", "as_text", "merged"],
)
def test_the_kind_of_record_is_told(record: Record, kinds: set[str]) -> None:
    capture = captured(LoopAgent(record))
    assert {*capture.outcome.kinds} == kinds
    assert capture.recorded is not None


def test_other_tools_after_the_failure_are_told_by_name() -> None:
    outcome = captured(LoopAgent(drops_tools=True)).outcome
    assert outcome.kinds == ("native", "tools changed")
    assert "add no longer offered" in outcome.reason


def test_the_case_is_the_call_as_scripted_with_what_the_agent_wrote_of_it() -> None:
    capture = captured(LoopAgent())
    case, recorded = capture.case, capture.recorded
    assert recorded is not None
    assert case.trajectory.system == "Keep the calendar."
    assert case.trajectory.goal == CALL.task
    assert [tool.name for tool in case.trajectory.tools] == ["add"]
    assert case.failed.action == CALL.action
    assert case.failed.observation == f"Error: {ERROR}"
    assert recorded.before.messages is not None
    assert recorded.after.messages is not None
    assert len(recorded.before.messages) == 2
    assert recorded.after.messages[-1]["content"] == f"Error: {ERROR}"


def test_an_agent_that_takes_an_observation_is_asked_for_its_own_other_prompts() -> None:
    recorded = captured(LoopAgent()).recorded
    assert recorded is not None
    contents = {
        text: (prompt.messages or ())[-1]["content"] for text, prompt in recorded.answered.items()
    }
    assert contents == {"Noted.": "Noted.", "Added.": "Added."}


def test_a_scripted_answer_that_does_not_come_back_is_told() -> None:
    def deaf(base_url: str, task: str, observation: str | None = None) -> None:
        LoopAgent()(base_url, task)

    capture = captured(deaf)
    assert any("'Noted.' did not come back" in note for note in capture.notes)
    assert capture.recorded is not None
    assert capture.recorded.answered == {}


def escaping(base_url: str, task: str) -> None:
    post(base_url, {"messages": [{"role": "user", "content": task}], "tools": TOOLS})
    raise ValueError(ERROR)


TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {}}}]


def ending(base_url: str, task: str) -> None:
    post(base_url, {"messages": [{"role": "user", "content": task}], "tools": TOOLS})


def without_tools(base_url: str, task: str) -> None:
    post(base_url, {"messages": [{"role": "user", "content": task}]})


def elsewhere(base_url: str, task: str) -> None:
    """Has its client from somewhere else."""


def hanging(base_url: str, task: str) -> None:
    ending(base_url, task)
    time.sleep(30)


def working(base_url: str, task: str) -> None:
    LoopAgent()(base_url, task, observation="Added the event on 2026-10-12.")


@pytest.mark.parametrize(
    ("run_agent", "kind", "said"),
    [
        (escaping, "exception escaped", f"ValueError: {ERROR}"),
        (ending, "no second request", "asked no more"),
        (without_tools, "no second request", "no request offers the tool 'add'"),
        (elsewhere, "no request", "sent no request"),
        (hanging, "hung", "not done in 0.3 s"),
        (working, "call did not fail", "Added the event"),
    ],
    ids=["escaping", "ending", "without_tools", "elsewhere", "hanging", "working"],
)
def test_no_record_is_a_result_with_its_reason_and_what_to_do(
    run_agent: Any, kind: str, said: str
) -> None:
    capture = captured(run_agent, timeout=0.3 if run_agent is hanging else 20)
    assert capture.outcome.kind == kind
    assert said in capture.outcome.reason
    assert capture.outcome.advice
    assert capture.recorded is None


def test_an_asynchronous_agent_is_run_in_a_loop_of_its_own() -> None:
    async def run_agent(base_url: str, task: str) -> None:
        await asyncio.to_thread(LoopAgent(), base_url, task)

    async def test() -> Capture:
        return captured(run_agent)

    # Also from within a running loop, as in asynchronous tests.
    assert asyncio.run(test()).outcome.kind == "native"


def test_the_environment_leads_clients_to_the_endpoint_and_is_then_as_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://elsewhere.invalid/v1")
    monkeypatch.delenv("AGNO_TELEMETRY", raising=False)
    seen = []

    def run_agent(base_url: str, task: str) -> None:
        seen.append(
            (os.environ["OPENAI_BASE_URL"], os.environ["AGNO_TELEMETRY"]) == (base_url, "false")
        )

    captured(run_agent)
    assert all(seen)
    assert os.environ["OPENAI_BASE_URL"] == "http://elsewhere.invalid/v1"
    assert "AGNO_TELEMETRY" not in os.environ


def test_what_ends_a_test_on_purpose_passes_through() -> None:
    def skipping(base_url: str, task: str) -> None:
        pytest.skip("no network here")

    with pytest.raises(pytest.skip.Exception, match="no network here"):
        captured(skipping)

    def stopped(base_url: str, task: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        captured(stopped)


def test_a_record_that_differs_from_run_to_run_is_told_with_where() -> None:
    turns = iter(range(100))

    def changing(messages: Any, message: Any, result: str) -> Any:
        return native(messages, message, f"{result}\nattempt {next(turns)} of many")

    notes = captured(LoopAgent(changing)).notes
    assert any("differs from run to run: 'attempt 0 of many'" in note for note in notes)
    assert captured(LoopAgent()).notes == ()


def test_an_exception_after_the_record_is_told_beside_it() -> None:
    def run_agent(base_url: str, task: str) -> None:
        LoopAgent()(base_url, task)
        raise RuntimeError("too late")

    capture = captured(run_agent)
    assert capture.recorded is not None
    (note,) = capture.notes
    assert note.startswith("after the record the agent raised RuntimeError: too late (at test_")


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ([], "there are none"),
        (CALL, "put the one call into a list"),
        ([CALL, CALL], "stands 2 times for the same task"),
        (["add"], "'add' is none"),
        (None, "must be a list of FailingCall"),
    ],
    ids=["none", "one", "twice", "text", "nothing"],
)
def test_unusable_failing_calls_are_refused(calls: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        capture_agent(ending, calls)
    with pytest.raises(UsageError, match="must be a function"):
        capture_agent("agent", [CALL])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="positive number of seconds"):
        capture_agent(ending, [CALL], timeout=0)


def test_no_thread_is_left_of_an_agent_that_ends() -> None:
    before = threading.active_count()
    captured(LoopAgent())
    assert threading.active_count() <= before


def failgain() -> Failgain:
    return Failgain(FakeScorer())


def test_the_measurement_is_of_the_agents_own_prompts() -> None:
    result = failgain().measure_agent(LoopAgent(), failing_calls=[CALL])
    assert result.harness == "loop_agent"
    assert result.environment == "captured"
    assert {row.condition for row in result.rows} == {"before", "failed", "neutral"}
    assert ERROR in result.records["add-1"]
    assert result.adaptations == ()
    (note,) = result.notes
    assert note.startswith("add-1: native: the call stands as an assistant's tool call")


def test_where_nothing_is_scripted_the_error_is_replaced_in_the_record_and_that_is_told() -> None:
    def run_agent(base_url: str, task: str) -> None:
        LoopAgent()(base_url, task)

    result = failgain().measure_agent(run_agent, [CALL])
    assert result.adaptations == ((REPLACED, 1),)


def test_calls_without_a_record_are_skipped_with_their_reason_and_fail_every_assertion() -> None:
    result = failgain().measure_agent(escaping, failing_calls=[CALL])
    assert result.summary()["n"] == 0
    (skip,) = result.skips
    assert skip.reason.startswith("no record: exception escaped: after the call the agent raised")
    with pytest.raises(AssertionError, match="exception escaped"):
        assert_corrective_gain_nonnegative(result)


def test_one_call_with_a_record_and_one_without_are_both_told() -> None:
    def moody(base_url: str, task: str) -> None:
        run_agent = escaping if task == "Fail." else LoopAgent()
        run_agent(base_url, task)

    other = FailingCall("add", {"date": "tomorrow"}, task="Fail.", error=ERROR)
    unknown = FailingCall("look", {"date": "tomorrow"})
    result = failgain().measure_agent(moody, [CALL, other, unknown], task="Do it.")
    assert len(result.cases) == 3
    assert result.summary()["n"] == 2
    assert [capture.case_id for capture in result.captures] == ["add-1", "add-2", "look-1"]
    assert [skip.case_id for skip in result.skips] == ["add-2"]
