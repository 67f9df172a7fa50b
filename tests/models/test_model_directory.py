"""Directories: which are usable, and what is said of those that are not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_models import RecordingProgress, model_contents, safetensors, write_files

from pytest_failgain.errors import ModelError
from pytest_failgain.models import resolve


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_files(tmp_path / "model", model_contents())


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def test_directory_is_used_where_it_is(folder: Path, cache: Path) -> None:
    files = resolve(str(folder), cache_dir=cache)
    assert files.path == folder
    assert files.source == "directory"
    assert files.revision is None
    assert files.size == sum(len(content) for content in model_contents().values())


def test_sharded_weights_are_accepted(folder: Path, cache: Path) -> None:
    (folder / "model.safetensors").rename(folder / "model-00001-of-00001.safetensors")
    index = {"weight_map": {"weight": "model-00001-of-00001.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert resolve(str(folder), cache_dir=cache).path == folder


@pytest.mark.parametrize("name", sorted(model_contents()))
def test_fingerprint_changes_with_each_file_of_the_model(
    folder: Path, cache: Path, name: str
) -> None:
    before = resolve(str(folder), cache_dir=cache).fingerprint
    changed = {"model.safetensors": safetensors(b"\1" * 64), "chat_template.jinja": b"other"}
    (folder / name).write_bytes(changed.get(name, b'{"other": 1}'))
    assert resolve(str(folder), cache_dir=cache).fingerprint != before


def test_fingerprint_ignores_what_is_not_of_the_model(folder: Path, cache: Path) -> None:
    before = resolve(str(folder), cache_dir=cache).fingerprint
    write_files(folder, {"README.md": b"read me", "checkpoint-1/model.safetensors": b"older"})
    assert resolve(str(folder), cache_dir=cache).fingerprint == before


def test_fingerprint_is_the_same_in_another_place(folder: Path, cache: Path) -> None:
    copy = write_files(folder.parent / "copy", model_contents())
    assert (
        resolve(str(copy), cache_dir=cache).fingerprint
        == resolve(str(folder), cache_dir=cache).fingerprint
    )


def test_unchanged_files_are_not_read_again(folder: Path, cache: Path) -> None:
    first, second = RecordingProgress(), RecordingProgress()
    resolve(str(folder), cache_dir=cache, progress=first)
    resolve(str(folder), cache_dir=cache, progress=second)
    assert "reading model.safetensors" in first.labels
    assert second.labels == []


def test_directory_can_be_used_without_a_writable_cache(folder: Path, tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    assert resolve(str(folder), cache_dir=in_the_way / "cache").path == folder


def test_home_is_expanded(folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.setenv("USERPROFILE", str(folder.parent))
    assert resolve("~/model", cache_dir=cache).path == folder


def test_revision_is_refused(folder: Path, cache: Path) -> None:
    with pytest.raises(ModelError, match=r"revision 'v2' means nothing for .* which is on disk"):
        resolve(str(folder), revision="v2", cache_dir=cache)


NO_WEIGHTS = {k: v for k, v in model_contents().items() if k != "model.safetensors"}
NO_TOKENIZER = {k: v for k, v in model_contents().items() if not k.startswith("tokenizer")}
INDEX = json.dumps({"weight_map": {"weight": "part.safetensors"}}).encode()


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ({"notes.txt": b""}, "has no config.json, so it is not a model directory: give a"),
        (
            {"adapter_config.json": b"{}", "adapter_model.safetensors": safetensors()},
            "not a model directory but an adapter: merge it into its base model",
        ),
        ({"some.gguf": b"GGUF"}, r"has no config.json.* give .*some\.gguf"),
        ({**model_contents(), "config.json": b"{"}, r"config\.json is not valid JSON"),
        ({**model_contents(), "config.json": b"[]"}, r"config\.json holds list, not an object"),
        (NO_WEIGHTS, r"has no weights: it needs model\.safetensors"),
        (
            {**NO_WEIGHTS, "pytorch_model.bin": b"\x80"},
            r"only pickled weights \(pytorch_model\.bin\), which are refused .* convert them",
        ),
        (
            {**NO_WEIGHTS, "weights.safetensors": safetensors()},
            r"has weights\.safetensors, but transformers loads only model\.safetensors",
        ),
        (
            {**NO_WEIGHTS, "model.safetensors.index.json": INDEX},
            r"index\.json lists part\.safetensors, which is missing: fetch it too",
        ),
        (
            {**NO_WEIGHTS, "model.safetensors.index.json": INDEX.replace(b"part", b"../part")},
            r"index\.json lists '\.\./part\.safetensors', which is not a file beside it",
        ),
        ({**NO_WEIGHTS, "model.safetensors.index.json": b"{}"}, r"index\.json lists no weights"),
        (NO_TOKENIZER, r"has no tokenizer \(tokenizer\.json"),
        (
            {**NO_WEIGHTS, "model.safetensors": b"version https://git-lfs.github.com/spec/v1\n"},
            "only a Git LFS pointer: run `git lfs pull`",
        ),
    ],
)
def test_unusable_directory_is_refused_with_the_reason(
    tmp_path: Path, cache: Path, contents: dict[str, bytes], message: str
) -> None:
    folder = write_files(tmp_path / "model", contents)
    with pytest.raises(ModelError, match=message) as caught:
        resolve(str(folder), cache_dir=cache)
    assert "\n" not in str(caught.value)


def test_empty_directory_is_refused(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(ModelError, match="is empty: give one with a model in it"):
        resolve(str(tmp_path), cache_dir=cache)


@pytest.mark.parametrize("keep", [0, 4, 20, -1])
def test_truncated_weights_are_refused(folder: Path, cache: Path, keep: int) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:keep])
    with pytest.raises(ModelError, match="cut short or is no safetensors file"):
        resolve(str(folder), cache_dir=cache)
