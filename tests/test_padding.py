"""Paddings, with tokenizers that count in very different ways."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

import tiny_language_models as tiny
from pytest_failgain import padding
from pytest_failgain.padding import PADDINGS, CountTokens, pad_as_published, pad_exactly
from pytest_failgain.trajectory import Observations
from strategies import quick, texts, words

if TYPE_CHECKING:
    from pytest_failgain.scoring.local import LocalScorer

NEUTRAL = Observations().neutral
CALL = "send(to='Ann')"


def count_words(text: str) -> int:
    return len(text.split())


@cache
def byte_pairs() -> Tokenizer:
    """Byte pairs as merged most often in this project's own source, as GPT-2 splits words."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train([str(padding.__file__)], trainer)
    return tokenizer


@cache
def marked_characters() -> Callable[[str], int]:
    tokenizer = tiny.marking_tokenizer()
    return lambda text: len(tokenizer(text, add_special_tokens=False)["input_ids"])


COUNTS: dict[str, CountTokens] = {
    "bytes": lambda text: len(text.encode()),
    "words": count_words,
    "byte pairs": lambda text: len(byte_pairs().encode(text).ids),
    "marked characters": lambda text: marked_characters()(text),
}
counts = pytest.mark.parametrize("count", COUNTS.values(), ids=COUNTS)


def long_errors(count: CountTokens) -> st.SearchStrategy[str]:
    """Errors that are no shorter than the neutral text, by any number of tokens."""
    even = st.integers(0, 200).map(lambda more: NEUTRAL + (" no, 7." * more)[:more])
    odd = st.text(max_size=60).map(f"{NEUTRAL} {{}}".format)
    return (even | odd).filter(lambda error: count(error) >= count(NEUTRAL))


@counts
@quick
@given(data=st.data(), action=words)
def test_exact_padding_is_as_long_as_the_error(
    count: CountTokens, data: st.DataObject, action: str
) -> None:
    error = data.draw(long_errors(count))
    padded = pad_exactly(NEUTRAL, error, action, count)
    assert count(padded) == count(error)
    assert padded.startswith(NEUTRAL)
    assert not padded.endswith(" ")


@pytest.mark.model
@quick
@given(data=st.data(), action=words)
def test_exact_padding_is_as_long_as_the_error_for_the_embedded_model(
    smollm2: LocalScorer, data: st.DataObject, action: str
) -> None:
    error = data.draw(long_errors(smollm2.count_tokens))
    padded = pad_exactly(NEUTRAL, error, action, smollm2.count_tokens)
    assert smollm2.count_tokens(padded) == smollm2.count_tokens(error)


@counts
@quick
@given(neutral=texts, error=texts, action=words)
def test_an_answer_that_is_no_shorter_than_the_error_stays_as_it_is(
    count: CountTokens, neutral: str, error: str, action: str
) -> None:
    if count(neutral) >= count(error):
        assert pad_exactly(neutral, error, action, count) == neutral


@pytest.mark.parametrize("pad", PADDINGS.values(), ids=PADDINGS)
@quick
@given(error=texts, action=words)
def test_padding_is_the_same_every_time(
    pad: Callable[[str, str, str, CountTokens], str], error: str, action: str
) -> None:
    assert pad(NEUTRAL, error, action, count_words) == pad(NEUTRAL, error, action, count_words)


@pytest.mark.parametrize("pad", PADDINGS.values(), ids=PADDINGS)
@counts
@quick
@given(actions=st.lists(words, min_size=2, max_size=2, unique=True))
def test_padding_differs_between_actions(
    count: CountTokens, pad: Callable[[str, str, str, CountTokens], str], actions: list[str]
) -> None:
    error = f"{NEUTRAL} {'no ' * 20}"
    one, other = (pad(NEUTRAL, error, action, count) for action in actions)
    assert one != other


@pytest.mark.parametrize("pad", PADDINGS.values(), ids=PADDINGS)
@pytest.mark.parametrize("of_error", [0, 1, 7, 500])
@pytest.mark.parametrize("of_all_else", [0, 1, 7, 400, 600])
def test_a_tokenizer_to_which_all_texts_are_equally_long_comes_to_an_end(
    pad: Callable[[str, str, str, CountTokens], str], of_error: int, of_all_else: int
) -> None:
    asked = []

    def count(text: str) -> int:
        asked.append(text)
        return of_error if text == "error" else of_all_else

    padded = pad("neutral", "error", CALL, count)
    # Nothing comes nearer than the first, so that is taken.
    assert padded == ("neutral" if pad is pad_exactly else "Call recorded.")
    assert len(asked) < 200


@pytest.mark.parametrize(
    ("wanted", "letters"),
    [
        pytest.param(44, 0, id="as long as the neutral text"),
        pytest.param(45, 0, id="between none and one, so none"),
        pytest.param(46, 1, id="met by one"),
        pytest.param(99, 27, id="between two lengths, so the shorter"),
    ],
)
def test_exact_padding_takes_the_nearest_where_the_length_can_not_be_met(
    wanted: int, letters: int
) -> None:
    def two_a_letter(text: str) -> int:
        return wanted if text == "error" else 2 * len(text)

    padded = pad_exactly(NEUTRAL, "error", CALL, two_a_letter)
    assert len(padded) == len(NEUTRAL) + letters


def test_exact_padding_goes_on_where_a_letter_more_joins_tokens() -> None:
    # One letter is two tokens too many, and two are one token: the length is met later.
    def count(text: str) -> int:
        return {"error": 2, "": 1, ".": 4, " r": 1, " r6": 2}.get(text, 9)

    assert pad_exactly("", "error", CALL, count) == " r6"


def test_exact_padding_of_a_long_error_needs_few_looks() -> None:
    asked = []

    def count(text: str) -> int:
        asked.append(text)
        return len(text)

    error = "e" * 20_000
    assert len(pad_exactly(NEUTRAL, error, CALL, count)) == len(error)
    assert len(asked) < 40


def test_exact_padding_is_made_of_meaningless_words() -> None:
    error = " ".join(["no"] * 7)
    assert pad_exactly(NEUTRAL, error, CALL, count_words) == (
        "The call was received. r609957cb r8c084369 r"
    )
    # A template may strip a space, so that what ends in one ends in a stop instead.
    assert pad_exactly(NEUTRAL, "e" * 23, CALL, len) == "The call was received.."
    assert pad_exactly(NEUTRAL, "e" * 24, CALL, len) == "The call was received. r"


PUBLISHED = (
    "Call recorded.",
    " trace=609957cb",
    " trace=8c084369",
)


@pytest.mark.parametrize(
    ("wanted", "segments"),
    [
        pytest.param(0, 0, id="shorter than the text alone"),
        pytest.param(14, 0, id="as long as the text alone"),
        pytest.param(21, 0, id="nearer to none than to one"),
        pytest.param(22, 1, id="nearer to one"),
        pytest.param(29, 1, id="met by one"),
        pytest.param(36, 1, id="nearer to one than to two"),
        pytest.param(37, 2, id="nearer to two"),
    ],
)
def test_published_padding_has_the_number_of_segments_that_comes_nearest(
    wanted: int, segments: int
) -> None:
    padded = pad_as_published("Not used.", "e" * wanted, CALL, len)
    assert padded == "".join(PUBLISHED[: 1 + segments])


def test_published_padding_takes_the_earlier_of_two_that_are_as_near() -> None:
    def count(text: str) -> int:
        return 2 * len(text) if text != "error" else 2 * 14 + 15

    assert pad_as_published("", "error", CALL, count) == "Call recorded."


def test_published_padding_ends_with_23_segments() -> None:
    padded = pad_as_published("", "e" * 10_000, CALL, len)
    assert padded.count(" trace=") == 23
    assert padded.startswith("".join(PUBLISHED))


def test_published_padding_looks_no_further_once_it_is_as_long_as_the_error() -> None:
    # Two segments would be exactly as long, but one is longer already.
    lengths = {"error": 20, PUBLISHED[0]: 10, "".join(PUBLISHED[:2]): 25, "".join(PUBLISHED): 20}
    assert pad_as_published("", "error", CALL, lengths.__getitem__) == "".join(PUBLISHED[:2])
