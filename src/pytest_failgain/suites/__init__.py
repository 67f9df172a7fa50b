"""Suites: tests that a YAML file asks for, without a line of Python. See docs/suites.md."""

from __future__ import annotations
