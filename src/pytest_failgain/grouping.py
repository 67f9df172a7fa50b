"""Tests that need the model, kept together in one worker of xdist."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

GROUP = "failgain"


def keep_together(items: Iterable[pytest.Item]) -> None:
    """Put the tests that use the fixture `failgain`, by whatever way, into a group of their own.

    A test that is in a group already stays there.
    """
    for item in items:
        used = getattr(item, "fixturenames", ())
        if "failgain" in used and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(GROUP))
