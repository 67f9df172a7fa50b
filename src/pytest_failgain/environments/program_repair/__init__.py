"""Programming problems with programs that nearly solve them, executed in a sandbox."""

from __future__ import annotations

from pytest_failgain.environments.program_repair.environment import ProgramRepairEnvironment

__all__ = ["ProgramRepairEnvironment"]
