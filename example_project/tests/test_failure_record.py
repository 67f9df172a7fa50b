"""What the record of a failed call does to the model's next call."""

from __future__ import annotations

import pytest

from parts_desk.history import Message, quote_failure, render_messages
from pytest_failgain import (
    Failgain,
    FailureCase,
    Measurement,
    Trajectory,
    assert_corrective_gain_nonnegative,
    assert_inversion_removed,
    assert_no_regression,
    assert_repeat_probability_at_most,
)
from pytest_failgain.harnesses import Harness

from .conftest import as_history


def quoted(trajectory: Trajectory) -> list[Message]:
    """What the agent showed to its model at first: the failed call, its error and a nudge."""
    return render_messages(as_history(trajectory), quote_failure)


@pytest.fixture(scope="module")
def version1(failgain: Failgain, desk_cases: list[FailureCase]) -> Measurement:
    return failgain.measure(quoted, desk_cases)


@pytest.fixture(scope="module")
def version2(
    failgain: Failgain, desk_cases: list[FailureCase], failgain_harness: Harness
) -> Measurement:
    return failgain.measure(failgain_harness, desk_cases)


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="quoting the failed call makes it likelier; this is why version 2 was written",
)
def test_verbatim_record_backfires(version1: Measurement) -> None:
    assert_corrective_gain_nonnegative(version1, tolerance=0.1)


def test_mended_record_does_not_backfire(version2: Measurement) -> None:
    assert_corrective_gain_nonnegative(version2, tolerance=0.1)
    assert_repeat_probability_at_most(version2, 0.25)


def test_the_record_does_no_more_harm_than_the_committed_baseline(version2: Measurement) -> None:
    assert_no_regression(version2)


def test_mending_took_the_inversion_away(version2: Measurement, version1: Measurement) -> None:
    assert_inversion_removed(version2, version1, at_least=0.6)
