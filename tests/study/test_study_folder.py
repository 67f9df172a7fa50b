"""The files of a study."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import fields
from pathlib import Path

import pytest

from pytest_failgain.scoring.work import Work
from pytest_failgain.study.file_names import file_name
from pytest_failgain.study.folder import FolderError, StudyFolder
from pytest_failgain.study.tables import GroupRow

RECORD = {"failgain_study": 1}


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
    StudyFolder(tmp_path).add_work("one", Work(1, 9, 2, 3.0))
    folder = StudyFolder(tmp_path)
    folder.add_work("one", Work(1, 9, 1, 1.0))
    folder.add_work("two", Work(5, 9, 5, 5.0))
    assert folder.work("one") == Work(2, 18, 3, 4.0)
    assert folder.work("two") == Work(5, 9, 5, 5.0)
    assert folder.work("none") == Work()


@pytest.mark.parametrize("text", ["{", "[]", '{"one": {"seconds": 1, "hours": 1}}', '"work"'])
def test_a_damaged_record_of_work_is_named_with_what_to_do(tmp_path: Path, text: str) -> None:
    (tmp_path / "work.json").write_text(text)
    with pytest.raises(FolderError, match=r"work\.json, which counts .* remove it"):
        StudyFolder(tmp_path)


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path)
    folder.write_page("one")
    folder.write_page("two")
    assert [path.name for path in tmp_path.iterdir()] == ["summary.md"]
    assert (tmp_path / "summary.md").read_text() == "two"


def test_what_an_earlier_study_wrote_and_this_did_not_is_removed(tmp_path: Path) -> None:
    first = StudyFolder(tmp_path)
    first.write_table("groups", [group("a", 1.0)])
    first.write_table("scaling", [group("a", 1.0)])
    first.finish(RECORD, [])
    (tmp_path / "tables" / "mine.csv").write_text("not of the study")
    second = StudyFolder(tmp_path)
    second.write_table("groups", [group("b", 1.0)])
    second.finish(RECORD, [])
    assert sorted(path.name for path in (tmp_path / "tables").iterdir()) == [
        "groups.csv",
        "groups.md",
        "mine.csv",
    ]


def test_a_record_can_not_have_files_elsewhere_removed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("keep me")
    out = tmp_path / "out"
    out.mkdir()
    (out / "study.json").write_text(json.dumps({**RECORD, "files": ["../precious", str(precious)]}))
    StudyFolder(out).finish(RECORD, [])
    assert precious.exists()


def test_a_study_under_way_takes_the_page_of_the_one_before(tmp_path: Path) -> None:
    first = StudyFolder(tmp_path)
    first.write_page("what came out")
    first.write_table("scaling", [group("a", 1.0)])
    first.finish(RECORD, [])
    killed = StudyFolder(tmp_path)
    killed.begin(RECORD)
    assert not (tmp_path / "summary.md").exists()
    # What the killed one leaves is known to the next, with what it found.
    killed.write_table("groups", [group("b", 1.0)])
    killed.begin(RECORD)
    third = StudyFolder(tmp_path)
    third.finish(RECORD, [])
    assert list((tmp_path / "tables").iterdir()) == []


@pytest.mark.parametrize("name", ["notes.txt", "summary.md", "study.json"])
def test_a_folder_with_other_files_is_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("{}")
    with pytest.raises(FolderError, match=rf"holds other files \({name}\); choose an empty"):
        StudyFolder(tmp_path)
    assert (tmp_path / name).read_text() == "{}"


def test_names_that_differ_give_files_that_differ(tmp_path: Path) -> None:
    names = ["a/b", "a-b", "a b", "a%2Fb", "\u6a21" * 60, "\u6a21" * 61, "x" * 300, "x" * 301]
    files = {file_name(name) for name in names}
    assert len(files) == len(names)
    for file in files:
        (tmp_path / f"{file}--{file}.jsonl").touch()
