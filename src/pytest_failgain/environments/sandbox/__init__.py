"""Runs a program that nobody vouches for, with its tests, in a process and folder of its own."""

from __future__ import annotations

from pytest_failgain.environments.sandbox.runner import run_program
from pytest_failgain.environments.sandbox.verdict import Frame, Limits, Trial, Verdict

__all__ = ["Frame", "Limits", "Trial", "Verdict", "run_program"]
