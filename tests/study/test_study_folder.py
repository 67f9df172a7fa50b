"""The files of a study."""

from __future__ import annotations

import csv
import math
from dataclasses import fields
from pathlib import Path

from pytest_failgain.scoring.work import Work
from pytest_failgain.study.folder import StudyFolder
from pytest_failgain.study.tables import GroupRow


def group(name: str, value: float) -> GroupRow:
    return GroupRow(
        "org/model", "mails", "operator", name, "gain", "failed", "nats", value, math.nan, 1.0, 3, 2
    )


def test_a_table_holds_every_digit_for_programs_and_four_for_people(tmp_path: Path) -> None:
    StudyFolder(tmp_path).write_table("groups", [group("a|b", 1 / 3)])
    with (tmp_path / "tables" / "groups.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert list(row) == [column.name for column in fields(GroupRow)]
    assert row["group"] == "a|b"
    assert float(row["value"]) == 1 / 3
    assert row["low"] == ""
    heads, _, line = (tmp_path / "tables" / "groups.md").read_text("utf-8").splitlines()
    assert heads.startswith("| model | environment | by | group |")
    assert "| a\\|b |" in line
    assert "| 0.3333 |  | 1 |" in line


def test_an_empty_table_is_not_written(tmp_path: Path) -> None:
    StudyFolder(tmp_path).write_table("groups", [])
    assert not (tmp_path / "tables").exists()


def test_work_adds_up_by_what_it_was_for(tmp_path: Path) -> None:
    StudyFolder(tmp_path).add_work("one", Work(1, 2, 3.0))
    folder = StudyFolder(tmp_path)
    folder.add_work("one", Work(1, 1, 1.0))
    folder.add_work("two", Work(5, 5, 5.0))
    assert folder.work("one") == Work(2, 3, 4.0)
    assert folder.work("two") == Work(5, 5, 5.0)
    assert folder.work("none") == Work()


def test_a_damaged_record_of_work_starts_anew(tmp_path: Path) -> None:
    (tmp_path / "work.json").write_text("{")
    folder = StudyFolder(tmp_path)
    folder.add_work("one", Work(1, 2, 3.0))
    assert folder.work("one") == Work(1, 2, 3.0)


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path)
    folder.write_text("page.md", "one")
    folder.write_text("page.md", "two")
    assert [path.name for path in tmp_path.iterdir()] == ["page.md"]
    assert (tmp_path / "page.md").read_text() == "two"
