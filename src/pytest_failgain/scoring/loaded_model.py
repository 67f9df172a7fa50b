"""A transformers model in memory, which computes scores and replies.

torch is imported only here, in what this uses, and in `models`, and only when a model is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from pytest_failgain.scoring.attention import attention_windows
from pytest_failgain.scoring.decoding import BatchDecoder, Task
from pytest_failgain.scoring.protocol import ReplyRequest
from pytest_failgain.scoring.score_cache import TokenScores
from pytest_failgain.scoring.template_tokenizer import TemplateTokenizer
from pytest_failgain.scoring.token_tree import Tokens, build_tree
from pytest_failgain.scoring.tree_engine import TreeEngine, score_plainly
from pytest_failgain.scoring.vocabulary import Vocabulary
from pytest_failgain.scoring.writing import Writing

Sequences = Sequence[tuple[Tokens, Tokens]]


class LoadedModel:
    """`model` and `tokenizer` are transformers' own; `budget` is that of `TreeEngine`.

    It is what a scorer has to know of a model, too: see `ModelFacts`.
    """

    def __init__(self, model: Any, tokenizer: Any, budget: int | None = None) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.template_tokenizer = TemplateTokenizer.of(tokenizer)
        self._engine = TreeEngine(model, budget)
        # Found out at once: later, a failure of another cause would pass for the model's refusal.
        self.plain_reason = self._why_not_a_tree()

    @property
    def context_limit(self) -> int | None:
        limit = getattr(self.model.config.get_text_config(), "max_position_embeddings", None)
        return int(limit) if limit else None

    @property
    def n_parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.model.parameters())

    @property
    def plain_reply_reason(self) -> str | None:
        return self.decoder.plain_reason

    @cached_property
    def decoder(self) -> BatchDecoder:
        """What writes replies."""
        return BatchDecoder(self.model)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary.of(self.model, self.template_tokenizer)

    def score(self, sequences: Sequences) -> tuple[list[TokenScores], int]:
        """The scores of each (context, action), and how many tokens went through the model."""
        if self.plain_reason is not None:
            plain = sum(len(context) + len(action) for context, action in sequences)
            return [score_plainly(self.model, *sequence) for sequence in sequences], plain
        before, tree = self._engine.tokens, build_tree(sequences)
        logprobs, matches = self._engine.run(tree)
        return [
            (logprobs[path], matches[path]) for path in tree.paths
        ], self._engine.tokens - before

    def write(self, wanted: Sequence[tuple[tuple[int, ...], ReplyRequest]]) -> list[Task]:
        """A finished task for each prompt's tokens and what is to be written after them.

        Raises:
            ScoringError: when the model gives numbers that are none.
        """
        tasks = [
            Task(
                prompt,
                Writing(self.vocabulary, request.style, request.max_tokens, request.block),
                request.sampling,
            )
            for prompt, request in wanted
        ]
        self.decoder.write(tasks)
        return tasks

    def _why_not_a_tree(self) -> str | None:
        """None if trees give what plain passes give, found by trying a small one."""
        config = self.model.config.get_text_config()
        if not attention_windows(config):
            kinds = ", ".join(sorted(set(config.layer_types)))
            return f"its layers ({kinds}) can't take a tree mask"
        tokens = tuple(i % (config.vocab_size - 1) for i in range(3, 15))
        sequences: list[tuple[Tokens, Tokens]] = [
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
        allowed = 1e-3 if str(self.model.dtype) == "torch.float32" else 0.5
        if not gap <= allowed and np.isfinite(np.concatenate(plain)).all():
            return f"a tree mask changes its numbers by {gap:.2g} nats"
        return None
