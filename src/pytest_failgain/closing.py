"""The end of a run: what it leaves behind in files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from pytest_failgain.atomic import write_atomically
from pytest_failgain.baseline.file import update_baseline
from pytest_failgain.errors import UsageError
from pytest_failgain.fixtures import DEFAULT_BASELINE
from pytest_failgain.options import Settings
from pytest_failgain.report.document import Document, document_of
from pytest_failgain.stash import Findings, Outcome

STEP_SUMMARY = "GITHUB_STEP_SUMMARY"


def close(
    findings: Findings, settings: Settings, rootpath: Path, environ: Mapping[str, str]
) -> Outcome:
    """Write what this run is to write; whatever goes wrong is told, and stops nothing else."""
    outcome = Outcome([], [], [])
    if settings.update_baseline:
        _update_baseline(findings, settings.baseline or rootpath / DEFAULT_BASELINE, outcome)

    @cache
    def document() -> Document:
        return document_of(findings, settings)

    if settings.json:
        _write_report("json", settings.json, lambda: _json(document()), outcome)
    if settings.html:
        _write_report("html", settings.html, lambda: _html(document()), outcome)
    if environ.get(STEP_SUMMARY) and any(findings[:3]):
        _append_summary(Path(environ[STEP_SUMMARY]), document, outcome)
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


def _write_report(kind: str, path: Path, text: Callable[[], str], outcome: Outcome) -> None:
    try:
        content = text().encode()
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
    except Exception as error:  # the others are still to be written
        outcome.problems.append(
            f"can't write the report {path}: {_reason(error)}; see --failgain-{kind}"
        )
        return
    outcome.written.append(f"report {path}")


def _append_summary(path: Path, document: Callable[[], Document], outcome: Outcome) -> None:
    """Append to the summary of a step of GitHub Actions, as everything in the step does."""
    from pytest_failgain.report.github import step_summary

    try:
        text = step_summary(document())
        with path.open("a", encoding="utf-8") as file:
            file.write(f"\n{text}")
    except Exception as error:
        # Nobody asked for it but the runner, so that a build must not fail for want of it.
        outcome.notes.append(f"no step summary in {path} ({STEP_SUMMARY}): {_reason(error)}")
        return
    outcome.written.append(f"step summary {path}")


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return f"{type(error).__name__}: {error} (a mistake of pytest-failgain's: please report it)"


def _json(document: Document) -> str:
    from pytest_failgain.report.json_report import json_report

    return json_report(document)


def _html(document: Document) -> str:
    from pytest_failgain.report.html_report import html_report

    return html_report(document)
