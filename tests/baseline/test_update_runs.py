"""Runs that update a baseline: several at once, in several processes, and killed."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_failgain.baseline.file import read_baseline
from pytest_failgain.options import DEFAULT_BASELINE

pytestmark = pytest.mark.slow

# A model that hashes, but keeps its scores as real ones do. SHIFT makes it another one.
CONFTEST = f"""
import os
import pathlib
import signal
import sys
import time
import zlib

sys.path.insert(0, {str(Path(__file__).parents[1])!r})

import numpy as np
import pytest

import pytest_failgain.scoring.loading as loading
from fake_scorer import FakeScorer, failure_case, hashed, prompt_text, spans_of_tokens
from pytest_failgain.scoring.score_store import FORMAT, ScoreStore

SHIFT = float(os.environ["SHIFT"])


def load_scorer(name, *, cache_dir, **settings):
    store = ScoreStore(cache_dir / f"scores-{{FORMAT}}.sqlite3", f"{{name}} {{SHIFT}}")

    def score(prompt, action):
        words = (action.text[slice(*span)] for span in spans_of_tokens(action.text))
        pair = [zlib.crc32(prompt_text(prompt).encode())], [zlib.crc32(w.encode()) for w in words]
        if store.get(*pair) is None:
            logprobs = np.array(hashed(prompt, action)) * (1 + SHIFT)
            store.put_all([(*pair, (logprobs, logprobs > -0.7))])
        return store.get(*pair)[0].tolist()

    return FakeScorer(score)


loading.load_scorer = load_scorer


@pytest.fixture
def cases():
    return [failure_case(f"case{{i}}") for i in range(10)]


@pytest.fixture
def harness(i):
    def render(trajectory):
        steps = [f"{{step.action}}: {{step.observation}}" for step in trajectory.steps]
        return "\\n".join([str(i), trajectory.goal, *steps])

    render.name = f"harness-{{i}}"
    return render


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish():
    # Runs that are to end together wait for each other here.
    runs = [name for name in os.environ.get("TOGETHER", "").split() if name]
    if runs:
        pathlib.Path(os.environ["NAME"]).touch()
        until = time.monotonic() + 60
        while not all(map(os.path.exists, runs)):
            assert time.monotonic() < until
            time.sleep(0.001)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


write_bytes, replace = pathlib.Path.write_bytes, os.replace

if os.environ.get("DIES") == "while it writes":
    pathlib.Path.write_bytes = lambda path, data: (write_bytes(path, data[:-99]), die())
if os.environ.get("DIES") == "when it has written":
    os.replace = lambda *paths: die()
if os.environ.get("DIES") == "when all is done":
    os.replace = lambda *paths: (replace(*paths), die())
"""

TESTS = """
import pytest
from pytest_failgain import assert_no_regression

@pytest.mark.parametrize("i", range(20))
def test_first(failgain, harness, cases):
    assert_no_regression(failgain.measure(harness, cases))

@pytest.mark.parametrize("i", range(20, 40))
def test_second(failgain, harness, cases):
    assert_no_regression(failgain.measure(harness, cases))
"""

FOUR_WORKERS = ["-p", "xdist", "-n", "4"]

ALL = {f"harness-{i}" for i in range(40)}


@pytest.fixture(autouse=True)
def _updating(project: pytest.Pytester) -> None:
    project.makeconftest(CONFTEST)
    project.makepyfile(test_it=TESTS)


def start(
    project: pytest.Pytester, *args: str, shift: int = 0, **environment: str
) -> subprocess.Popen[bytes]:
    """A run that updates the baseline, in a process group of its own."""
    # Without other plugins, a run takes a second.
    plugins = ["-p", "pytest_failgain.plugin", "-p", "no:cacheprovider"]
    update = ["--failgain-model=stub", "--failgain-cache-dir=cache", "--failgain-update-baseline"]
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "", "SHIFT": str(shift)}
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", *plugins, *update, *args],
        cwd=project.path,
        env={**os.environ, **alone, **environment},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )


def update(project: pytest.Pytester, *args: str, shift: int = 0) -> bytes:
    """What the baseline is after a run that nothing happened to."""
    assert start(project, *args, shift=shift).wait(120) == 0
    assert leftovers(project) == []
    return baseline(project).read_bytes()


def kill(run: subprocess.Popen[bytes]) -> None:
    """Kill the whole process group, workers included."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(run.pid, signal.SIGKILL)
    run.wait(60)


def baseline(project: pytest.Pytester) -> Path:
    return project.path / DEFAULT_BASELINE


def harnesses(project: pytest.Pytester) -> set[str]:
    return {harness for _, harness in read_baseline(baseline(project))}


def leftovers(project: pytest.Pytester) -> list[Path]:
    return [*project.path.glob(".*.tmp")]


def check_store(project: pytest.Pytester) -> None:
    (path,) = project.path.joinpath("cache").glob("scores-*.sqlite3")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.execute("SELECT * FROM scores").fetchall()


def test_two_runs_at_once_write_the_entries_of_both(project: pytest.Pytester) -> None:
    for _ in range(3):
        baseline(project).unlink(missing_ok=True)
        names = ("first", "second")
        runs = [start(project, "-k", name, NAME=name, TOGETHER=" ".join(names)) for name in names]
        assert [run.wait(120) for run in runs] == [0, 0]
        assert harnesses(project) == ALL
        check_store(project)
        for name in names:
            project.path.joinpath(name).unlink()


def test_four_workers_write_what_one_process_does(project: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    alone = update(project)
    assert harnesses(project) == ALL
    baseline(project).unlink()
    assert update(project, *FOUR_WORKERS) == alone
    check_store(project)


@pytest.mark.parametrize(
    ("args", "times"), [([], 20), (FOUR_WORKERS, 5)], ids=["alone", "four workers"]
)
def test_run_that_is_killed_leaves_store_and_baseline_whole(
    project: pytest.Pytester, args: list[str], times: int
) -> None:
    if args:
        pytest.importorskip("xdist")
    began = time.monotonic()
    whole = [update(project, *args, shift=shift) for shift in (0, 1)]
    took = (time.monotonic() - began) / 2
    assert whole[0] != whole[1]
    luck = random.Random(20)
    for _ in range(times):
        shift = 1 - whole.index(baseline(project).read_bytes())
        run = start(project, *args, shift=shift)
        with contextlib.suppress(subprocess.TimeoutExpired):
            run.wait(luck.uniform(0, 1.1 * took))
        kill(run)
        assert baseline(project).read_bytes() in whole
        assert harnesses(project) == ALL
        check_store(project)
    assert update(project, *args, shift=0) == whole[0]


def test_run_beside_one_that_is_killed_writes_its_entries(project: pytest.Pytester) -> None:
    began = time.monotonic()
    update(project, "-k", "first")
    took = time.monotonic() - began
    luck = random.Random(5)
    for turn in range(5):
        shift = 1 + turn
        killed = start(project, "-k", "first", shift=shift)
        other = start(project, "-k", "second", shift=shift)
        time.sleep(luck.uniform(0, 1.5 * took))
        kill(killed)
        assert other.wait(120) == 0
        assert harnesses(project) == ALL
        check_store(project)
    update(project, shift=0)


@pytest.mark.parametrize("dies", ["while it writes", "when it has written", "when all is done"])
def test_baseline_is_the_old_or_the_new_one_wherever_its_writer_dies(
    project: pytest.Pytester, dies: str
) -> None:
    old = update(project, "-k", "first")
    assert start(project, shift=1, DIES=dies).wait(120) == -signal.SIGKILL
    assert (baseline(project).read_bytes() == old) == (dies != "when all is done")
    assert len(leftovers(project)) == (dies != "when all is done")
    # It is as if the other had never been, and nothing of it stays.
    update(project, shift=2)
    assert harnesses(project) == ALL
