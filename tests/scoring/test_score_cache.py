from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_failgain.scoring.score_cache import ScoreCache, TokenScores, pair_key
from strategies import quick

tokens = st.lists(st.integers(0, 3), min_size=1, max_size=3).map(tuple)
Pair = tuple[tuple[int, ...], tuple[int, ...]]


def scores(value: float) -> TokenScores:
    return np.array([value]), np.array([True])


def kept(cache: ScoreCache, *pair: tuple[int, ...]) -> float | None:
    found = cache.get(*pair)
    return None if found is None else float(found[0][0])


def test_what_was_put_is_got_back_and_nothing_else() -> None:
    cache = ScoreCache()
    stored = scores(-1.5)
    cache.put((1, 2), (3,), stored)
    assert cache.get((1, 2), (3,)) is stored
    assert cache.get((1, 2), (4,)) is None
    assert cache.get((2, 1), (3,)) is None


@pytest.mark.parametrize(
    "other",
    [((1,), (2, 3)), ((1, 2, 3), ()), ((), (1, 2, 3)), ((2, 1, 2), (3,)), ((1, 2), (3, 0))],
)
def test_the_same_tokens_split_elsewhere_are_another_pair(other: Pair) -> None:
    cache = ScoreCache()
    cache.put((1, 2), (3,), scores(-1.0))
    assert cache.get(*other) is None


@quick
@given(pairs=st.lists(st.tuples(tokens, tokens), unique=True, max_size=20))
def test_different_pairs_never_meet(pairs: list[Pair]) -> None:
    cache = ScoreCache()
    for number, pair in enumerate(pairs):
        cache.put(*pair, scores(number))
    assert [kept(cache, *pair) for pair in pairs] == list(range(len(pairs)))


def test_lists_and_tuples_of_the_same_tokens_are_one_pair() -> None:
    cache = ScoreCache()
    cache.put([1, 2], [3], scores(-1.0))
    assert kept(cache, (1, 2), (3,)) == -1.0


def test_tokens_of_a_large_vocabulary_are_told_apart() -> None:
    cache = ScoreCache()
    cache.put((2**31,), (2**40,), scores(-1.0))
    assert cache.get((-(2**31),), (2**40,)) is None
    assert kept(cache, (2**31,), (2**40,)) == -1.0


def test_a_pair_put_again_has_the_newer_scores() -> None:
    cache = ScoreCache()
    cache.put((1,), (2,), scores(-1.0))
    cache.put((1,), (2,), scores(-2.0))
    assert kept(cache, (1,), (2,)) == -2.0


def test_several_pairs_are_put_as_one_by_one() -> None:
    cache = ScoreCache(capacity=2)
    cache.put_all(((number,), (9,), scores(number)) for number in range(3))
    assert [kept(cache, (number,), (9,)) for number in range(3)] == [None, 1.0, 2.0]


def test_the_digest_of_a_pair_tells_pairs_and_models_apart() -> None:
    digests = {
        pair_key(context, action, model)
        for context, action in (((1, 2), (3,)), ((1,), (2, 3)), ((1, 2), (3, 0)))
        for model in (b"", b"one", b"other")
    }
    assert len(digests) == 9
    assert pair_key([1, 2], [3], b"one") == pair_key((1, 2), (3,), b"one")


@quick
@given(
    capacity=st.integers(1, 3),
    uses=st.lists(st.tuples(st.booleans(), st.integers(0, 4)), max_size=40),
)
@example(2, [(True, 0), (True, 1), (True, 0), (True, 2)])
@example(2, [(True, 0), (True, 1), (False, 0), (True, 2)])
def test_the_last_used_are_kept_and_no_more_than_the_capacity(
    capacity: int, uses: list[tuple[bool, int]]
) -> None:
    cache = ScoreCache(capacity)
    expected: OrderedDict[int, float] = OrderedDict()
    for time, (is_put, number) in enumerate(uses):
        if is_put:
            cache.put((number,), (1,), scores(time))
            expected[number] = time
        else:
            assert kept(cache, (number,), (1,)) == expected.get(number)
        if number in expected:
            expected.move_to_end(number)
        while len(expected) > capacity:
            expected.popitem(last=False)
    for number in range(5):
        assert kept(cache, (number,), (1,)) == expected.get(number)
