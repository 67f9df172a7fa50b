"""The figures that the plugin is held to, measured: `python -m benchmarks`."""

from __future__ import annotations
