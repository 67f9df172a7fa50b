from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_failgain.scoring.token_tree import TokenTree, build_tree, plan_passes
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
def test_passes_compute_every_node_once_within_the_budget(
    sequences: list[tuple[tuple[int, ...], ...]], budget: int
) -> None:
    tree = build_tree([(context, action) for context, action in sequences])
    computed: list[int] = []
    kept: list[int] = []
    for step in plan_passes(tree, budget):
        assert 1 <= len(step) <= budget
        del kept[step.cached :]
        nodes = list(range(step.start, step.stop))
        # What a node attends to is its path: cached, or in this very pass.
        for node in nodes:
            assert set(path_to(tree, node)) <= {*kept, *nodes}
        assert kept == path_to(tree, nodes[0])[: step.cached]
        computed += nodes
        if step.keep:
            kept += nodes
    assert sorted(computed) == list(range(len(tree)))


def test_shared_prefix_is_one_chain_that_is_kept() -> None:
    shared = tuple(range(100, 150))
    tree = build_tree([((*shared, i), (i, i)) for i in range(20)])
    first, *rest = plan_passes(tree, budget=40)
    assert (first.cached, first.keep, len(first)) == (0, True, 40)
    assert sum(map(len, rest)) == len(tree) - 40
    assert len(tree) == 50 + 20 * 3


@pytest.mark.parametrize("pair", [((), (1,)), ((1,), ())])
def test_nothing_to_compute_after_or_before_is_refused(
    pair: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
    with pytest.raises(ValueError, match="at least one token"):
        build_tree([pair])
