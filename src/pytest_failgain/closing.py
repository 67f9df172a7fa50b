"""The end of a run: what it leaves behind in files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_failgain.baseline.file import update_baseline
from pytest_failgain.errors import UsageError
from pytest_failgain.fixtures import DEFAULT_BASELINE
from pytest_failgain.options import Settings
from pytest_failgain.stash import Findings, Outcome


def close(
    findings: Findings, settings: Settings, rootpath: Path, environ: Mapping[str, str]
) -> Outcome:
    """Write what this run is to write; whatever goes wrong is told, and stops nothing else."""
    outcome = Outcome([], [])
    if settings.update_baseline:
        _update_baseline(findings, settings.baseline or rootpath / DEFAULT_BASELINE, outcome)
    return outcome


def _update_baseline(findings: Findings, path: Path, outcome: Outcome) -> None:
    entries = [one.now for one in findings.comparisons]
    if not entries:
        outcome.problems.append(
            f"the baseline {path} was to be updated, but no test compared anything with it: call "
            "assert_no_regression(result), or ask for it in a failgain.yaml"
        )
        return
    try:
        written = update_baseline(path, entries)
    except UsageError as error:
        outcome.problems.append(str(error))
        return
    names = ", ".join(entry.label for entry in written)
    outcome.written.append(f"baseline {path}: {names or 'unchanged'}")
