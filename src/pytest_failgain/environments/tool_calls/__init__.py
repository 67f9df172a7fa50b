"""An office workspace whose tool calls can be executed, and made to fail."""

from __future__ import annotations

from pytest_failgain.environments.tool_calls.environment import ToolCallsEnvironment

__all__ = ["ToolCallsEnvironment"]
