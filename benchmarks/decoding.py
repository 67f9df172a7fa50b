"""Speed of rollouts against a loop that has `model.generate` read the whole transcript each step.

Both play the same tasks with the same model in the same run, in turns, and must say the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

import torch

from benchmarks.figures import Figure, Verdict
from pytest_failgain.environments import build_environment
from pytest_failgain.environments.protocol import RolloutEnvironment
from pytest_failgain.errors import UsageError
from pytest_failgain.harnesses import VERBATIM
from pytest_failgain.rollout.run import rollout
from pytest_failgain.scoring.local import LocalScorer
from pytest_failgain.scoring.protocol import Decoder, ModelIdentity, Refusal, Reply, ReplyRequest
from pytest_failgain.scoring.reply_store import ReplyCache
from pytest_failgain.scoring.vocabulary import Vocabulary

_WANTED = 4.0


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured: `tasks` tasks of up to `steps` steps, in `repeats` rounds."""

    tasks: int
    steps: int
    repeats: int


# As many tasks as rollouts have by default; the loop takes minutes for every step of them.
FULL = Effort(tasks=24, steps=2, repeats=3)
QUICK = Effort(tasks=24, steps=2, repeats=1)


@dataclass(frozen=True, slots=True)
class GenerateLoop:
    """Decodes as most agents do: one prompt after the other, each read from its beginning."""

    scorer: LocalScorer

    @property
    def identity(self) -> ModelIdentity:
        return self.scorer.identity

    def decode(self, requests: Sequence[ReplyRequest]) -> list[Reply | Refusal]:
        return [self._reply(request) for request in requests]

    def _reply(self, request: ReplyRequest) -> Reply:
        scorer = self.scorer
        prompt = torch.tensor([scorer.renderer.render(request.prompt).tokens])
        stops = Vocabulary.of(scorer.model, scorer.tokenizer).stops
        generated = scorer.model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=request.max_tokens,
            do_sample=False,
            eos_token_id=sorted(stops),
            pad_token_id=min(stops),
            stop_strings=["\n"],
            tokenizer=scorer.tokenizer,
        )
        tokens = generated[0, prompt.shape[1] :].tolist()
        text = scorer.tokenizer.decode(
            tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return Reply(text, "stop", len(tokens), len(tokens), prompt.shape[1])


@dataclass(slots=True)
class Player:
    """A way to decode, and how it did in each round."""

    name: str
    decoder: Callable[[], Decoder]
    rates: list[float] = field(default_factory=list)
    actions: list[str] = field(default_factory=list)

    def play(self, environment: RolloutEnvironment, effort: Effort) -> None:
        """Play all tasks with nothing known beforehand."""
        decoder = self.decoder()
        started = time.perf_counter()
        played = rollout(decoder, VERBATIM, environment, effort.tasks, effort.steps)
        seconds = time.perf_counter() - started
        self.actions = [turn.action for one in played.rollouts for turn in one.turns]
        self.rates.append(len(self.actions) / seconds)


def measure(scorer: LocalScorer, effort: Effort, show: Callable[[str], None]) -> list[Figure]:
    """How many times as many steps a second ours makes. `show` is told about progress."""
    environment = build_environment("tool_calls")
    if not isinstance(environment, RolloutEnvironment):
        raise UsageError("the office workspace has no rollouts")
    ours = Player("rollouts", lambda: replace(scorer, known_replies=ReplyCache()))
    loop = Player("a loop over model.generate", lambda: GenerateLoop(scorer))
    ours.play(environment, Effort(tasks=1, steps=1, repeats=1))  # what is made once a process
    ours.rates.clear()
    for index in range(effort.repeats):
        for player in (ours, loop):
            show(f"round {index + 1} of {effort.repeats}: {player.name}")
            player.play(environment, effort)
    return [_speed(ours, loop), _agreement(ours, loop)]


def _speed(ours: Player, loop: Player) -> Figure:
    ratios = [one / other for one, other in zip(ours.rates, loop.rates, strict=True)]
    return Figure(
        f"rollout speed, times that of {loop.name}",
        f">= {_WANTED:g}",
        f"{median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f}; {median(ours.rates):.2f} "
        f"against {median(loop.rates):.2f} steps/s, {len(ours.actions)} steps)",
        Verdict.of(median(ratios) >= _WANTED),
    )


def _agreement(ours: Player, loop: Player) -> Figure:
    same = sum(one == other for one, other in zip(ours.actions, loop.actions, strict=False))
    most = max(len(ours.actions), len(loop.actions))
    return Figure(
        f"actions of rollouts that are those of {loop.name}",
        "all",
        f"{same} of {most}",
        Verdict.of(same == most),
    )
