"""Runs calls on a world. The first check that fails decides the family of the error."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_failgain.call_text import Call
from pytest_failgain.environments.tool_calls.calls import ActionFormat
from pytest_failgain.environments.tool_calls.failures import (
    CallError,
    Failure,
    missing_argument,
    repeated_argument,
    too_many_arguments,
    type_error,
    unexpected_argument,
    unknown_tool,
)
from pytest_failgain.environments.tool_calls.tools import TOOLS, ToolSpec
from pytest_failgain.environments.tool_calls.world import World
from pytest_failgain.trajectory import Action, Step


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call did: the world after it, and the runtime's answer or why it failed.

    `tool` is the name of the tool that was reached, None where there is no such tool. After a
    failure `world` is the world before it.
    """

    world: World
    tool: str | None
    answer: str = ""
    failure: Failure | None = None

    def observation(self, verbosity: str = "standard") -> str:
        """What the agent is told, an error at the level of detail `verbosity`."""
        return _whole(self.answer if self.failure is None else self.failure.told(verbosity))

    def step(self, action: Action, verbosity: str = "standard") -> Step:
        """The step in which `action` had this outcome.

        The advice that goes with a failure is its record for the remedy `advised`, unless the
        observation has told it.
        """
        told = self.observation(verbosity)
        if self.failure is None:
            return Step(action, told, tool=self.tool)
        advice = {} if verbosity == "verbose" else {"advised": _whole(self.failure.detail)}
        return Step(action, told, True, self.failure.family, self.tool, advice)


def _whole(text: str) -> str:
    # A model can write half of a surrogate pair, which no tokenizer takes.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def attempt(world: World, action: Action, form: ActionFormat) -> Outcome:
    """Read the action as a call in the format `form`, and run it. Never raises."""
    try:
        call = form.read(action)
    except CallError as error:
        return Outcome(world, None, failure=error.failure)
    return execute(world, call)


def execute(world: World, call: Call) -> Outcome:
    """Run one call. Never raises: what is wrong with the call is in the outcome."""
    tool = TOOLS.get(call.tool)
    if tool is None:
        return Outcome(world, None, failure=unknown_tool(call.tool, list(TOOLS)))
    try:
        changed, result = tool.run(world, **_bind(tool, call))
    except CallError as error:
        return Outcome(world, tool.name, failure=error.failure)
    return Outcome(changed, tool.name, result if isinstance(result, str) else repr(result))


def _bind(tool: ToolSpec, call: Call) -> dict[str, object]:
    names = [parameter.name for parameter in tool.parameters]
    if len(call.positional) > len(names):
        raise CallError(too_many_arguments(tool.name, len(names), len(call.positional), tool.usage))
    arguments: dict[str, object] = {}
    for name, value in (*zip(names, call.positional, strict=False), *call.keywords):
        if name in arguments:
            raise CallError(repeated_argument(tool.name, name, tool.usage))
        arguments[name] = value
    for name in arguments:
        if name not in names:
            raise CallError(unexpected_argument(tool.name, name, names, tool.usage))
    for parameter in tool.parameters:
        if parameter.name not in arguments:
            raise CallError(
                missing_argument(tool.name, parameter.name, parameter.description, tool.usage)
            )
    for parameter in tool.parameters:
        value = arguments[parameter.name]
        if not parameter.kind.accepts(value):
            raise CallError(
                type_error(tool.name, parameter.name, parameter.kind.words, value, tool.usage)
            )
    return arguments
