"""What a run leaves in files, and what it says where it can't."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from reported import VERBATIM, everything, findings

from pytest_failgain.closing import close
from pytest_failgain.options import Settings
from pytest_failgain.report import document, html_report
from pytest_failgain.report.outputs import check_outputs
from pytest_failgain.stash import Findings, Outcome


def closed(found: Findings, folder: Path, environ: dict[str, str] | None = None) -> Outcome:
    """The end of a run that is to write both files into a folder that is not there yet."""
    settings = Settings(json=folder / "new" / "out.json", html=folder / "new" / "out.html")
    return close(found, settings, folder, environ or {})


def test_both_files_are_written_and_named(tmp_path: Path) -> None:
    outcome = closed(everything(), tmp_path)
    paths = [tmp_path / "new" / name for name in ("out.json", "out.html")]
    assert outcome.written == [f"report {path}" for path in paths]
    assert outcome.problems == outcome.notes == []
    assert json.loads(paths[0].read_text("utf-8"))["failgain_report"] == 1
    assert paths[1].read_text("utf-8").startswith("<!doctype html>")
    assert len([*paths[0].parent.iterdir()]) == 2


def test_files_that_were_asked_for_are_written_even_if_nothing_was_measured(
    tmp_path: Path,
) -> None:
    outcome = closed(findings(), tmp_path)
    assert len(outcome.written) == 2
    assert json.loads((tmp_path / "new" / "out.json").read_text("utf-8"))["measurements"] == []
    assert "Nothing was measured" in (tmp_path / "new" / "out.html").read_text("utf-8")


def test_nothing_is_written_that_nobody_asked_for(tmp_path: Path) -> None:
    assert close(everything(), Settings(), tmp_path, {}) == Outcome([], [], [])
    assert not [*tmp_path.iterdir()]


def test_a_file_that_can_not_be_written_is_a_problem_and_the_other_is_written(
    tmp_path: Path,
) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "out.json").mkdir()
    outcome = closed(findings(VERBATIM), tmp_path)
    (problem,) = outcome.problems
    assert problem.startswith(f"can't write the report {tmp_path / 'new' / 'out.json'}: ")
    assert "--failgain-json" in problem
    assert outcome.written == [f"report {tmp_path / 'new' / 'out.html'}"]


def test_a_folder_that_can_not_be_made_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "new").write_text("a file")
    outcome = closed(findings(VERBATIM), tmp_path)
    assert len(outcome.problems) == 2
    assert outcome.written == []


def breaks(*_: Any) -> str:
    raise KeyError("no such thing")


def test_a_report_that_breaks_off_leaves_the_file_and_the_other_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html_report, "html_report", breaks)
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "out.html").write_text("of an earlier run")
    outcome = closed(findings(VERBATIM), tmp_path)
    (problem,) = outcome.problems
    assert "KeyError: 'no such thing'" in problem
    assert "--failgain-html" in problem
    assert (tmp_path / "new" / "out.html").read_text("utf-8") == "of an earlier run"
    assert outcome.written == [f"report {tmp_path / 'new' / 'out.json'}"]


def test_findings_that_can_not_be_reported_are_a_problem_of_each_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document, "measurement_groups", breaks)
    outcome = closed(
        findings(VERBATIM), tmp_path, {"GITHUB_STEP_SUMMARY": str(tmp_path / "steps.md")}
    )
    assert len(outcome.problems) == 2
    assert len(outcome.notes) == 1


def test_the_step_summary_is_appended_to_what_is_there(tmp_path: Path) -> None:
    steps = tmp_path / "steps.md"
    steps.write_text("before", "utf-8")
    outcome = close(findings(VERBATIM), Settings(), tmp_path, {"GITHUB_STEP_SUMMARY": str(steps)})
    assert outcome == Outcome([f"step summary {steps}"], [], [])
    assert steps.read_text("utf-8").startswith("before\n## failgain: 1 harmful, 0 fine\n")


@pytest.mark.parametrize("found", [findings(), Findings([], [], [], {"a": "note"})])
def test_nothing_is_appended_where_nothing_was_found(found: Findings, tmp_path: Path) -> None:
    steps = tmp_path / "steps.md"
    outcome = close(found, Settings(), tmp_path, {"GITHUB_STEP_SUMMARY": str(steps)})
    assert outcome == Outcome([], [], [])
    assert not steps.exists()


def test_an_empty_name_is_no_step_summary(tmp_path: Path) -> None:
    found = findings(VERBATIM)
    assert close(found, Settings(), tmp_path, {"GITHUB_STEP_SUMMARY": ""}) == Outcome([], [], [])


def test_a_step_summary_that_can_not_be_written_fails_no_build_but_is_told(
    tmp_path: Path,
) -> None:
    missing = tmp_path / "missing" / "steps.md"
    outcome = close(findings(VERBATIM), Settings(), tmp_path, {"GITHUB_STEP_SUMMARY": str(missing)})
    assert outcome.written == outcome.problems == []
    (note,) = outcome.notes
    assert note.startswith(f"no step summary in {missing} (GITHUB_STEP_SUMMARY): No such file")


def given(**paths: Path) -> Settings:
    return Settings(**paths, sources={name: f"--failgain-{name}" for name in paths})  # type: ignore[arg-type]


def test_outputs_that_can_be_written_are_not_touched(tmp_path: Path) -> None:
    there = tmp_path / "there.json"
    there.write_text("of an earlier run")
    check_outputs(given(json=there, html=tmp_path / "a" / "b" / "out.html"), tmp_path)
    check_outputs(Settings(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["there.json"]
    assert there.read_text() == "of an earlier run"


def test_an_output_below_a_file_is_refused_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "deeper" / "out.html"
    with pytest.raises(
        pytest.UsageError, match=r"^--failgain-html: can't write the report .*out\.html: "
    ):
        check_outputs(given(html=path), tmp_path)


def test_a_folder_is_no_output(tmp_path: Path) -> None:
    with pytest.raises(pytest.UsageError, match=r"^--failgain-json: can't write .*: Is a direc"):
        check_outputs(given(json=tmp_path), tmp_path)


def test_two_reports_do_not_go_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with pytest.raises(
        pytest.UsageError, match=r"^--failgain-json and --failgain-html: both would go to "
    ):
        check_outputs(given(json=path, html=tmp_path / "a" / ".." / "out"), tmp_path)


def test_a_report_does_not_go_over_the_baseline(tmp_path: Path) -> None:
    with pytest.raises(
        pytest.UsageError, match=r"^the baseline and --failgain-json: both would go to "
    ):
        check_outputs(given(json=tmp_path / "failgain-baseline.json"), tmp_path)
    with pytest.raises(pytest.UsageError, match=r"^--failgain-baseline and --failgain-html: both "):
        check_outputs(given(baseline=tmp_path / "a", html=tmp_path / "a"), tmp_path)


def test_a_baseline_that_can_not_be_written_is_told_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    settings = given(baseline=tmp_path / "file" / "kept.json")._replace(
        update_baseline=True, sources={"update_baseline": "--failgain-update-baseline"}
    )
    with pytest.raises(
        pytest.UsageError, match=r"^--failgain-update-baseline: can't write the baseline "
    ):
        check_outputs(settings, tmp_path)
    check_outputs(settings._replace(update_baseline=False), tmp_path)


@pytest.mark.parametrize(("kind", "ending"), [("json", ".json"), ("html", ".html")])
def test_a_file_that_is_no_report_is_not_replaced(tmp_path: Path, kind: str, ending: str) -> None:
    test_file = tmp_path / "test_it.py"
    test_file.write_text("the work of a day")
    with pytest.raises(pytest.UsageError) as caught:
        check_outputs(given(**{kind: test_file}), tmp_path)
    assert str(caught.value) == (
        f"--failgain-{kind}: {test_file} is there already and no {ending} file, so it is not "
        f"replaced by a report; write --failgain-{kind}=FILE{ending}"
    )
    # One that is not there yet may have any name, and a report may be written again.
    check_outputs(given(**{kind: tmp_path / "new"}), tmp_path)
    earlier = tmp_path / f"earlier{ending}"
    earlier.touch()
    check_outputs(given(**{kind: earlier}), tmp_path)
