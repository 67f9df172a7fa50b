"""Projects whose conftest.py, or a plugin of theirs, adds to what there is."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parents[1]

IMPORTS = f"""
import sys

import pytest

sys.path.insert(0, {str(TESTS)!r})

from dataclasses import replace

from fake_scorer import FakeScorer, failure_case
from pytest_failgain import Remedy, UserTurn
from pytest_failgain.transcripts.conversation import Call, Conversation, Result, Turn
from pytest_failgain.trajectory import Action
"""

ENVIRONMENT = """
class Rooms:
    name = "rooms"

    def __init__(self, settings):
        self.settings = settings

    def cases(self, count=None):
        return [failure_case(f"room-{i}", environment="rooms") for i in range(count or 5)]


def pytest_failgain_environments(config):
    return {"rooms": Rooms}
"""

REMEDY = """
def apologise(trajectory):
    return trajectory.then(UserTurn("Sorry about that."))


APOLOGISED = Remedy("apologised", apologise)


def pytest_failgain_remedies(config):
    return [APOLOGISED]
"""

READER = """
class Diary:
    name = "diary"

    def recognises(self, document):
        return document.text.startswith("Dear diary")

    def read(self, document):
        _, goal, call, error = document.text.splitlines()
        return [
            Conversation(
                (
                    Turn("user", goal),
                    Turn("assistant", call, calls=(Call(Action(call)),)),
                    Turn("tool", error, results=(Result(error, failed=True),)),
                )
            )
        ]


def pytest_failgain_readers(config):
    return [Diary()]
"""

SCORER = """
GIVEN = []


def make(settings):
    GIVEN.append(settings)
    return FakeScorer()


def pytest_failgain_scorers(config):
    return {"fake": make}
"""

ALL = IMPORTS + ENVIRONMENT + REMEDY + READER + SCORER
