"""What a YAML file asks for, once it is read and checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

VERBATIM = "verbatim"
"""What names the reference harness, where else a function stands."""

NO_REMEDY = "none"
"""What stands among the remedies for the harness as it is."""


@dataclass(frozen=True, slots=True)
class HarnessName:
    """A harness as the file names it, and on which line: `VERBATIM` or "module:function"."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class EnvironmentCases:
    """So many cases of an environment."""

    environment: str
    count: int


@dataclass(frozen=True, slots=True)
class FileCases:
    """The cases in a file; `text` is the path as it was written."""

    path: Path
    text: str


CaseSource = EnvironmentCases | FileCases


@dataclass(frozen=True, slots=True)
class Threshold:
    """Bounds of one value of a summary; at least one of them is given."""

    name: str
    at_least: float | None = None
    at_most: float | None = None


@dataclass(frozen=True, slots=True)
class Regression:
    """That nothing may get worse than in the baseline; None is the assertion's own limit."""

    max_increase: float | None = None
    max_gain_drop: float | None = None


@dataclass(frozen=True, slots=True)
class MarkUse:
    """A mark of pytest's with its arguments, and on which line it stands."""

    name: str
    line: int
    args: tuple[Any, ...] = ()
    kwargs: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite; `line` is that of its name.

    Without `harnesses` it measures what the fixture `failgain_harness` gives. `conditions` is None
    where they are those that every measurement has.
    """

    name: str
    line: int
    sources: tuple[CaseSource, ...]
    harnesses: tuple[HarnessName, ...] = ()
    remedies: tuple[str, ...] = (NO_REMEDY,)
    thresholds: tuple[Threshold, ...] = ()
    regression: Regression | None = None
    conditions: tuple[str, ...] | None = None
    marks: tuple[MarkUse, ...] = ()
