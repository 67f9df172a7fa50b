"""The office as an environment: its cases, and what a rollout needs to act in it."""

from __future__ import annotations

from functools import cached_property
from itertools import islice

from pytest_failgain.environments.settings import VERBOSITIES, check_choice
from pytest_failgain.environments.tool_calls.calls import ACTION_FORMATS
from pytest_failgain.environments.tool_calls.cases import (
    CASES_PER_OPERATOR,
    Variant,
    decision_points,
    in_order,
    make_case,
    variants,
)
from pytest_failgain.environments.tool_calls.operators import OPERATORS
from pytest_failgain.environments.tool_calls.prompts import system_prompt
from pytest_failgain.environments.tool_calls.runtime import Outcome, attempt
from pytest_failgain.environments.tool_calls.tasks import Task, make_tasks
from pytest_failgain.environments.tool_calls.tools import TOOLS
from pytest_failgain.environments.tool_calls.world import World
from pytest_failgain.errors import UsageError
from pytest_failgain.trajectory import Action, FailureCase, Trajectory


class ToolCallsEnvironment:
    """An executable office with twelve tools, whose calls fail in twelve ways.

    `action_format` is how calls are written: "python" and "json" as text, with the tools described
    in the system prompt; "native" as structured calls, with the tools offered by schema.
    `verbosity` is how much an error tells: "terse", "standard" or "verbose". Neither changes which
    cases there are.

    Raises:
        UsageError: when `action_format` or `verbosity` is not one of these.
    """

    name = "tool_calls"

    def __init__(
        self, seed: int = 0, action_format: str = "python", verbosity: str = "standard"
    ) -> None:
        check_choice("action_format", action_format, ACTION_FORMATS)
        check_choice("verbosity", verbosity, VERBOSITIES)
        self.seed = seed
        self.verbosity = verbosity
        self._format = ACTION_FORMATS[action_format]

    @property
    def action_format(self) -> str:
        """The name of the format in which calls are written."""
        return self._format.name

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks of the seed, each in a world of its own."""
        return tuple(make_tasks(self.seed))

    @cached_property
    def _variants(self) -> tuple[Variant, ...]:
        points = (point for task in self.tasks for point in decision_points(task))
        return tuple(variant for point in points for variant in variants(point))

    def opening(self, task: Task) -> Trajectory:
        """The trajectory of `task` before any step."""
        native = self._format.instruction is None
        return Trajectory(
            system=system_prompt(self._format),
            goal=task.goal,
            tools=tuple(tool.schema() for tool in TOOLS.values()) if native else (),
        )

    def execute(self, world: World, action: Action) -> Outcome:
        """Run `action`, written in the environment's format, on `world`. Never raises."""
        return attempt(world, action, self._format)

    def cases(self, count: int | None = None) -> tuple[FailureCase, ...]:
        """`count` cases, all of them for None; the first ones are the same for any count.

        The operators take turns, so their counts differ by at most one, and tasks are used again
        only when an operator has no new one left.

        Raises:
            UsageError: when `count` is less than one or more than there are.
        """
        available = CASES_PER_OPERATOR * len(OPERATORS)
        if count is not None and not 1 <= count <= available:
            raise UsageError(
                f"tool_calls cannot give {count} cases: a seed has {available}. Ask for 1 to "
                f"{available}, or for more by joining the cases of several seeds"
            )
        return tuple(
            make_case(variant, self._format, self.opening(variant.point.task), self.verbosity)
            for variant in islice(in_order(self._variants, self.seed), count)
        )
