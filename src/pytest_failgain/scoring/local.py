"""Scores and replies of a transformers model, which is loaded when something has to be computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pytest_failgain.errors import ScoringError
from pytest_failgain.prompt import Prompt
from pytest_failgain.scoring.model_facts import ModelFacts
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
from pytest_failgain.scoring.token_tree import Tokens
from pytest_failgain.scoring.work import Work

if TYPE_CHECKING:
    from pytest_failgain.scoring.loaded_model import LoadedModel, Sequences

# Rounding can lift a log-probability this far above 0; anything more is a broken model.
_ROUNDING_NATS = 1e-3


@dataclass(slots=True)
class LocalScorer:
    """Scores what is known without the model, and the rest with it.

    `facts` is what there is to know of the model beforehand, and `load` gives the model itself, the
    same one each time. `fold_system` and `prompt_format` are those of `Renderer`. `known` holds the
    scores and `known_replies` the replies that need not be computed again. `work` adds up what was
    computed so far.
    """

    facts: ModelFacts
    load: Callable[[], LoadedModel]
    identity: ModelIdentity
    fold_system: bool = False
    prompt_format: str = "template"
    known: KnownScores = field(default_factory=ScoreCache)
    known_replies: KnownReplies = field(default_factory=ReplyCache)
    work: Work = field(default=Work(), init=False)
    renderer: Renderer = field(init=False)

    @classmethod
    def of(
        cls,
        model: Any,
        tokenizer: Any,
        identity: ModelIdentity,
        fold_system: bool = False,
        prompt_format: str = "template",
        *,
        budget: int | None = None,
        known: KnownScores | None = None,
        known_replies: KnownReplies | None = None,
    ) -> LocalScorer:
        """The scorer of a transformers model and tokenizer that are loaded.

        `budget` is that of `TreeEngine`.
        """
        from pytest_failgain.scoring.loaded_model import LoadedModel

        loaded = LoadedModel(model, tokenizer, budget)
        return cls(
            loaded,
            lambda: loaded,
            identity,
            fold_system,
            prompt_format,
            known or ScoreCache(),
            known_replies or ReplyCache(),
        )

    def __post_init__(self) -> None:
        self.renderer = Renderer(
            self.facts.template_tokenizer, self.identity.name, self.fold_system, self.prompt_format
        )
        self.identity = replace(self.identity, template=self.renderer.template_hash())

    @property
    def model(self) -> Any:
        """The transformers model, loaded for this if need be."""
        return self.load().model

    @property
    def tokenizer(self) -> Any:
        """The transformers tokenizer, loaded for this if need be, with the model."""
        return self.load().tokenizer

    @property
    def context_limit(self) -> int | None:
        """The most tokens that the model takes, or None where its config does not say."""
        return self.facts.context_limit

    @property
    def n_parameters(self) -> int:
        """How many numbers the model has learned; shared ones count once."""
        return self.facts.n_parameters

    @property
    def plain_reason(self) -> str | None:
        """Why token trees can't be used for the model, None where they can.

        Every pair takes one plain pass then, and gets the same numbers, slowly.
        """
        return self.facts.plain_reason

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
        reason = self.facts.plain_reply_reason
        notes = (f"decoded by plain passes, slowly: {reason}",) if reason else ()
        return replace(reply, adaptations=(*rendered.adaptations, *notes))

    def _written(self, wanted: Sequence[tuple[Rendered, ReplyRequest]]) -> list[Reply]:
        if not wanted:
            return []
        model = self.load()
        try:
            tasks = model.write([(rendered.tokens, request) for rendered, request in wanted])
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
        plainly = (f"scored by plain passes, slowly: {self.facts.plain_reason}",)
        notes = plainly if self.facts.plain_reason is not None else ()
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
                    context=rendered.text,
                )
            )
        return scores

    def _computed(self, sequences: Sequences) -> list[TokenScores]:
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

    def _compute(self, sequences: Sequences) -> list[TokenScores]:
        if not sequences:
            return []
        model, started = self.load(), perf_counter()
        plain = sum(len(context) + len(action) for context, action in sequences)
        try:
            scores, computed = model.score(sequences)
        except Exception as error:  # each model and device fails in its own way
            reason = " ".join(str(error).split())
            raise ScoringError(
                f"{self.identity.name} can't score: {type(error).__name__}: {reason[:300]}; check "
                "that the tokenizer is the model's own, and that there is memory enough"
            ) from error
        self.work += Work(len(sequences), plain, computed, perf_counter() - started)
        return scores

    def _check(self, logprobs: NDArray[np.float64], action: Tokens) -> None:
        bad = ~np.isfinite(logprobs) | (logprobs > _ROUNDING_NATS)
        if bad.any():
            value, text = logprobs[bad][0], self.facts.template_tokenizer.decode(action)
            raise ScoringError(
                f"{self.identity.name} in {self.identity.dtype} gave the impossible "
                f"log-probability {value} for a token of {text!r}; nothing was recorded: try "
                "--failgain-dtype float32, or check the model's weights"
            )
