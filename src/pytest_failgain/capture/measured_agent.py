"""A measurement of an agent's own harness, with what came of each failing call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

from pytest_failgain.capture.agent import Capture
from pytest_failgain.capture.agent_run import RunAgent
from pytest_failgain.capture.pair import ENVIRONMENT
from pytest_failgain.harnesses import Harness, harness_name
from pytest_failgain.measurement import Measurement, Skip
from pytest_failgain.trajectory import FailureCase
from pytest_failgain.transcripts.recorded import AsRecorded


@dataclass(frozen=True, repr=False)
class AgentMeasurement(Measurement):
    """A measurement as any other, and the `captures` that it was made of, one a failing call.

    Calls that left no record are skipped cases, with the reason.
    """

    captures: tuple[Capture, ...] = ()


def measure_captures(
    run_agent: RunAgent,
    captures: Sequence[Capture],
    measure: Callable[[Harness, Sequence[FailureCase]], Measurement],
) -> AgentMeasurement:
    """Measure the records in `captures`, replayed, with `measure(harness, cases)`."""
    recorded = [capture.recorded for capture in captures if capture.recorded]
    harness = AsRecorded(tuple(recorded), harness_name(run_agent))
    result = measure(harness, [one.case for one in recorded])
    parts = {part.name: getattr(result, part.name) for part in fields(Measurement)}
    parts["environment"] = ENVIRONMENT
    parts["cases"] = tuple(capture.case for capture in captures)
    parts["notes"] = (*result.notes, *_lines(captures))
    missing = [capture for capture in captures if not capture.recorded]
    parts["skips"] = (*result.skips, *(_skip(capture) for capture in missing))
    return AgentMeasurement(**parts, captures=tuple(captures))


def _lines(captures: Sequence[Capture]) -> list[str]:
    """What came of the calls, in a line for all of which the same is to be said."""
    alike: dict[str, list[str]] = {}
    for capture in captures:
        alike.setdefault(capture.account, []).append(capture.case_id)
    return [f"{', '.join(ids)}: {account}" for account, ids in alike.items()]


def _skip(capture: Capture) -> Skip:
    return Skip(capture.case.case_id, f"no record: {capture.reason}")
