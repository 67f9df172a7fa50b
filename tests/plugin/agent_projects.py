"""What the projects that pytest is run in are made of."""

from __future__ import annotations

from pathlib import Path

import pytest

# Torch would take seconds to load. All but the model is as it is.
FAKE_MODEL = f"""
import sys

sys.path.insert(0, {str(Path(__file__).parents[1])!r})

import pytest_failgain.scoring.loading as loading
from fake_scorer import FakeScorer

loading.load_scorer = lambda name, **settings: FakeScorer()
"""

# Three short cases, a harness of the project's own, and a test of each kind.
CONFTEST = """
import pytest
from pytest_failgain import Transcript


def booking(room):
    return (
        Transcript(f"room-{room}")
        .system("You book rooms.")
        .user(f"Book room {room}.")
        .failing_step(
            f"book(room='{room}')",
            error="TypeError: room must be int",
            error_family="type_error",
            tool="book",
        )
        .correct(f"book(room={room})")
        .case()
    )


@pytest.fixture
def cases():
    return [booking(room) for room in (1, 2, 3)]


def render_mine(trajectory):
    attempts = [f"{step.action.text}: {step.observation}" for step in trajectory.steps]
    return [{"role": "user", "content": "\\n".join([trajectory.goal, *attempts])}]


@pytest.fixture
def failgain_harness():
    return render_mine
"""

MEASURES_MINE = """
def test_mine(failgain, failgain_harness, cases):
    failgain.measure(failgain_harness, cases)
"""

MEASURES_VERBATIM = """
def test_verbatim(failgain, cases):
    failgain.measure(failgain.remedy("verbatim"), cases)
"""

COMPARES = """
import pytest
from pytest_failgain import assert_no_regression

@pytest.mark.parametrize("remedy", ["described", "dropped", "instructed"])
def test_compared(failgain, cases, remedy):
    assert_no_regression(failgain.measure(failgain.remedy(remedy), cases))
"""

USES_NOTHING = """
def test_plain():
    pass
"""


def give_fake_model(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, conftest: str = CONFTEST
) -> None:
    """Let the project's tests measure with a fake model, in this process and in workers of xdist.

    Its name is whatever is given for --failgain-model.
    """
    # Not from the package, which may still know a module that pytester has made Python forget.
    import pytest_failgain.scoring.loading as loading

    # The conftest runs in this process too, and must not outlive the test.
    monkeypatch.setattr(loading, "load_scorer", loading.load_scorer)
    project.makeconftest(FAKE_MODEL + conftest)


def options_for(model: Path, cache: Path) -> list[str]:
    """What makes a run use the model in a folder, and no more than one thread and its own cache."""
    return [f"--failgain-model={model}", f"--failgain-cache-dir={cache}", "--failgain-threads=1"]


def section(result: pytest.RunResult) -> list[str]:
    """The lines of the failgain section of the terminal summary; there has to be one of them."""
    heads = [i for i, line in enumerate(result.outlines) if line.strip("=") == " failgain "]
    assert len(heads) == 1, result.outlines
    lines = result.outlines[heads[0] + 1 :]
    ends = (i for i, line in enumerate(lines) if line.startswith("="))
    return lines[: next(ends, len(lines))]


def has_section(result: pytest.RunResult) -> bool:
    return any(line.strip("=") == " failgain " for line in result.outlines)


def measured_names(result: pytest.RunResult) -> list[str]:
    """The harnesses in the summary's tables, a name for each row."""
    names = []
    in_table = False
    for line in section(result):
        if line.startswith("harness "):
            in_table = True
        elif in_table and "[" in line and not line.split()[0].endswith(":"):
            names.append(line.split()[0])
        else:
            in_table = False
    return names
