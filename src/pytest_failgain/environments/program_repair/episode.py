"""A programming problem at one point of a rollout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pytest_failgain.environments.program_repair.problems import Problem
from pytest_failgain.environments.program_repair.replies import writing_of
from pytest_failgain.environments.protocol import Acted
from pytest_failgain.trajectory import Action, Step, Trajectory


@dataclass(frozen=True, slots=True)
class ProgramEpisode:
    """`problem` after `trajectory`; `run` tells what comes of a program for it."""

    problem: Problem
    trajectory: Trajectory
    run: Callable[[Problem, Action], Step]
    solved: bool = False

    @property
    def task_id(self) -> str:
        """The name of the problem."""
        return self.problem.name

    def act(self, action: Action) -> Acted:
        """Run the program in `action`. Whatever is wrong with it is in what comes back.

        Raises:
            UsageError: when the platform has no sandbox.
        """
        step = self.run(self.problem, action)
        trajectory = self.trajectory.then(step)
        after = replace(self, trajectory=trajectory, solved=self.solved or not step.failed)
        return Acted(step, after, writing_of(action, step.error_family != "syntax_error"))
