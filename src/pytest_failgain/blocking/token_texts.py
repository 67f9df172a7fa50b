"""What every token of a vocabulary adds to a text, and which tokens can add what."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

# What a decoder puts for bytes that are no whole character.
BROKEN = "\ufffd"


class TokenTexts:
    """The texts that the first `size` tokens of `tokenizer` add behind another token.

    A piece that is no whole character by itself has BROKEN in its text; what it adds depends on the
    pieces before it. Tokens that decode to nothing, as special ones do, have the text "".

    `broken_signs` are the broken ones that may show a closing bracket or a line break: all of them,
    where a decoder breaks whole characters that stand beside broken ones.
    """

    def __init__(self, tokenizer: Any, size: int) -> None:
        self.texts = tuple(_added_texts(tokenizer, size))
        self.broken = self._with(BROKEN)
        # What can be the end of a call: a Python call's bracket, a JSON object's brace.
        self.closers = self._with(")", "}")
        signs = self._with(")", "}", "\n")
        hidden = any(self._is_hidden(tokenizer, sign) for sign in signs) if self.broken else False
        self.broken_signs = tuple(i for i in self.broken if hidden or i in signs)
        self.most_closers = max((count_closers(self.texts[i]) for i in self.closers), default=0)

    def _with(self, *parts: str) -> tuple[int, ...]:
        return tuple(i for i, text in enumerate(self.texts) if any(part in text for part in parts))

    def _is_hidden(self, tokenizer: Any, sign: int) -> bool:
        """Whether a broken token behind it takes a token's text away."""
        alone, both = decoded(tokenizer, [sign]), decoded(tokenizer, [sign, self.broken[0]])
        return not both.startswith(alone.rstrip(BROKEN))

    @cached_property
    def by_line(self) -> LineIndex:
        """All tokens by what they add to a line."""
        return LineIndex(self.texts, range(len(self.texts)))

    @cached_property
    def line_enders(self) -> LineIndex:
        """The tokens that finish a line, by what they add to it."""
        return LineIndex(self.texts, self._with("\n"))


class LineIndex:
    """Some tokens by the first line of their texts, without white space and backticks behind it."""

    def __init__(self, texts: Sequence[str], tokens: Iterable[int]) -> None:
        by_line: dict[str, list[int]] = defaultdict(list)
        self._squeezed = {token: squeezed(texts[token]) for token in tokens}
        for token in self._squeezed:
            by_line[squeezed(texts[token].partition("\n")[0]).rstrip("`")].append(token)
        self._by_line: Mapping[str, Sequence[int]] = dict(by_line)
        self._longest = max(map(len, by_line), default=0)
        self._holding: dict[str, tuple[int, ...]] = {}

    def completing(self, wanted: str, line: str) -> Sequence[int]:
        """The tokens behind which `line` may say `wanted` alone. Both are squeezed.

        What stands behind `wanted` in the line is white space or backticks.
        """
        if line.rstrip("`") == wanted:
            return self._by_line.get("", ())
        return self._by_line.get(wanted[len(line) :], ()) if wanted.startswith(line) else ()

    def finishing(self, wanted: str, reply: str) -> Iterator[int]:
        """The tokens behind which `reply` may end with `wanted`, like `completing`."""
        if reply.rstrip("`").endswith(wanted):
            yield from self._by_line.get("", ())
        for known in range(max(1, len(wanted) - self._longest), len(wanted)):
            if reply.endswith(wanted[:known]):
                yield from self._by_line.get(wanted[known:], ())

    def holding(self, wanted: str) -> tuple[int, ...]:
        """The tokens that have all of the squeezed text `wanted` in them."""
        if wanted not in self._holding:
            self._holding[wanted] = tuple(i for i, text in self._squeezed.items() if wanted in text)
        return self._holding[wanted]


def count_closers(text: str) -> int:
    """How many brackets `text` can close."""
    return sum(map(text.count, ")]}"))


def squeezed(text: str) -> str:
    """The text without white space: that of a text and its continuation is theirs, joined."""
    return "".join(text.split())


def decoded(tokenizer: Any, tokens: Sequence[int]) -> str:
    """The text of a reply that consists of `tokens`."""
    text: str = tokenizer.decode(
        list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False
    )
    return text


def _added_texts(tokenizer: Any, size: int) -> Iterator[str]:
    # Many a tokenizer decodes a first token without the space that it stands for elsewhere, so
    # every token is decoded behind a plain one.
    alone = [decoded(tokenizer, [token]) for token in range(size)]
    plain = (i for i, text in enumerate(alone) if text.isascii() and text.isalnum())
    first = next(plain, None)
    for token, text in enumerate(alone):
        joined = "" if first is None else decoded(tokenizer, [first, token])
        known = None if first is None else alone[first]
        yield joined[len(known) :] if known and joined.startswith(known) else text


_KNOWN: WeakKeyDictionary[Any, dict[tuple[int, int], TokenTexts]] = WeakKeyDictionary()


def token_texts(tokenizer: Any, size: int) -> TokenTexts:
    """The texts of the tokenizer's tokens; they are decoded once as long as it lives."""
    kept = _KNOWN.setdefault(tokenizer, {})
    # A tokenizer may be given further tokens.
    key = (len(tokenizer), size)
    if key not in kept:
        kept[key] = TokenTexts(tokenizer, size)
    return kept[key]
