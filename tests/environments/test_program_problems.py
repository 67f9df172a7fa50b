from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_failgain.environments.program_repair.problems import (
    Problem,
    load_problems,
    own_problems,
)
from pytest_failgain.environments.sandbox import Trial
from pytest_failgain.environments.sandbox.trials import TrialRunner
from pytest_failgain.errors import CaseError, UsageError

SANITIZED: dict[str, Any] = {
    "source_file": "a notebook",
    "task_id": 7,
    "prompt": "Write a function to double a number.",
    "code": "def double(n):\n  return 2 * n ",
    "test_imports": ["import math"],
    "test_list": ["assert double(1) == 2", "assert math.isclose(double(0.5), 1)"],
}
FULL: dict[str, Any] = {
    "text": "Write a function to double a number.",
    "code": "def double(n):\r\n  return 2 * n \r\n",
    "task_id": 7,
    "test_setup_code": "import math",
    "test_list": ["assert double(1) == 2", "assert math.isclose(double(0.5), 1)"],
    "challenge_test_list": [],
}
EXPECTED = Problem(
    "mbpp-0007",
    "Write a function to double a number.",
    "def double(n):\n  return 2 * n",
    ("assert double(1) == 2", "assert math.isclose(double(0.5), 1)"),
    ("import math",),
)


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "problems"
        path.write_bytes(text.encode())
        return path

    return write


def test_own_problems_are_many_and_well_tested() -> None:
    problems = own_problems()
    assert len(problems) >= 40
    assert len({problem.name for problem in problems}) == len(problems)
    assert len({problem.prompt for problem in problems}) == len(problems)
    assert min(len(problem.tests) for problem in problems) >= 3


@pytest.mark.slow
def test_own_solutions_pass_their_tests() -> None:
    trials = [Trial(problem.solution, problem.checks) for problem in own_problems()]
    verdicts = TrialRunner().run(trials, "Running solutions")
    assert [verdict.outcome for verdict in verdicts] == ["passed"] * len(trials)


def test_own_problems_are_nobody_elses(mbpp: Path) -> None:
    theirs = load_problems(mbpp)
    taken = {problem.prompt for problem in theirs} | {problem.solution for problem in theirs}
    assert not [p for p in own_problems() if p.prompt in taken or p.solution in taken]


def test_the_sanitized_file_is_read(mbpp: Path) -> None:
    problems = load_problems(mbpp)
    assert len(problems) == 427
    assert problems[0].name == "mbpp-0002"
    assert all(problem.solution == problem.solution.rstrip() for problem in problems)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([SANITIZED]),
        json.dumps([SANITIZED], indent=2),
        json.dumps(SANITIZED),
        json.dumps(FULL),
        json.dumps([FULL]),
        f"\ufeff{json.dumps(FULL)}\r\n\r\n",
    ],
    ids=["sanitized", "indented", "sanitized in lines", "lines", "lines in an array", "windows"],
)
def test_formats_are_told_apart_by_content(written: Callable[[str], Path], text: str) -> None:
    assert load_problems(written(text)) == (EXPECTED,)


def test_a_line_may_hold_characters_that_end_lines_elsewhere(
    written: Callable[[str], Path],
) -> None:
    text = json.dumps({**FULL, "text": "Write\u2028it\x85now."}, ensure_ascii=False)
    (problem,) = load_problems(written(text))
    assert problem.prompt == "Write\u2028it\x85now."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no problem; give sanitized-mbpp.json or mbpp.jsonl"),
        ("[]", "holds no problem"),
        ("[1", "is not JSON"),
        ("nonsense", "line 1: not JSON"),
        (f"{json.dumps(FULL)}\n{{", "line 2: not JSON"),
        ("[1]", "entry 1: expected an object on the line, got the number 1"),
        (json.dumps([{**SANITIZED, "task_id": "7"}]), "entry 1: the field 'task_id' must be a num"),
        (json.dumps([SANITIZED, SANITIZED]), "entry 2: the task 'mbpp-0007' stands there twice"),
        (json.dumps([{**SANITIZED, "test_list": []}]), "'test_list' has no test, so any program"),
        (json.dumps([{**SANITIZED, "code": " \n"}]), "the field 'code' is empty"),
        (json.dumps({**FULL, "test_list": "assert"}), "line 1: the field 'test_list' must be a li"),
        (json.dumps([{"task_id": 1, "code": "a", "test_list": ["b"]}]), "the field 'prompt' is mi"),
    ],
)
def test_a_bad_file_is_refused_with_the_place(
    written: Callable[[str], Path], text: str, message: str
) -> None:
    path = written(text)
    with pytest.raises(CaseError) as caught:
        load_problems(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be read: No such file"):
        load_problems(tmp_path / "missing.json")
    with pytest.raises(UsageError, match="can't be read: Is a directory"):
        load_problems(tmp_path)
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CaseError, match="is not text in UTF-8"):
        load_problems(binary)
