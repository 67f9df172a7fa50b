"""What an environment must offer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pytest_failgain.replies import ReplyStyle
from pytest_failgain.trajectory import Action, FailureCase, Step, Trajectory

# How an action can be written: as the environment takes it; so that it can be read but is none that
# the environment takes; broken off; as something else altogether.
WRITINGS = ("valid", "invalid", "truncated", "prose")


class Environment(Protocol):
    """Makes failure cases, the same ones for the same settings.

    `name` stands in reports and test ids.
    """

    @property
    def name(self) -> str: ...

    def cases(self, count: int | None = None) -> Sequence[FailureCase]:
        """`count` cases, spread evenly over the kinds of failure; all of them for None."""
        ...


@dataclass(frozen=True, slots=True)
class Acted:
    """What came of an action: the step, the episode after it, and how the action was written.

    `writing` is one of `WRITINGS`.
    """

    step: Step
    episode: Episode
    writing: str


class Episode(Protocol):
    """A task at one point of a rollout. It never changes: to act gives another.

    `trajectory` is all that happened, what came before the model drives included; `solved` tells
    whether the task's goal is reached.
    """

    @property
    def task_id(self) -> str: ...

    @property
    def trajectory(self) -> Trajectory: ...

    @property
    def solved(self) -> bool: ...

    def act(self, action: Action) -> Acted:
        """Run `action`. Whatever is wrong with it is in what comes back: this never raises."""
        ...


@runtime_checkable
class RolloutEnvironment(Environment, Protocol):
    """An environment in which a model can drive.

    `variant` tells how the environment is set up, as far as its name does not. `replies` is how the
    model's replies are read, and `reply_tokens` how long one may be, in tokens.
    """

    @property
    def variant(self) -> str: ...

    @property
    def replies(self) -> ReplyStyle: ...

    @property
    def reply_tokens(self) -> int: ...

    def episodes(
        self, count: int, *, primed: bool = False, demonstrations: int = 8
    ) -> Sequence[Episode]:
        """The first `count` tasks, the same ones for the same settings.

        A `primed` episode starts just after a given failure, the last step of its trajectory; those
        are the failures of `cases(count)`. `demonstrations` is the number of other tasks, solved,
        that are told before each task, as turns of the same chat; fewer of them are those that
        would stand nearest to the task.

        Raises:
            UsageError: when there are fewer tasks or demonstrations, or they can't be run here.
        """
        ...
