"""Measurements in several worker processes."""

from __future__ import annotations

from pathlib import Path

import pytest
from agent_projects import CONFTEST, MEASURES_MINE, MEASURES_VERBATIM, measured_names, section

pytest.importorskip("xdist")

# Torch would take seconds to load in each worker. All but the model is as it is, and the
# controller, which is this process, is left alone.
FAKE_MODEL = f"""
import os
import sys

if "PYTEST_XDIST_WORKER" in os.environ:
    sys.path.insert(0, {str(Path(__file__).parents[1])!r})

    from fake_scorer import FakeScorer
    from pytest_failgain.scoring import loading

    loading.load_scorer = lambda name, **settings: FakeScorer()
"""


def test_controller_shows_what_all_workers_measured_and_each_thing_once(
    project: pytest.Pytester,
) -> None:
    project.makeconftest(FAKE_MODEL + CONFTEST)
    # One module a worker; both measure the verbatim harness.
    project.makepyfile(
        test_one=MEASURES_MINE + MEASURES_VERBATIM,
        test_two=MEASURES_VERBATIM
        + """
def test_dropped(failgain, cases):
    failgain.measure(failgain.remedy("dropped"), cases)

def test_worker(worker_id):
    assert worker_id != "master"
""",
    )
    result = project.runpytest("-n", "2", "--dist", "loadfile", "--failgain-model", "fake")
    result.assert_outcomes(passed=5)
    assert sorted(measured_names(result)) == ["dropped", "render_mine", "verbatim"]
    assert [line for line in section(result) if line.startswith("own cases")] == [
        "own cases: 3 cases of 3 tasks, fake (a hash, float32)"
    ]


def test_error_in_a_worker_is_one_line(project: pytest.Pytester) -> None:
    project.makepyfile("def test_it(failgain_model):\n    pass")
    result = project.runpytest("-n", "1", "--failgain-require-model")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "*_ ERROR at setup of test_it _*",
            "[[]gw0] *",
            "no model to measure with: *",
            "*= short test summary info =*",
        ],
        consecutive=True,
    )


def test_value_that_does_not_fit_is_told_once(project: pytest.Pytester) -> None:
    result = project.runpytest("-n", "1", "--failgain-cases", "0")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert [line for line in result.errlines if line] == [
        "ERROR: --failgain-cases: must be a whole number of 1 or more, not '0'"
    ]
