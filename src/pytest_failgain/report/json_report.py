"""The JSON report. Its format is in `report-1.schema.json` and in docs/reports.md.

Within a version, keys are only added: a reader that ignores what it does not know stays right.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import PurePath
from typing import Any

from pytest_failgain.baseline.comparison import Comparison
from pytest_failgain.baseline.entry import KeptCase
from pytest_failgain.baseline.worst import worst_pairs
from pytest_failgain.report.document import (
    Document,
    MeasurementGroup,
    ReportedCase,
    ReportedMeasurement,
    ReportedRollouts,
)
from pytest_failgain.report.groups import Effect
from pytest_failgain.report.measurements import CAUTION
from pytest_failgain.rollout.results import Rollouts
from pytest_failgain.statistics import Estimate

FORMAT = 1


def json_report(document: Document) -> str:
    """`document` as JSON text, in ASCII: so half of a surrogate pair can be written, too."""
    return json.dumps(_plain(report_dict(document)), indent=1, allow_nan=False) + "\n"


def report_dict(document: Document) -> dict[str, Any]:
    """`document` as JSON's own types; but a value that is not known is NaN here, null in a file."""
    return {
        "failgain_report": FORMAT,
        "version": document.version,
        "settings": [
            {"option": one.flag, "value": one.value, "source": one.source}
            for one in document.settings
        ],
        "counts": {
            "harmful": document.verdicts["harmful"],
            "fine": document.verdicts["fine"],
            "unknown": document.verdicts["unknown"],
            **document.failures,
        },
        "caution": CAUTION,
        "measurements": [
            _measurement(measurement, group, number)
            for number, group in enumerate(document.groups)
            for measurement in group.measurements
        ],
        "rollouts": [
            _rollouts(one, number)
            for number, group in enumerate(document.rollouts)
            for one in group
        ],
        "comparisons": [_comparison(comparison) for comparison in document.comparisons],
        "notes": list(document.notes),
    }


def _plain(value: Any) -> Any:
    """`value` with null for what JSON has no number for, and text for paths."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, PurePath) else value


def _measurement(
    measurement: ReportedMeasurement, group: MeasurementGroup, number: int
) -> dict[str, Any]:
    return {
        "environment": group.environment,
        "harness": measurement.harness,
        "verdict": measurement.verdict,
        "group": number,
        "model": asdict(group.model),
        "n": len(measurement.cases),
        "n_tasks": measurement.n_tasks,
        "n_wanted": group.n_cases,
        "estimates": _estimates(measurement.estimates),
        "compared": None if measurement.effect is None else _effect(measurement.effect),
        "by_construction": measurement.by_construction,
        "warnings": list(measurement.warnings),
        "adaptations": _counted("adaptation", measurement.adaptations),
        "left_out": _counted("condition", measurement.left_out),
        "skips": [{"case": skip.case_id, "reason": skip.reason} for skip in measurement.skips],
        "notes": list(measurement.remarks),
        "cases": [_case(case) for case in measurement.cases],
    }


def _case(case: ReportedCase) -> dict[str, Any]:
    return {
        "case": case.case_id,
        "task": case.task_id,
        "goal": case.goal,
        "action": case.action,
        "correct": case.correct,
        "values": dict(case.values),
        "record": case.record,
        "tokens": [
            {
                "text": case.action[token.start : token.end],
                "start": token.start,
                "end": token.end,
                "before": token.before,
                "after": token.after,
            }
            for token in case.tokens
        ],
    }


def _estimates(estimates: Mapping[str, Estimate]) -> dict[str, Any]:
    return {name: _estimate(estimate) for name, estimate in estimates.items()}


def _estimate(estimate: Estimate) -> dict[str, Any]:
    return {
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "n": estimate.n,
    }


def _effect(effect: Effect) -> dict[str, Any]:
    return {
        "over": effect.over,
        "gain_per_token": _estimate(effect.gain),
        "inversion_removed": None if effect.removed is None else _estimate(effect.removed),
    }


def _counted(what: str, counts: tuple[tuple[str, int], ...]) -> list[dict[str, Any]]:
    return [{what: name, "n": n} for name, n in counts]


def _rollouts(reported: ReportedRollouts, number: int) -> dict[str, Any]:
    result = reported.rollouts
    return {
        "environment": result.environment,
        "harness": result.harness,
        "block": result.block,
        "group": number,
        "setting": _setting(result),
        "n": len(result.rollouts),
        "n_tasks": len({rollout.task_id for rollout in result.rollouts}),
        "n_wanted": result.n_wanted,
        "estimates": _estimates(result.estimates),
        "outcomes": dict(result.outcomes),
        "compared": [
            {
                "over": effect.over,
                "success": _estimate(effect.solved),
                "canonical_repeat_rate": _estimate(effect.repeats),
            }
            for effect in reported.effects
        ],
        "by_construction": result.by_construction,
        "warnings": list(result.warnings),
        "adaptations": _counted("adaptation", result.adaptations),
        "not_started": [{"task": one.task_id, "reason": one.reason} for one in result.not_started],
        "rollouts": [
            {
                "task": rollout.task_id,
                "sample": rollout.sample,
                "outcome": rollout.outcome,
                "turns": [
                    {"action": turn.action, "failed": turn.failed, "writing": turn.writing}
                    for turn in rollout.turns
                ],
            }
            for rollout in result.rollouts
        ],
    }


def _setting(result: Rollouts) -> dict[str, Any]:
    setting = result.setting
    return {
        "variant": setting.variant,
        "model": asdict(setting.model),
        "tasks": list(setting.tasks),
        "max_steps": setting.max_steps,
        "primed": setting.primed,
        "demonstrations": setting.demonstrations,
        "temperature": setting.temperature,
        "samples": setting.samples,
        "seed": setting.seed,
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    return {
        "environment": comparison.now.environment,
        "harness": comparison.now.harness,
        "verdict": comparison.verdict,
        "reason": comparison.reason,
        "changes": [
            {
                "measure": change.measure,
                "before": change.before,
                "now": change.now,
                "difference": _estimate(change.difference),
                "allowed": change.allowed,
                "exceeds": change.exceeds,
                "regressed": change.regressed,
            }
            for change in comparison.changes
        ],
        "added": list(comparison.added),
        "removed": list(comparison.removed),
        "cases": [
            {
                "case": pair.case_id,
                "before": _kept_case(pair.before),
                "now": _kept_case(pair.now),
            }
            for pair in worst_pairs(comparison)
        ],
    }


def _kept_case(case: KeptCase) -> dict[str, Any]:
    return {
        "gain_per_token": case.gain_per_token,
        "repeat_probability": case.repeat_probability,
        "greedy_repeat": case.greedy_repeat,
        "record": case.record,
    }
