"""Ways to score the same pairs with the same model, ours among them.

Each gives the summed log-probability (nats) of every action, in the order of the workload.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Protocol

import torch
from transformers import DynamicCache

from benchmarks.figures import NotRunError
from benchmarks.workload import Workload
from pytest_failgain.scoring.local import LocalScorer
from pytest_failgain.scoring.protocol import Refusal


class Engine(Protocol):
    """One way to score a workload."""

    @property
    def name(self) -> str: ...

    def fresh(self) -> Engine:
        """This engine with nothing remembered of what it has computed so far."""
        ...

    def sums(self, workload: Workload) -> list[float]:
        """Summed log-probability (nats) of each action."""
        ...


@dataclass(frozen=True, slots=True)
class OurScorer:
    """`LocalScorer.score`, from prompts and actions: chat template and tokenizer included."""

    scorer: LocalScorer
    name: str = "pytest-failgain"

    def fresh(self) -> OurScorer:
        used = self.scorer
        return OurScorer(LocalScorer.of(used.model, used.tokenizer, used.identity))

    def sums(self, workload: Workload) -> list[float]:
        sums = []
        for score in self.scorer.score(workload.pairs):
            if isinstance(score, Refusal):
                raise NotRunError(score.reason)
            sums.append(score.logprob)
        return sums


@dataclass(frozen=True, slots=True)
class PlainPasses:
    """One uncached pass a pair: the definition that all others are held to."""

    model: Any
    name: str = "plain uncached passes"

    def fresh(self) -> PlainPasses:
        return self

    def sums(self, workload: Workload) -> list[float]:
        sums = []
        for context, action in workload.sequences:
            tokens = torch.tensor([[*context, *action[:-1]]])
            with torch.inference_mode():
                output = self.model(input_ids=tokens, use_cache=False, logits_to_keep=len(action))
            sums.append(_sum_of(action, output.logits[0]))
        return sums


@dataclass(frozen=True, slots=True)
class PrefixCache:
    """Pair by pair, with the keys and values of what the last pair began with: the well-known way.

    Only tokens after the longest common prefix are fed, never an action's last one, and only the
    action's rows of logits are computed.
    """

    model: Any
    name: str = "sequential prefix cache"

    def fresh(self) -> PrefixCache:
        return self

    def sums(self, workload: Workload) -> list[float]:
        cache = DynamicCache()
        held: tuple[int, ...] = ()
        sums = []
        for context, action in workload.sequences:
            tokens = (*context, *action[:-1])
            # The context's last token is fed anew: its logits are those of the action's first.
            shared = _shared(held, tokens[: len(context) - 1])
            if len(held) > shared:
                cache.crop(shared - len(held))
            with torch.inference_mode():
                output = self.model(
                    input_ids=torch.tensor([tokens[shared:]]),
                    cache=cache,
                    use_cache=True,
                    logits_to_keep=len(action),
                )
            sums.append(_sum_of(action, output.logits[0]))
            held = tokens
        return sums


@dataclass(frozen=True, slots=True)
class EvaluationHarness:
    """lm-evaluation-harness, given the token ids.

    Its `loglikelihood` would tokenise context and action joined, and would count the prompt's
    final line end among the action's tokens; `_loglikelihood_tokens` is the same code after that.
    """

    model: Any
    name: str

    def fresh(self) -> EvaluationHarness:
        return self

    def sums(self, workload: Workload) -> list[float]:
        requests = [
            (("", ""), list(context), list(action)) for context, action in workload.sequences
        ]
        answers = self.model._loglikelihood_tokens(requests, disable_tqdm=True)
        return [float(logprob) for logprob, _ in answers]


def evaluation_harness(model: Any, tokenizer: Any, batch_size: int) -> EvaluationHarness:
    """lm-evaluation-harness around a loaded model.

    Raises:
        NotRunError: when it is not installed.
    """
    try:
        huggingface = importlib.import_module("lm_eval.models.huggingface")
    except ImportError as error:
        raise NotRunError(
            f"lm-eval can't be imported ({error}): pip install -r benchmarks/requirements.txt"
        ) from error
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    harness = huggingface.HFLM(
        pretrained=model, tokenizer=tokenizer, backend="causal", batch_size=batch_size
    )
    return EvaluationHarness(harness, f"lm-evaluation-harness, batch {batch_size}")


@dataclass(slots=True)
class TokenCount:
    """How many tokens a model was fed, padding included."""

    tokens: int = 0


@contextmanager
def counted(model: Any) -> Iterator[TokenCount]:
    count = TokenCount()

    def note(_: Any, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
        tokens = named["input_ids"] if "input_ids" in named else positional[0]
        count.tokens += tokens.numel()

    hook = model.register_forward_pre_hook(note, with_kwargs=True)
    try:
        yield count
    finally:
        hook.remove()


def _sum_of(action: tuple[int, ...], logits: torch.Tensor) -> float:
    """Summed log-probability (nats) of `action` from the logits of its places, a row each."""
    # Not log_softmax: over a whole vocabulary in float32 it is off by 1e-5 nats, always one way.
    chosen = logits.gather(1, torch.tensor(action)[:, None])[:, 0]
    return float((chosen - logits.logsumexp(dim=-1)).double().sum())


def _shared(left: tuple[int, ...], right: tuple[int, ...]) -> int:
    pairs = zip(left, right, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
