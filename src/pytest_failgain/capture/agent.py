"""Lets an agent fail on scripted calls, and makes cases of what it then sends to its model."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from pytest_failgain.capture.agent_run import AgentRun, RunAgent, run_once
from pytest_failgain.capture.comparison import (
    compare,
    echo_of,
    loosely,
    request_conversation,
    shared_turns,
    shows,
)
from pytest_failgain.capture.exchange import Exchange
from pytest_failgain.capture.failing_call import FailingCall
from pytest_failgain.capture.normalise import normalised
from pytest_failgain.capture.outcome import Outcome, OutcomeKind, outcome_of
from pytest_failgain.capture.pair import (
    captured_pair,
    failure_case,
    request_prompt,
    request_trajectory,
)
from pytest_failgain.errors import TranscriptError, UsageError
from pytest_failgain.harnesses import harness_name
from pytest_failgain.trajectory import FailureCase, Trajectory
from pytest_failgain.transcripts.conversation import Conversation
from pytest_failgain.transcripts.recorded import RecordedCase

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

    @property
    def account(self) -> str:
        """The reason and the notes, in one line."""
        return "; ".join([self.reason, *self.notes])

    def __str__(self) -> str:
        return f"{self.case_id}: {self.account}"


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
        CaseError: when the correct action or a distractor of a call is the call itself.
        UsageError: when `run_agent` can't be called so, there is no failing call, one stands twice
            for the same task, or the timeout is no positive number.
    """
    calls = _checked(failing_calls, task, timeout)
    scripted = _takes_observation(run_agent)
    numbers: Counter[str] = Counter()
    agents = []
    for call in calls:
        name = call.name or "text"
        numbers[name] += 1
        case_id = f"{name}-{numbers[name]}"
        agents.append(_Agent(run_agent, scripted, call, _task(call, task), timeout, case_id))
    for agent in agents:
        # Before any runs, since that may take long.
        agent.case_without_record(AgentRun(()))
    return tuple(agent.captured() for agent in agents)


def _task(call: FailingCall, common: str) -> str:
    return call.task or common or DEFAULT_TASK


def _checked(failing_calls: object, task: str, timeout: float) -> tuple[FailingCall, ...]:
    if isinstance(failing_calls, FailingCall):
        raise UsageError("failing_calls must be a list; put the one call into a list")
    given = tuple(failing_calls) if isinstance(failing_calls, Iterable) else (failing_calls,)
    calls = tuple(call for call in given if isinstance(call, FailingCall))
    if not calls or len(calls) < len(given):
        wrong = [call for call in given if not isinstance(call, FailingCall)]
        what = f"{wrong[0]!r} is none" if wrong else "there are none"
        raise UsageError(
            f"failing_calls must be a list of FailingCall, and {what}; give such as "
            "[FailingCall('create_event', {'date': '12 Oct'})]"
        )
    if not (isinstance(timeout, int | float) and timeout > 0):
        raise UsageError(f"timeout must be a positive number of seconds, not {timeout!r}")
    for (action, _), times in Counter((call.action, _task(call, task)) for call in calls).items():
        if times > 1:
            raise UsageError(
                f"the failing call {str(action)!r} stands {times} times for the same task: give "
                "each call once, or another task with FailingCall(task=…); to compare contents "
                "beside a call, capture them one by one"
            )
    return calls


def _takes_observation(run_agent: RunAgent) -> bool:
    """Whether the agent's tool can be told what to answer.

    Raises:
        UsageError: when the agent can't be called with an address and a task.
    """
    if not callable(run_agent):
        raise UsageError(
            f"run_agent must be a function run_agent(base_url, task), not {run_agent!r}"
        )
    try:
        signature = inspect.signature(run_agent)
    except (TypeError, ValueError):  # some builtins have no signature
        return False
    scripted = _OBSERVATION in signature.parameters
    try:
        signature.bind("", "", **({_OBSERVATION: None} if scripted else {}))
    except TypeError as error:
        raise UsageError(
            f"{harness_name(run_agent)}{signature} can't be called with an address and a task "
            f"({error}); let it be run_agent(base_url, task), or run_agent(base_url, task, "
            "observation=None)"
        ) from None
    return scripted


@dataclass(frozen=True, slots=True)
class _Agent:
    """An agent and the one call that it is to fail on; `scripted` if its tool can be told answers.

    In the runs that are to fail it is told None.
    """

    run_agent: RunAgent
    scripted: bool
    call: FailingCall
    task: str
    timeout: float
    case_id: str

    def captured(self) -> Capture:
        """What came of the call."""
        run = self._run()
        pair = self._pair(run)
        if pair is None:
            outcome = _without_record(run, self.call, self.timeout)
            case = self.case_without_record(run)
            return Capture(self.call, outcome, case, None, run.exchanges, run.problems)
        made = captured_pair(
            pair[0].body,
            pair[1].body,
            self.call,
            case_id=self.case_id,
            task_id=self.task,
        )
        outcome = outcome_of(made, self.call)
        notes = [*made.notes, *_unoffered(pair[0], self.call), *self._end(run)]
        if not outcome.has_record:
            return Capture(self.call, outcome, made.case, None, run.exchanges, tuple(notes))
        recorded = made.recorded
        if not run.hung:
            notes += self._differences(pair)
            answered, lacking = self._answered_otherwise()
            notes += lacking
            recorded = replace(
                recorded,
                answered={
                    text: request_prompt(request_conversation(after.body))
                    for text, (_, after) in answered.items()
                },
            )
        return Capture(self.call, outcome, made.case, recorded, run.exchanges, tuple(notes))

    def case_without_record(self, run: AgentRun) -> FailureCase:
        """The case of a call that left no record, as far as it is known."""
        return failure_case(
            self.call,
            _trajectory(run, self.task),
            self.call.error or run.raised or "",
            case_id=self.case_id,
            task_id=self.task,
        )

    def _run(self, observation: str | None = None) -> AgentRun:
        options = {_OBSERVATION: observation} if self.scripted else {}
        return run_once(self.run_agent, self.call, self.task, self.timeout, options)

    def _pair(self, run: AgentRun) -> tuple[Exchange, Exchange] | None:
        return _requests_around(run.exchanges, self.call)

    def _end(self, run: AgentRun) -> Iterator[str]:
        """What there is to say of the end of a run that left a record."""
        yield from run.problems
        if run.raised:
            yield f"after the record the agent raised {run.raised}"
        if run.hung:
            yield (
                f"after the record the agent was not done in {self.timeout:g} s, so it was run "
                "only once"
            )

    def _differences(self, pair: tuple[Exchange, Exchange]) -> list[str]:
        """What is otherwise in the record of a second run, but for ids, times, paths and such."""
        again = self._pair(self._run())
        if again is None:
            return ["in a second run there was no record"]
        one, other = (normalised(_recorded_text(*each)) for each in (pair, again))
        if one == other:
            return []
        lines = zip_longest(one.splitlines(), other.splitlines(), fillvalue="")
        first = next((pair for pair in lines if pair[0] != pair[1]), ("", ""))
        return [f"the record differs from run to run: {first[0][:80]!r}, then {first[1][:80]!r}"]

    def _answered_otherwise(self) -> tuple[dict[str, tuple[Exchange, Exchange]], list[str]]:
        """What is sent where the tool answers otherwise, by its answer, and what can't be had."""
        if not self.scripted:
            return {}, []
        answered: dict[str, tuple[Exchange, Exchange]] = {}
        lacking = []
        for text in filter(None, (self.call.neutral, self.call.success)):
            pair = self._pair(self._run(text))
            if pair is None:
                lacking.append(f"no record with the scripted answer {text!r}")
            elif shows(_recorded_text(*pair), text):
                answered[text] = pair
            else:
                lacking.append(
                    f"the scripted answer {text!r} did not come back: let the tool answer with "
                    "observation where that is not None"
                )
        return answered, lacking


def _requests_around(
    exchanges: Sequence[Exchange], call: FailingCall
) -> tuple[Exchange, Exchange] | None:
    """The request that was answered with the call, and the one that goes on from it.

    None where there is none. Clients post again what they have no answer to yet, and send other
    requests in between, such as for a title or a plan: one goes on from the earlier one with which
    it shares most turns. Sharing none is enough only where no later request shares more.
    """
    said = [(one, read) for one in exchanges if (read := _read(one)) is not None]
    others: list[tuple[Exchange, Exchange]] = []
    for index, (after, now) in enumerate(said):
        shared = [shared_turns(earlier.turns, now.turns) for _, earlier in said[:index]]
        if not shared:
            continue
        before, earlier = said[shared.index(max(shared))]
        comparison = compare(earlier, now)
        if not _makes(before, call) or comparison.same:
            continue
        if max(shared) or echo_of(comparison, call).form:
            return before, after
        others.append((before, after))
    return others[0] if others else None


def _read(exchange: Exchange) -> Conversation | None:
    try:
        return request_conversation(exchange.body)
    except TranscriptError:
        return None


def _unoffered(before: Exchange, call: FailingCall) -> Iterator[str]:
    offered = [tool.name for tool in request_conversation(before.body).tools]
    if call.text is None and call.name not in offered:
        yield f"the agent offers no tool {call.name!r}, but {', '.join(offered) or 'none'}"


def _recorded_text(before: Exchange, after: Exchange) -> str:
    return compare(request_conversation(before.body), request_conversation(after.body)).text


def _trajectory(run: AgentRun, task: str) -> Trajectory:
    """What the first request tells; the bare task where there is none."""
    try:
        return request_trajectory(run.exchanges[0].body)
    except (IndexError, TranscriptError):
        return Trajectory("", task)


def _without_record(run: AgentRun, call: FailingCall, timeout: float) -> Outcome:
    """Why there is nothing to measure."""
    ended = f"the agent raised {run.raised}" if run.raised else "the agent ended"
    if run.hung:
        ended = f"the agent was not done in {timeout:g} s"
    if not run.exchanges:
        return Outcome("hung" if run.hung else "no request", f"{ended} and sent no request")
    if not any(_makes(exchange, call) for exchange in run.exchanges):
        reason = (
            f"the call could not be made, since no request offers the tool {call.name!r} (for an "
            f"agent that reads calls from text, give FailingCall(text=…)); {ended}"
        )
        return Outcome("hung" if run.hung else "no second request", reason)
    if run.hung:
        return Outcome("hung", f"after the call {ended}")
    kind: OutcomeKind = "exception escaped" if run.raised else "no second request"
    again = len(run.exchanges) - 1
    asked = f"its {again} other requests tell nothing of it" if again else "asked no more"
    return Outcome(kind, f"after the call {ended}, and {asked}")


def _makes(exchange: Exchange, call: FailingCall) -> bool:
    """Whether a request was answered with the call."""
    if call.text is not None:
        return any(
            loosely(call.action.text) in loosely(said) for said in _texts_in(exchange.answer)
        )
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
