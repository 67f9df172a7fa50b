"""What an endpoint tells of an agent's run as a transcript."""

from __future__ import annotations

from typing import Any

import pytest
from endpoint_client import CALL, ERROR, TASK, TOOLS, ask, output_of, respond, result_of, say

from pytest_failgain import (
    Endpoint,
    FailingCall,
    Script,
    Step,
    TranscriptError,
    assert_no_repeated_failures,
)
from pytest_failgain.capture.script import Answer, Request

OTHER = FailingCall("create_event", '{"date": "3 May"}')


def failed_steps(endpoint: Endpoint) -> list[list[str]]:
    """The observations of failed steps, by trajectory."""
    return [
        [str(step.observation) for step in one.steps if isinstance(step, Step) and step.failed]
        for one in endpoint.transcript.trajectories
    ]


def test_agent_that_took_its_failure_is_told_whole() -> None:
    with Endpoint(CALL) as endpoint:
        message = say(endpoint, TASK)
        say(endpoint, TASK, message, result_of(message))
    (trajectory,) = endpoint.transcript.trajectories
    assert trajectory.goal == TASK["content"]
    call, end = trajectory.steps
    assert isinstance(call, Step)
    assert isinstance(end, Step)
    assert (call.action, call.observation) == (CALL.action, f"Error: {ERROR}")
    # What was answered last belongs to it, though no request tells of it.
    assert end.action.text == "Done."
    assert [tool.name for tool in trajectory.tools] == ["create_event"]
    (case,) = endpoint.transcript.failures
    assert case.failed == call
    assert_no_repeated_failures(endpoint.transcript)


def test_agent_that_goes_in_circles_is_found() -> None:
    with Endpoint([CALL, CALL, OTHER]) as endpoint:
        messages: list[Any] = [TASK]
        while (message := say(endpoint, *messages)).get("tool_calls"):
            messages += [message, result_of(message)]
    with pytest.raises(AssertionError, match="1 failed action was made again once") as raised:
        assert_no_repeated_failures(endpoint.transcript)
    assert "create_event" in str(raised.value)


def test_responses_api_is_told_in_the_same_way() -> None:
    with Endpoint(CALL) as endpoint:
        first = respond(endpoint, [TASK])
        respond(endpoint, [output_of(first)], previous_response_id=first["id"])
    assert failed_steps(endpoint) == [[f"Error: {ERROR}"]]
    with Endpoint(CALL) as chat:
        message = say(chat, TASK)
        say(chat, TASK, message, result_of(message))
    assert endpoint.transcript.trajectories == chat.transcript.trajectories


def test_requests_that_another_goes_on_from_are_told_once() -> None:
    with Endpoint(CALL) as endpoint:
        for _ in range(3):
            message = say(endpoint, TASK)
        for _ in range(2):
            say(endpoint, TASK, message, result_of(message))
    assert failed_steps(endpoint) == [[f"Error: {ERROR}"]]


def test_of_a_request_that_was_posted_again_the_last_answer_counts() -> None:
    class Wavering(Script):
        def answer(self, request: Request, /) -> Answer:
            return Answer(f"Answer {len(request.earlier)}.")

    with Endpoint(Wavering()) as endpoint:
        for _ in range(3):
            say(endpoint, TASK)
    (trajectory,) = endpoint.transcript.trajectories
    assert [step.action.text for step in trajectory.steps if isinstance(step, Step)] == [
        "Answer 2."
    ]


def test_conversations_beside_each_other_are_told_each() -> None:
    tasks = [{"role": "user", "content": text} for text in ("One.", "Two.")]
    with Endpoint(CALL) as endpoint:
        said = [say(endpoint, task) for task in tasks]
        for number in (1, 0):
            error = result_of(said[number], f"Error: no {tasks[number]['content']}")
            say(endpoint, tasks[number], said[number], error)
    assert sorted(failed_steps(endpoint)) == [["Error: no One."], ["Error: no Two."]]
    goals = {one.goal for one in endpoint.transcript.trajectories}
    assert goals == {"One.", "Two."}


def test_what_was_recorded_is_replayed() -> None:
    with Endpoint(CALL) as endpoint:
        message = say(endpoint, TASK)
        say(endpoint, TASK, message, result_of(message))
    transcript = endpoint.transcript
    (case,) = transcript.failures
    prompt = transcript.as_recorded(case.trajectory.then(case.failed))
    assert [message["role"] for message in prompt.messages or ()] == ["user", "assistant", "tool"]


def test_no_request_is_told_with_what_it_may_mean() -> None:
    with Endpoint(CALL) as endpoint, pytest.raises(TranscriptError, match="got no request"):
        _ = endpoint.transcript


def test_streamed_answer_of_an_upstream_is_told() -> None:
    with Endpoint(CALL) as real, Endpoint(upstream=real.base_url) as endpoint:
        body = {"messages": [TASK], "tools": TOOLS, "stream": True}
        ask(endpoint, "/v1/chat/completions", body)
    (trajectory,) = endpoint.transcript.trajectories
    (step,) = trajectory.steps
    assert isinstance(step, Step)
    assert step.action == CALL.action
