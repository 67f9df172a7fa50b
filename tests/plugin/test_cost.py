"""What the plugin costs a run that does not use it: next to nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from agent_projects import USES_NOTHING

HEAVY = {
    "torch",
    "transformers",
    "tokenizers",
    "numpy",
    "hypothesis",
    "safetensors",
    "platformdirs",
}

# Runs pytest, and then prints the modules that were loaded.
RUN = """
import json, sys
import pytest
status = pytest.main(sys.argv[1:])
print(json.dumps([int(status), sorted(sys.modules)]))
"""


def loaded_modules(project: pytest.Pytester, *args: str) -> set[str]:
    """The modules that a run of pytest with no other plugin has loaded at its end."""
    environment = {
        **os.environ,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(project.path / "home"),
        "XDG_CACHE_HOME": str(project.path / "home" / "cache"),
        "PYTEST_ADDOPTS": "",
    }
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            RUN,
            "-p",
            "pytest_failgain.plugin",
            "-p",
            "no:cacheprovider",
            *args,
        ],
        cwd=project.path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    status, modules = json.loads(done.stdout.splitlines()[-1])
    assert status == 0, done.stdout
    return set(modules)


def ours(modules: set[str]) -> set[str]:
    return {name for name in modules if name.partition(".")[0] == "pytest_failgain"}


def test_unused_plugin_loads_six_small_modules_and_writes_nothing(
    project: pytest.Pytester,
) -> None:
    project.makepyfile(test_it=USES_NOTHING)
    modules = loaded_modules(project, "-q")
    assert ours(modules) == {
        "pytest_failgain",
        "pytest_failgain.choices",
        "pytest_failgain.fixtures",
        "pytest_failgain.hookspecs",
        "pytest_failgain.options",
        "pytest_failgain.plugin",
        "pytest_failgain.stash",
    }
    assert not HEAVY & modules
    assert [path.name for path in project.path.iterdir()] == ["test_it.py"]


def test_collecting_tests_loads_no_model(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_it="""
        from pytest_failgain import assert_corrective_gain_nonnegative

        def test_it(failgain, failgain_model, failgain_environment, failgain_remedy):
            pass
        """
    )
    modules = loaded_modules(project, "--collect-only", "--failgain-model=/no/such/model")
    # The assertions of the user's own import need arrays.
    assert not (HEAVY - {"numpy"}) & modules


def test_skipping_for_want_of_a_model_loads_nothing_heavy(project: pytest.Pytester) -> None:
    project.makepyfile(test_it="def test_it(failgain, failgain_environment): pass")
    assert not HEAVY & loaded_modules(project)


def test_switched_off_plugin_leaves_no_fixture_and_no_option(project: pytest.Pytester) -> None:
    project.makepyfile("def test_it(failgain): pass")
    result = project.runpytest("-p", "no:failgain")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["E       fixture 'failgain' not found"])
    result = project.runpytest("-p", "no:failgain", "--failgain-cases=3")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*: error: unrecognized arguments: --failgain-cases=3"])


def test_importing_the_package_loads_nothing(tmp_path: Path) -> None:
    code = "import pytest_failgain, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    modules = set(done.stdout.split())
    assert ours(modules) == {"pytest_failgain"}
    assert not (HEAVY | {"pytest"}) & modules
