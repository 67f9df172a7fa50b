"""Regression tests for the way an agent records failed tool calls.

Public names are imported when they are first used, so that a pytest run that only has the plugin
installed pays nothing for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_failgain.assertions import (
        assert_corrective_gain_at_least as assert_corrective_gain_at_least,
    )
    from pytest_failgain.assertions import (
        assert_corrective_gain_nonnegative as assert_corrective_gain_nonnegative,
    )
    from pytest_failgain.assertions import (
        assert_greedy_repeat_rate_at_most as assert_greedy_repeat_rate_at_most,
    )
    from pytest_failgain.assertions import assert_inversion_removed as assert_inversion_removed
    from pytest_failgain.assertions import (
        assert_repeat_probability_at_most as assert_repeat_probability_at_most,
    )
    from pytest_failgain.baseline.assertion import assert_no_regression as assert_no_regression
    from pytest_failgain.blocking.processor import BlockedActions as BlockedActions
    from pytest_failgain.blocking.search import generate_blocked as generate_blocked
    from pytest_failgain.capture.agent import Capture as Capture
    from pytest_failgain.capture.agent import capture_agent as capture_agent
    from pytest_failgain.capture.endpoint import Endpoint as Endpoint
    from pytest_failgain.capture.failing_call import FailingCall as FailingCall
    from pytest_failgain.capture.measured_agent import AgentMeasurement as AgentMeasurement
    from pytest_failgain.capture.script import FailingCallScript as FailingCallScript
    from pytest_failgain.capture.script import Script as Script
    from pytest_failgain.case_files import load_cases as load_cases
    from pytest_failgain.case_files import save_cases as save_cases
    from pytest_failgain.conditions import Condition as Condition
    from pytest_failgain.environments.protocol import Environment as Environment
    from pytest_failgain.environments.protocol import RolloutEnvironment as RolloutEnvironment
    from pytest_failgain.environments.settings import EnvironmentSettings as EnvironmentSettings
    from pytest_failgain.errors import CaseError as CaseError
    from pytest_failgain.errors import ExtensionError as ExtensionError
    from pytest_failgain.errors import FailgainError as FailgainError
    from pytest_failgain.errors import HarnessError as HarnessError
    from pytest_failgain.errors import ModelError as ModelError
    from pytest_failgain.errors import ScoringError as ScoringError
    from pytest_failgain.errors import TranscriptError as TranscriptError
    from pytest_failgain.errors import UsageError as UsageError
    from pytest_failgain.extensions import Extensions as Extensions
    from pytest_failgain.failgain import Failgain as Failgain
    from pytest_failgain.harnesses import Harness as Harness
    from pytest_failgain.harnesses import RemediedHarness as RemediedHarness
    from pytest_failgain.measurement import Measurement as Measurement
    from pytest_failgain.measurement import gain_difference as gain_difference
    from pytest_failgain.measurement import inversion_removed as inversion_removed
    from pytest_failgain.prompt import Prompt as Prompt
    from pytest_failgain.record_checks.assertions import (
        assert_failed_action_absent as assert_failed_action_absent,
    )
    from pytest_failgain.record_checks.assertions import (
        assert_record_tokens_at_most as assert_record_tokens_at_most,
    )
    from pytest_failgain.remedies import Remedy as Remedy
    from pytest_failgain.rollout.assertions import assert_not_stuck as assert_not_stuck
    from pytest_failgain.rollout.assertions import (
        assert_repeat_rate_at_most as assert_repeat_rate_at_most,
    )
    from pytest_failgain.rollout.assertions import (
        assert_success_not_reduced as assert_success_not_reduced,
    )
    from pytest_failgain.rollout.assertions import (
        assert_success_rate_at_least as assert_success_rate_at_least,
    )
    from pytest_failgain.rollout.results import Rollouts as Rollouts
    from pytest_failgain.rollout.results import rollout_difference as rollout_difference
    from pytest_failgain.scoring.protocol import Scorer as Scorer
    from pytest_failgain.scoring.settings import ScorerSettings as ScorerSettings
    from pytest_failgain.statistics import Estimate as Estimate
    from pytest_failgain.trajectory import Action as Action
    from pytest_failgain.trajectory import FailureCase as FailureCase
    from pytest_failgain.trajectory import Observations as Observations
    from pytest_failgain.trajectory import Step as Step
    from pytest_failgain.trajectory import Tool as Tool
    from pytest_failgain.trajectory import ToolCall as ToolCall
    from pytest_failgain.trajectory import Trajectory as Trajectory
    from pytest_failgain.trajectory import UserTurn as UserTurn
    from pytest_failgain.transcript import Transcript as Transcript
    from pytest_failgain.transcript import call as call
    from pytest_failgain.transcripts.read import ReadTranscript as ReadTranscript
    from pytest_failgain.transcripts.read import read_transcript as read_transcript
    from pytest_failgain.transcripts.reader import TranscriptReader as TranscriptReader
    from pytest_failgain.transcripts.repeats import (
        assert_no_repeated_failures as assert_no_repeated_failures,
    )

__version__ = "0.1.0.dev0"

_HOME = {
    "assertions": (
        "assert_corrective_gain_at_least",
        "assert_corrective_gain_nonnegative",
        "assert_greedy_repeat_rate_at_most",
        "assert_inversion_removed",
        "assert_repeat_probability_at_most",
    ),
    "baseline.assertion": ("assert_no_regression",),
    "blocking.processor": ("BlockedActions",),
    "blocking.search": ("generate_blocked",),
    "conditions": ("Condition",),
    "environments.protocol": ("Environment", "RolloutEnvironment"),
    "environments.settings": ("EnvironmentSettings",),
    "extensions": ("Extensions",),
    "harnesses": ("Harness", "RemediedHarness"),
    "rollout.assertions": (
        "assert_not_stuck",
        "assert_repeat_rate_at_most",
        "assert_success_not_reduced",
        "assert_success_rate_at_least",
    ),
    "rollout.results": ("Rollouts", "rollout_difference"),
    "record_checks.assertions": (
        "assert_failed_action_absent",
        "assert_record_tokens_at_most",
    ),
    "remedies": ("Remedy",),
    "scoring.protocol": ("Scorer",),
    "scoring.settings": ("ScorerSettings",),
    "statistics": ("Estimate",),
    "case_files": ("load_cases", "save_cases"),
    "errors": (
        "CaseError",
        "ExtensionError",
        "FailgainError",
        "HarnessError",
        "ModelError",
        "ScoringError",
        "TranscriptError",
        "UsageError",
    ),
    "failgain": ("Failgain",),
    "measurement": ("Measurement", "gain_difference", "inversion_removed"),
    "trajectory": (
        "Action",
        "FailureCase",
        "Observations",
        "Step",
        "Tool",
        "ToolCall",
        "Trajectory",
        "UserTurn",
    ),
    "transcript": ("Transcript", "call"),
    "transcripts.read": ("ReadTranscript", "read_transcript"),
    "transcripts.reader": ("TranscriptReader",),
    "transcripts.repeats": ("assert_no_repeated_failures",),
    "capture.agent": ("Capture", "capture_agent"),
    "capture.endpoint": ("Endpoint",),
    "capture.failing_call": ("FailingCall",),
    "capture.measured_agent": ("AgentMeasurement",),
    "capture.script": ("FailingCallScript", "Script"),
    "prompt": ("Prompt",),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> object:
    from importlib import import_module

    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
