"""Runs an agent on scripted calls that its tools fail on, and keeps what it then sends."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, TypeAlias

from pytest_failgain.capture.comparison import compare, request_conversation, shows
from pytest_failgain.capture.endpoint import Endpoint
from pytest_failgain.capture.exchange import Exchange
from pytest_failgain.capture.failing_call import FailingCall
from pytest_failgain.capture.normalise import normalised
from pytest_failgain.capture.outcome import Outcome, OutcomeKind, outcome_of
from pytest_failgain.capture.pair import captured_pair, failure_case, request_trajectory
from pytest_failgain.errors import TranscriptError, UsageError
from pytest_failgain.trajectory import FailureCase, Trajectory
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

    def __str__(self) -> str:
        return "; ".join([f"{self.case_id}: {self.reason}", *self.notes])


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
    call: FailingCall

    def pair(self) -> tuple[Exchange, Exchange] | None:
        """The request that was answered with the call, and the first later one that differs.

        None where there is none: clients post again what they have no answer to yet.
        """
        for index, exchange in enumerate(self.exchanges):
            if _makes(exchange, self.call):
                before = request_conversation(exchange.body)
                for later in self.exchanges[index + 1 :]:
                    if not compare(before, request_conversation(later.body)).same:
                        return exchange, later
                return None
        return None


@dataclass(frozen=True, slots=True)
class _Agent:
    """An agent and the one call that it is to fail on."""

    run_agent: RunAgent
    call: FailingCall
    task: str
    timeout: float
    case_id: str

    def captured(self) -> Capture:
        """What came of the call."""
        run = self._run()
        pair = run.pair()
        if pair is None:
            outcome = _without_record(run, self.call, self.timeout)
            return Capture(self.call, outcome, self._case(run), None, run.exchanges, run.problems)
        notes = [*run.problems]
        if run.raised:
            notes.append(f"after the record the agent raised {run.raised}")
        if run.hung:
            notes.append(f"after the record the agent was not done in {self.timeout:g} s")
        notes += self._differences(pair)
        answered, lacking = self._answered_otherwise()
        made = captured_pair(
            pair[0].body,
            pair[1].body,
            self.call,
            case_id=self.case_id,
            task_id=self.call.task or self.case_id,
            answered={text: exchange.body for text, exchange in answered.items()},
        )
        outcome = outcome_of(made, self.call)
        return Capture(
            self.call,
            outcome,
            made.case,
            made.recorded if outcome.has_record else None,
            run.exchanges,
            (*notes, *lacking, *made.notes),
        )

    def _case(self, run: _Run) -> FailureCase:
        """The case of a call that left no record, as far as it is known."""
        return failure_case(
            self.call,
            _trajectory(run, self.task),
            self.call.error or run.raised or "",
            case_id=self.case_id,
            task_id=self.call.task or self.case_id,
        )

    def _differences(self, pair: tuple[Exchange, Exchange]) -> list[str]:
        """What is otherwise in the record of a second run, but for ids, times, paths and such."""
        again = self._run().pair()
        if again is None:
            return ["in a second run there was no record"]
        one, other = (normalised(_recorded_text(*each)) for each in (pair, again))
        if one == other:
            return []
        lines = zip_longest(one.splitlines(), other.splitlines(), fillvalue="")
        first = next((pair for pair in lines if pair[0] != pair[1]), ("", ""))
        return [f"the record differs from run to run: {first[0][:80]!r}, then {first[1][:80]!r}"]

    def _answered_otherwise(self) -> tuple[dict[str, Exchange], list[str]]:
        """What is sent where the tool answers otherwise, by its answer, and what can't be had."""
        if not _takes_observation(self.run_agent):
            return {}, []
        answered: dict[str, Exchange] = {}
        lacking = []
        for text in filter(None, (self.call.neutral, self.call.success)):
            pair = self._run(**{_OBSERVATION: text}).pair()
            if pair is None:
                lacking.append(f"no record with the scripted answer {text!r}")
            elif shows(_recorded_text(*pair), text):
                answered[text] = pair[1]
            else:
                lacking.append(
                    f"the scripted answer {text!r} did not come back: let the tool answer with "
                    "observation where that is not None"
                )
        return answered, lacking

    def _run(self, **scripted: str) -> _Run:
        error: BaseException | None = None
        with Endpoint(self.call) as endpoint:
            address = endpoint.base_url

            def run() -> None:
                nonlocal error
                try:
                    result = self.run_agent(address, self.task, **scripted)
                    if inspect.isawaitable(result):
                        asyncio.run(_awaited(result))
                except BaseException as raised:
                    error = raised
                finally:
                    _close_event_loop()

            # Not the test's own thread or loop: what hangs in there is left behind.
            thread = threading.Thread(target=run, name=f"failgain {self.case_id}", daemon=True)
            with _environment(endpoint.environment):
                thread.start()
                thread.join(self.timeout)
            hung = thread.is_alive()
            exchanges, problems = endpoint.exchanges, endpoint.problems
        if error is not None and _ends_test(error):
            raise error
        raised = None if error is None else _told(error)
        return _Run(exchanges, problems, raised, hung, self.call)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """The process's environment with `variables`, and then as it was."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


async def _awaited(result: Awaitable[object]) -> object:
    return await result


def _close_event_loop() -> None:
    """Close the loop that a framework made for this thread, which ends here."""
    try:
        loop = asyncio.get_event_loop()
    except RuntimeError:  # no thread but the main one has a loop by itself
        return
    loop.close()


def _takes_observation(run_agent: RunAgent) -> bool:
    try:
        return _OBSERVATION in inspect.signature(run_agent).parameters
    except (TypeError, ValueError):  # some builtins have no signature
        return False


def _ends_test(error: BaseException) -> bool:
    """Whether an exception is no fault of the agent: Ctrl-C, `pytest.skip()` and its kin."""
    return not isinstance(error, Exception) or type(error).__module__ == "_pytest.outcomes"


def _told(error: BaseException) -> str:
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said[:300]}" if said else type(error).__name__


def _recorded_text(before: Exchange, after: Exchange) -> str:
    return compare(request_conversation(before.body), request_conversation(after.body)).text


def _trajectory(run: _Run, task: str) -> Trajectory:
    """What the first request tells; the bare task where there is none."""
    try:
        return request_trajectory(run.exchanges[0].body)
    except (IndexError, TranscriptError):
        return Trajectory("", task)


def _without_record(run: _Run, call: FailingCall, timeout: float) -> Outcome:
    """Why there is nothing to measure."""
    ended = f"the agent raised {run.raised}" if run.raised else "the agent ended"
    if run.hung:
        ended = f"the agent was not done in {timeout:g} s"
    if not run.exchanges:
        return Outcome("hung" if run.hung else "no request", f"{ended} and sent no request")
    if not any(_makes(exchange, call) for exchange in run.exchanges):
        wanted = f"offers the tool {call.name!r}" if call.name else "can be answered with text"
        reason = f"the call could not be made, since no request {wanted}; {ended}"
        return Outcome("hung" if run.hung else "no second request", reason)
    if run.hung:
        return Outcome("hung", f"after the call {ended}")
    kind: OutcomeKind = "exception escaped" if run.raised else "no second request"
    return Outcome(kind, f"after the call {ended}, and asked no more")


def _makes(exchange: Exchange, call: FailingCall) -> bool:
    """Whether a request was answered with the call."""
    if call.text is not None:
        return any(call.action.text in text for text in _texts_in(exchange.answer))
    return (call.name, call.arguments_text) in _calls_in(exchange.answer)


def _calls_in(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict):
        if "name" in value and "arguments" in value:
            yield value["name"], value["arguments"]
        value = list(value.values())
    if isinstance(value, list):
        for entry in value:
            yield from _calls_in(entry)


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for entry in value.values() if isinstance(value, dict) else value:
            yield from _texts_in(entry)
