"""What an agent did so far, and one failure in it. Plain frozen data: no torch, no pytest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_failgain.errors import CaseError
from pytest_failgain.padding import PADDINGS


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A structured call, as chat APIs carry it.

    `arguments` is the JSON text as the model wrote it: its key order and escapes are part of
    what is scored, and it need not even parse.
    """

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Action:
    """What the agent emits in one turn: text, structured calls, or both.

    An action without `calls` is the exact text that the model generates. One with `calls` becomes
    text through the model's own chat template (see `scoring.rendering`).

    Raises:
        CaseError: when there is neither a call nor any text but white space.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise CaseError(f"an action's text must be a str, not {self.text!r}")
        object.__setattr__(self, "calls", tuple(self.calls))
        if not self.calls and not self.text.strip():
            raise CaseError(
                f"the action {self.text!r} is empty or only white space, so there is nothing to "
                "score: give the exact text that the model emitted, or its tool calls"
            )

    @staticmethod
    def of(value: Action | ToolCall | str) -> Action:
        """`value` itself if it is an action, else the action that it stands for."""
        if isinstance(value, Action):
            return value
        if isinstance(value, ToolCall):
            return Action(calls=(value,))
        return Action(value)

    def __str__(self) -> str:
        calls = (f"{call.name}({call.arguments})" for call in self.calls)
        return " ".join(part for part in (self.text, *calls) if part)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool schema as it is offered through a chat template; `parameters` is JSON Schema."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def as_function(self) -> dict[str, Any]:
        """The schema in the shape that chat templates and chat APIs take."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": dict(self.parameters),
            },
        }


@dataclass(frozen=True, slots=True)
class Step:
    """One action and what the runtime answered.

    `observation` is None for a plain reply, which no runtime answers. `tool` is the runtime's own
    name of the tool that was called, None where the runtime knows no such tool. `records` holds
    texts that remedies (its keys, by name) write for this step in place of their own wording.
    `reply` is the whole text of the turn where the action is only a part of it, as a command behind
    a thought, or what was said beside structured calls; empty where the action is all.

    Raises:
        CaseError: when an action's text does not stand in the reply that it is a part of.
    """

    action: Action
    observation: str | None
    failed: bool = False
    error_family: str | None = None
    tool: str | None = None
    records: Mapping[str, str] = field(default_factory=dict)
    reply: str = ""

    def __post_init__(self) -> None:
        if self.reply and not self.action.calls and self.action.text not in self.reply:
            raise CaseError(
                f"the action {self.action.text!r} is no part of its reply {self.reply!r}; give the "
                "whole turn as the reply, or none"
            )

    @property
    def lead(self) -> str:
        """What was said in the same turn before the action; the action's last place counts."""
        if self.action.calls:
            return self.reply
        return self.reply[: self.reply.rindex(self.action.text)] if self.reply else ""


@dataclass(frozen=True, slots=True)
class UserTurn:
    """Something that the user, or the harness in the user's role, says between two steps."""

    text: str


@dataclass(frozen=True, slots=True)
class Trajectory:
    """System prompt, goal, tool schemas and the steps so far, oldest first.

    `tools` are offered through the chat template. Where the tools are described in the system
    prompt instead, as in text formats, it is empty.
    """

    system: str
    goal: str
    steps: tuple[Step | UserTurn, ...] = ()
    tools: tuple[Tool, ...] = ()

    def then(self, *steps: Step | UserTurn) -> Trajectory:
        """This trajectory with `steps` after it."""
        return replace(self, steps=(*self.steps, *steps))


@dataclass(frozen=True, slots=True)
class Observations:
    """What the runtime could have answered to the failed action instead of its error.

    `neutral` says neither that it worked nor that it failed, and `padding` names the way in which
    it is brought to the length of the error (see `padding.PADDINGS`). The others are None where
    they are not known; a condition that needs one is then left out for the case, and counted.

    Raises:
        CaseError: when there is no padding of that name.
    """

    neutral: str = "The call was received."
    success: str | None = None
    terse: str | None = None
    verbose: str | None = None
    echoed: str | None = None
    padding: str = "exact"

    def __post_init__(self) -> None:
        if self.padding not in PADDINGS:
            raise CaseError(
                f"there is no padding {self.padding!r}; there are: {', '.join(PADDINGS)}"
            )


@dataclass(frozen=True, slots=True)
class FailureCase:
    """A decision point, the step that failed there, and what to compare it with.

    `trajectory` ends *before* the failed step. `task_id` groups the cases that share a task: the
    confidence intervals resample tasks, since cases of one task are not independent. `other_failed`
    is another action that fails at the same point, the first distractor as a rule, with its error.

    Raises:
        CaseError: when a failed step is not marked as failed or has no error text, when two of the
            candidates are one action, or when the other failure is of the failed or correct one.
    """

    case_id: str
    task_id: str
    trajectory: Trajectory
    failed: Step
    correct: Action | None = None
    distractors: tuple[Action, ...] = ()
    observations: Observations = Observations()
    environment: str = ""
    operator: str = ""
    template: str = ""
    other_failed: Step | None = None

    def __post_init__(self) -> None:
        self._check_failure(self.failed, "the failed step")
        others = [action for action in (self.correct, *self.distractors) if action is not None]
        if self.failed.action in others:
            raise CaseError(
                f"case {self.case_id!r}: the failed action {str(self.failed.action)!r} is also "
                "given as the correct action or a distractor; a candidate may stand once"
            )
        if len(set(others)) != len(others):
            raise CaseError(
                f"case {self.case_id!r}: two candidates are the same action; each of correct and "
                "distractors must differ"
            )
        if self.other_failed is not None:
            self._check_failure(self.other_failed, "the other failed step")
            if self.other_failed.action in (self.failed.action, self.correct):
                which = "failed" if self.other_failed.action == self.failed.action else "correct"
                raise CaseError(
                    f"case {self.case_id!r}: the other failed step has the {which} action "
                    f"{str(self.other_failed.action)!r}; give one with another action, or none"
                )

    def _check_failure(self, step: Step, what: str) -> None:
        if not step.failed:
            raise CaseError(f"case {self.case_id!r}: {what} is not marked failed=True")
        if step.observation is None:
            raise CaseError(
                f"case {self.case_id!r}: {what} has no observation; give the error text that the "
                "runtime answered (an empty string if it answered nothing)"
            )

    def candidates(self) -> dict[str, Action]:
        """The fixed candidate set by name: `failed`, `correct` if known, `distractor0`, …"""
        named = {"failed": self.failed.action}
        if self.correct is not None:
            named["correct"] = self.correct
        named.update({f"distractor{i}": action for i, action in enumerate(self.distractors)})
        return named
