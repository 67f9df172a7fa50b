"""What the plugin keeps on pytest's config, under typed keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from pytest_failgain.baseline.comparison import Comparison
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


class Outcome(NamedTuple):
    """What came of the end of a run: what was written, and what went wrong, one line each."""

    written: list[str]
    problems: list[str]


SETTINGS: pytest.StashKey[Settings] = pytest.StashKey()
FINDINGS: pytest.StashKey[Findings] = pytest.StashKey()
OUTCOME: pytest.StashKey[Outcome] = pytest.StashKey()
PROGRESS: pytest.StashKey[Progress] = pytest.StashKey()
