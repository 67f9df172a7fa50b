"""Projects with suites, whose measurements are made by a scorer without a model."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

TESTS = Path(__file__).parents[1]

# The fixture `failgain` as it is, but for the scorer; nothing is kept between runs.
CONFTEST = f"""
import sys

import pytest

sys.path.insert(0, {str(TESTS)!r})

from fake_scorer import FakeScorer
from pytest_failgain import Failgain
from pytest_failgain.stash import FINDINGS, SETTINGS


@pytest.fixture(scope="session")
def failgain(request):
    findings, settings = request.config.stash[FINDINGS], request.config.stash[SETTINGS]
    return Failgain(
        FakeScorer(),
        keep_scores=False,
        cases=settings.cases,
        baseline=request.config.rootpath / "failgain-baseline.json",
        update_baseline=settings.update_baseline,
        on_measured=findings.measurements.append,
        on_compared=findings.comparisons.append,
    )
"""

HISTORY = """
def render(trajectory):
    attempts = [str(getattr(step, "observation", step)) for step in trajectory.steps]
    return [{"role": "user", "content": "\\n".join([trajectory.goal, *attempts])}]


def broken(trajectory):
    return trajectory.steps[17]


NUMBER = 17
"""

# Every measurement of at least one case meets it.
MET = "thresholds: {n: {at_least: 1}}"


def suite(*lines: str, name: str = "record") -> str:
    """A file with one suite of these lines."""
    return "\n".join(["failgain: 1", "suites:", f"  {name}:", *(f"    {line}" for line in lines)])


def write(project: pytest.Pytester, text: str, name: str = "failgain.yaml") -> Path:
    """Write a YAML file into the project."""
    path = project.path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text), "utf-8")
    return path


def collected_ids(result: pytest.RunResult) -> list[str]:
    """The ids that a run with `--collect-only -q` lists."""
    return [line for line in result.outlines if "::" in line]
