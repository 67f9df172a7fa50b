"""What an environment must offer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pytest_failgain.trajectory import FailureCase


class Environment(Protocol):
    """Makes failure cases, the same ones for the same settings.

    `name` stands in reports and test ids.
    """

    @property
    def name(self) -> str: ...

    def cases(self, count: int | None = None) -> Sequence[FailureCase]:
        """`count` cases, spread evenly over the kinds of failure; all of them for None."""
        ...
