"""`python -m pytest_failgain`."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from stand_in_hub import COMMIT, REPO, serve
from tiny_models import model_contents, write_files

from pytest_failgain import __version__
from pytest_failgain.__main__ import main

needs_local_extra = pytest.mark.skipif(find_spec("gguf") is None, reason="needs the local extra")


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest_failgain", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "NO_PROXY": "*", **environment},
    )


def test_fetch_says_where_the_model_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_files(tmp_path / "model", model_contents())
    assert main(["fetch", str(folder), "--cache-dir", str(tmp_path)]) == 0
    output = capsys.readouterr().out.splitlines()
    assert output[1:3] == [f"path    {folder}", "source  directory"]
    assert output[3].startswith("size    0.0 MB")


@needs_local_extra
def test_fetch_honours_the_address_of_the_hub(tmp_path: Path) -> None:
    with serve(model_contents()) as hub:
        result = run("fetch", REPO, "--cache-dir", str(tmp_path), HF_ENDPOINT=hub.endpoint)
    assert result.returncode == 0, result.stderr
    assert f"source  model hub, {REPO}, revision {COMMIT}" in result.stdout
    assert result.stderr.startswith(f"downloading {REPO} ...\ndownloading {REPO}: done in")


@needs_local_extra
def test_fetch_honours_the_offline_mode_of_the_hub(tmp_path: Path) -> None:
    result = run("fetch", REPO, "--cache-dir", str(tmp_path), HF_HUB_OFFLINE="1")
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert "HF_HUB_OFFLINE forbids fetching it" in result.stderr


def test_error_is_one_line_and_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fetch", "smollm2-135n", "--cache-dir", str(tmp_path)]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("error: there is no model 'smollm2-135n', did you mean")
    assert output.err.count("\n") == 1


@needs_local_extra
def test_offline_and_revision_are_passed_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--cache-dir", str(tmp_path), "--offline", "--revision", "v1"]
    assert main(["fetch", REPO, *options]) == 1
    assert "fetch org/tiny --revision v1" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["fetch"], ["fetch", "a", "--unknown"], ["other"]])
def test_wrong_usage_is_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("usage: python -m pytest_failgain")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"pytest-failgain {__version__}\n"
