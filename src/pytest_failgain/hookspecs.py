"""Hooks by which a conftest.py or another plugin adds to what there is. See docs/extending.md.

What a conftest.py adds is for the tests in its folder, as with any hook of pytest's. Each
implementation is called once in a run, and None adds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_failgain.extensions import EnvironmentFactory, ScorerFactory
    from pytest_failgain.remedies import Remedy
    from pytest_failgain.transcripts.reader import TranscriptReader


def pytest_failgain_environments(config: pytest.Config) -> Mapping[str, EnvironmentFactory] | None:
    """Environments by name, each as a function from `EnvironmentSettings` to the environment.

    They are parameters of `failgain_environment`, known to `failgain.environment` and to suites.
    """


def pytest_failgain_remedies(config: pytest.Config) -> Sequence[Remedy] | None:
    """Remedies, which can be joined with the built-in ones.

    They are parameters of `failgain_remedy`, known to `failgain.remedy` and to suites.
    """


def pytest_failgain_readers(config: pytest.Config) -> Sequence[TranscriptReader] | None:
    """Readers of transcripts, which `failgain.read_transcript` asks before the built-in ones."""


def pytest_failgain_scorers(config: pytest.Config) -> Mapping[str, ScorerFactory] | None:
    """Scorers by name, each as a function from `ScorerSettings` to the scorer.

    `--failgain-model name` chooses one, and so does `--failgain-model name:model`.
    """


PREFIX = "pytest_failgain_"
HOOKS = tuple(name for name in vars() if name.startswith(PREFIX))
