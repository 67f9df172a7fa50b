"""The files in docs/suites.md, run as a reader would run them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from suite_projects import CONFTEST, HISTORY, write

from fake_scorer import failure_case
from pytest_failgain.case_files import save_cases
from pytest_failgain.suites.reading import read_suites
from pytest_failgain.suites.suite import Suite

PAGE = Path(__file__).parents[2] / "docs" / "suites.md"
BLOCKS = dict(
    re.findall(r"^```yaml\n# (\S+)\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
)


def suites(name: str, folder: Path) -> dict[str, Suite]:
    folder.joinpath("bookings.jsonl").touch()
    return {suite.name: suite for suite in read_suites(BLOCKS[name].encode(), folder)}


def test_the_example_runs_under_the_names_that_the_page_tells(project: pytest.Pytester) -> None:
    project.makeconftest(CONFTEST)
    project.makepyfile(history=HISTORY)
    project.makeini("[pytest]\nmarkers = failgain")
    save_cases([failure_case()], project.path / "bookings.jsonl")
    write(project, BLOCKS["failgain.yaml"])
    result = project.runpytest("-v")
    result.assert_outcomes(passed=3)
    told = re.findall(r"`(failgain\.yaml::[^` ]+)`", PAGE.read_text("utf-8"))
    ran = [line.split()[0] for line in result.outlines if "PASSED" in line]
    assert ran == told


def test_all_files_of_the_page_can_be_read(tmp_path: Path) -> None:
    for name in BLOCKS:
        assert suites(name, tmp_path)
    nightly = suites("failgain-nightly.yaml", tmp_path)
    assert len(nightly["all-remedies"].sources) == 2


def test_every_key_is_on_the_page() -> None:
    from pytest_failgain.suites.reading import SUITE_KEYS

    rows = re.findall(r"^\| (`.*?) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    assert [key for row in rows for key in re.findall(r"`(\w+)`", row)] == [*SUITE_KEYS]
