"""Collecting suites loads nothing heavy; runs without suites do not even load what reads them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from suite_projects import suite, write

HEAVY = {"torch", "transformers", "tokenizers", "numpy", "safetensors", "platformdirs", "filelock"}

# Runs pytest, and then prints the modules that were loaded.
RUN = """
import json, sys
import pytest
status = pytest.main(["-q", "--collect-only", "-p", "no:cacheprovider", "-W", "ignore"])
print(json.dumps([int(status), sorted(sys.modules)]))
"""


def loaded_modules(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p pytest_failgain.plugin")
    done = subprocess.run(
        [sys.executable, "-c", RUN], cwd=project.path, capture_output=True, text=True, timeout=60
    )
    status, modules = json.loads(done.stdout.splitlines()[-1])
    assert status == 0, done.stdout
    return set(modules)


def test_collecting_suites_loads_nothing_heavy(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(
        project,
        suite(
            "environments: [tool_calls, program_repair]",
            "harness: no.such.module:render",
            "remedies: [none, described+instructed]",
            "conditions: [before, failed, neutral]",
            "thresholds: {corrective_gain: {at_least: 0}}",
            "regression: true",
            "marks: [slow]",
        ),
    )
    modules = loaded_modules(project, monkeypatch)
    assert "pytest_failgain.collector" in modules
    assert not HEAVY & modules


def test_runs_without_suites_load_nothing_of_them(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, "]", "other.yaml")
    project.makepyfile("def test_it(): pass")
    modules = loaded_modules(project, monkeypatch)
    assert not {"yaml", "pytest_failgain.collector", "pytest_failgain.suites"} & modules
