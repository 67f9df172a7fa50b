"""A trie of token sequences.

Prompts of one case differ in a few turns, and prompts of all cases begin alike. As one trie every
distinct token is computed once. Nodes are numbered in preorder, which makes two things cheap: the
subtree of node `v` is the range `v <= n < end[v]`, and so "j is an ancestor of i, or i itself" is
`j <= i < end[j]`, the tree attention mask of a whole pack in one comparison.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Tokens = Sequence[int]


@dataclass(frozen=True, slots=True)
class TokenTree:
    """A trie in preorder. All arrays have one entry a node, of shape (nodes,).

    `parents` is -1 for a first token. `depths` count from 0, so they are positions. `scored` marks
    the tokens of actions: their log-probability is wanted. `paths` lists, for each sequence in the
    order it was given, the nodes of its action.
    """

    tokens: NDArray[np.int64]
    parents: NDArray[np.int64]
    depths: NDArray[np.int64]
    ends: NDArray[np.int64]
    scored: NDArray[np.bool_]
    paths: tuple[NDArray[np.int64], ...]

    def __len__(self) -> int:
        return len(self.tokens)


def build_tree(sequences: Sequence[tuple[Tokens, Tokens]]) -> TokenTree:
    """The trie of (context, action) token pairs. A context must not be empty.

    Raises:
        ValueError: when a context or an action has no tokens.
    """
    if any(not context or not action for context, action in sequences):
        raise ValueError("every context and every action needs at least one token")
    joined = [(*context, *action) for context, action in sequences]
    tokens: list[int] = []
    parents: list[int] = []
    depths: list[int] = []
    ends: list[int] = []
    scored: list[bool] = []
    paths: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)] * len(sequences)

    open_path: list[int] = []
    previous: tuple[int, ...] = ()
    for index in sorted(range(len(joined)), key=joined.__getitem__):
        sequence = joined[index]
        shared = common_prefix(previous, sequence)
        for node in open_path[shared:]:
            ends[node] = len(tokens)
        del open_path[shared:]
        for token in sequence[shared:]:
            parents.append(open_path[-1] if open_path else -1)
            depths.append(len(open_path))
            open_path.append(len(tokens))
            tokens.append(token)
            ends.append(-1)
            scored.append(False)
        path = open_path[len(sequences[index][0]) :]
        for node in path:
            scored[node] = True
        paths[index] = np.array(path, dtype=np.int64)
        previous = sequence
    for node in open_path:
        ends[node] = len(tokens)
    return TokenTree(
        np.array(tokens, dtype=np.int64),
        np.array(parents, dtype=np.int64),
        np.array(depths, dtype=np.int64),
        np.array(ends, dtype=np.int64),
        np.array(scored, dtype=np.bool_),
        tuple(paths),
    )


def common_prefix(left: tuple[int, ...], right: tuple[int, ...]) -> int:
    """How many tokens `left` and `right` begin with alike."""
    # Sorted neighbours mostly share hundreds of tokens: bisect on slices, which compare in C.
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def in_passes(nodes: NDArray[np.int64], budget: int) -> Iterator[NDArray[np.int64]]:
    """`nodes`, which are in preorder, in runs of at most `budget`.

    The ancestors of a run's nodes that are not in the run itself are all ancestors of its first
    node. So what a run needs of those before it is the keys and values of one path.
    """
    for start in range(0, len(nodes), budget):
        yield nodes[start : start + budget]
