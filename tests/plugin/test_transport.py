"""Findings on their way from a worker of xdist to the controller, without xdist."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fake_scorer import measured, rolled_out, solved_by
from pytest_failgain.baseline.comparison import Comparison
from pytest_failgain.baseline.entry import entry_of
from pytest_failgain.baseline.keeper import BaselineKeeper
from pytest_failgain.stash import Findings, Reader
from pytest_failgain.transport import (
    Sender,
    packed,
    take_from_output,
    take_from_report,
    unpacked,
)

FIRST, SECOND = measured({"a": -1.0}), measured({"b": 0.5})
ROLLOUTS = rolled_out(solved_by())
COMPARISON = Comparison(entry_of(FIRST), None, "missing")


def nothing() -> Findings:
    return Findings([], [], [], {})


def a_report() -> pytest.TestReport:
    return pytest.TestReport(
        "test_it.py::test_it", ("test_it.py", 0, ""), {}, "passed", None, "call"
    )


def finish(sender: Sender) -> None:
    """Call the sender's hook as pytest does when the session ends."""
    hook = sender.pytest_sessionfinish()
    next(hook)
    with pytest.raises(StopIteration):
        next(hook)


def test_each_thing_is_read_once() -> None:
    findings = nothing()
    reader = Reader(findings)
    assert reader.new() == nothing()
    findings.measurements.append(FIRST)
    findings.notes["cases"] = "one is odd"
    assert reader.new() == Findings([FIRST], [], [], {"cases": "one is odd"})
    assert reader.new() == nothing()
    findings.extend(Findings([SECOND], [ROLLOUTS], [COMPARISON], {"scores": "no file"}))
    assert reader.new() == Findings([SECOND], [ROLLOUTS], [COMPARISON], {"scores": "no file"})
    assert reader.new() == nothing()
    assert len(findings.measurements) == 2


def test_note_that_changed_is_read_again() -> None:
    findings = nothing()
    reader = Reader(findings)
    for note in ("one is odd", "two are odd"):
        findings.notes["cases"] = note
        assert reader.new().notes == {"cases": note}


def test_everything_arrives_but_the_way_to_the_baseline() -> None:
    keeper = BaselineKeeper(Path("kept.json"), on_compared=lambda comparison: None)
    found = Findings([replace(FIRST, baseline=keeper)], [ROLLOUTS], [COMPARISON], {"a": "note"})
    arrived = unpacked(packed(found))
    assert arrived == Findings([FIRST], [ROLLOUTS], [COMPARISON], {"a": "note"})
    assert arrived.measurements[0].baseline is None


def test_reports_carry_what_came_up_before_them_and_the_output_the_rest() -> None:
    findings, received = nothing(), nothing()
    output: dict[str, Any] = {"exitstatus": 0}
    sender = Sender(findings, output)
    findings.measurements.append(FIRST)
    first, second = a_report(), a_report()
    sender.pytest_runtest_logreport(first)
    sender.pytest_runtest_logreport(second)
    assert vars(second).keys() == vars(a_report()).keys()
    take_from_report(first, received)
    assert received.measurements == [FIRST]
    assert vars(first).keys() == vars(a_report()).keys()
    findings.measurements.append(SECOND)
    finish(sender)
    # A worker that is interrupted goes down twice.
    take_from_output(output, received)
    take_from_output(output, received)
    assert received.measurements == [FIRST, SECOND]
    assert output == {"exitstatus": 0}


def test_worker_that_found_nothing_sends_nothing() -> None:
    output: dict[str, Any] = {}
    finish(Sender(nothing(), output))
    assert output == {}
