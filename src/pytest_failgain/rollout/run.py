"""Lets a model act in an environment, with a harness between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field

from pytest_failgain.blocking.block import Block
from pytest_failgain.blocking.kinds import BLOCKS, BlockKind
from pytest_failgain.environments.protocol import Episode, RolloutEnvironment
from pytest_failgain.environments.settings import check_choice
from pytest_failgain.errors import UsageError
from pytest_failgain.harness_checks import render
from pytest_failgain.harnesses import Harness, RemediedHarness, harness_name
from pytest_failgain.progress import NoProgress, Progress, job
from pytest_failgain.remedies import DROPPED
from pytest_failgain.replies import ReplyStyle
from pytest_failgain.rollout.results import NotStarted, Rollouts, Setting
from pytest_failgain.rollout.turns import Rollout, Turn
from pytest_failgain.scoring.protocol import Decoder, Refusal, Reply, ReplyRequest, Sampling
from pytest_failgain.trajectory import Action, Step

_GREEDY_DROPPED = (
    "at temperature 0 it repeats (k-1)/k of its k failures{}: the context is unchanged, so is the "
    "reply"
)
_PRIMED = ", or all k where it makes the given one again"


@dataclass(slots=True)
class _Run:
    """One rollout under way."""

    place: int
    sample: int
    episode: Episode
    given: Step | None
    turns: list[Turn] = field(default_factory=list)
    outcome: str = ""
    reason: str = ""
    adaptations: set[str] = field(default_factory=set)

    def failed_actions(self) -> tuple[str, ...]:
        return tuple(
            step.action.text
            for step in self.episode.trajectory.steps
            if isinstance(step, Step) and step.failed
        )


def rollout(
    decoder: Decoder,
    harness: Harness,
    environment: RolloutEnvironment,
    tasks: int = 24,
    max_steps: int = 6,
    *,
    primed: bool = False,
    block: str | None = None,
    demonstrations: int = 8,
    temperature: float = 0.0,
    samples: int = 1,
    seed: int = 0,
    progress: Progress | None = None,
) -> Rollouts:
    """Let the model drive through `tasks` tasks, for at most `max_steps` steps each.

    A free rollout starts with the task. A `primed` one starts just after a given failure, so that
    every harness meets the same failures. `block` names a decoder block ("masked", "searched",
    "masked-exact" or "searched-exact"); None takes the harness's own, if it has one. With a
    `temperature` above 0 each task is drawn `samples` times, with the same luck for all harnesses
    for the same `seed`.

    Raises:
        HarnessError: when the harness fails on a trajectory.
        ScoringError: when a prompt can't be rendered, or the model gives impossible numbers.
        UsageError: when an argument is not one that fits, or the environment has too few tasks.
    """
    kind = _block_kind(block, harness)
    _check_counts(max_steps, samples, temperature)
    episodes = environment.episodes(tasks, primed=primed, demonstrations=demonstrations)
    runs = [
        _Run(place, sample, episode, _given(episode) if primed else None)
        for place, episode in enumerate(episodes)
        for sample in range(samples)
    ]
    name = _name(harness, kind)
    label = f"{name} on {environment.name}: {'primed ' if primed else ''}rollouts"
    style = environment.replies
    with job(progress or NoProgress(), label, len(runs) * max_steps) as advance:
        for step in range(max_steps):
            active = [run for run in runs if not run.outcome]
            if not active:
                break
            requests = [
                ReplyRequest(
                    render(harness, run.episode.trajectory, case_id=run.episode.task_id),
                    style,
                    environment.reply_tokens,
                    _block(kind, run, style),
                    _sampling(temperature, seed, run, step),
                )
                for run in active
            ]
            for run, reply in zip(active, decoder.decode(requests), strict=True):
                _take(run, reply, style)
            over = sum(max_steps - len(run.turns) for run in runs if run.outcome)
            advance(sum(len(run.turns) for run in runs) + over)
    for run in runs:
        run.outcome = run.outcome or "limit"
    started = [run for run in runs if run.turns]
    adapted = Counter(note for run in started for note in sorted(run.adaptations))
    return Rollouts(
        harness=name,
        setting=Setting(
            environment=environment.name,
            variant=environment.variant,
            model=decoder.identity,
            tasks=tuple(episode.task_id for episode in episodes),
            max_steps=max_steps,
            primed=primed,
            demonstrations=demonstrations,
            temperature=temperature,
            samples=samples,
            seed=seed if temperature else 0,  # of no account where nothing is drawn
        ),
        rollouts=tuple(_finished(run, style) for run in started),
        not_started=tuple(
            NotStarted(run.episode.task_id, run.reason) for run in runs if not run.turns
        ),
        block=None if kind is None else kind.name,
        adaptations=tuple(adapted.most_common()),
        by_construction=_by_construction(harness, kind, temperature, primed),
    )


def _take(run: _Run, reply: Reply | Refusal, style: ReplyStyle) -> None:
    """Let the environment run what was said."""
    if isinstance(reply, Refusal):
        run.outcome, run.reason = "full", reply.reason
        return
    run.adaptations.update(reply.adaptations)
    text = style.action(reply.text)
    if not text.strip():
        # An agent that calls nothing has ended its turn, and nobody answers.
        run.turns.append(_turn(reply, "", "", None, "empty"))
        run.outcome = "quit"
        return
    acted = run.episode.act(Action(text))
    run.turns.append(_turn(reply, text, style.canonical(text), acted.step, acted.writing))
    run.episode = acted.episode
    if acted.episode.solved:
        run.outcome = "solved"


def _turn(reply: Reply, text: str, meaning: Hashable, step: Step | None, writing: str) -> Turn:
    return Turn(
        reply=reply.text,
        action=text,
        meaning=meaning,
        failed=step is None or step.failed,
        error_family=None if step is None else step.error_family,
        writing=writing,
        ended=reply.ended,
        n_tokens=reply.n_tokens,
        n_decoded=reply.n_decoded,
        prompt_tokens=reply.prompt_tokens,
        blocked=reply.blocked,
    )


def _finished(run: _Run, style: ReplyStyle) -> Rollout:
    given = None if run.given is None else style.action(run.given.action.text)
    return Rollout(
        task_id=run.episode.task_id,
        place=run.place,
        sample=run.sample,
        turns=tuple(run.turns),
        outcome=run.outcome,
        given=given,
        given_meaning=None if given is None else style.canonical(given),
    )


def _given(episode: Episode) -> Step:
    last = episode.trajectory.steps[-1] if episode.trajectory.steps else None
    if isinstance(last, Step) and last.failed:
        return last
    raise UsageError(
        f"the primed episode {episode.task_id!r} does not end in a failed step: let the "
        "environment's episodes(…, primed=True) start just behind a failure"
    )


def _block_kind(block: str | None, harness: Harness) -> BlockKind | None:
    if block is not None:
        check_choice("block", block, BLOCKS)
        return BLOCKS[block]
    return harness.block if isinstance(harness, RemediedHarness) else None


def _block(kind: BlockKind | None, run: _Run, style: ReplyStyle) -> Block | None:
    if kind is None:
        return None
    return Block(run.failed_actions(), style, match=kind.match, way=kind.way)


def _sampling(temperature: float, seed: int, run: _Run, step: int) -> Sampling | None:
    if not temperature:
        return None
    return Sampling(temperature, f"{seed} {run.place} {run.sample} {step}")


def _check_counts(max_steps: int, samples: int, temperature: float) -> None:
    for name, value in (("max_steps", max_steps), ("samples", samples)):
        if value < 1:
            raise UsageError(f"{name} must be 1 or more, not {value}")
    if not 0 <= temperature < float("inf"):
        raise UsageError(f"temperature must be 0 (greedy) or more, not {temperature}")
    if samples > 1 and not temperature:
        raise UsageError(
            f"{samples} samples at temperature 0 would all be the same reply: give a temperature, "
            "such as 0.7, or one sample"
        )


def _name(harness: Harness, kind: BlockKind | None) -> str:
    """The harness's name with the block's in it, which may stand in for one of its own."""
    name = harness_name(harness)
    own = harness.block if isinstance(harness, RemediedHarness) else None
    parts = name.split("+")
    if kind is None or (kind == own and kind.name in parts):
        return name
    return "+".join([*(part for part in parts if own is None or part != own.name), kind.name])


def _by_construction(
    harness: Harness, kind: BlockKind | None, temperature: float, primed: bool
) -> str | None:
    if kind is not None:
        return kind.by_construction
    # Another remedy beside it could change the context because of the failure that is dropped.
    dropped = isinstance(harness, RemediedHarness) and harness.remedies == (DROPPED,)
    return _GREEDY_DROPPED.format(_PRIMED * primed) if dropped and not temperature else None
