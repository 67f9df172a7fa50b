"""Token trees through a transformers model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pytest_failgain.scoring.attention import additive_masks, cache_argument
from pytest_failgain.scoring.score_cache import TokenScores
from pytest_failgain.scoring.token_tree import Tokens, TokenTree, in_passes

if TYPE_CHECKING:
    import torch

_LOGIT_BYTES = 256 * 2**20
_LONGEST_PASS = 256
_ROWS_AT_ONCE = 4


@dataclass(slots=True)
class TreeEngine:
    """Runs token trees through one causal language model.

    `budget` is the longest forward pass in tokens; None takes 256, or less where that many rows
    of logits over the vocabulary would take more than 256 MiB. Between calls the keys and values of
    the last path are kept, so what all prompts share is computed once. `tokens` counts those that
    went through the model.
    """

    model: Any
    budget: int | None = None
    tokens: int = field(default=0, init=False)
    _cache: Any = field(default=None, init=False)
    _cached_tokens: NDArray[np.int64] = field(init=False)
    _cache_argument: str = field(default="", init=False)

    def __post_init__(self) -> None:
        if self.budget is None:
            rows = _LOGIT_BYTES // (4 * self.model.config.get_text_config().vocab_size)
            self.budget = max(64, min(_LONGEST_PASS, rows))
        self._forget()
        self._cache_argument = cache_argument(self.model)

    def run(self, tree: TokenTree) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Log-probability (nats) and argmax match of every scored node; NaN and False elsewhere.

        Both have shape (nodes,).
        """
        assert self.budget is not None
        logprobs = np.full(len(tree), np.nan)
        matches = np.zeros(len(tree), dtype=np.bool_)
        scored = np.flatnonzero(tree.scored)
        by_parent = scored[np.argsort(tree.parents[scored], kind="stable")]
        parents = tree.parents[by_parent]
        # Nothing comes after a leaf, so what the model says there is not wanted.
        inner = np.flatnonzero(tree.ends > np.arange(len(tree)) + 1)
        try:
            path = self._cached_head(tree, parents)
            for nodes in in_passes(inner[len(path) :], self.budget):
                path = self._kept(path, tree.ends[path] > nodes[0])
                first, last = np.searchsorted(parents, (nodes[0], nodes[-1] + 1))
                wanted = by_parent[first:last]
                rows, row_of = np.unique(parents[first:last], return_inverse=True)
                logits = self._forward(tree, path, nodes, np.searchsorted(nodes, rows))
                path = np.concatenate([path, nodes])
                if len(wanted):
                    logprobs[wanted], matches[wanted] = _read(logits, row_of, tree.tokens[wanted])
            path = self._kept(path, tree.ends[path] > path[-1])
        except BaseException:
            # What the cache holds now must not be taken for a prefix by the next call.
            self._forget()
            raise
        self._cached_tokens = tree.tokens[path]
        return logprobs, matches

    def _cached_head(self, tree: TokenTree, parents: NDArray[np.int64]) -> NDArray[np.int64]:
        """The nodes of the first path that the last call's path has in the cache already."""
        # A node whose logits are wanted has to be computed again: only its keys are kept. Before
        # the first of those there is no fork, for every leaf is scored.
        length = min(int(parents[0]), len(self._cached_tokens))
        same = tree.tokens[:length] == self._cached_tokens[:length]
        known = length if same.all() else int(np.argmin(same))
        self._kept(np.arange(len(self._cached_tokens)), np.arange(len(self._cached_tokens)) < known)
        return np.arange(known)

    def _kept(self, path: NDArray[np.int64], keep: NDArray[np.bool_]) -> NDArray[np.int64]:
        """`path` without what is not to be kept, which goes out of the cache too."""
        if not keep.all():
            import torch

            places = torch.from_numpy(np.flatnonzero(keep)).to(self.model.device)
            for layer in self._cache.layers:
                layer.keys = layer.keys.index_select(2, places)
                layer.values = layer.values.index_select(2, places)
        return path[keep]

    def _forget(self) -> None:
        self._cache, self._cached_tokens = None, np.empty(0, dtype=np.int64)

    def _forward(
        self,
        tree: TokenTree,
        path: NDArray[np.int64],
        nodes: NDArray[np.int64],
        rows: NDArray[np.int64],
    ) -> torch.Tensor:
        """Logits of those of `nodes` that `rows` counts out; `path` is what the cache holds."""
        import torch
        from transformers import DynamicCache

        if self._cache is None:
            # Without the model's config every layer keeps all tokens, sliding windows too: those
            # are counted along the tree by the mask, and a cropped cache would lose branches.
            self._cache = DynamicCache()
        device = self.model.device
        arguments: dict[str, Any] = {
            "input_ids": torch.from_numpy(tree.tokens[nodes])[None].to(device),
            "position_ids": torch.from_numpy(tree.depths[nodes])[None].to(device),
            "attention_mask": self._mask(tree, path, nodes),
            self._cache_argument: self._cache,
            "use_cache": True,
            "logits_to_keep": torch.from_numpy(rows).to(device),
        }
        with torch.inference_mode():
            logits: torch.Tensor = self.model(**arguments).logits[0]
        self.tokens += len(nodes)
        return logits

    def _mask(self, tree: TokenTree, path: NDArray[np.int64], nodes: NDArray[np.int64]) -> Any:
        """The additive tree mask, or one for each layer type where layers differ."""
        import torch

        keys = np.concatenate([path, nodes])
        visible = (keys <= nodes[:, None]) & (nodes[:, None] < tree.ends[keys])
        distances = tree.depths[nodes][:, None] - tree.depths[keys]
        return additive_masks(
            self.model, torch.from_numpy(visible)[None], torch.from_numpy(distances)[None]
        )


def _read(
    logits: torch.Tensor, row_of: NDArray[np.int64], tokens: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Log-probabilities and argmax matches of `tokens`, each read from its row of `logits`."""
    import torch

    rows = torch.from_numpy(row_of).to(logits.device)
    columns = torch.from_numpy(tokens).to(logits.device)
    chosen = logits[rows, columns].float()
    totals, best = [], []
    with torch.inference_mode():
        # A few rows at a time stay in the processor's cache from one step to the next.
        for part in torch.split(logits, _ROWS_AT_ONCE):
            part = part.float()
            totals.append(part.logsumexp(dim=-1))
            best.append(part.argmax(dim=-1))
    chosen = chosen - torch.cat(totals)[rows]
    matches = torch.cat(best)[rows] == columns
    return chosen.double().cpu().numpy(), matches.cpu().numpy()


def score_plainly(model: Any, context: Tokens, action: Tokens) -> TokenScores:
    """One uncached pass over context and action: the definition that the tree is held to.

    Returns log-probabilities (nats) and argmax matches of the action's tokens, shape (tokens,).
    """
    import torch

    ids = torch.tensor([[*context, *action]], device=model.device)
    with torch.inference_mode():
        logits = model(input_ids=ids, use_cache=False, logits_to_keep=len(action) + 1).logits[0]
    return _read(logits[:-1], np.arange(len(action)), np.array(action, dtype=np.int64))
