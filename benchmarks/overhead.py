"""What the plugin costs a pytest run that does not use it, by whole processes."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from statistics import median

from benchmarks.figures import Figure, NotRunError, Verdict, middle_half

_WANTED_MS = 10.0
_HEAVY = ("torch", "transformers", "numpy")
_SWITCHED_OFF = ("-p", "no:failgain")
_UNUSED = "installed, not used"

# Runs pytest, and then prints which of the heavy packages it has loaded.
_LISTING = f"""
import json, sys
import pytest
status = pytest.main(sys.argv[1:])
print(json.dumps([int(status), [name for name in {_HEAVY!r} if name in sys.modules]]))
"""


@dataclass(frozen=True, slots=True)
class EmptyProject:
    """A folder with one empty test, and the settings under which pytest is run in it.

    Home, cache and temporary folders are inside `root`, so whatever a run leaves is found there.
    """

    root: Path
    environment: dict[str, str]

    @property
    def tests(self) -> Path:
        return self.root / "project"

    def pytest(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`pytest -q` as a process of its own."""
        return self._run("-m", "pytest", *arguments)

    def heavy_packages(self, *arguments: str) -> list[str]:
        """Those of `_HEAVY` that a run has loaded at its end."""
        done = self._run("-c", _LISTING, *arguments)
        status, loaded = json.loads(done.stdout.splitlines()[-1])
        if status != 0:
            raise NotRunError(f"pytest ended with {status}")
        return [str(name) for name in loaded]

    def contents(self) -> set[str]:
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*")}

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        others = (part for name in _other_plugins() for part in ("-p", f"no:{name}"))
        done = subprocess.run(
            [sys.executable, *arguments, "-q", "-p", "no:cacheprovider", *others],
            cwd=self.tests,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if done.returncode != 0:
            raise NotRunError(f"pytest ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done


def _other_plugins() -> list[str]:
    """Names of the installed pytest plugins but ours.

    They are kept out: what they load, ours would find loaded already, and seem cheaper than it is.
    """
    return sorted({entry.name for entry in entry_points(group="pytest11")} - {"failgain"})


@contextmanager
def empty_project() -> Iterator[EmptyProject]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        homes = {
            "HOME": root / "home",
            "USERPROFILE": root / "home",
            "LOCALAPPDATA": root / "home" / "local",
            "XDG_CACHE_HOME": root / "home" / "cache",
            "XDG_DATA_HOME": root / "home" / "data",
            "TMPDIR": root / "temporary",
            "TEMP": root / "temporary",
        }
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTEST_", "FAILGAIN_", "HF_", "COV_"))
        }
        environment |= {name: str(path) for name, path in homes.items()}
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        project = EmptyProject(root, environment)
        for path in {project.tests, *homes.values()}:
            path.mkdir(parents=True, exist_ok=True)
        (project.tests / "test_empty.py").write_text("def test_empty():\n    pass\n")
        yield project


def measure(pairs: int) -> list[Figure]:
    """The figures of a plugin that is installed and not used, from `pairs` pairs of runs."""
    if "failgain" not in {entry.name for entry in entry_points(group="pytest11")}:
        raise NotRunError("pytest-failgain is not installed as a plugin: pip install -e .")
    with empty_project() as project:
        before = project.contents()
        added = added_costs(project, pairs)
        loaded = project.heavy_packages()
        if inevitable := project.heavy_packages(*_SWITCHED_OFF):
            raise NotRunError(f"pytest itself loads {', '.join(inevitable)} here")
        created = sorted(project.contents() - before)
    return [
        _added("clock time added to `pytest -q`", [cost.clock for cost in added]),
        _added("CPU time added to `pytest -q`", [cost.cpu for cost in added]),
        _empty(f"{', '.join(_HEAVY)} loaded", loaded),
        _empty("files and folders made", created),
    ]


def _added(what: str, seconds: Sequence[float]) -> Figure:
    milliseconds = [1000 * value for value in seconds]
    middle, (low, high) = median(milliseconds), middle_half(milliseconds)
    return Figure(
        f"{_UNUSED}: {what}",
        f"< {_WANTED_MS:g} ms",
        f"{middle:.1f} ms (median of {len(seconds)} pairs, middle half {low:.1f} to {high:.1f})",
        Verdict.of(middle < _WANTED_MS),
    )


def _empty(what: str, names: Sequence[str]) -> Figure:
    found = ", ".join(names) if names else "none"
    return Figure(f"{_UNUSED}: {what}", "none", found, Verdict.of(not names))


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of one run: on the clock, and of processor time, which neighbours disturb less."""

    clock: float
    cpu: float


def added_costs(project: EmptyProject, pairs: int) -> list[Cost]:
    """What the plugin adds to a run, once a pair; the two of a pair take turns in front."""
    _warm_up(project)
    differences = []
    for index in range(pairs):
        order = ((), _SWITCHED_OFF) if index % 2 else (_SWITCHED_OFF, ())
        costs = {arguments: _cost(project, arguments) for arguments in order}
        on, off = costs[()], costs[_SWITCHED_OFF]
        differences.append(Cost(on.clock - off.clock, on.cpu - off.cpu))
    return differences


def _warm_up(project: EmptyProject) -> None:
    """What only the first run after an installation pays: compiling, and reading from the disk."""
    writing = {
        name: value
        for name, value in project.environment.items()
        if name != "PYTHONDONTWRITEBYTECODE"
    }
    code = "import pytest_failgain.plugin"
    subprocess.run([sys.executable, "-c", code], cwd=project.root, env=writing, check=True)
    for arguments in ((), _SWITCHED_OFF):
        project.pytest(*arguments)


def _cost(project: EmptyProject, arguments: Sequence[str]) -> Cost:
    clock, cpu = time.perf_counter(), _cpu_of_children()
    project.pytest(*arguments)
    return Cost(time.perf_counter() - clock, _cpu_of_children() - cpu)


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
