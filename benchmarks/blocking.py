"""What forbidding failed actions costs `model.generate`: the mask's share of a decoding step."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from transformers import DynamicCache

from benchmarks.figures import Figure, Verdict
from benchmarks.workload import office_cases
from pytest_failgain.blocking.processor import BlockedActions
from pytest_failgain.conditions import FAILED
from pytest_failgain.harness_checks import render
from pytest_failgain.harnesses import VERBATIM
from pytest_failgain.scoring.attention import cache_argument
from pytest_failgain.scoring.local import LocalScorer

_BLOCKED = (1, 18)
_WANTED_PERCENT = 1.0
_CASES = 8


@dataclass(slots=True)
class Spent:
    """Seconds of the model's steps and of the masks between them, and how many there were."""

    steps: float = 0.0
    masks: float = 0.0
    count: int = 0

    def add(self, other: Spent) -> None:
        self.steps += other.steps
        self.masks += other.masks
        self.count += other.count

    @property
    def percent(self) -> float:
        """How long the masks took, in percent of the steps."""
        return 100 * self.masks / self.steps


def measure(scorer: LocalScorer, replies: int) -> list[Figure]:
    """The share for one failed action and for many, over `replies` replies of either kind.

    A reply is a call of the office workspace that is not blocked, or one that is, up to its last
    token. Both are decoded token by token behind a real prompt, whatever the model prefers.
    """
    actions = _actions()
    return [_figure(scorer, actions, blocked, replies) for blocked in _BLOCKED]


def _actions() -> list[str]:
    """Different calls of the office workspace."""
    candidates = (case.candidates().values() for case in office_cases(_CASES))
    return list(dict.fromkeys(action.text for actions in candidates for action in actions))


def _figure(scorer: LocalScorer, actions: Sequence[str], blocked: int, replies: int) -> Figure:
    failed, prompt = actions[:blocked], _prompt(scorer)
    others = [_tokens(scorer, text) for text in actions[blocked : blocked + replies]]
    repeats = [_tokens(scorer, text)[:-1] for text in failed[:replies]]
    rounds: list[Spent] = []
    for _ in range(2):
        # In the first round the processors also make what is kept for the tokenizer.
        rounds.append(Spent())
        for path in [*others, *repeats]:
            rounds[-1].add(_follow(scorer.model, _processor(scorer, failed, prompt), prompt, path))
    first, spent = rounds
    plural = "action" if blocked == 1 else "actions"
    return Figure(
        f"blocking: the mask of {blocked} failed {plural}, percent of a decoding step",
        f"<= {_WANTED_PERCENT:g}",
        f"{spent.percent:.2f} ({1e6 * spent.masks / spent.count:.0f} us of "
        f"{1e3 * spent.steps / spent.count:.1f} ms in {spent.count} steps; "
        f"{first.masks - spent.masks:.1f} s more once for a tokenizer)",
        Verdict.of(spent.percent <= _WANTED_PERCENT),
    )


def _processor(scorer: LocalScorer, failed: Sequence[str], prompt: torch.Tensor) -> BlockedActions:
    """A new one for every reply, as users make them."""
    return BlockedActions(scorer.tokenizer, failed, max_new_tokens=128, prompt_length=len(prompt))


def _prompt(scorer: LocalScorer) -> torch.Tensor:
    case = office_cases(1)[0]
    trajectory = FAILED.trajectory(case)
    assert trajectory is not None  # a case of the office always has its failed step
    prompt = render(VERBATIM, trajectory, case_id=case.case_id)
    return torch.tensor(scorer.renderer.render(prompt).tokens)


def _tokens(scorer: LocalScorer, text: str) -> list[int]:
    tokens: list[int] = scorer.tokenizer.encode(text, add_special_tokens=False)
    return tokens


def _follow(
    model: Any, processor: BlockedActions, prompt: torch.Tensor, path: Sequence[int]
) -> Spent:
    """Decode `path` behind `prompt`, with a mask before each of its tokens and behind the last."""
    spent, ids = Spent(count=len(path)), prompt[None]
    step = partial(_step, model, DynamicCache())
    scores = step(ids)
    spent.masks += _seconds(partial(processor, ids, scores))
    for token in path:
        added = torch.tensor([[token]])
        ids = torch.cat([ids, added], dim=1)
        spent.steps += _seconds(partial(step, added))
        spent.masks += _seconds(partial(processor, ids, scores))
    return spent


@torch.inference_mode()
def _step(model: Any, cache: DynamicCache, ids: torch.Tensor) -> torch.Tensor:
    output = model(
        input_ids=ids, use_cache=True, logits_to_keep=1, **{cache_argument(model): cache}
    )
    logits: torch.Tensor = output.logits[:, -1]
    return logits


def _seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started
