"""A model's tokenizer and chat template, apart from transformers and from the model.

What is made of a loaded tokenizer can be written down and read again, and is the same then: prompts
and actions become tokens in one way, whether the model is in memory or only its scores are on disk.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

    from pytest_failgain.scoring.chat_template import WrittenChat

# What templates that ask for the date are given. With the day's own, prompts would change from
# day to day: no score could be used again, and no two runs could be compared.
TODAY = datetime(2026, 1, 1)

_PARTS_REMEMBERED = 2000
_NOWHERE = re.compile("(?!)")


@dataclass(frozen=True, eq=False)
class TemplateTokenizer:
    """Offers, of a transformers tokenizer, what rendering and reading replies need.

    `serialised` is the backend as JSON. `chat_template` is one template, or several by name.
    `special_tokens` are those that templates see, by their names ("bos_token"). Unless
    `split_special_tokens`, a special token's text in a text is that token.
    """

    serialised: str
    chat_template: str | Mapping[str, str] | None
    special_tokens: Mapping[str, str]
    split_special_tokens: bool = False

    @classmethod
    def of(cls, tokenizer: Any) -> TemplateTokenizer:
        """What is in a transformers tokenizer that has a backend (a "fast" one)."""
        return cls(
            tokenizer.backend_tokenizer.to_str(),
            tokenizer.chat_template,
            tokenizer.special_tokens_map,
            bool(tokenizer.split_special_tokens),
        )

    @cached_property
    def backend(self) -> Tokenizer:
        """The tokenizer itself, neither padding nor cutting; built when it is first needed."""
        from tokenizers import Tokenizer

        backend = Tokenizer.from_str(self.serialised)
        backend.no_padding()
        backend.no_truncation()
        backend.encode_special_tokens = self.split_special_tokens
        return backend

    @property
    def bos_token(self) -> str | None:
        return self.special_tokens.get("bos_token")

    @property
    def eos_token(self) -> str | None:
        return self.special_tokens.get("eos_token")

    @property
    def eos_token_id(self) -> int | None:
        return None if self.eos_token is None else self.backend.token_to_id(self.eos_token)

    @property
    def template_hash(self) -> str:
        """A short hash of the chat template, or of all of them; empty where there is none."""
        return "" if not self.chat_template else short_hash(self.chat_template)

    def tokens(self, text: str) -> tuple[int, ...]:
        """The tokens of `text`, without those that the tokenizer puts around a whole text.

        Prompts share most of their turns: each part of them is looked at once.
        """
        return tuple(token for part in self._parts(text) for token in self._tokens_of_part(part))

    def _parts(self, text: str) -> Iterator[str]:
        starts = [0, *(match.start() for match in self._cut.finditer(text)), len(text)]
        return (text[start:end] for start, end in pairwise(starts) if end > start)

    @cached_property
    def _cut(self) -> re.Pattern[str]:
        """Before what a text can be cut, and have the same tokens in its parts as in one.

        Those are added tokens that are found before anything else is, and whatever stands before
        them. What follows one of them is never the beginning of a text.
        """
        added = self.backend.get_added_tokens_decoder().values()
        found_first = [token for token in added if not token.normalized]
        local = not any(token.lstrip or token.single_word for token in found_first)
        if not local or self.split_special_tokens:
            return _NOWHERE
        # Of several at one place, the longest is found.
        texts = sorted((token.content for token in found_first), key=len, reverse=True)
        return re.compile("|".join(map(re.escape, texts))) if texts else _NOWHERE

    @cached_property
    def _tokens_of_part(self) -> Callable[[str], tuple[int, ...]]:
        def tokens(part: str) -> tuple[int, ...]:
            return tuple(self.encoded(part).ids)

        return lru_cache(_PARTS_REMEMBERED)(tokens)

    def encoded(self, text: str, *, marked: bool = False) -> Encoding:
        """`text` as tokens; `marked` with those that the tokenizer puts around a whole text."""
        return self.backend.encode(text, add_special_tokens=marked)

    def decode(
        self,
        tokens: Sequence[int],
        *,
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool = False,
    ) -> str:
        """The text of `tokens`, as it is.

        Raises:
            ValueError: when it is to be cleaned up, which would make it another text.
        """
        if clean_up_tokenization_spaces:
            raise ValueError(
                "texts are not cleaned up here: leave clean_up_tokenization_spaces out"
            )
        return self.backend.decode(tokens, skip_special_tokens=skip_special_tokens)

    def get_vocab(self) -> dict[str, int]:
        """The numbers of all tokens, added ones included."""
        return self.backend.get_vocab(with_added_tokens=True)

    def __len__(self) -> int:
        return self.backend.get_vocab_size(with_added_tokens=True)

    def write_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        template: str | None = None,
        add_generation_prompt: bool = False,
    ) -> WrittenChat:
        """`messages` as the chat template writes them, or as `template` does, if given.

        Raises:
            ValueError: when there is no template, or there are no messages.
            Exception: whatever the template raises, since it is a program.
        """
        from pytest_failgain.scoring.chat_template import write_chat

        return write_chat(
            self._chosen(tools is not None) if template is None else template,
            messages,
            tools=tools,
            add_generation_prompt=add_generation_prompt,
            special_tokens=self.special_tokens,
            today=TODAY,
        )

    def _chosen(self, with_tools: bool) -> str:
        templates = self.chat_template
        if templates is None:
            raise ValueError("the tokenizer has no chat template")
        if isinstance(templates, str):
            return templates
        if with_tools and "tool_use" in templates:
            return templates["tool_use"]
        if "default" not in templates:
            names = ", ".join(sorted(templates))
            raise ValueError(f"of several chat templates ({names}) none is the default")
        return templates["default"]


def short_hash(template: str | Mapping[str, str]) -> str:
    """The first 16 hexadecimal digits of a chat template's SHA-256, or of several named ones'."""
    if not isinstance(template, str):
        template = json.dumps(sorted(template.items()), ensure_ascii=False)
    return hashlib.sha256(template.encode()).hexdigest()[:16]
