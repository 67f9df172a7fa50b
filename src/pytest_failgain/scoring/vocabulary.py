"""What a decoder has to know of the tokens that it puts one behind the other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from pytest_failgain.blocking.token_texts import BROKEN, decoded, token_texts

# A call is whole at its closing bracket, and a line at its break; and what is no whole character by
# itself may be white space together with what stands before it, which bares a call.
_ENDING = frozenset(f")]}}\n{BROKEN}")


class Vocabulary:
    """The tokens of a reply as text. `tokenizer` is a transformers tokenizer.

    `stops` are the tokens with which the model ends its turn.
    """

    def __init__(self, tokenizer: Any, stops: frozenset[int]) -> None:
        self._tokenizer = tokenizer
        self.stops = stops

    @classmethod
    def of(cls, model: Any, tokenizer: Any) -> Vocabulary:
        """The vocabulary of a transformers model, with every end that it or its tokenizer names."""
        named = (
            tokenizer.eos_token_id,
            getattr(getattr(model, "generation_config", None), "eos_token_id", None),
            getattr(model.config.get_text_config(), "eos_token_id", None),
        )
        stops: set[int] = set()
        for ends in named:
            stops.update(ends if isinstance(ends, list | tuple) else [] if ends is None else [ends])
        return cls(tokenizer, frozenset(stops))

    def text(self, tokens: Sequence[int]) -> str:
        """The reply that `tokens` are so far, without special tokens."""
        return decoded(self._tokenizer, tokens)

    @cached_property
    def may_end(self) -> frozenset[int]:
        """The tokens with which a call or a line may be complete."""
        # The highest number, not how many there are: numbers may be left out.
        count = max(self._tokenizer.get_vocab().values(), default=-1) + 1
        texts = token_texts(self._tokenizer, count).texts
        return frozenset(token for token, text in enumerate(texts) if not _ENDING.isdisjoint(text))
