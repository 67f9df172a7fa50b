"""A transformers model in this process, scored through token trees.

transformers and torch are imported only here and in `models`, and only when a model is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pytest_failgain.errors import ScoringError
from pytest_failgain.prompt import Prompt
from pytest_failgain.scoring.attention import additive_masks, attention_windows, cache_argument
from pytest_failgain.scoring.decoding import BatchDecoder, Task
from pytest_failgain.scoring.protocol import (
    ModelIdentity,
    Pair,
    Refusal,
    Reply,
    ReplyRequest,
    Score,
)
from pytest_failgain.scoring.rendering import Emitted, Rendered, Renderer
from pytest_failgain.scoring.reply_store import KnownReplies, ReplyCache, request_key
from pytest_failgain.scoring.score_cache import KnownScores, ScoreCache, TokenScores
from pytest_failgain.scoring.token_tree import Tokens, TokenTree, build_tree, in_passes
from pytest_failgain.scoring.vocabulary import Vocabulary
from pytest_failgain.scoring.work import Work
from pytest_failgain.scoring.writing import Writing

if TYPE_CHECKING:
    import torch

# Rounding can lift a log-probability this far above 0; anything more is a broken model.
_ROUNDING_NATS = 1e-3

_Sequence = tuple[tuple[int, ...], tuple[int, ...]]

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


@dataclass(slots=True)
class LocalScorer:
    """Scores with a transformers model: `model` and `tokenizer` as `load_files` loads them.

    `fold_system` and `prompt_format` are those of `Renderer`. `known` holds the scores and
    `known_replies` the replies that need not be computed again. `plain_reason` says why token trees
    can't be used for the model, in which case every pair takes one plain pass and gives the same
    numbers, slowly. `work` adds up what was computed so far.
    """

    model: Any
    tokenizer: Any
    identity: ModelIdentity
    fold_system: bool = False
    prompt_format: str = "template"
    budget: int | None = None
    known: KnownScores = field(default_factory=ScoreCache)
    known_replies: KnownReplies = field(default_factory=ReplyCache)
    plain_reason: str | None = field(default=None, init=False)
    work: Work = field(default=Work(), init=False)
    renderer: Renderer = field(init=False)
    _engine: TreeEngine = field(init=False)
    _decoder: BatchDecoder | None = field(default=None, init=False)
    _vocabulary: Vocabulary = field(init=False)

    def __post_init__(self) -> None:
        self.renderer = Renderer(
            self.tokenizer, self.identity.name, self.fold_system, self.prompt_format
        )
        self._engine = TreeEngine(self.model, self.budget)
        self._vocabulary = Vocabulary.of(self.model, self.tokenizer)
        self.plain_reason = self._why_not_a_tree()

    @property
    def context_limit(self) -> int | None:
        """The most tokens that the model takes, or None where its config does not say."""
        limit = getattr(self.model.config.get_text_config(), "max_position_embeddings", None)
        return int(limit) if limit else None

    @property
    def n_parameters(self) -> int:
        """How many numbers the model has learned; shared ones count once."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    def count_tokens(self, text: str) -> int:
        """The number of tokens of `text` by itself."""
        return self.renderer.count_tokens(text)

    def count_prompt_tokens(self, prompt: Prompt) -> int:
        """The number of tokens of `prompt` with its generation prompt."""
        return len(self.renderer.render(prompt).tokens)

    def score(self, pairs: Sequence[Pair]) -> list[Score | Refusal]:
        """See `Scorer.score`."""
        prompts: dict[int, Rendered] = {}
        results: list[Score | Refusal | None] = []
        encoded: list[tuple[Rendered, Emitted]] = []
        for pair in pairs:
            rendered = prompts.get(id(pair.prompt))
            if rendered is None:
                rendered = prompts[id(pair.prompt)] = self.renderer.render(pair.prompt)
            emitted = self.renderer.emit(pair.prompt, rendered, pair.action)
            length, limit = len(rendered.tokens) + len(emitted.tokens), self.context_limit
            if limit is not None and length > limit:
                results.append(
                    Refusal(f"context and action are {length} tokens, the model takes {limit}")
                )
            else:
                results.append(None)
                encoded.append((rendered, emitted))
        scores = iter(self._scores(encoded))
        return [next(scores) if result is None else result for result in results]

    def decode(self, requests: Sequence[ReplyRequest]) -> list[Reply | Refusal]:
        """See `Decoder.decode`."""
        results: list[Refusal | tuple[bytes, Rendered]] = []
        wanted: dict[bytes, tuple[Rendered, ReplyRequest]] = {}
        for request in requests:
            rendered = self.renderer.render(request.prompt)
            length, limit = len(rendered.tokens), self.context_limit
            if limit is not None and length >= limit:
                results.append(Refusal(f"the context is {length} tokens, the model takes {limit}"))
                continue
            room = request.max_tokens if limit is None else min(request.max_tokens, limit - length)
            request = replace(request, max_tokens=room)
            key = request_key(rendered.tokens, request)
            wanted[key] = rendered, request
            results.append((key, rendered))
        known = {key: reply for key in wanted if (reply := self.known_replies.get(key))}
        missing = {key: wanted[key] for key in wanted if key not in known}
        fresh = dict(zip(missing, self._written([*missing.values()]), strict=True))
        self.known_replies.put_all(fresh.items())
        replies = known | fresh
        return [
            # Not kept: other messages may have been adapted to the same tokens.
            one if isinstance(one, Refusal) else self._adapted(replies[one[0]], one[1])
            for one in results
        ]

    def _adapted(self, reply: Reply, rendered: Rendered) -> Reply:
        reason = self._decoder.plain_reason if self._decoder else None
        notes = (f"decoded by plain passes, slowly: {reason}",) if reason else ()
        return replace(reply, adaptations=(*rendered.adaptations, *notes))

    def _written(self, wanted: Sequence[tuple[Rendered, ReplyRequest]]) -> list[Reply]:
        if not wanted:
            return []
        self._decoder = self._decoder or BatchDecoder(self.model)
        tasks = [
            Task(
                rendered.tokens,
                Writing(self._vocabulary, request.style, request.max_tokens, request.block),
                request.sampling,
            )
            for rendered, request in wanted
        ]
        try:
            self._decoder.write(tasks)
        except ScoringError:
            raise
        except Exception as error:  # each model and device fails in its own way
            said = " ".join(str(error).split())
            raise ScoringError(
                f"{self.identity.name} can't write replies: {type(error).__name__}: "
                f"{said[:300]}; check that the tokenizer is the model's own, and that there is "
                "memory enough"
            ) from error
        return [
            Reply(
                text=task.writing.text,
                ended=task.writing.ended,
                n_tokens=len(task.writing.tokens),
                n_decoded=task.writing.n_decoded,
                prompt_tokens=len(task.prompt),
                blocked=task.writing.blocked,
            )
            for task in tasks
        ]

    def _scores(self, encoded: Sequence[tuple[Rendered, Emitted]]) -> list[Score]:
        sequences = [(rendered.tokens, emitted.tokens) for rendered, emitted in encoded]
        plainly = (f"scored by plain passes, slowly: {self.plain_reason}",)
        notes = plainly if self.plain_reason is not None else ()
        scores = []
        for (rendered, emitted), (logprobs, matches) in zip(
            encoded, self._computed(sequences), strict=True
        ):
            scores.append(
                Score(
                    text=emitted.text,
                    token_logprobs=tuple(np.minimum(logprobs, 0.0).tolist()),
                    argmax=tuple(matches.tolist()),
                    token_spans=emitted.spans,
                    context_tokens=len(rendered.tokens),
                    adaptations=(*emitted.adaptations, *notes),
                )
            )
        return scores

    def _computed(self, sequences: Sequence[_Sequence]) -> list[TokenScores]:
        """The scores of each (context, action), those that are not known yet computed together."""
        known = [self.known.get(*sequence) for sequence in sequences]
        missing = list(
            dict.fromkeys(
                sequence for sequence, scores in zip(sequences, known, strict=True) if not scores
            )
        )
        fresh = dict(zip(missing, self._compute(missing), strict=True))
        for (_, action), (logprobs, _) in fresh.items():
            self._check(logprobs, action)
        self.known.put_all((*sequence, scores) for sequence, scores in fresh.items())
        return [
            scores or fresh[sequence] for sequence, scores in zip(sequences, known, strict=True)
        ]

    def _compute(self, sequences: Sequence[_Sequence]) -> list[TokenScores]:
        if not sequences:
            return []
        computed_before, started = self._engine.tokens, perf_counter()
        plain = sum(len(context) + len(action) for context, action in sequences)
        try:
            scores = self._passed(sequences)
        except Exception as error:  # each model and device fails in its own way
            reason = " ".join(str(error).split())
            raise ScoringError(
                f"{self.identity.name} can't score: {type(error).__name__}: {reason[:300]}; check "
                "that the tokenizer is the model's own, and that there is memory enough"
            ) from error
        computed = plain if self.plain_reason else self._engine.tokens - computed_before
        self.work += Work(len(sequences), plain, computed, perf_counter() - started)
        return scores

    def _passed(self, sequences: Sequence[_Sequence]) -> list[TokenScores]:
        if self.plain_reason is not None:
            return [score_plainly(self.model, *sequence) for sequence in sequences]
        tree = build_tree(sequences)
        logprobs, matches = self._engine.run(tree)
        return [(logprobs[path], matches[path]) for path in tree.paths]

    def _check(self, logprobs: NDArray[np.float64], action: Tokens) -> None:
        bad = ~np.isfinite(logprobs) | (logprobs > _ROUNDING_NATS)
        if bad.any():
            value, text = logprobs[bad][0], self.tokenizer.decode(action)
            raise ScoringError(
                f"{self.identity.name} in {self.identity.dtype} gave the impossible "
                f"log-probability {value} for a token of {text!r}; nothing was recorded: try "
                "--failgain-dtype float32, or check the model's weights"
            )

    def _why_not_a_tree(self) -> str | None:
        """None if trees give what plain passes give, found by trying a small one."""
        config = self.model.config.get_text_config()
        if not attention_windows(config):
            kinds = ", ".join(sorted(set(config.layer_types)))
            return f"its layers ({kinds}) can't take a tree mask"
        tokens = tuple(i % (config.vocab_size - 1) for i in range(3, 15))
        sequences: list[_Sequence] = [
            (tokens[:6], tokens[6:9]),
            (tokens[:6], tokens[7:10]),
            ((*tokens[:4], *tokens[8:11]), tokens[6:9]),
        ]
        tree = build_tree(sequences)
        try:
            logprobs, _ = self._engine.run(tree)
        except Exception as error:  # any architecture may refuse in its own way
            return f"it refuses a tree mask ({type(error).__name__}: {error})"
        plain = [score_plainly(self.model, *sequence)[0] for sequence in sequences]
        gap = max(
            float(np.abs(logprobs[path] - values).max())
            for path, values in zip(tree.paths, plain, strict=True)
        )
        allowed = 1e-3 if self.identity.dtype == "float32" else 0.5
        if not gap <= allowed and np.isfinite(np.concatenate(plain)).all():
            return f"a tree mask changes its numbers by {gap:.2g} nats"
        return None
