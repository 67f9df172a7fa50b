"""The end of a run: what it leaves behind in files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

from pytest_failgain.atomic import write_atomically
from pytest_failgain.baseline.comparison import Comparison, named
from pytest_failgain.baseline.entry import Entry
from pytest_failgain.baseline.file import read_baseline, update_baseline
from pytest_failgain.errors import UsageError
from pytest_failgain.options import Settings
from pytest_failgain.report.document import Document, document_of
from pytest_failgain.stash import Findings, Outcome

STEP_SUMMARY = "GITHUB_STEP_SUMMARY"


def close(
    findings: Findings,
    settings: Settings,
    rootpath: Path,
    environ: Mapping[str, str],
    *,
    whole: bool = True,
) -> Outcome:
    """Write what this run is to write; whatever goes wrong is told, and stops nothing else.

    `whole` says that the run did all that there is to do, so that what it did not measure is gone.
    """
    outcome = Outcome([], [], [])
    if settings.update_baseline:
        _update_baselines(findings, settings, rootpath, outcome, whole=whole)

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


def _update_baselines(
    findings: Findings, settings: Settings, rootpath: Path, outcome: Outcome, *, whole: bool
) -> None:
    """Write what was compared into the file that it was compared with."""
    usual = settings.baseline_file(rootpath)
    by_path: dict[Path, list[Comparison]] = {}
    for one in findings.comparisons:
        by_path.setdefault(one.path or usual, []).append(one)
    if not by_path:
        outcome.problems.append(
            f"the baseline {usual} was not updated: {_why_none(usual, settings)}"
        )
    for path, comparisons in by_path.items():
        try:
            written = update_baseline(path, [one.now for one in comparisons], whole=whole)
        except UsageError as error:
            outcome.problems.append(str(error))
            continue
        if not written:
            outcome.notes.append(f"the baseline {path} is as it was")
            continue
        outcome.written.append(f"baseline {path}: {', '.join(entry.label for entry in written)}")
        left_over = [case_id for entry in written for case_id in _not_measured(entry, comparisons)]
        if left_over:
            outcome.notes.append(
                f"kept in {path.name} though not measured, since this run left tests out or did "
                f"not pass: {named(left_over)}"
            )
        gone = [
            case_id
            for entry in written
            for one in _of(entry, comparisons)
            for case_id in one.removed
            if case_id not in entry.cases
        ]
        if gone:
            outcome.notes.append(
                f"taken out of {path.name}, since not measured: {named([*dict.fromkeys(gone)])}"
            )


def _of(entry: Entry, comparisons: Iterable[Comparison]) -> list[Comparison]:
    """Those of what `entry` is of."""
    name = entry.environment, entry.harness
    return [one for one in comparisons if (one.now.environment, one.now.harness) == name]


def _not_measured(entry: Entry, comparisons: Iterable[Comparison]) -> list[str]:
    measured = {case_id for one in _of(entry, comparisons) for case_id in one.now.cases}
    return [case_id for case_id in entry.cases if case_id not in measured]


def _why_none(path: Path, settings: Settings) -> str:
    """Why there is nothing that the baseline could be updated with."""
    if settings.model is None:
        return "no model was given, so all tests that measure were skipped; add --failgain-model"
    try:
        read_baseline(path)
    except UsageError as error:
        return str(error)
    return (
        "no test that was run compared anything with it: call assert_no_regression(result), or ask "
        "for it in a failgain.yaml"
    )


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
