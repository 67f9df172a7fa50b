"""What the plugin keeps on pytest's config, under typed keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from pytest_failgain.baseline.comparison import Comparison
    from pytest_failgain.hooks import HookAnswers
    from pytest_failgain.measurement import Measurement
    from pytest_failgain.options import Settings
    from pytest_failgain.progress import Progress
    from pytest_failgain.rollout.results import Rollouts


class Findings(NamedTuple):
    """What a run found out so far, each list in the order in which it came up.

    `notes` has what there is to know beside it, by subject.
    """

    measurements: list[Measurement]
    rollouts: list[Rollouts]
    comparisons: list[Comparison]
    notes: dict[str, str]

    def extend(self, other: Findings) -> None:
        """Take in what another worker found."""
        self.measurements.extend(other.measurements)
        self.rollouts.extend(other.rollouts)
        self.comparisons.extend(other.comparisons)
        self.notes.update(other.notes)


class Reader:
    """Gives what a run found, each thing once."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._read = Findings([], [], [], {})

    def new(self) -> Findings:
        """What came up, or was said anew, since this was asked last."""
        now, read = self._findings, self._read
        self._read = Findings(
            now.measurements[:], now.rollouts[:], now.comparisons[:], now.notes.copy()
        )
        return Findings(
            now.measurements[len(read.measurements) :],
            now.rollouts[len(read.rollouts) :],
            now.comparisons[len(read.comparisons) :],
            {name: note for name, note in now.notes.items() if read.notes.get(name) != note},
        )


class Outcome(NamedTuple):
    """What came of the end of a run, one line each.

    What was written; what went wrong, which fails the run; and what there is to know beside it.
    """

    written: list[str]
    problems: list[str]
    notes: list[str]


SETTINGS: pytest.StashKey[Settings] = pytest.StashKey()
FINDINGS: pytest.StashKey[Findings] = pytest.StashKey()
OUTCOME: pytest.StashKey[Outcome] = pytest.StashKey()
UNREPORTED: pytest.StashKey[Reader] = pytest.StashKey()
"""What no report of a test tells of yet."""
EXTENSIONS: pytest.StashKey[HookAnswers] = pytest.StashKey()
RUNS_TESTS: pytest.StashKey[bool] = pytest.StashKey()
PROGRESS: pytest.StashKey[Progress] = pytest.StashKey()
