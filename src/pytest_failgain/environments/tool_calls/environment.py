"""The office as an environment: its cases, and what a rollout needs to act in it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import islice

from pytest_failgain.environments.demonstrations import with_demonstrations
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
from pytest_failgain.environments.tool_calls.demonstrations import demonstrations as solved_before
from pytest_failgain.environments.tool_calls.episode import OfficeEpisode
from pytest_failgain.environments.tool_calls.operators import OPERATORS
from pytest_failgain.environments.tool_calls.prompts import system_prompt
from pytest_failgain.environments.tool_calls.replies import reply_style
from pytest_failgain.environments.tool_calls.rollout_tasks import rollout_tasks
from pytest_failgain.environments.tool_calls.runtime import Outcome, attempt
from pytest_failgain.environments.tool_calls.tasks import Task, make_tasks
from pytest_failgain.environments.tool_calls.tools import TOOLS
from pytest_failgain.environments.tool_calls.world import World
from pytest_failgain.errors import UsageError
from pytest_failgain.replies import ReplyStyle
from pytest_failgain.trajectory import Action, FailureCase, Trajectory

# A task, what happened in it so far, and what that made of the office.
_Start = tuple[Task, Trajectory, World]


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
    # The longest call of a solution takes 96 of SmolLM2's tokens, written in JSON.
    reply_tokens = 128

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

    @property
    def variant(self) -> str:
        """The format of calls, the detail of errors and the seed."""
        return f"{self.action_format} calls, {self.verbosity} errors, seed {self.seed}"

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks of the seed, each in a world of its own."""
        return tuple(make_tasks(self.seed))

    @cached_property
    def _rollout_tasks(self) -> tuple[Task, ...]:
        return rollout_tasks(self.seed, self.tasks)

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

    @cached_property
    def replies(self) -> ReplyStyle:
        """How a model's replies are read as calls; in the native format none is a call."""
        return reply_style(self._format)

    def cases(self, count: int | None = None) -> tuple[FailureCase, ...]:
        """`count` cases, all of them for None; the first ones are the same for any count.

        The operators take turns, so their counts differ by at most one, and tasks are used again
        only when an operator has no new one left.

        Raises:
            UsageError: when `count` is less than one or more than there are.
        """
        return tuple(map(self._case, self._chosen(count)))

    def _chosen(self, count: int | None) -> Iterator[Variant]:
        available = CASES_PER_OPERATOR * len(OPERATORS)
        if count is not None and not 1 <= count <= available:
            raise UsageError(
                f"tool_calls cannot give {count} cases: a seed has {available}. Ask for 1 to "
                f"{available}, or for more by joining the cases of several seeds"
            )
        return islice(in_order(self._variants, self.seed), count)

    def _case(self, variant: Variant) -> FailureCase:
        opening = self.opening(variant.point.task)
        return make_case(variant, self._format, opening, self.verbosity)

    def episodes(
        self, count: int, *, primed: bool = False, demonstrations: int = 8
    ) -> tuple[OfficeEpisode, ...]:
        """The first `count` tasks: those that one call solves and longer ones take turns.

        See `protocol.RolloutEnvironment` for `primed` and `demonstrations`.

        Raises:
            UsageError: when there are fewer tasks, cases or demonstrations, or calls are written in
                the native format.
        """
        if self._format.instruction is None:
            raise UsageError(
                "tool_calls cannot be driven in the format 'native', since replies can't be read "
                'as structured calls yet: use action_format "python" or "json"'
            )
        told = solved_before(self._format)
        if not 0 <= demonstrations <= len(told):
            raise UsageError(
                f"tool_calls cannot give {demonstrations} demonstrations: ask for 0 to {len(told)}"
            )
        starts = self._primed(count) if primed else self._free(count)
        return tuple(
            OfficeEpisode(
                task,
                with_demonstrations(trajectory, told[len(told) - demonstrations :]),
                world,
                self._format,
                self.verbosity,
            )
            for task, trajectory, world in starts
        )

    def _free(self, count: int) -> Iterator[_Start]:
        tasks = self._rollout_tasks
        if not 1 <= count <= len(tasks):
            raise UsageError(
                f"tool_calls cannot give {count} tasks: a seed has {len(tasks)}. Ask for 1 to "
                f"{len(tasks)}, or for more by joining those of several seeds"
            )
        for task in tasks[:count]:
            yield task, self.opening(task), task.world

    def _primed(self, count: int) -> Iterator[_Start]:
        for variant in self._chosen(count):
            case, point = self._case(variant), variant.point
            yield point.task, case.trajectory.then(case.failed), point.world
