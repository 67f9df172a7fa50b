"""What a second run of pytest takes in which nothing has changed, by whole processes."""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median

from benchmarks.figures import Figure, NotRunError, Verdict
from benchmarks.overhead import EmptyProject, empty_project
from pytest_failgain.models import default_cache_dir

_REPEATS = 3
_TEST = """
import pytest

@pytest.mark.parametrize("name", ["verbatim", "described"])
def test_records(failgain, name):
    failgain.measure(failgain.remedy(name), failgain.environment("tool_calls").cases({cases}))
"""


def measure(model: str, cases: int, threads: int) -> list[Figure]:
    """How many times as long a run takes in which every score is new as one in which none is."""
    with empty_project() as project:
        (project.tests / "test_empty.py").unlink()
        (project.tests / "test_records.py").write_text(_TEST.format(cases=cases))
        cache = project.root / "cache"
        cache.mkdir()
        # The models are there already: fetching one is no part of a run.
        (cache / "models").symlink_to(default_cache_dir() / "models", target_is_directory=True)
        options = (
            f"--failgain-model={model}",
            f"--failgain-threads={threads}",
            f"--failgain-cache-dir={cache}",
        )
        _seconds(project, "--collect-only", *options)  # what is compiled once an installation
        first = _seconds(project, *options)
        second = median(_seconds(project, *options) for _ in range(_REPEATS))
        empty = median(_seconds(project, "-p", "no:failgain", "--co") for _ in range(_REPEATS))
    return [
        Figure(
            f"second run of pytest on {cases} cases twice, times as fast as the first",
            "-",
            f"{first / second:.0f} ({first:.1f} s, {second:.2f} s; pytest alone {empty:.2f} s)",
            Verdict.NONE,
        )
    ]


def _seconds(project: EmptyProject, *arguments: str) -> float:
    """Clock time of one run of pytest with no other plugin than ours."""
    environment = {
        name: value
        for name, value in project.environment.items()
        if name != "PYTHONDONTWRITEBYTECODE"
    }
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    ours = () if "no:failgain" in arguments else ("-p", "pytest_failgain.plugin")
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *ours, *arguments],
        cwd=project.tests,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise NotRunError(f"pytest ended with {done.returncode}: {done.stdout[-300:]}")
    return time.perf_counter() - started
