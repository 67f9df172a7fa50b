"""What an agent did so far, and one failure in it. Plain frozen data: no torch, no pytest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_failgain.errors import CaseError


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
    """

    action: Action
    observation: str | None
    failed: bool = False
    error_family: str | None = None
    tool: str | None = None
    records: Mapping[str, str] = field(default_factory=dict)


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

    `neutral` says neither that it worked nor that it failed. The others are None where they are
    not known; a condition that needs one is then left out for the case, and counted.
    """

    neutral: str = "The call was received."
    success: str | None = None
    terse: str | None = None
    verbose: str | None = None
    echoed: str | None = None


@dataclass(frozen=True, slots=True)
class FailureCase:
    """A decision point, the step that failed there, and what to compare it with.

    `trajectory` ends *before* the failed step. `task_id` groups the cases that share a task: the
    confidence intervals resample tasks, since cases of one task are not independent.

    Raises:
        CaseError: when the failed step is not marked as failed, has no error text, or is also
            given as a correct action or a distractor.
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

    def __post_init__(self) -> None:
        if not self.failed.failed:
            raise CaseError(f"case {self.case_id!r}: the failed step is not marked failed=True")
        if self.failed.observation is None:
            raise CaseError(
                f"case {self.case_id!r}: the failed step has no observation; give the error text "
                "that the runtime answered (an empty string if it answered nothing)"
            )
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

    def candidates(self) -> dict[str, Action]:
        """The fixed candidate set by name: `failed`, `correct` if known, `distractor0`, …"""
        named = {"failed": self.failed.action}
        if self.correct is not None:
            named["correct"] = self.correct
        named.update({f"distractor{i}": action for i, action in enumerate(self.distractors)})
        return named
