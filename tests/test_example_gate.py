"""The example project's build: red after a bad change of its prompt, green without one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pytest_failgain.models import default_cache_dir

EXAMPLE = Path(__file__).parents[1] / "example_project"
# Taken here, since pytester gives the runs in it another home.
CACHE = default_cache_dir()

GATE = "test_the_record_does_no_more_harm_than_the_committed_baseline"

pytestmark = pytest.mark.model


@pytest.fixture
def example(pytester: pytest.Pytester) -> pytest.Pytester:
    shutil.copytree(EXAMPLE, pytester.path, dirs_exist_ok=True)
    return pytester


def edit(example: pytest.Pytester, old: str, new: str) -> None:
    """Change one place of the agent's prompts."""
    file = example.path / "src" / "parts_desk" / "history.py"
    text = file.read_text("utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), "utf-8")


def build(example: pytest.Pytester, *args: str) -> pytest.RunResult:
    return example.runpytest_subprocess(
        "--failgain-model=smollm2-135m-q4_1",
        f"--failgain-cache-dir={CACHE}",
        "tests/test_failure_record.py",
        f"-k={GATE}",
        *args,
    )


def test_the_committed_prompt_is_green(example: pytest.Pytester) -> None:
    result = build(example)
    result.assert_outcomes(passed=1, deselected=3)
    result.stdout.fnmatch_lines(["explained on own cases: no regression: repeat probability*"])


def test_quoting_the_failed_call_is_red_and_says_so_on_the_first_line(
    example: pytest.Pytester,
) -> None:
    edit(example, "= explain_failure\n", "= quote_failure\n")
    result = build(example)
    result.assert_outcomes(failed=1, deselected=3)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    errors = [line for line in result.outlines if line.startswith("E  ")]
    assert errors[0].startswith(
        "E       AssertionError: explained on own cases: regression against "
        "failgain-baseline.json: repeat probability 0.1"
    )
    result.stdout.fnmatch_lines(
        [
            "E       record of *:",
            "E         -Note from the desk: a call to *",
            "E         +*That call did not work. Read the error, fix the call and try again.*",
        ]
    )


def test_another_wording_of_the_explanation_stays_green(example: pytest.Pytester) -> None:
    edit(example, "Note from the desk: {what} was turned down", "The desk turned {what} down")
    build(example).assert_outcomes(passed=1, deselected=3)


def test_numbers_computed_anew_on_another_number_of_threads_are_no_regression(
    example: pytest.Pytester,
) -> None:
    result = build(example, "--failgain-no-cache", "--failgain-threads=1")
    result.assert_outcomes(passed=1, deselected=3)
