"""Regression tests for the way an agent records failed tool calls."""

from __future__ import annotations

__version__ = "0.1.0.dev0"
