"""A task of the office at one point of a rollout."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pytest_failgain.environments.protocol import Acted
from pytest_failgain.environments.tool_calls.calls import ActionFormat
from pytest_failgain.environments.tool_calls.replies import writing_of
from pytest_failgain.environments.tool_calls.runtime import attempt
from pytest_failgain.environments.tool_calls.tasks import Task
from pytest_failgain.environments.tool_calls.world import World
from pytest_failgain.trajectory import Action, Trajectory


@dataclass(frozen=True, slots=True)
class OfficeEpisode:
    """`task` after `trajectory`, which left the office as `world`."""

    task: Task
    trajectory: Trajectory
    world: World
    form: ActionFormat
    verbosity: str

    @property
    def task_id(self) -> str:
        """The name of the task."""
        return self.task.task_id

    @property
    def solved(self) -> bool:
        """Whether the world is as the task's goal wants it."""
        return self.task.solved(self.world)

    def act(self, action: Action) -> Acted:
        """Make the call that `action` is. Whatever is wrong with it is in what comes back."""
        outcome = attempt(self.world, action, self.form)
        step = outcome.step(action, self.verbosity)
        after = replace(self, trajectory=self.trajectory.then(step), world=outcome.world)
        return Acted(step, after, writing_of(action, outcome))
