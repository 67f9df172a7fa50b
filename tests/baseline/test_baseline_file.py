from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kept_entries import entries, entry, kept

from pytest_failgain.baseline.entry import Entry
from pytest_failgain.baseline.file import read_baseline, update_baseline
from pytest_failgain.errors import UsageError
from strategies import quick

MINE = entry({"a": kept(-0.5, record="one\ntwo"), "b": kept(0.25, None)}, seed=0)
OTHER = entry({"a": kept()}, harness="other")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "failgain-baseline.json"


@quick
@given(st.lists(entries, max_size=3, unique_by=lambda one: (one.environment, one.harness)))
def test_entries_are_read_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, some: list[Entry]
) -> None:
    path = tmp_path_factory.mktemp("baseline") / "kept.json"
    assert update_baseline(path, some) == some
    assert read_baseline(path) == {(one.environment, one.harness): one for one in some}
    written = path.read_bytes() if some else None
    assert update_baseline(path, reversed(some)) == []
    assert (path.read_bytes() if some else None) == written


def test_where_there_is_no_file_there_is_no_entry(path: Path) -> None:
    assert read_baseline(path) == {}


def test_a_diff_shows_each_value_and_each_line_of_a_record(path: Path) -> None:
    update_baseline(path, [MINE])
    before = path.read_text().splitlines()
    update_baseline(path, [entry({"a": kept(-0.5, record="one\n2"), "b": kept(0.5, None)}, seed=0)])
    after = path.read_text().splitlines()
    changed = [(old.strip(), new.strip()) for old, new in zip(before, after, strict=True)]
    assert [pair for pair in changed if pair[0] != pair[1]] == [
        ('"two"', '"2"'),
        ('"gain_per_token": 0.25,', '"gain_per_token": 0.5,'),
    ]
    assert path.read_bytes().endswith(b"}\n")


def test_only_what_was_measured_changes(path: Path) -> None:
    update_baseline(path, [MINE, OTHER])
    changed = entry({"c": kept()}, harness="other")
    assert update_baseline(path, [changed]) == [changed]
    assert list(read_baseline(path).values()) == [MINE, changed]


def test_cases_that_a_part_of_a_run_did_not_measure_stay(path: Path) -> None:
    update_baseline(path, [OTHER, MINE])
    part = entry({"b": kept(0.75, None), "c": kept()}, seed=0)
    (written,) = update_baseline(path, [part], whole=False)
    assert written.cases == {**MINE.cases, **part.cases}
    assert [*read_baseline(path).values()] == [written, OTHER]


def test_cases_that_a_whole_run_did_not_measure_go(path: Path) -> None:
    update_baseline(path, [MINE])
    part = entry({"b": kept(0.25, None)}, seed=0)
    assert update_baseline(path, [part]) == [part]
    assert read_baseline(path) == {("own cases", "mine"): part}


def test_cases_of_other_settings_do_not_stay(path: Path) -> None:
    update_baseline(path, [MINE])
    part = entry({"b": kept()}, seed=1)
    assert update_baseline(path, [part], whole=False) == [part]


def test_values_that_differ_by_rounding_leave_the_file_alone(path: Path) -> None:
    update_baseline(path, [OTHER])
    before = path.stat()
    assert update_baseline(path, [entry({"a": kept(0.0005)}, harness="other")]) == []
    assert path.stat() == before


def test_entries_of_one_name_are_written_as_one(path: Path) -> None:
    update_baseline(path, [entry({"a": kept()}), entry({"b": kept()})])
    (whole,) = read_baseline(path).values()
    assert list(whole.cases) == ["a", "b"]


def test_entries_that_disagree_leave_the_file_alone(path: Path) -> None:
    update_baseline(path, [OTHER])
    before = path.read_bytes()
    with pytest.raises(UsageError, match="measured twice"):
        update_baseline(path, [entry({"a": kept(1.0)}), entry({"a": kept(2.0)})])
    assert path.read_bytes() == before


def test_half_characters_survive(path: Path) -> None:
    odd = entry({"a": kept(record="half \ud800 done")})
    update_baseline(path, [odd])
    assert read_baseline(path)["own cases", "mine"] == odd


def test_folders_on_the_way_are_made(tmp_path: Path) -> None:
    path = tmp_path / "some" / "folder" / "kept.json"
    update_baseline(path, [MINE])
    assert [found.name for found in path.parent.iterdir()] == ["kept.json"]


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"can't write the baseline .*; make it writable"):
        update_baseline(Path("/proc/kept.json"), [MINE])


def test_a_file_where_a_folder_should_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"can't read the baseline .*Not a directory"):
        update_baseline(tmp_path / "file" / "kept.json", [MINE])


def test_a_folder_in_its_place_is_told(path: Path) -> None:
    path.mkdir()
    with pytest.raises(UsageError, match=f"can't read the baseline {path}"):
        read_baseline(path)


def broken(path: Path, change: Callable[[dict[str, Any]], None]) -> str:
    """The error for the file with a change in it."""
    update_baseline(path, [MINE])
    whole = json.loads(path.read_text())
    change(whole)
    path.write_text(json.dumps(whole))
    with pytest.raises(UsageError) as caught:
        read_baseline(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def mine(whole: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = whole["entries"]["own cases"]["mine"]
    return found


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda whole: whole.update(failgain_baseline=2), "of format 2, .* reads 1"),
        (lambda whole: whole.pop("failgain_baseline"), "'failgain_baseline' is missing"),
        (lambda whole: whole.update(entires={}), "no field 'entires'; did you mean 'entries'"),
        (lambda whole: whole.update(entries=[]), "'entries' must be an object"),
        (lambda whole: whole["entries"].update({"own cases": 1}), "'entries.own cases' must be"),
        (lambda whole: mine(whole).pop("model"), "mine.model' is missing"),
        (lambda whole: mine(whole)["model"].pop("dtype"), "mine.model.dtype' is missing"),
        (lambda whole: mine(whole)["model"].update(dtype=None), "mine.model.dtype' must be a str"),
        (lambda whole: mine(whole).update(settings=3), "mine.settings' must be an object"),
        (lambda whole: mine(whole)["cases"].update(a=[]), "'entries.own cases.mine.cases.a'"),
        (lambda whole: mine(whole)["cases"]["a"].pop("task"), "cases.a.task' is missing"),
        (
            lambda whole: mine(whole)["cases"]["a"].update(gain_per_token="x"),
            "cases.a.gain_per_token' must be a finite number, got the string 'x'",
        ),
        (
            lambda whole: mine(whole)["cases"]["a"].update(gain_per_token=float("nan")),
            "cases.a.gain_per_token' must be a finite number, got the number nan",
        ),
        (
            lambda whole: mine(whole)["cases"]["a"].update(gain_per_token=True),
            "cases.a.gain_per_token' must be a finite number, got true",
        ),
        (lambda whole: mine(whole).pop("settings"), "mine.settings' is missing"),
        (lambda whole: mine(whole)["model"].pop("revision"), "model.revision' is missing"),
        (
            lambda whole: mine(whole)["cases"]["a"].pop("repeat_probability"),
            "cases.a.repeat_probability' is missing",
        ),
        (lambda whole: mine(whole)["cases"]["a"].pop("record"), "cases.a.record' is missing"),
        (
            lambda whole: mine(whole)["cases"]["a"].pop("greedy_repeat"),
            "cases.a.greedy_repeat' is missing",
        ),
        (
            lambda whole: mine(whole)["cases"]["a"].update(repeat_probability=5.0),
            "cases.a.repeat_probability' must be between 0 and 1, not 5.0",
        ),
        (
            lambda whole: mine(whole)["cases"]["a"].update(gain_per_token=10**400),
            "cases.a.gain_per_token' must be a finite number, got the number 1000",
        ),
        (
            lambda whole: mine(whole)["cases"]["a"].update(repeat_probability=[]),
            "cases.a.repeat_probability' must be a finite number",
        ),
        (
            lambda whole: mine(whole)["cases"]["a"].update(greedy_repeat="no"),
            "cases.a.greedy_repeat' must be true or false",
        ),
        (
            lambda whole: mine(whole)["cases"]["a"].update(record="text"),
            "cases.a.record' must be a list",
        ),
    ],
)
def test_a_field_that_does_not_fit_is_named(
    path: Path, change: Callable[[dict[str, Any]], None], said: str
) -> None:
    message = broken(path, change)
    assert re.search(said, message), message
    assert "restore it, or delete it and write it anew with --failgain-update-baseline" in message


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "can't be used: it is empty"),
        ("[]", "can't be used: it holds no JSON object"),
        ("{" * 100_000, "can't be used"),
        ('{"failgain_baseline": 1, "failgain_baseline": 1}', "'failgain_baseline' stands twice"),
        (
            '<<<<<<< ours\n{}\n=======\n{"a": 1}\n>>>>>>> theirs',
            "holds both sides of a merge (line 1): take one",
        ),
    ],
)
def test_a_file_that_is_no_baseline_is_told(path: Path, content: str, said: str) -> None:
    path.write_text(content)
    with pytest.raises(UsageError, match="the baseline") as caught:
        read_baseline(path)
    assert said in str(caught.value)


def test_a_file_that_is_no_text_is_told(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="can't read the baseline"):
        read_baseline(path)


def test_a_damaged_file_is_not_written_over(path: Path) -> None:
    path.write_text("{")
    with pytest.raises(UsageError, match="can't be used"):
        update_baseline(path, [MINE])
    assert path.read_text() == "{"


def test_a_link_to_the_file_stays_a_link(tmp_path: Path, path: Path) -> None:
    target = tmp_path / "target.json"
    update_baseline(target, [OTHER])
    path.symlink_to(target)
    update_baseline(path, [MINE])
    assert path.is_symlink()
    assert len(read_baseline(target)) == 2


def test_the_files_permissions_stay(path: Path) -> None:
    update_baseline(path, [OTHER])
    os.chmod(path, 0o640)
    update_baseline(path, [MINE])
    assert path.stat().st_mode & 0o777 == 0o640
