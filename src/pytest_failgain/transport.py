"""What a worker of xdist found, on its way to the controller.

It travels with the reports of the tests, so that a worker that crashes takes only that with it
which the test that it was running had found since its last report.
"""

from __future__ import annotations

import base64
import io
import pickle
from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from pytest_failgain.stash import Findings, Reader

# An attribute of reports, and a key of the output that a worker ends with.
_KEY = "failgain_findings"


class Sender:
    """A plugin for a worker: puts what is new in `findings` on each report before it is sent.

    What comes up after the last report, as in finalizers of fixtures, goes into `output`.
    """

    def __init__(self, findings: Findings, output: dict[str, Any]) -> None:
        self._unsent = Reader(findings)
        self._output = output

    # Not as the report is made: some reports are made and never sent, as of tests that are rerun.
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        new = self._unsent.new()
        if any(new):
            try:
                setattr(report, _KEY, packed(new))
            except Exception as error:  # objects of other people's may fail in any way
                _fail(report, "be sent to the main process", error)

    # Around all others but xdist's own, which sends the output.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self) -> Generator[None, object, object]:
        try:
            return (yield)
        finally:
            new = self._unsent.new()
            if any(new):
                self._output[_KEY] = packed(new)


def take_from_report(report: pytest.TestReport, into: Findings) -> None:
    """Move what `Sender` put on a report into `into`; the test fails where that can't be read."""
    try:
        _take(report.__dict__, into)
    except Exception as error:
        _fail(report, "be read in the main process", error)


def _fail(report: pytest.TestReport, what: str, error: Exception) -> None:
    """Let the test fail whose measurements are lost."""
    said = f"what this test measured can't {what}: {type(error).__name__}: {error}"
    report.outcome = "failed"
    report.longrepr = f"{said}; give its cases plain texts, dicts and lists, or run it without -n"


def take_from_output(output: dict[str, Any], into: Findings) -> None:
    """Move what `Sender` put into a worker's output into `into`."""
    _take(output, into)


def _take(source: dict[str, Any], into: Findings) -> None:
    # Taken away, since a worker that was interrupted goes down twice.
    sent = source.pop(_KEY, None)
    if sent is not None:
        into.extend(unpacked(sent))


def packed(findings: Findings) -> str:
    """`findings` as a text."""
    # The link to the baseline leads back to this process.
    measurements = [replace(one, baseline=None) for one in findings.measurements]
    content = io.BytesIO()
    _Plainly(content).dump(findings._replace(measurements=measurements))
    return base64.b85encode(content.getvalue()).decode()


class _Plainly(pickle.Pickler):
    """Writes texts and dicts of kinds that only the worker may know as plain ones."""

    def reducer_override(self, value: object) -> Any:
        if isinstance(value, str):  # one of a subclass: others never come here
            return str, (str.__str__(value),)
        if isinstance(value, Mapping):
            return dict, (dict(value),)
        return NotImplemented


def unpacked(text: str) -> Findings:
    """The findings that `packed` made a text of, in a process of this same run."""
    findings: Findings = pickle.loads(base64.b85decode(text))
    return findings
