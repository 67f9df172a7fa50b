"""The page of a study."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from study_models import case_set, load, study_case

from fake_scorer import failure_case
from pytest_failgain.conditions import CONDITIONS
from pytest_failgain.measures import CONTROLS, VARIANTS
from pytest_failgain.report.numbers import signed
from pytest_failgain.scoring.work import Work
from pytest_failgain.study.folder import StudyFolder
from pytest_failgain.study.plan import CaseSet, StudyPlan
from pytest_failgain.study.results import NotMeasured, Study
from pytest_failgain.study.run import run_study
from pytest_failgain.study.summary import study_page


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("study")
    bare = [replace(study_case(f"b{number}"), other_failed=None) for number in range(2)]
    case_sets = (case_set("mails"), CaseSet("notes", (*case_set().cases, *bare)))
    plan = StudyPlan(("small:1000", "large:10000", "missing"), case_sets)
    return run_study(plan, StudyFolder(folder), load)


@pytest.fixture(scope="module")
def page(study: Study) -> str:
    figures = [Path("gain-by-model.png"), Path("breakdowns-mails.png")]
    return study_page(study, "made here", study.scaling(), figures)


def tables(page: str) -> list[list[list[str]]]:
    """The cells of every table, heads first."""
    blocks = [block for block in page.split("\n\n") if block.lstrip().startswith("| ")]
    return [
        [
            [cell.strip() for cell in line.strip("|").split(" | ")]
            for line in block.strip().splitlines()
        ]
        for block in blocks
    ]


def table(page: str, head: str) -> dict[str, list[str]]:
    """The first table whose first head is `head`: its rows by their first cell."""
    found = next(one for one in tables(page) if one[0][0] == head)
    return {row[0]: row[1:] for row in found[2:]}


def test_every_row_of_a_table_has_a_cell_for_each_head(page: str) -> None:
    assert len(tables(page)) > 10
    for heads, *rows in tables(page):
        assert {len(row) for row in rows} == {len(heads)}


def test_all_models_and_cases_are_compared_first(page: str, study: Study) -> None:
    rows = table(page, "model, cases")
    assert list(rows) == ["small, mails", "small, notes", "large, mails", "large, notes"]
    gain = next(
        row
        for row in study.estimates
        if (row.model, row.environment) == ("large", "notes")
        and (row.measure, row.condition) == ("gain_per_token", "failed")
    )
    assert rows["large, notes"][:2] == ["8 (5)", signed(gain)]


def test_each_model_has_its_variants_and_controls(page: str, study: Study) -> None:
    for section in page.split("\n## ")[2:6]:
        variants, controls = table(section, "condition"), table(section, "control")
        assert list(variants) == [name for name in CONDITIONS if name in ("failed", *VARIANTS)]
        assert list(controls) == list(CONTROLS)
    twice = next(
        row
        for row in study.estimates
        if (row.model, row.environment) == ("small", "mails")
        and (row.measure, row.condition) == ("change_from_failed", "twice")
    )
    assert table(page, "condition")["twice"][:1] == ["6"]
    assert table(page, "condition")["twice"][2] == signed(twice, 2)


def test_groups_are_shown_where_there_are_several(page: str) -> None:
    assert list(table(page, "operator")) == ["dropped", "typo"]
    assert not [one for one in tables(page) if one[0][0] == "template"]
    assert "Groups of fewer than 3 cases are left out." in page


def test_nothing_is_silent(page: str) -> None:
    assert "condition other-failed left out for 2 of 8 cases" in page
    assert "by construction: early is the same as failed in 6 of 6 cases" in page
    assert "- missing: there is no model 'missing'" in page
    assert "only 3 tasks" in page
    assert "Repeating less is not succeeding more" in page


def test_a_figure_is_found_whatever_its_cases_are_called() -> None:
    page = study_page(Study(), "made here", pictures=[Path("breakdowns-a%20b.png")])
    assert "![Break-downs of a b](figures/breakdowns-a%2520b.png)" in page


def test_a_part_of_a_model_that_failed_is_named(study: Study) -> None:
    failed = replace(study, not_measured=[NotMeasured("small", "mails", "no memory")])
    assert "- small on mails: no memory" in study_page(failed, "made here")


def test_the_line_over_models_is_shown_with_what_is_so_by_construction(page: str) -> None:
    assert table(page, "cases")["mails"][0] == "2"
    assert "by construction" in page
    assert "## Gain and size" in page
    assert "## Gain and size" not in study_page(Study(), "made here")


def test_work_is_shown_beside_what_a_plain_run_takes(study: Study) -> None:
    cell = replace(study.cells[0], pairs=10, work=Work(8, 2000, 100, 4.0))
    work = table(study_page(Study(cells=[cell]), "made here").split("## Work")[1], "model, cases")
    assert work["small, mails"] == ["10", "8", "2,000", "100", "95.0%", "25", "4 s"]


def test_figures_are_shown_under_their_titles(page: str) -> None:
    assert "![Gain by model](figures/gain-by-model.png)" in page
    assert "![Break-downs of mails](figures/breakdowns-mails.png)" in page


def test_fewer_than_three_cases_are_said_to_have_no_means(tmp_path: Path) -> None:
    plan = StudyPlan(("small",), (CaseSet("few", case_set().cases[:2]),))
    page = study_page(run_study(plan, StudyFolder(tmp_path), load), "made here")
    assert "no means, since 2 cases were measured and 3 are needed" in page
    assert "nan" not in page
    assert [one[0][0] for one in tables(page)] == ["model", "model, cases", "model, cases"]


def test_two_models_have_no_interval_and_no_nan_in_the_page(page: str) -> None:
    assert table(page, "cases")["mails"][1].endswith("[unknown]")
    assert "nan" not in page


def test_before_and_after_are_of_the_same_cases(tmp_path: Path) -> None:
    whole = [study_case(f"w{number}") for number in range(3)]
    bare = [failure_case(f"b{number}", distractors=("post()", "x()")) for number in range(4)]
    plan = StudyPlan(("small",), (CaseSet("mixed", (*whole, *bare)),))
    study = run_study(plan, StudyFolder(tmp_path / "mixed"), load)
    alone = StudyPlan(("small",), (CaseSet("whole", tuple(whole)),))
    apart = run_study(alone, StudyFolder(tmp_path / "whole"), load)
    rows = [table(study_page(one, "made here"), "condition")["terse"] for one in (study, apart)]
    assert rows[0] == rows[1]
    assert rows[0][0] == "3"


def test_one_task_has_means_and_no_intervals(tmp_path: Path) -> None:
    cases = tuple(study_case(f"c{number}", task_id="one") for number in range(4))
    study = run_study(StudyPlan(("small",), (CaseSet("one", cases),)), StudyFolder(tmp_path), load)
    overview = table(study_page(study, "made here"), "model, cases")["small, one"]
    assert overview[1].endswith("[unknown]")
    assert overview[6] == "-"
