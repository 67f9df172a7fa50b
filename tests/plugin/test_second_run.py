"""A second run of pytest in which nothing has changed computes nothing and loads no model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

LIBRARIES = {"torch", "transformers", "huggingface_hub", "accelerate", "gguf", "safetensors"}

TESTS = """
import pytest

@pytest.mark.parametrize("name", ["verbatim", "described"])
def test_records(failgain, name):
    cases = failgain.environment("tool_calls").cases(2)
    print(json_of(failgain.measure(failgain.remedy(name), cases)))

def test_rollout(failgain, monkeypatch):
    environment = failgain.environment("tool_calls")
    environment.reply_tokens = 4
    result = failgain.rollout(failgain.remedy("verbatim"), environment, 2, 2, demonstrations=0)
    print([turn for one in result.rollouts for turn in one.turns])

def json_of(measured):
    return measured.rows, measured.adaptations, measured.skips, measured.model
"""

# Runs pytest, and then prints which modules of the libraries were loaded.
RUN = f"""
import json, sys
import pytest
status = pytest.main(sys.argv[1:])
print(json.dumps([int(status), sorted({LIBRARIES!r} & set(sys.modules))]))
"""


def run(project: pytest.Pytester, *arguments: str) -> tuple[list[str], list[str]]:
    """The lines that the tests print, and the libraries that were loaded."""
    environment = {
        **os.environ,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_ADDOPTS": "",
        "HF_HUB_OFFLINE": "1",
    }
    options = ("-s", "-q", "-p", "pytest_failgain.plugin", "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, "-c", RUN, *options, *arguments],
        cwd=project.path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    *lines, last = done.stdout.splitlines()
    status, libraries = json.loads(last)
    assert status == 0, done.stdout + done.stderr
    return [line.lstrip(".") for line in lines if "Row(" in line or "Turn(" in line], libraries


@pytest.mark.slow
def test_second_run_loads_neither_torch_nor_transformers_and_measures_the_same(
    project: pytest.Pytester, tiny_model_folder: Path
) -> None:
    project.makepyfile(TESTS)
    model = (
        f"--failgain-model={tiny_model_folder}",
        f"--failgain-cache-dir={project.path / 'cache'}",
        "--failgain-threads=1",
    )
    first, libraries = run(project, *model)
    assert set(libraries) > {"torch", "transformers"}
    assert len(first) == 3
    assert run(project, *model) == (first, [])
    unkept, libraries = run(project, *model, "--failgain-no-cache")
    assert "torch" in libraries
    assert len(unkept) == 3
