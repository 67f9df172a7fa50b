"""Solved tasks that are told before another, so that a model sees how it is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_failgain.trajectory import Step, Trajectory, UserTurn


@dataclass(frozen=True, slots=True)
class Demonstration:
    """What a user asked for, and the steps that did it."""

    goal: str
    steps: tuple[Step, ...]


def with_demonstrations(
    trajectory: Trajectory, demonstrations: Sequence[Demonstration]
) -> Trajectory:
    """`trajectory` as the last request in a chat that began with `demonstrations`.

    They become goal, steps and user turns like any other, so every harness renders them.
    """
    for one in reversed(demonstrations):
        steps = (*one.steps, UserTurn(trajectory.goal), *trajectory.steps)
        trajectory = replace(trajectory, goal=one.goal, steps=steps)
    return trajectory
