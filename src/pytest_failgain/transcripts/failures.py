"""From conversations to failure cases: which calls failed, and what came before each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from pytest_failgain.trajectory import Action, Step, Trajectory, UserTurn
from pytest_failgain.transcripts.conversation import Call, Conversation, Result, Turn
from pytest_failgain.transcripts.found import FoundFailure
from pytest_failgain.transcripts.heuristics import cancelled_by, judge
from pytest_failgain.transcripts.pairing import Place, paired

IsFailure: TypeAlias = Callable[[Call, Result], "bool | None"]
"""Whether a call failed, by its result; None leaves it to the format's mark and the heuristics."""

PARALLEL = (
    "a call among several of one turn: the others are left out of its case, not of the record"
)
LATER_SYSTEM = "a later system message told as a user's turn"
BROKEN = "failed by itself: a call without a result whose arguments are no JSON"
UNANSWERED = "a call without a result: no failure"

# What a result says of arguments that could not be read.
_ABOUT_ARGUMENTS = re.compile(
    r"json|argument|pars(?:e|ing)|decod|unterminated|truncat|malformed|invalid|incomplete", re.I
)


@dataclass(slots=True)
class Findings:
    """What was found in a source: recorded failures, whole trajectories, and counted notes."""

    recorded: list[FoundFailure] = field(default_factory=list)
    trajectories: list[Trajectory] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)


def find_failures(
    name: str, conversations: Sequence[Conversation], is_failure: IsFailure | None = None
) -> Findings:
    """The failures in `conversations`, in their order, each told once.

    `name` begins the case ids and is the task of all of them, since the failures of one transcript
    are not independent.
    """
    findings, seen = Findings(), _Seen()
    for conversation in conversations:
        findings.notes.update(conversation.notes)
        _Walk(name, conversation, findings, seen, is_failure).go()
    findings.notes[UNANSWERED] += sum(step.observation is None for step in seen.steps.values())
    return findings


@dataclass(slots=True)
class _Seen:
    """What conversations with a common beginning have told already, turns by their identity."""

    turns: set[int] = field(default_factory=set)
    steps: dict[tuple[int, int], Step] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Failed:
    """A failed step, as it is found: how many steps stand before its turn, and what answered it."""

    step: Step
    past: int
    index: int
    result: Place | None


@dataclass(slots=True)
class _Walk:
    """One conversation, turn by turn."""

    name: str
    conversation: Conversation
    findings: Findings
    seen: _Seen
    is_failure: IsFailure | None
    system: str | None = None
    goal: str | None = None
    steps: list[Step | UserTurn] = field(default_factory=list)
    failed: list[_Failed] = field(default_factory=list)

    def go(self) -> None:
        pairing = paired(self.conversation.turns)
        for index, turn in enumerate(self.conversation.turns):
            new = id(turn) not in self.seen.turns
            self.seen.turns.add(id(turn))
            self.findings.notes.update(turn.remarks if new else ())
            if turn.role == "assistant":
                self._act(index, turn, pairing.answers)
            elif not turn.results and turn.text:
                self._say(turn, new)
        self.findings.notes.update(pairing.notes)
        self._keep()

    def _keep(self) -> None:
        whole = Trajectory(
            self.system or "", self.goal or "", tuple(self.steps), self.conversation.tools
        )
        recorded = self.findings.recorded
        for one in self.failed:
            case_id = f"{self.name}-{len(recorded) + 1}"
            place = (one.past, one.step, one.index, one.result)
            recorded.append(FoundFailure(case_id, self.name, self.conversation, whole, *place))
        self.findings.trajectories.append(whole)

    def _say(self, turn: Turn, new: bool) -> None:
        if turn.role == "system" and self.system is None and not self.steps:
            self.system = turn.text
        elif turn.role == "user" and self.goal is None and not self.steps:
            self.goal = turn.text
        else:
            if turn.role == "system" and new:
                self.findings.notes[LATER_SYSTEM] += 1
            self.steps.append(UserTurn(turn.text))

    def _act(self, index: int, turn: Turn, answers: Mapping[Place, Place]) -> None:
        past = len(self.steps)
        if not turn.calls and turn.text.strip():
            self.steps.append(Step(Action(turn.text), None))
        for number, call in enumerate(turn.calls):
            place = answers.get((index, number))
            result = None if place is None else self.conversation.turns[place[0]].results[place[1]]
            known = self.seen.steps.get((id(turn), number))
            if known is None or _tells_more(result, known):
                step = self._step(turn, call, result)
                self.seen.steps[id(turn), number] = step
                if step.failed:
                    self.failed.append(_Failed(step, past, index, place))
                    self.findings.notes[PARALLEL] += len(turn.calls) > 1
            else:
                step = known
            self.steps.append(step)

    def _step(self, turn: Turn, call: Call, result: Result | None) -> Step:
        reply = turn.text if call.action.calls or call.action.text != turn.text else ""
        failed, note = self._judged(call, result)
        self.findings.notes[note] += bool(note)
        observation = result.text if result else (call.problem or call.broken or None)
        return Step(call.action, observation, failed, None, call.tool, reply=reply)

    def _judged(self, call: Call, result: Result | None) -> tuple[bool, str]:
        """Whether a call failed, and what there is to note of it."""
        if call.problem is not None:
            return True, "failed by the format's own mark (a call that never reached a tool)"
        if result is None:
            return bool(call.broken), BROKEN if call.broken else ""
        verdict = None if self.is_failure is None else self.is_failure(call, result)
        if verdict is not None:
            return bool(verdict), "failed by is_failure" if verdict else "no failure by is_failure"
        if result.cancelled:
            return False, "a rejected or cancelled call: no failure"
        if result.failed is not None:
            return result.failed, _by_mark(result)
        return _by_heuristics(call, result)


def _tells_more(result: Result | None, known: Step) -> bool:
    """Whether a result is one that the step as it is known does not have."""
    return result is not None and result.text != known.observation


def _by_mark(result: Result) -> str:
    if result.failed:
        return f"failed by the format's own mark ({result.mark})"
    # A mark that no one set may be a success only by default.
    verdict, rule = judge(result.text) if result.mark else (False, "")
    if not verdict:
        return ""
    return f"no failure by the format's own mark, though the heuristic {rule!r} takes it for one"


def _by_heuristics(call: Call, result: Result) -> tuple[bool, str]:
    rule = cancelled_by(result.text)
    if rule is not None:
        return False, f"no failure by the heuristic {rule!r}: a rejected or cancelled call"
    verdict, rule = judge(result.text)
    if not rule and call.broken and _ABOUT_ARGUMENTS.search(result.text[:400]):
        verdict, rule = True, "broken arguments"
    return verdict, f"failed by the heuristic {rule!r}" if verdict else ""
