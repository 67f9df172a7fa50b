"""What the plugin keeps on pytest's config, under typed keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_failgain.measurement import Measurement
    from pytest_failgain.options import Settings
    from pytest_failgain.progress import Progress
    from pytest_failgain.rollout.results import Rollouts

SETTINGS: pytest.StashKey[Settings] = pytest.StashKey()
MEASUREMENTS: pytest.StashKey[list[Measurement]] = pytest.StashKey()
ROLLOUTS: pytest.StashKey[list[Rollouts]] = pytest.StashKey()
NOTES: pytest.StashKey[dict[str, str]] = pytest.StashKey()
PROGRESS: pytest.StashKey[Progress] = pytest.StashKey()
