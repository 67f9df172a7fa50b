"""A GGUF file -> a model directory in safetensors, which loads in a tenth of the time."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shutil
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_failgain.errors import ModelError
from pytest_failgain.progress import Progress, job

MAGIC = b"GGUF"

# How llama.cpp splits text for byte-level vocabularies, by the name in `tokenizer.ggml.pre`.
# transformers reads only some of these names and takes GPT-2's split for all others, which is
# wrong for the first group: in `"\n\n1."` the two line ends are one token only when the digit
# is split off first.
_DIGITS_APART = {
    "smollm",
    "starcoder",
    "refact",
    "command-r",
    "codeshell",
    "exaone",
    "minerva-7b",
}
_LIKE_GPT2 = {
    "gpt-2",
    "phi-2",
    "gigachat",
    "a.x-4.0",
    "mellum",
    "mpt",
    "olmo",
    "jais",
    "trillion",
    "granite-docling",
}


@dataclass(frozen=True)
class Gguf:
    """What is worth knowing of a GGUF file before its weights are read."""

    path: Path
    parameters: int
    vocabulary: str
    split: str

    @property
    def converted_size(self) -> int:
        """About how many bytes the converted model takes."""
        return 4 * self.parameters + 10_000_000


def is_gguf(path: Path) -> bool:
    """Whether a file begins as GGUF files do.

    Raises:
        ModelError: when it can't be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError as error:
        raise ModelError(f"can't read {path}: {error.strerror}") from error


def inspect_gguf(path: Path) -> Gguf:
    """Read a GGUF file's metadata, and make sure that its weights are all there.

    Raises:
        ModelError: when the file is no GGUF file, cut short, damaged, or of no use on its own.
    """
    from gguf import GGUFReader

    if not is_gguf(path):
        raise ModelError(
            f"{path} is not a GGUF file: its first four bytes are not {MAGIC.decode()}"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # The reader maps every tensor, and so fails if one reaches past the end of the file.
            reader = GGUFReader(path)
            parts = _field(reader, "split.count", 1)
            vocabulary = _field(reader, "tokenizer.ggml.model", "")
            split = _field(reader, "tokenizer.ggml.pre", "")
            parameters = sum(int(tensor.n_elements) for tensor in reader.tensors)
    # What the reader meets in a damaged file is whatever the bytes happen to say.
    except Exception as error:
        raise ModelError(
            f"{path} is cut short or damaged ({_in_one_line(error)}): fetch it again"
        ) from error
    if parts > 1:
        raise ModelError(f"{path} is one of {parts} parts: join them with llama-gguf-split --merge")
    if not parameters or not vocabulary:
        missing = "weights" if not parameters else "tokenizer"
        raise ModelError(f"{path} holds no {missing}, so it is not a language model by itself")
    if vocabulary == "gpt2" and not _can_split_by(split):
        raise ModelError(
            f"{path} splits text by the rule {split or '(none named)'!r}, which can't be rebuilt "
            "here, so its tokens would be wrong: use the model's safetensors version"
        )
    return Gguf(path, parameters, vocabulary, split)


def convert_gguf(gguf: Gguf, folder: Path, scratch: Path, progress: Progress) -> None:
    """Write the model and the tokenizer of a GGUF file into `folder`, its weights as float32.

    Raises:
        ModelError: when transformers can't load the file.
        OSError: when `folder` can't be written.
    """
    alone = _alone(gguf.path, scratch)
    with job(progress, f"converting {gguf.path.name} to safetensors", 3) as advance, _quiet():
        try:
            tokenizer = _load_tokenizer(alone, gguf)
            advance(1)
            model = _load_model(alone)
            advance(2)
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            advance(3)
        except ModelError:
            raise
        # transformers raises anything, from KeyError to RuntimeError, on what it can't convert.
        except Exception as error:
            raise _explained(error, gguf.path) from error
    # safetensors writes files that only their owner can read, even into a cache that is shared.
    for weights in folder.glob("*.safetensors"):
        shutil.copymode(folder / "config.json", weights)


def _alone(path: Path, scratch: Path) -> Path:
    """The file by another name in a folder of its own.

    transformers is given a folder and a file name, and would prefer a configuration or tokenizer
    that happens to lie beside the file over the ones in it.
    """
    folder = scratch / "gguf"
    folder.mkdir()
    alone = folder / "model.gguf"
    try:
        alone.symlink_to(path.resolve())
    except OSError:  # Windows lets not everyone make links
        shutil.copyfile(path, alone)
    return alone


def _load_tokenizer(path: Path, gguf: Gguf) -> Any:
    from tokenizers import pre_tokenizers
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(
        path.parent, gguf_file=path.name, local_files_only=True, trust_remote_code=False
    )
    if gguf.vocabulary == "gpt2" and gguf.split in _DIGITS_APART:
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False),
            ]
        )
    return tokenizer


def _can_split_by(rule: str) -> bool:
    """Whether the tokenizer comes out right, by this module's doing or by transformers' own."""
    if rule in _DIGITS_APART | _LIKE_GPT2:
        return True
    try:
        from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS
    except ImportError:  # older versions keep no such table, and know these two
        return rule in {"llama-bpe", "qwen2"}
    return rule in GGUF_PRE_TOKENIZER_SPLITS


def _load_model(path: Path) -> Any:
    import torch
    import transformers

    auto: Any = transformers.AutoModelForCausalLM
    # Where it exists, the option keeps transformers from fetching and running compute kernels
    # for the packed weights.
    unpack = getattr(transformers, "GgufConfig", None)
    packed = auto.from_pretrained(
        path.parent,
        gguf_file=path.name,
        dtype=torch.float32,
        local_files_only=True,
        trust_remote_code=False,
        **({"quantization_config": unpack(dequantize=True)} if unpack else {}),
    )
    # A model that came from a GGUF file refuses to be saved. One built from its configuration
    # does not, and takes over the same tensors without copying them.
    config = packed.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    with torch.device("meta"):
        model = auto.from_config(config, dtype=torch.float32)
    model.load_state_dict(packed.state_dict(), assign=True)
    model.tie_weights()
    return model


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers' own bars and remarks on the conversion from the terminal."""
    from transformers import utils

    logging: Any = utils.logging
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def _explained(error: Exception, path: Path) -> Exception:
    if isinstance(error, OSError) and error.errno is not None:
        return error
    # safetensors reports a full disk in words only.
    if f"os error {errno.ENOSPC}" in str(error):
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return ModelError(
        f"transformers can't convert {path} ({_in_one_line(error)}): use the model's safetensors "
        "version"
    )


def _field(reader: Any, name: str, default: Any) -> Any:
    field = reader.get_field(name)
    return default if field is None else field.contents()


def _in_one_line(error: Exception) -> str:
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words}" if words else type(error).__name__
