"""Failure cases written by hand, as a chain of what was said and done.

    case = (
        Transcript("refund-42")
        .system("You handle orders.")
        .tool("refund", parameters={"type": "object", "properties": {"order": {"type": "integer"}}})
        .user("Refund order 42.")
        .step(call("lookup", order=42), "paid 2026-01-03")
        .failing_step(
            call("refund", order="42"),
            error="TypeError: order must be int",
            error_family="type_error",
        )
        .correct(call("refund", order=42))
        .distractors(call("refund", id=42))
        .success("refunded")
        .case()
    )

The fixture `failgain_transcript` starts one, named after the test unless an id is given.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_failgain.errors import CaseError
from pytest_failgain.trajectory import (
    Action,
    FailureCase,
    Observations,
    Step,
    Tool,
    ToolCall,
    Trajectory,
    UserTurn,
)


def call(name: str, /, **arguments: Any) -> ToolCall:
    """A structured call with `arguments` as JSON, in the order given.

    To keep the argument text of a recorded call letter for letter, write `ToolCall(name, text)`.

    Raises:
        CaseError: when an argument has no form in JSON.
    """
    try:
        return ToolCall(name, json.dumps(arguments, ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise CaseError(f"the arguments of call({name!r}, …) are not JSON: {error}") from error


@dataclass(frozen=True, slots=True)
class Transcript:
    """A failure case in the making.

    Every method returns a new transcript, so several cases can branch from a common beginning. An
    action is the exact text that the model emits, a `call(…)`, or an `Action` for both at once.
    Needed are `user` and `failing_step`; all else may be left out. `task_id` is the case id unless
    given; give it to the cases that share a task.

    Raises:
        CaseError: from each method, when it is called twice where once is meant, out of order, or
            with something that is no text.
    """

    case_id: str
    task_id: str | None = None
    _system: str | None = field(default=None, kw_only=True)
    _tools: tuple[Tool, ...] = field(default=(), kw_only=True)
    _goal: str | None = field(default=None, kw_only=True)
    _steps: tuple[Step | UserTurn, ...] = field(default=(), kw_only=True)
    _failed: Step | None = field(default=None, kw_only=True)
    _correct: Action | None = field(default=None, kw_only=True)
    _distractors: tuple[Action, ...] = field(default=(), kw_only=True)
    _other_failed: Step | None = field(default=None, kw_only=True)
    _answers: Mapping[str, str] = field(default_factory=dict, kw_only=True)

    def system(self, text: str) -> Transcript:
        """The system prompt."""
        if self._system is not None:
            raise self._error("has two system prompts; call system(…) once")
        return replace(self, _system=self._text(text, "system"))

    def tool(
        self, name: str, description: str = "", parameters: Mapping[str, Any] | None = None
    ) -> Transcript:
        """A tool that is offered through the chat template; `parameters` is JSON Schema.

        Leave it out where the system prompt describes the tools.
        """
        if any(tool.name == name for tool in self._tools):
            raise self._error(f"has two tools named {name!r}; call tool({name!r}, …) once")
        tool = Tool(self._text(name, "tool"), description, parameters or {})
        return replace(self, _tools=(*self._tools, tool))

    def user(self, text: str) -> Transcript:
        """What the user says: the goal first, after that a turn between two steps."""
        self._check_open("user")
        if self._goal is not None:
            return replace(self, _steps=(*self._steps, UserTurn(self._text(text, "user"))))
        if not self._text(text, "user").strip():
            raise self._error("has an empty goal; give the task to the first user(…)")
        return replace(self, _goal=text)

    def step(
        self,
        action: Action | ToolCall | str,
        observation: str | None = None,
        *,
        failed: bool = False,
        error_family: str | None = None,
        tool: str | None = None,
        records: Mapping[str, str] | None = None,
    ) -> Transcript:
        """A step before the one that is measured, with its answer; None for a plain reply.

        With `failed` it is an earlier failure, which stays in every condition. `tool` is the name
        of the tool that ran, for remedies; where the action is a single `call` of a tool given by
        `tool(…)`, it is known.
        """
        self._check_goal("step")
        self._check_open("step")
        if observation is not None:
            self._text(observation, "step")
        step = Step(
            self._action(action, "step"), observation, failed, error_family, tool, records or {}
        )
        return replace(self, _steps=(*self._steps, step))

    def failing_step(
        self,
        action: Action | ToolCall | str,
        error: str,
        *,
        error_family: str | None = None,
        tool: str | None = None,
        records: Mapping[str, str] | None = None,
    ) -> Transcript:
        """The step whose record is measured, with the error that the runtime answered.

        `error_family` and `tool` (see `step`) are what the remedy `described` tells about it;
        `records` holds texts, by remedy, to write in place of the remedy's own.
        """
        self._check_goal("failing_step")
        if self._failed is not None:
            raise self._error(
                "has two failing steps; a case measures one. Write an earlier failure as "
                "step(…, failed=True), and a further one as a case of its own"
            )
        self._text(error, "failing_step")
        action = self._action(action, "failing_step")
        return replace(self, _failed=Step(action, error, True, error_family, tool, records or {}))

    def other_failed(
        self,
        action: Action | ToolCall | str,
        error: str,
        *,
        error_family: str | None = None,
        tool: str | None = None,
        records: Mapping[str, str] | None = None,
    ) -> Transcript:
        """Another action that fails at the same point, with the error that it would have got.

        The condition `other-failed` writes it in place of the failing step; without it the case is
        left out there. It may be a distractor too.
        """
        if self._other_failed is not None:
            raise self._error("has two other failures; call other_failed(…) once")
        self._text(error, "other_failed")
        action = self._action(action, "other_failed")
        step = Step(action, error, True, error_family, tool, records or {})
        return replace(self, _other_failed=step)

    def correct(self, action: Action | ToolCall | str) -> Transcript:
        """What would have been right instead."""
        if self._correct is not None:
            raise self._error("has two correct actions; call correct(…) once")
        return replace(self, _correct=self._action(action, "correct"))

    def distractors(self, *actions: Action | ToolCall | str) -> Transcript:
        """Other wrong actions, added to the candidates."""
        added = tuple(self._action(action, "distractors") for action in actions)
        return replace(self, _distractors=(*self._distractors, *added))

    def success(self, text: str) -> Transcript:
        """What the runtime would have answered to the failed action, had it worked."""
        return self._answer("success", text)

    def neutral(self, text: str) -> Transcript:
        """An answer to the failed action that tells neither success nor failure."""
        return self._answer("neutral", text)

    def terse(self, text: str) -> Transcript:
        """The error in its shortest form."""
        return self._answer("terse", text)

    def verbose(self, text: str) -> Transcript:
        """The error with all that the runtime could tell."""
        return self._answer("verbose", text)

    def echoed(self, text: str) -> Transcript:
        """The error with the failed action quoted in it."""
        return self._answer("echoed", text)

    def case(self) -> FailureCase:
        """The finished failure case.

        Raises:
            CaseError: when there is no user turn or no failing step, an action stands twice among
                the failing step, the correct action and the distractors, or the other failure is
                the failing step's or the correct action.
        """
        if self._goal is None:
            raise self._error("has no goal; give it with user(…)")
        if self._failed is None:
            raise self._error("has no failing step; give it with failing_step(…)")
        self._check_candidates(self._failed.action)
        self._check_other_failed(self._failed.action)
        return FailureCase(
            case_id=self.case_id,
            task_id=self.case_id if self.task_id is None else self.task_id,
            trajectory=Trajectory(
                system=self._system or "",
                goal=self._goal,
                steps=tuple(
                    self._with_tool(step) if isinstance(step, Step) else step
                    for step in self._steps
                ),
                tools=self._tools,
            ),
            failed=self._with_tool(self._failed),
            correct=self._correct,
            distractors=self._distractors,
            observations=Observations(**self._answers),
            other_failed=self._other_failed and self._with_tool(self._other_failed),
        )

    def _with_tool(self, step: Step) -> Step:
        # Here and not in step(…), so that it does not matter where in the chain tool(…) stands.
        calls = step.action.calls
        known = {tool.name for tool in self._tools}
        if step.tool is None and len(calls) == 1 and calls[0].name in known:
            return replace(step, tool=calls[0].name)
        return step

    def _answer(self, name: str, text: str) -> Transcript:
        if name in self._answers:
            raise self._error(f"has two {name} answers; call {name}(…) once")
        return replace(self, _answers={**self._answers, name: self._text(text, name)})

    def _action(self, action: Action | ToolCall | str, method: str) -> Action:
        if not isinstance(action, Action | ToolCall):
            self._text(action, method)
        try:
            return Action.of(action)
        except CaseError as error:
            raise self._error(f"has an unusable action in {method}(…): {error}") from None

    def _text(self, text: object, method: str) -> str:
        if not isinstance(text, str):
            raise self._error(
                f"has a {type(text).__name__} in {method}(…) where a text is meant: {text!r}"
            )
        return text

    def _check_goal(self, method: str) -> None:
        if self._goal is None:
            raise self._error(f"has {method}(…) before its goal; call user(…) first")

    def _check_open(self, method: str) -> None:
        if self._failed is not None:
            raise self._error(
                f"has {method}(…) after failing_step(…); a case ends at the failure, so put "
                f"{method}(…) before it"
            )

    def _check_candidates(self, failed: Action) -> None:
        methods = {failed: "failing_step(…)"}
        others = [(action, "distractors(…)") for action in self._distractors]
        if self._correct is not None:
            others.insert(0, (self._correct, "correct(…)"))
        for action, method in others:
            if action in methods:
                raise self._error(
                    f"has the action {str(action)!r} both in {methods[action]} and in {method}; "
                    "each candidate must differ"
                )
            methods[action] = method

    def _check_other_failed(self, failed: Action) -> None:
        if self._other_failed is None:
            return
        action = self._other_failed.action
        for other, method in ((failed, "failing_step(…)"), (self._correct, "correct(…)")):
            if action == other:
                raise self._error(
                    f"has the action {str(action)!r} both in {method} and in other_failed(…); "
                    "another action has to fail there"
                )

    def _error(self, problem: str) -> CaseError:
        return CaseError(f"case {self.case_id!r} {problem}")
