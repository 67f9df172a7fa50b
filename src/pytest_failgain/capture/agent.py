"""Runs an agent on scripted calls that its tools fail on, and keeps what it then sends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pytest_failgain.capture.comparison import compare, request_conversation
from pytest_failgain.capture.exchange import Exchange
from pytest_failgain.capture.failing_call import FailingCall
from pytest_failgain.capture.outcome import Outcome
from pytest_failgain.errors import UsageError
from pytest_failgain.trajectory import FailureCase
from pytest_failgain.transcripts.recorded import RecordedCase

RunAgent: TypeAlias = Callable[..., object]
"""`run_agent(base_url, task)`: runs the agent on the task, with its model at that address."""

DEFAULT_TASK = "Do what you are asked to do."

_OBSERVATION = "observation"


@dataclass(frozen=True, slots=True)
class Capture:
    """One failing call, and what the agent sent after it.

    `case` is its failure case, of which `recorded` has the prompts; where there is no record,
    `recorded` is None and the case only names the call. `exchanges` are the requests of the run
    that failed, as they came. `notes` tell what else there is to know, one line each.
    """

    failing_call: FailingCall
    outcome: Outcome
    case: FailureCase
    recorded: RecordedCase | None = None
    exchanges: tuple[Exchange, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def case_id(self) -> str:
        """What reports call it."""
        return self.case.case_id

    @property
    def reason(self) -> str:
        """Why there is no record, and what to do; what kind of record there is, where there is."""
        advice = self.outcome.advice
        return f"{self.outcome}; {advice}" if advice else str(self.outcome)


def capture_agent(
    run_agent: RunAgent,
    failing_calls: Sequence[FailingCall],
    *,
    task: str = "",
    timeout: float = 60.0,
) -> tuple[Capture, ...]:
    """Run an agent once or more for each failing call, with a scripted model that makes the call.

    `run_agent(base_url, task)` runs the agent with its model at `base_url`, an OpenAI-compatible
    endpoint on this machine; the environment variables that most clients read point there, too. It
    may be asynchronous. Its own tools run, and fail; what the agent then sends to its model is
    kept. It runs in a thread of its own that is waited for `timeout` seconds. What it raises is
    told in the outcome, except what ends a test or the tests on purpose.

    It runs twice for each call, to see whether the record is the same. If it has a parameter
    `observation`, it is also run with each other answer of the failing call there: its tool has to
    answer that in place of running. That parameter is None in the runs that are to fail.

    Raises:
        UsageError: when `run_agent` can't be called so, there is no failing call, one stands twice
            for the same task, or the timeout is no positive number.
    """
    calls = _checked(run_agent, failing_calls, task, timeout)
    numbers: Counter[str] = Counter()
    captures = []
    for call in calls:
        name = call.name or "text"
        numbers[name] += 1
        case_id = f"{name}-{numbers[name]}"
        captures.append(_Agent(run_agent, call, _task(call, task), timeout, case_id).captured())
    return tuple(captures)


def _task(call: FailingCall, common: str) -> str:
    return call.task or common or DEFAULT_TASK


def _checked(
    run_agent: RunAgent, failing_calls: object, task: str, timeout: float
) -> tuple[FailingCall, ...]:
    if not callable(run_agent):
        raise UsageError(
            f"run_agent must be a function run_agent(base_url, task), not {run_agent!r}"
        )
    if isinstance(failing_calls, FailingCall):
        raise UsageError("failing_calls must be a list; put the one call into a list")
    calls = tuple(failing_calls) if isinstance(failing_calls, Iterable) else ()
    wrong = [call for call in calls if not isinstance(call, FailingCall)]
    if wrong or not calls:
        given = f"{wrong[0]!r} is none" if wrong else "there are none"
        raise UsageError(
            f"failing_calls must be a list of FailingCall, and {given}; give such as "
            "[FailingCall('create_event', {'date': '12 Oct'})]"
        )
    if not timeout > 0:
        raise UsageError(f"timeout must be a positive number of seconds, not {timeout!r}")
    for (action, _), times in Counter((call.action, _task(call, task)) for call in calls).items():
        if times > 1:
            raise UsageError(
                f"the failing call {str(action)!r} stands {times} times for the same task: give "
                "each call once, or another task with FailingCall(task=…); to compare contents "
                "beside a call, capture them one by one"
            )
    return calls


@dataclass(frozen=True, slots=True)
class _Run:
    """One run of the agent: what it sent, how it ended, and what the endpoint has to say."""

    exchanges: tuple[Exchange, ...]
    problems: tuple[str, ...]
    raised: str | None
    hung: bool

    def pair(self) -> tuple[Exchange, Exchange] | None:
        """The request before the failing call and the one after it; None where there is no second.

        The later one is the first that carries the call's record, as far as it goes on from an
        earlier one: agents also ask for titles or plans, and repeat what they sent.
        """
        said = [request_conversation(exchange.body) for exchange in self.exchanges]
        for after in range(1, len(said)):
            starts = [_shared_turns(said[i], said[after]) for i in range(after)]
            before = starts.index(max(starts))
            if not compare(said[before], said[after]).same:
                return self.exchanges[before], self.exchanges[after]
        return None


@dataclass(frozen=True, slots=True)
class _Agent:
    """An agent and the one call that it is to fail on."""

    run_agent: RunAgent
    call: FailingCall
    task: str
    timeout: float
    case_id: str
