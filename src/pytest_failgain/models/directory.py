"""Whether a directory holds a model that can be loaded safely, and what identifies that model."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pytest_failgain.errors import ModelError

WANTED = (
    "config.json",
    "generation_config.json",
    "*.safetensors",
    "*.safetensors.index.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "tekken.json",
    "spiece.model",
    "sentencepiece.bpe.model",
    "*.tiktoken",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "added_tokens.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "chat_template.json",
    "additional_chat_templates/*.jinja",
)
"""All that a model is made of here: weights, configuration, tokenizer and chat template."""

UNWANTED = ("*/*.safetensors", "*/*.safetensors.index.json", "*/*.tiktoken", "consolidated*")
"""What `WANTED` also matches: other formats of the same model, in folders or beside it."""

PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
"""Weights whose loading runs whatever code their author put in."""

TOKENIZERS = (
    "tokenizer.json",
    "tokenizer.model",
    "tekken.json",
    "spiece.model",
    "sentencepiece.bpe.model",
    "vocab.json",
    "vocab.txt",
    "*.tiktoken",
)
"""Any one of these makes a tokenizer, alone or with others beside it."""

_WEIGHTS = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_POINTER = b"version https://git-lfs"


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a file's name, relative to its model, fits one of the patterns."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def check(folder: Path) -> None:
    """Make sure that transformers can load the model in `folder`, without loading it.

    Raises:
        ModelError: when configuration, weights or tokenizer are missing, pickled or cut short.
    """
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except OSError as error:
        raise ModelError(f"can't read the directory {folder}: {error.strerror}") from error
    if not names:
        raise ModelError(f"the directory {folder} is empty: give one with a model in it")
    _check_config(folder, names)
    _check_weights(folder, names)
    if not any(matches(name, TOKENIZERS) for name in names):
        raise ModelError(
            f"{folder} has no tokenizer (tokenizer.json, tokenizer.model or vocab.json): "
            "save one there with tokenizer.save_pretrained()"
        )


def fingerprint(folder: Path, sha256: Callable[[Path], str]) -> str:
    """What identifies the model in `folder`: a SHA-256 over the names and contents of its files."""
    whole = hashlib.sha256()
    for name in model_files(folder):
        whole.update(f"{name}\0{sha256(folder / name)}\n".encode())
    return whole.hexdigest()


def model_files(folder: Path) -> Iterator[str]:
    """The names, relative to `folder` and sorted, of the files that make up its model."""
    found = (*folder.glob("*"), *folder.glob("additional_chat_templates/*"))
    names = sorted(path.relative_to(folder).as_posix() for path in found if path.is_file())
    return (name for name in names if matches(name, WANTED) and not matches(name, UNWANTED))


def _check_config(folder: Path, names: list[str]) -> None:
    if "config.json" in names:
        _read_object(folder / "config.json")
        return
    missing = f"{folder} has no config.json, so it is not a model directory"
    if "adapter_config.json" in names:
        raise ModelError(f"{missing} but an adapter: merge it into its base model and give that")
    if gguf := next((name for name in names if name.endswith(".gguf")), None):
        raise ModelError(f"{missing}: to use its GGUF file, give {folder / gguf}")
    raise ModelError(f"{missing}: give a directory that save_pretrained() wrote")


def _check_weights(folder: Path, names: list[str]) -> None:
    if _WEIGHTS in names:
        _check_safetensors(folder / _WEIGHTS)
        return
    if _INDEX in names:
        for shard in _shards(folder / _INDEX):
            if not (folder / shard).is_file():
                raise ModelError(f"{folder / _INDEX} lists {shard}, which is missing: fetch it too")
            _check_safetensors(folder / shard)
        return
    if other := next((name for name in names if name.endswith(".safetensors")), None):
        raise ModelError(
            f"{folder} has {other}, but transformers loads only {_WEIGHTS}, or what {_INDEX} lists"
        )
    if pickled := next((name for name in names if matches(name, PICKLED)), None):
        raise ModelError(
            f"{folder} has only pickled weights ({pickled}), which are refused because loading "
            "them can run any code: convert them to safetensors"
        )
    raise ModelError(f"{folder} has no weights: it needs {_WEIGHTS}, or {_INDEX} and its files")


def _shards(index: Path) -> list[str]:
    weight_map = _read_object(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise ModelError(f"{index} lists no weights: fetch it again")
    shards = sorted({str(name) for name in weight_map.values()})
    for shard in shards:
        if Path(shard).name != shard:
            raise ModelError(
                f"{index} lists {shard!r}, which is not a file beside it: fetch it again"
            )
    return shards


def _check_safetensors(path: Path) -> None:
    """Compare a file's size with the one its header promises, as an interrupted copy falls short.

    The format: the header's length in eight bytes, the header in JSON, then the tensors, each
    within `data_offsets` that count from the header's end.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            start = file.read(len(_POINTER))
            if start == _POINTER:
                raise ModelError(f"{path} is only a Git LFS pointer: run `git lfs pull` there")
            file.seek(0)
            (length,) = struct.unpack("<Q", file.read(8))
            if 8 + length > size:
                raise ValueError("its header is cut off")
            header: dict[str, Any] = json.loads(file.read(length))
        ends = [
            entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"
        ]
        if 8 + length + max(ends, default=0) != size:
            raise ValueError(
                f"it has {size:,} bytes, not the {8 + length + max(ends, default=0):,}"
            )
    except OSError as error:
        raise ModelError(f"can't read {path}: {error.strerror}") from error
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, struct.error) as error:
        raise ModelError(
            f"{path} is cut short or is no safetensors file ({error}): fetch or save it again"
        ) from error


def _read_object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelError(f"can't read {path}: {error.strerror}") from error
    except ValueError as error:
        raise ModelError(f"{path} is not valid JSON ({error}): fetch or save it again") from error
    if not isinstance(value, dict):
        raise ModelError(f"{path} holds {type(value).__name__}, not an object: fetch it again")
    return value
