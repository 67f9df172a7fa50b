from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_failgain.scoring.token_tree import TokenTree, build_tree, in_passes
from strategies import quick

# Three tokens only, so that sequences share prefixes.
tokens = st.integers(min_value=0, max_value=2)
some = st.lists(tokens, min_size=1, max_size=8).map(tuple)
pairs = st.lists(st.tuples(some, some), min_size=1, max_size=10)


def path_to(tree: TokenTree, node: int) -> list[int]:
    path = []
    while node >= 0:
        path.append(node)
        node = int(tree.parents[node])
    return path[::-1]


@quick
@given(pairs)
def test_each_distinct_prefix_is_one_node(sequences: list[tuple[tuple[int, ...], ...]]) -> None:
    tree = build_tree([(context, action) for context, action in sequences])
    joined = [context + action for context, action in sequences]
    prefixes = {sequence[:end] for sequence in joined for end in range(1, len(sequence) + 1)}
    assert len(tree) == len(prefixes)
    assert {tuple(tree.tokens[path_to(tree, n)].tolist()) for n in range(len(tree))} == prefixes


@quick
@given(pairs)
def test_action_paths_spell_the_actions(sequences: list[tuple[tuple[int, ...], ...]]) -> None:
    tree = build_tree([(context, action) for context, action in sequences])
    for (context, action), path in zip(sequences, tree.paths, strict=True):
        assert tuple(tree.tokens[path].tolist()) == action
        assert tuple(tree.tokens[path_to(tree, int(path[-1]))].tolist()) == context + action
        assert tree.scored[path].all()


@quick
@given(pairs)
def test_ranges_tell_ancestors(sequences: list[tuple[tuple[int, ...], ...]]) -> None:
    tree = build_tree([(context, action) for context, action in sequences])
    for node in range(len(tree)):
        ancestors = {j for j in range(len(tree)) if j <= node < tree.ends[j]}
        assert ancestors == set(path_to(tree, node))
        assert tree.depths[node] == len(ancestors) - 1


@quick
@given(pairs, st.integers(min_value=1, max_value=30))
def test_passes_need_only_one_path_of_what_was_computed_before(
    sequences: list[tuple[tuple[int, ...], ...]], budget: int
) -> None:
    tree = build_tree([(context, action) for context, action in sequences])
    computed: list[int] = []
    for nodes in in_passes(np.arange(len(tree)), budget):
        assert 1 <= len(nodes) <= budget
        above_the_first = path_to(tree, int(nodes[0]))[:-1]
        for node in nodes:
            assert set(path_to(tree, int(node))) <= {*above_the_first, *nodes.tolist()}
        computed += nodes.tolist()
    assert computed == list(range(len(tree)))


@pytest.mark.parametrize("pair", [((), (1,)), ((1,), ())])
def test_nothing_to_compute_after_or_before_is_refused(
    pair: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
    with pytest.raises(ValueError, match="at least one token"):
        build_tree([pair])
