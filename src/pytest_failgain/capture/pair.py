"""From two requests of an agent to a failure case: what it sent before a call failed, and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_failgain.capture.comparison import (
    Comparison,
    Echo,
    compare,
    echo_of,
    request_conversation,
    same_arguments,
    shows,
)
from pytest_failgain.capture.failing_call import FailingCall
from pytest_failgain.prompt import Prompt
from pytest_failgain.trajectory import Action, FailureCase, Observations, Step, Trajectory
from pytest_failgain.transcripts.chat import as_chat
from pytest_failgain.transcripts.conversation import Conversation
from pytest_failgain.transcripts.failures import find_failures
from pytest_failgain.transcripts.heuristics import judge
from pytest_failgain.transcripts.recorded import RecordedCase

ENVIRONMENT = "captured"


@dataclass(frozen=True, slots=True)
class CapturedPair:
    """Two requests, read: the case that they make, and how they differ.

    `recorded` replays them. `notes` tell what the client did to the call, `adaptations` what had to
    be changed to tell the requests as chat messages.
    """

    recorded: RecordedCase
    comparison: Comparison
    echo: Echo
    notes: tuple[str, ...]

    @property
    def case(self) -> FailureCase:
        """The failure case."""
        return self.recorded.case

    @property
    def adaptations(self) -> tuple[str, ...]:
        """What both prompts had to be changed in, each once."""
        both = (*self.recorded.before.adaptations, *self.recorded.after.adaptations)
        return tuple(dict.fromkeys(both))


def captured_pair(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    failing_call: FailingCall,
    *,
    case_id: str | None = None,
    task_id: str | None = None,
    answered: Mapping[str, Mapping[str, Any]] | None = None,
) -> CapturedPair:
    """The case of two request bodies: one answered with the failing call, and the next one.

    Both may be of chat completions or of the Responses API. The failed action is the call as it was
    scripted, letter for letter, whatever the client made of it; the observation is what the record
    shows of it, the whole result or the text that was added. `answered` has the bodies that were
    sent where the tool answered otherwise, by its answer.

    Raises:
        CaseError: when the correct action or a distractor of the call is the call itself.
        TranscriptError: when a body is no such request.
    """
    sent, came = request_conversation(before), request_conversation(after)
    comparison = compare(sent, came)
    echo = echo_of(comparison, failing_call)
    name = failing_call.name or "text"
    case = failure_case(
        failing_call,
        _trajectory(sent),
        _observation(comparison, echo, failing_call),
        case_id=case_id or name,
        task_id=task_id or case_id or name,
    )
    others = {
        text: request_prompt(request_conversation(body)) for text, body in (answered or {}).items()
    }
    recorded = RecordedCase(case, request_prompt(sent), request_prompt(came), others)
    return CapturedPair(recorded, comparison, echo, _notes(echo, failing_call))


def failure_case(
    failing_call: FailingCall,
    trajectory: Trajectory,
    observation: str,
    *,
    case_id: str,
    task_id: str,
) -> FailureCase:
    """The case of a call that failed at the end of `trajectory` with this answer."""
    reply = (failing_call.content if failing_call.text is None else failing_call.text) or ""
    action = failing_call.action
    failed = Step(
        action,
        observation,
        failed=True,
        tool=failing_call.name or None,
        reply="" if reply == action.text else reply,
    )
    correct = failing_call.correct
    return FailureCase(
        case_id=case_id,
        task_id=task_id,
        trajectory=trajectory,
        failed=failed,
        correct=None if correct is None else Action.of(correct),
        distractors=tuple(map(Action.of, failing_call.distractors)),
        observations=Observations(neutral=failing_call.neutral, success=failing_call.success),
        environment=ENVIRONMENT,
    )


def request_prompt(conversation: Conversation) -> Prompt:
    """A request as it was sent."""
    return (conversation.write or as_chat)(conversation.turns, conversation)


def request_trajectory(body: Mapping[str, Any]) -> Trajectory:
    """What had happened when a request was sent.

    Raises:
        TranscriptError: when the body is no such request.
    """
    return _trajectory(request_conversation(body))


def _trajectory(conversation: Conversation) -> Trajectory:
    return find_failures("request", [conversation]).trajectories[0]


def _observation(comparison: Comparison, echo: Echo, failing_call: FailingCall) -> str:
    """What the record shows as the answer to the call; empty where it shows none."""
    if echo.result is not None:
        return echo.result.text
    told = [one.text.strip() for one in comparison.added if one.role != "assistant"]
    if not told and echo.form == "text":
        told = [_behind(echo.text, failing_call)]
    error = failing_call.error
    with_error = [text for text in told if error and shows(text, error)]
    failing = [text for text in told if tells_failure(text)]
    return next((text for text in (*with_error, *failing, *told) if text), "")


def tells_failure(text: str) -> bool:
    """Whether a heuristic takes a text for a failure's, by the whole of it or by one of its lines.

    Other texts than a tool's result may have the error further down.
    """
    verdict, rule = judge(text)
    return verdict if rule else any(judge(line)[0] for line in text.splitlines())


def _behind(text: str, failing_call: FailingCall) -> str:
    """What stands in an assistant's text behind the call that it makes."""
    wanted = failing_call.action.text or failing_call.arguments_text
    _, found, behind = text.rpartition(wanted.strip())
    return behind.strip() if found else text.strip()


def _notes(echo: Echo, failing_call: FailingCall) -> tuple[str, ...]:
    call = echo.call
    if call is None or call.arguments == failing_call.arguments_text:
        return ()
    wrote, made = failing_call.arguments_text, call.arguments
    if same_arguments(wrote, made):
        return (f"the client writes the call's arguments anew: {made} for {wrote}",)
    return (f"the client changes the call's arguments: {made} for {wrote}",)
