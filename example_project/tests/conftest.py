"""The agent's own code, handed to pytest-failgain."""

from __future__ import annotations

import sqlite3

import pytest

from parts_desk.history import History, Message, Request, Turn, render_messages
from parts_desk.warehouse import open_warehouse
from pytest_failgain import FailureCase, Step, Trajectory, UserTurn
from pytest_failgain.harnesses import Harness

from .failures import FAILURES, recorded


def as_history(trajectory: Trajectory) -> History:
    """A trajectory in the words of this project."""
    return History(
        trajectory.system, trajectory.goal, [as_entry(step) for step in trajectory.steps]
    )


def as_entry(step: Step | UserTurn) -> Turn | Request:
    if isinstance(step, UserTurn):
        return Request(step.text)
    problem = (step.error_family or "failed") if step.failed else None
    return Turn(step.action.text, step.observation, step.tool, problem)


def explained(trajectory: Trajectory) -> list[Message]:
    """What the agent shows to its model."""
    return render_messages(as_history(trajectory))


@pytest.fixture(scope="session")
def failgain_harness() -> Harness:
    return explained


@pytest.fixture(scope="session")
def desk_cases() -> list[FailureCase]:
    """The failures of `failures.py`, recorded."""
    return [recorded(failure) for failure in FAILURES]


@pytest.fixture
def db() -> sqlite3.Connection:
    return open_warehouse()
