"""Bringing a neutral observation to the length of an error, so that length explains nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import blake2b
from itertools import accumulate, count, islice

CountTokens = Callable[[str], int]

# No tokenizer makes tokens of more characters than this out of random digits.
_CHARACTERS_A_TOKEN = 12
# A letter more may join tokens, so a text that is too long can be followed by one that is not; but
# not after so many tokens too much.
_TOKENS_TO_JOIN = 8

_PUBLISHED_NEUTRAL = "Call recorded."
_PUBLISHED_SEGMENTS = 23


def _digest(action: str, index: int) -> str:
    return blake2b(f"{action}:{index}".encode(), digest_size=4).hexdigest()


def pad_exactly(neutral: str, error: str, action: str, count_tokens: CountTokens) -> str:
    """`neutral` with meaningless words behind it, of as many tokens as `error`.

    The words grow letter by letter, and a letter is a token at most as a rule, so every length is
    met with nearly every tokenizer. Where one is not, the nearest is taken; where `neutral` alone
    is longer than `error`, it stays as it is.
    """
    wanted, length = count_tokens(error), count_tokens(neutral)
    text, best, gap = neutral, neutral, wanted - length
    words, letters = _meaningless_words(action), 0
    while gap > 0 and letters < _CHARACTERS_A_TOKEN * wanted and length < wanted + _TOKENS_TO_JOIN:
        # Half of what is missing can't be too much, even with two tokens a letter.
        step = max(1, (wanted - length) // 2)
        text, letters = text + "".join(islice(words, step)), letters + step
        # A chat template may strip a space at the end.
        padded = f"{text[:-1]}." if text.endswith(" ") else text
        length = count_tokens(padded)
        if abs(length - wanted) < gap:
            best, gap = padded, abs(length - wanted)
    return best


def _meaningless_words(action: str) -> Iterator[str]:
    """The letters of " r0a1b2c3d r4e5f6071 …", endlessly."""
    for index in count():
        yield from f" r{_digest(action, index)}"


def pad_as_published(neutral: str, error: str, action: str, count_tokens: CountTokens) -> str:
    """The published padding: segments " trace=<8 hex digits>" up to the length of `error`.

    Of "Call recorded." with none to 23 segments, the one whose number of tokens is nearest, the
    earlier of two, and none after the first that is as long as `error`. `neutral` is not used:
    the experiment padded that one text in both environments.
    """
    wanted = count_tokens(error)
    segments = (f" trace={_digest(action, index)}" for index in range(_PUBLISHED_SEGMENTS))
    best, gap = "", None
    for text in accumulate(segments, initial=_PUBLISHED_NEUTRAL):
        length = count_tokens(text)
        if gap is None or abs(length - wanted) < gap:
            best, gap = text, abs(length - wanted)
        if length >= wanted:
            break
    return best


# Each is given the neutral observation, the error, the action, whose text varies the filling from
# case to case, and how tokens are counted.
PADDINGS: dict[str, Callable[[str, str, str, CountTokens], str]] = {
    "exact": pad_exactly,
    "published": pad_as_published,
}
