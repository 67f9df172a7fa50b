"""Hypothesis strategies for trajectories, failure cases, tool calls, errors and agents' messages.

All shrink to something short that can be read. hypothesis is imported here and nowhere else.

Raises (when it is imported):
    MissingPackageError: when hypothesis is not installed.
"""

from __future__ import annotations

from pytest_failgain.errors import MissingPackageError

try:
    import hypothesis  # noqa: F401
except ImportError as error:
    raise MissingPackageError(
        "pytest_failgain.strategies needs hypothesis, which is not installed here; "
        "pip install 'pytest-failgain[strategies]'"
    ) from error

from pytest_failgain.strategies.actions import actions as actions
from pytest_failgain.strategies.actions import error_texts as error_texts
from pytest_failgain.strategies.actions import replies as replies
from pytest_failgain.strategies.actions import text_actions as text_actions
from pytest_failgain.strategies.actions import tool_calls as tool_calls
from pytest_failgain.strategies.actions import tools as tools
from pytest_failgain.strategies.messages import chat_messages as chat_messages
from pytest_failgain.strategies.messages import chat_requests as chat_requests
from pytest_failgain.strategies.schemas import schema_values as schema_values
from pytest_failgain.strategies.schemas import schemas as schemas
from pytest_failgain.strategies.texts import json_values as json_values
from pytest_failgain.strategies.texts import texts as texts
from pytest_failgain.strategies.texts import words as words
from pytest_failgain.strategies.trajectories import failure_cases as failure_cases
from pytest_failgain.strategies.trajectories import given_case as given_case
from pytest_failgain.strategies.trajectories import observations as observations
from pytest_failgain.strategies.trajectories import steps as steps
from pytest_failgain.strategies.trajectories import trajectories as trajectories
from pytest_failgain.strategies.trajectories import user_turns as user_turns
