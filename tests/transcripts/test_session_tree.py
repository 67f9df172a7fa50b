"""The ways through a session whose entries name the one before them."""

from __future__ import annotations

import time
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_failgain.transcripts.session_tree import ways


def test_line_is_one_way() -> None:
    assert ways([None, 0, 1]) == ([[0, 1, 2]], 0)


def test_branches_share_their_beginning_and_the_last_comes_first() -> None:
    assert ways([None, 0, 1, 0]) == ([[0, 3], [0, 1, 2]], 0)


def test_parent_may_stand_behind_its_child() -> None:
    assert ways([1, None]) == ([[1, 0]], 0)


def test_circle_is_told_once() -> None:
    found, _ = ways([2, 0, 1])
    assert sorted(found[0]) == [0, 1, 2]
    assert len(found) == 1


def test_way_out_of_a_circle_ends() -> None:
    found, _ = ways([1, 0, 1])
    assert found == [[0, 1, 2]]


def test_many_long_branches_are_cut_to_what_is_new_and_counted() -> None:
    count = 20_000
    parents = [None, *range(count), *([count] * count)]
    started = time.perf_counter()
    found, shortened = ways(parents)
    assert time.perf_counter() - started < 5
    assert sum(map(len, found)) < 20 * count
    assert 0 < shortened < count
    assert {at for way in found for at in way} == {*range(len(parents))}


@given(st.lists(st.integers(-1, 9), min_size=1, max_size=10))
@settings(max_examples=200, deadline=None)
def test_every_entry_is_on_a_way_that_its_parents_lead(given_parents: list[int]) -> None:
    size = len(given_parents)
    parents = [parent if 0 <= parent < size else None for parent in given_parents]
    found, _ = ways(parents)
    assert {at for way in found for at in way} == {*range(size)}
    for way in found:
        assert len({*way}) == len(way)
        assert all(parents[after] == before for before, after in pairwise(way))
