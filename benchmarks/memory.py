"""Peak memory of scoring, each measured in a process of its own."""

from __future__ import annotations

import contextlib
import json
import resource
import subprocess
import sys
from pathlib import Path

from benchmarks.figures import Figure, NotRunError, Verdict
from benchmarks.workload import office_cases
from pytest_failgain.harnesses import VERBATIM
from pytest_failgain.measurement import measure as measure_harness
from pytest_failgain.scoring.loading import load_scorer
from pytest_failgain.scoring.local import LocalScorer

_MORE = 4
# Four times the cases in proportion would be 4; allocators scatter by a few percent.
_WANTED_RATIO = 1.2
_SMALL_BUDGET = 64


def measure(model: str, cases: int, threads: int) -> list[Figure]:
    """How peak memory follows the number of cases and the batch budget."""
    few = grown_megabytes(model, cases, None, threads)
    many = grown_megabytes(model, _MORE * cases, None, threads)
    small = grown_megabytes(model, cases, _SMALL_BUDGET, threads)
    if not few:
        raise NotRunError("scoring took no more memory than loading, so its part can't be told")
    return [
        Figure(
            f"memory: peak of scoring {_MORE * cases} cases, times that of {cases}",
            f"<= {_WANTED_RATIO:g}",
            f"{many / few:.2f} ({many:.0f} MB, {few:.0f} MB)",
            Verdict.of(many / few <= _WANTED_RATIO),
        ),
        Figure(
            f"memory: peak with passes of {_SMALL_BUDGET} tokens, times the usual",
            "< 1",
            f"{small / few:.2f} ({small:.0f} MB, {few:.0f} MB)",
            Verdict.of(small < few),
        ),
    ]


def grown_megabytes(model: str, cases: int, budget: int | None, threads: int) -> float:
    """MB by which the peak memory of a new process grows while it measures `cases` cases."""
    done = subprocess.run(
        [sys.executable, "-m", __name__, json.dumps([model, cases, budget, threads])],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise NotRunError(f"scoring {cases} cases failed: {done.stderr.strip()[-300:]}")
    return float(done.stdout)


def _grow(model: str, cases: int, budget: int | None, threads: int) -> float:
    loaded = load_scorer(model, threads=threads, keep_scores=False)
    scorer = LocalScorer.of(loaded.model, loaded.tokenizer, loaded.identity, budget=budget)
    chosen = office_cases(cases)
    _forget_peak()
    before = _peak_megabytes()
    measured = measure_harness(scorer, VERBATIM, chosen)
    if measured.skips:
        raise NotRunError(measured.skips[0].reason)
    return _peak_megabytes() - before


def _peak_megabytes() -> float:
    """The most memory that this process has had in use."""
    with contextlib.suppress(OSError):
        # getrusage would count the peak of the process that started this one too.
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def _forget_peak() -> None:
    """Make what is in use now the peak so far. Elsewhere than on Linux, that of loading stays."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


if __name__ == "__main__":
    print(_grow(*json.loads(sys.argv[1])))
