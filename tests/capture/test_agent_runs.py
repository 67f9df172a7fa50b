"""Agents that behave in unforeseen ways, and what a report tells of their runs."""

from __future__ import annotations

import contextvars
import json
import sys
import threading
from typing import Any

import pytest
from agent_loops import ERROR, TOOL, LoopAgent, native, post

from fake_scorer import FakeScorer
from pytest_failgain import AgentMeasurement, CaseError, Failgain, FailingCall, UsageError
from pytest_failgain.capture.agent import DEFAULT_TASK, Capture, capture_agent
from pytest_failgain.report.measurements import measurement_notes
from pytest_failgain.stash import Findings
from pytest_failgain.transport import packed, unpacked

CALL = FailingCall("add", '{"date": "12 Oct"}', error=ERROR)
OTHER = FailingCall("add", '{"date": "3 May"}', error=ERROR)


def captured(run_agent: Any, call: FailingCall = CALL, **options: Any) -> Capture:
    (capture,) = capture_agent(run_agent, [call], **options)
    return capture


def measured(run_agent: Any, *calls: FailingCall, **options: Any) -> AgentMeasurement:
    return Failgain(FakeScorer()).measure_agent(run_agent, calls, **options)


class StillAtIt:
    """An agent that leaves its record and then goes on for ever."""

    name = "still_at_it"

    def __init__(self) -> None:
        self.runs = 0
        self.may_end = threading.Event()

    def __call__(self, base_url: str, task: str) -> None:
        self.runs += 1
        LoopAgent()(base_url, task)
        self.may_end.wait(20)


def test_an_agent_that_does_not_end_after_its_record_is_measured_and_run_only_once() -> None:
    agent = StillAtIt()
    try:
        capture = captured(agent, timeout=1.5)
    finally:
        agent.may_end.set()
    assert capture.outcome.kind == "native"
    assert capture.recorded is not None
    assert capture.notes == (
        "after the record the agent was not done in 1.5 s, so it was run only once",
    )
    assert agent.runs == 1


def test_requests_for_other_things_in_between_are_no_records() -> None:
    def titled(base_url: str, task: str) -> None:
        def with_title(messages: Any, message: Any, result: str) -> Any:
            post(base_url, {"messages": [{"role": "user", "content": f"A title for: {task}"}]})
            return native(messages, message, result)

        LoopAgent(with_title)(base_url, task)

    capture = captured(titled, task="Add it.")
    assert len(capture.exchanges) == 3
    assert capture.outcome.kinds == ("native",)
    assert capture.case.failed.observation == f"Error: {ERROR}"


def test_a_request_that_is_sent_again_is_no_record() -> None:
    def stubborn(base_url: str, task: str) -> None:
        for _ in range(3):
            post(base_url, {"messages": [{"role": "user", "content": task}], "tools": [TOOL]})

    outcome = captured(stubborn).outcome
    assert outcome.kind == "no second request"
    assert "its 2 other requests tell nothing of it" in outcome.reason


def test_requests_without_messages_are_no_records() -> None:
    def careless(base_url: str, task: str) -> None:
        post(base_url, {"tools": [TOOL]})
        LoopAgent()(base_url, task)

    assert captured(careless).outcome.kind == "native"


def test_a_record_that_shares_nothing_with_the_request_before_is_found() -> None:
    def forgetful(base_url: str, task: str) -> None:
        said: list[dict[str, Any]] = [{"role": "user", "content": task}]
        post(base_url, {"messages": said, "tools": [TOOL]})
        again = [{"role": "user", "content": f"{task}\nError: {ERROR}"}]
        post(base_url, {"messages": again, "tools": [TOOL]})

    kinds = captured(forgetful, task="Add it.").outcome.kinds
    assert kinds == ("merged into an earlier message", "call not echoed")


def test_a_tool_that_the_agent_does_not_offer_is_told() -> None:
    capture = captured(LoopAgent(), FailingCall("ad", "{}", error=ERROR))
    assert "the agent offers no tool 'ad', but add" in capture.notes
    assert captured(LoopAgent()).notes == ()


def test_an_agent_that_leaves_by_sys_exit_is_one_that_raised() -> None:
    def leaving(base_url: str, task: str) -> None:
        post(base_url, {"messages": [{"role": "user", "content": task}], "tools": [TOOL]})
        sys.exit(3)

    outcome = captured(leaving).outcome
    assert outcome.kind == "exception escaped"
    assert "SystemExit: 3 (at test_agent_runs.py:" in outcome.reason


def test_a_group_of_one_exception_is_told_as_that_one() -> None:
    class GroupError(Exception):
        """As ExceptionGroup, which came with Python 3.11."""

        exceptions = (KeyError("date"),)

    def grouped(base_url: str, task: str) -> None:
        raise GroupError("unhandled errors in a TaskGroup (1 sub-exception)")

    assert "the agent raised KeyError: 'date' and" in captured(grouped).outcome.reason


def test_other_outcomes_of_pytest_pass_through() -> None:
    def failing(base_url: str, task: str) -> None:
        pytest.fail("not today")

    def exiting(base_url: str, task: str) -> None:
        pytest.exit("enough")

    with pytest.raises(pytest.fail.Exception, match="not today"):
        captured(failing)
    with pytest.raises(pytest.exit.Exception, match="enough"):
        captured(exiting)


def test_context_variables_of_the_test_reach_the_agent() -> None:
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name")
    name.set("mine")
    seen = []

    def run_agent(base_url: str, task: str) -> None:
        seen.append(name.get())

    captured(run_agent)
    assert seen == ["mine"]


def test_an_observation_without_a_default_is_none_where_the_tool_has_to_fail() -> None:
    seen = []

    def run_agent(base_url: str, task: str, observation: str | None) -> None:
        seen.append(observation)
        LoopAgent()(base_url, task, observation)

    capture = captured(run_agent)
    assert seen == [None, None, CALL.neutral]
    assert capture.recorded is not None
    assert [*capture.recorded.answered] == [CALL.neutral]


@pytest.mark.parametrize(
    "run_agent", [lambda: None, lambda task: None, lambda a, b, c: None], ids=["0", "1", "3"]
)
def test_an_agent_that_takes_other_arguments_is_refused_before_it_runs(run_agent: Any) -> None:
    with pytest.raises(UsageError, match=r"can't be called with an address and a task \(.*\); let"):
        capture_agent(run_agent, [CALL])


def test_a_correct_action_that_is_the_call_is_refused_before_any_run() -> None:
    runs = []
    wrong = FailingCall("add", "{}", correct=FailingCall("add", "{}").action)
    with pytest.raises(CaseError, match="also given as the correct action"):
        capture_agent(lambda base_url, task: runs.append(task), [CALL, wrong])
    assert runs == []


def test_calls_of_one_task_count_as_one_task() -> None:
    third = FailingCall("add", '{"date": "June"}', error=ERROR, task="Add June.")
    result = measured(LoopAgent(), CALL, OTHER, third, task="Add it.")
    assert [case.task_id for case in result.cases] == ["Add it.", "Add it.", "Add June."]
    assert result.summary()["n_tasks"] == 2


def test_an_agent_is_told_something_even_where_no_task_was_given() -> None:
    seen = set()
    captured(lambda base_url, task: seen.add(task))
    assert seen == {DEFAULT_TASK}


def test_calls_of_which_the_same_is_to_be_said_share_a_line_in_reports() -> None:
    result = measured(LoopAgent(), CALL, OTHER, FailingCall("look", "{}", error=ERROR), task="Do.")
    lines = [note.text for note in measurement_notes(result) if not note.careful]
    assert len(lines) == 2
    assert lines[0].startswith("add-1, add-2: native: the call stands")
    assert lines[1].startswith("look-1: native")
    assert lines[1].endswith("the agent offers no tool 'look', but add")


def test_a_skipped_call_tells_what_to_do() -> None:
    (skip,) = measured(lambda base_url, task: None, CALL).skips
    assert "build it inside run_agent" in skip.reason


def test_a_measurement_of_an_agent_goes_from_worker_to_worker() -> None:
    result = measured(LoopAgent(), CALL)
    (again,) = unpacked(packed(Findings([result], [], [], {}))).measurements
    assert isinstance(again, AgentMeasurement)
    assert again.captures == result.captures
    assert again.summary()["n"] == 1


def test_the_report_in_json_has_the_kind_of_record(project: pytest.Pytester) -> None:
    project.makepyfile(
        conftest=f"""
        import sys
        sys.path[:0] = {[entry for entry in sys.path if entry.endswith(("tests", "capture"))]!r}
        """,
        test_it="""
        from agent_loops import ERROR, LoopAgent
        from fake_scorer import FakeScorer
        from pytest_failgain import Failgain, FailingCall
        from pytest_failgain.stash import FINDINGS

        def test_agent(pytestconfig):
            call = FailingCall("add", '{"date": "12 Oct"}', error=ERROR)
            told = pytestconfig.stash[FINDINGS].measurements.append
            Failgain(FakeScorer(), on_measured=told).measure_agent(LoopAgent(), [call])
        """,
    )
    result = project.runpytest("--failgain-json=report.json", "--failgain-html=report.html")
    result.assert_outcomes(passed=1)
    line = "add-1: native: the call stands as an assistant's tool call, with its result"
    result.stdout.fnmatch_lines([f"loop_agent: {line}"])
    report = json.loads(project.path.joinpath("report.json").read_text("utf-8"))
    assert report["measurements"][0]["notes"] == [line]
    assert "the call stands as an assistant" in project.path.joinpath("report.html").read_text(
        "utf-8"
    )
