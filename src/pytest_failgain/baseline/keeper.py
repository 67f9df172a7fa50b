"""The baseline as a measurement knows it: where it is, and what is to happen to it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_failgain.baseline.comparison import Comparison, Limits, compare
from pytest_failgain.baseline.entry import Setting, entry_of
from pytest_failgain.baseline.file import read_baseline

if TYPE_CHECKING:
    from pytest_failgain.measurement import Measurement


def ignore_comparison(comparison: Comparison) -> None:
    """Takes comparisons where nobody collects them."""


@dataclass(frozen=True)
class BaselineKeeper:
    """The baseline file at `path`, for measurements that are made with `settings`.

    With `updating`, what is measured is to become the baseline, so that nothing is a regression.
    `model` is the name to give for the model. `on_compared` is told of every comparison.
    """

    path: Path
    settings: Mapping[str, Setting] = field(default_factory=dict)
    updating: bool = False
    model: str | None = None
    on_compared: Callable[[Comparison], None] = ignore_comparison

    @property
    def command(self) -> str:
        """What a user runs to write the baseline."""
        model = ["--failgain-model", self.model] if self.model else []
        return shlex.join(["pytest", *model, "--failgain-update-baseline"])

    def compare(self, measurement: Measurement, limits: Limits) -> Comparison:
        """`measurement` beside its entry in the file.

        Raises:
            UsageError: when the file can't be used.
        """
        now = entry_of(measurement, self.settings)
        before = read_baseline(self.path).get((now.environment, now.harness))
        comparison = compare(now, before, limits)
        if self.updating:
            comparison = replace(comparison, verdict="updated")
        self.on_compared(comparison)
        return comparison
