"""Random language models of a few thousand weights, and tokenizers over bytes or words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MambaConfig,
    MambaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from pytest_failgain.scoring.local import LocalScorer
from pytest_failgain.scoring.protocol import ModelIdentity
from pytest_failgain.scoring.template_tokenizer import TemplateTokenizer

VOCABULARY = 320
CONTEXT = 512

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

# Knows tools, tool calls and tool results, in the way of Qwen's and Hermes' templates.
TOOLS = (
    "{% if tools %}<|im_start|>system\n"
    "{% if messages[0]['role'] == 'system' %}{{ messages[0]['content'] }}\n{% endif %}"
    "{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}<|im_end|>\n{% endif %}"
    "{% for message in messages %}"
    "{% if message['role'] == 'tool' %}<|im_start|>user\n<tool_response>\n"
    "{{ message['content'] }}\n</tool_response><|im_end|>\n"
    "{% elif message['role'] == 'assistant' %}<|im_start|>assistant\n"
    "{{ message['content'] or '' }}"
    "{% for call in message.tool_calls or [] %}<tool_call>\n"
    '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}'
    "\n</tool_call>{% endfor %}<|im_end|>\n"
    "{% elif message['role'] in ['user', 'system'] %}"
    "{% if not (tools and loop.first and message['role'] == 'system') %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endif %}"
    "{% else %}{{ raise_exception('unknown role') }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

# Gemma's way: no system role, and user and model must alternate.
NO_SYSTEM = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if message['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/...') }}{% endif %}"
    "<start>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<start>model\n{% endif %}"
)


def byte_tokenizer(template: str | None = CHATML) -> PreTrainedTokenizerFast:
    """One token a byte, and the special tokens of ChatML."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = Tokenizer(models.BPE({letter: i for i, letter in enumerate(alphabet)}, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    return _wrapped(inner, template)


def marking_tokenizer(template: str | None = CHATML) -> PreTrainedTokenizerFast:
    """Puts a marker before a lone string, as SentencePiece models do; one token a character."""
    letters = ["\u2581", *(chr(code) for code in range(32, 127)), "\n", "\u2581a"]
    inner = Tokenizer(
        models.BPE(
            {letter: i for i, letter in enumerate(dict.fromkeys(letters))}, [("\u2581", "a")]
        )
    )
    inner.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    inner.decoder = decoders.Metaspace()
    return _wrapped(inner, template)


# How the tokenizers of GPT-2 and of Llama 3 split text before they merge letters. Under the second,
# line breaks behind punctuation belong to it.
GPT2_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def merging_tokenizer(words: str, template: str | None = CHATML) -> PreTrainedTokenizerFast:
    """Merges bytes within words as `words` splits them, whichever stand side by side in calls."""
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(words), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - 4,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    text = "\n\n".join([f"{end}\n{end} \n{end}" for end in ("book(room='1')", '{"a": "b"}', "a.")])
    inner.train_from_iterator([f"### User\n{text}\n\n### Assistant\n{text}"] * 9, trainer)
    return _wrapped(inner, template)


def _wrapped(inner: Tokenizer, template: str | None) -> PreTrainedTokenizerFast:
    make: Any = PreTrainedTokenizerFast  # its signature has no types
    tokenizer: PreTrainedTokenizerFast = make(
        tokenizer_object=inner,
        bos_token="<|im_start|>",
        eos_token="<|im_end|>",
        pad_token="<|im_end|>",
        additional_special_tokens=["<tool_call>", "</tool_call>"],
    )
    tokenizer.chat_template = template
    return tokenizer


def names(tokenizer: TemplateTokenizer, tokens: Sequence[int]) -> list[str | None]:
    """What the vocabulary calls each of `tokens`."""
    return [tokenizer.backend.id_to_token(token) for token in tokens]


def special(tokenizer: TemplateTokenizer, tokens: Sequence[int]) -> list[str | None]:
    """The names of those of `tokens` that are special."""
    added = tokenizer.backend.get_added_tokens_decoder()
    return names(tokenizer, [token for token in tokens if token in added and added[token].special])


def llama() -> Any:
    return _random(LlamaForCausalLM, LlamaConfig, num_key_value_heads=2)


def gemma3(window: int = 4) -> Any:
    """Sliding and full attention layers in turn."""
    return _random(
        Gemma3ForCausalLM,
        Gemma3TextConfig,
        num_key_value_heads=1,
        head_dim=8,
        sliding_window=window,
        layer_types=["sliding_attention", "full_attention"],
    )


def mistral(window: int = 4) -> Any:
    """Every layer slides."""
    return _random(MistralForCausalLM, MistralConfig, num_key_value_heads=2, sliding_window=window)


def qwen2() -> Any:
    return _random(Qwen2ForCausalLM, Qwen2Config, num_key_value_heads=2)


def gpt2() -> Any:
    """Positions that are learned, and end at 64."""
    torch.manual_seed(7)
    config = GPT2Config(vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=64)
    model: Any = GPT2LMHeadModel(config)
    return model.eval()


def mamba() -> Any:
    """No attention at all."""
    torch.manual_seed(7)
    config = MambaConfig(
        vocab_size=VOCABULARY, hidden_size=16, state_size=4, num_hidden_layers=2, expand=2
    )
    model: Any = MambaForCausalLM(config)
    return model.eval()


def _random(model: Any, config: Any, **settings: Any) -> Any:
    torch.manual_seed(7)
    made = model(
        config(
            vocab_size=VOCABULARY,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=CONTEXT,
            **settings,
        )
    )
    # Freshly initialised weights are so small that every token is about as likely; larger ones
    # make attention matter, so that a wrong mask shows.
    with torch.no_grad():
        for weights in made.parameters():
            if weights.dim() > 1:
                weights.mul_(8)
    return made.eval()


IDENTITY = ModelIdentity("tiny", "random weights", None, "tiny", "float32", "cpu")


def tiny_scorer(model: Any = None, template: str | None = CHATML, **settings: Any) -> LocalScorer:
    """A scorer over a tiny model (a Llama by default) and the byte tokenizer."""
    return LocalScorer.of(model or llama(), byte_tokenizer(template), IDENTITY, **settings)
