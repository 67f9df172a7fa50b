"""A failure in a conversation, its case and prompts made when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import eq
from typing import overload

from pytest_failgain.prompt import Prompt
from pytest_failgain.trajectory import Action, FailureCase, Step, Trajectory
from pytest_failgain.transcripts.chat import as_chat, message_index
from pytest_failgain.transcripts.conversation import Conversation
from pytest_failgain.transcripts.pairing import Place
from pytest_failgain.transcripts.recorded import PlaceKey, Recorded, place_key


@dataclass(frozen=True, slots=True)
class FoundFailure:
    """The failed `step` that is made in the turn at `index`, and what answered it.

    `trajectory` is that of the whole conversation, of which `past` steps stand before the turn. To
    keep them apart for each failure would take the square of a transcript's length.
    """

    case_id: str
    task_id: str
    conversation: Conversation = field(repr=False)
    trajectory: Trajectory = field(repr=False)
    past: int
    step: Step
    index: int
    result: Place | None

    @property
    def case(self) -> FailureCase:
        """The failure case."""
        before = replace(self.trajectory, steps=self.trajectory.steps[: self.past])
        return FailureCase(self.case_id, self.task_id, before, self.step, environment=self.task_id)

    @property
    def before(self) -> Prompt:
        """What was sent before the call was made."""
        return self._written(self.index)

    @property
    def after(self) -> Prompt:
        """What was sent when it had failed: all up to the next reply after its result."""
        return self._written(self._end)

    @property
    def answered(self) -> Mapping[str, Prompt]:
        """A transcript knows one answer to a call."""
        return {}

    @property
    def error_at(self) -> int | None:
        """The index of the message in `after` that brings the error, None where it isn't known."""
        if self.conversation.write is not None or self.result is None:
            return None
        return message_index(self.conversation.turns, self.result)

    @property
    def key(self) -> PlaceKey:
        """The key of the case's trajectory."""
        whole = self.trajectory
        return place_key(whole.system, whole.goal, whole.steps, self.past)

    @property
    def action(self) -> Action:
        """The failed action."""
        return self.step.action

    @property
    def _end(self) -> int:
        turns = self.conversation.turns
        at = max(self.index, self.result[0] if self.result else 0) + 1
        while at < len(turns) and turns[at].role != "assistant":
            at += 1
        return at

    def _written(self, count: int) -> Prompt:
        conversation = self.conversation
        return (conversation.write or as_chat)(conversation.turns[:count], conversation)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Failures(Sequence[FailureCase]):
    """The cases of recorded failures, in their order, each made when it is asked for."""

    recorded: Sequence[Recorded]

    @overload
    def __getitem__(self, index: int) -> FailureCase: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[FailureCase]: ...

    def __getitem__(self, index: int | slice) -> FailureCase | Sequence[FailureCase]:
        if isinstance(index, slice):
            return Failures(self.recorded[index])
        return self.recorded[index].case

    def __len__(self) -> int:
        return len(self.recorded)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    def __repr__(self) -> str:
        return f"<failures: {', '.join(one.case_id for one in self) or 'none'}>"
