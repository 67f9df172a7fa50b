"""From conversations to failure cases: which calls failed, and what came before each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from pytest_failgain.prompt import Message, Prompt
from pytest_failgain.trajectory import Action, FailureCase, Step, Trajectory, UserTurn
from pytest_failgain.transcripts.conversation import Call, Conversation, Result, Turn
from pytest_failgain.transcripts.heuristics import judge
from pytest_failgain.transcripts.recorded import RecordedCase

IsFailure: TypeAlias = Callable[[Call, Result], "bool | None"]
"""Whether a call failed, by its result; None leaves it to the format's mark and the heuristics."""


@dataclass(slots=True)
class Findings:
    """What was found in a source: recorded cases, whole trajectories, and counted notes."""

    recorded: list[RecordedCase] = field(default_factory=list)
    trajectories: list[Trajectory] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)


def find_failures(
    name: str, conversations: Sequence[Conversation], is_failure: IsFailure | None = None
) -> Findings:
    """The failures in `conversations`, oldest first, each told once.

    `name` begins the case ids and is the task of all of them, since the failures of one transcript
    are not independent.
    """
    findings = Findings()
    seen: set[int] = set()
    for conversation in conversations:
        findings.notes.update(conversation.notes)
        _Walk(name, conversation, findings, seen, is_failure).go()
    return findings


@dataclass(slots=True)
class _Walk:
    """One conversation, turn by turn."""

    name: str
    conversation: Conversation
    findings: Findings
    seen: set[int]
    is_failure: IsFailure | None
    system: str | None = None
    goal: str | None = None
    steps: list[Step | UserTurn] = field(default_factory=list)

    def go(self) -> None:
        turns = self.conversation.turns
        results = _paired(turns)
        for index, turn in enumerate(turns):
            if turn.role == "assistant":
                self._act(index, turn, results.get(index, []))
            elif not turn.results and turn.text:
                self._say(turn)
        self.findings.trajectories.append(self._trajectory())

    def _trajectory(self) -> Trajectory:
        return Trajectory(
            self.system or "", self.goal or "", tuple(self.steps), self.conversation.tools
        )

    def _say(self, turn: Turn) -> None:
        if turn.role == "system" and self.system is None and not self.steps:
            self.system = turn.text
        elif turn.role == "user" and self.goal is None and not self.steps:
            self.goal = turn.text
        else:
            if turn.role == "system":
                self.findings.notes["a later system message told as a user's turn"] += 1
            self.steps.append(UserTurn(turn.text))

    def _act(self, index: int, turn: Turn, results: Sequence[Result | None]) -> None:
        before = self._trajectory()
        made = [
            self._step(turn, call, result) for call, result in zip(turn.calls, results, strict=True)
        ]
        if not made and turn.text.strip():
            self.steps.append(Step(Action(turn.text), None))
        self.steps.extend(made)
        if id(turn) in self.seen:
            return
        self.seen.add(id(turn))
        failed = [step for step in made if step.failed]
        if failed and len(made) > 1:
            self.findings.notes[
                "a call among several of one turn: the others are left out of its case, not of "
                "the record"
            ] += len(failed)
        for step in failed:
            self._keep(before, step, index)

    def _keep(self, before: Trajectory, step: Step, index: int) -> None:
        turns = self.conversation.turns
        end = next(
            (i for i in range(index + 1, len(turns)) if turns[i].role == "assistant"), len(turns)
        )
        number = len(self.findings.recorded) + 1
        case = FailureCase(f"{self.name}-{number}", self.name, before, step, environment=self.name)
        write = self.conversation.write or as_chat
        sent, after = (write(part, self.conversation) for part in (turns[:index], turns[:end]))
        self.findings.recorded.append(RecordedCase(case, sent, after))

    def _step(self, turn: Turn, call: Call, result: Result | None) -> Step:
        reply = turn.text if call.action.calls or call.action.text != turn.text else ""
        failed = self._failed(call, result)
        observation = result.text if result else call.problem
        return Step(call.action, observation, failed, None, call.tool, reply=reply)

    def _failed(self, call: Call, result: Result | None) -> bool:
        notes = self.findings.notes
        if call.problem is not None:
            notes["failed by the format's own mark (a call that never reached a tool)"] += 1
            return True
        if result is None:
            notes["a call without a result: no failure"] += 1
            return False
        if self.is_failure is not None:
            verdict = self.is_failure(call, result)
            if verdict is not None:
                notes["failed by is_failure"] += verdict
                return verdict
        if result.cancelled:
            notes["a rejected or cancelled call: no failure"] += 1
            return False
        if result.failed is not None:
            notes[f"failed by the format's own mark ({result.mark})"] += result.failed
            return result.failed
        verdict, rule = judge(result.text)
        notes[f"failed by the heuristic {rule!r}"] += verdict
        return verdict


def _paired(turns: Sequence[Turn]) -> dict[int, list[Result | None]]:
    """The results of each assistant's calls, by the turn's index and in the order of its calls."""
    paired: dict[int, list[Result | None]] = {}
    by_id: dict[str, tuple[int, int]] = {}
    open_calls: dict[tuple[int, int], None] = {}
    for index, turn in enumerate(turns):
        if turn.role == "assistant":
            # What was open before is never answered any more by order, only by id.
            open_calls.clear()
            paired[index] = [None] * len(turn.calls)
            for place, call in enumerate(turn.calls):
                open_calls[index, place] = None
                if call.call_id is not None:
                    by_id[call.call_id] = (index, place)
        for result in turn.results:
            where = by_id.get(result.call_id) if result.call_id is not None else None
            if where is None:
                where = next(iter(open_calls), None)
            if where is not None:
                open_calls.pop(where, None)
                paired[where[0]][where[1]] = result
    return paired


def as_chat(turns: Sequence[Turn], conversation: Conversation) -> Prompt:
    """The turns as chat messages, each as it was sent where the source has it so."""
    messages = tuple(message for turn in turns for message in _messages(turn))
    return Prompt(messages, tools=conversation.tools, adaptations=conversation.notes)


def _messages(turn: Turn) -> Iterator[Message]:
    if turn.message is not None:
        yield turn.message
        return
    if turn.role == "tool" or (turn.results and not turn.text):
        for result in turn.results:
            yield {"role": "tool", "tool_call_id": result.call_id or "", "content": result.text}
        return
    message: dict[str, object] = {"role": turn.role, "content": turn.text}
    structured = [call for call in turn.calls if call.action.calls]
    if structured:
        message["tool_calls"] = [
            {
                "id": call.call_id or "",
                "type": "function",
                "function": {"name": made.name, "arguments": made.arguments},
            }
            for call in structured
            for made in call.action.calls
        ]
    yield message
