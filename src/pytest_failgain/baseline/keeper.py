"""The baseline as a measurement knows it: where it is, and what is to happen to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_failgain.baseline.comparison import Comparison, Limits, compare, named
from pytest_failgain.baseline.entry import Entry, Setting, entry_of
from pytest_failgain.baseline.file import read_baseline
from pytest_failgain.errors import UsageError

if TYPE_CHECKING:
    from pytest_failgain.measurement import Measurement


_NAMELESS = "<lambda>"


def ignore_comparison(comparison: Comparison) -> None:
    """Takes comparisons where nobody collects them."""


@dataclass(frozen=True)
class BaselineKeeper:
    """The baseline file at `path`, for measurements that are made with `settings`.

    With `updating`, what is measured is to become the baseline, so that nothing is a regression.
    `command` is what a user runs to write it. `on_compared` is told of every comparison.
    """

    path: Path
    settings: Mapping[str, Setting] = field(default_factory=dict)
    updating: bool = False
    command: str = "pytest --failgain-update-baseline"
    on_compared: Callable[[Comparison], None] = ignore_comparison

    def compare(
        self, measurement: Measurement, limits: Limits, name: str | None = None
    ) -> Comparison:
        """`measurement` beside its entry in the file, which has `name` in place of an environment.

        Raises:
            UsageError: when the file can't be used, or the harness has no name to be found by.
        """
        if _NAMELESS in measurement.harness:
            raise UsageError(
                f"the harness {measurement.harness!r} has no name to be found by in a baseline: "
                "define it with def, or give it an attribute `name`"
            )
        now = entry_of(measurement, self.settings)
        if name is not None:
            now = replace(now, environment=name)
        entries = read_baseline(self.path)
        skipped = {skip.case_id: skip.reason for skip in measurement.skips}
        comparison = replace(
            compare(now, entries.get((now.environment, now.harness)), limits, skipped),
            path=self.path,
        )
        if comparison.verdict == "missing":
            new = "there was none before"
            reason = new if self.updating else self._why_missing(entries.values())
            comparison = replace(comparison, reason=reason)
        if self.updating:
            comparison = replace(comparison, verdict="updated")
        self.on_compared(comparison)
        return comparison

    def _why_missing(self, others: Iterable[Entry]) -> str:
        if not self.path.exists():
            return f"there is no file {self.path}"
        labels = named([entry.label for entry in others])
        return f"{self.path.name} has no entry of that name, but of: {labels or 'nothing'}"
