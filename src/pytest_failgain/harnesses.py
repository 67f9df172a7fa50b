"""Harnesses turn a trajectory into a prompt; remedies and blocks are joined to them by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from pytest_failgain.blocking.kinds import BLOCKS, BlockKind
from pytest_failgain.errors import HarnessError, UsageError
from pytest_failgain.prompt import Message, Prompt
from pytest_failgain.remedies import REMEDIES, Remedy, in_order
from pytest_failgain.trajectory import Step, Trajectory, UserTurn


class Harness(Protocol):
    """Any callable from a trajectory to chat messages or to text.

    One that offers other tools than the trajectory's returns a `Prompt`. Its `name` attribute, if
    it has one, stands in reports; else the name it was defined with.
    """

    def __call__(self, trajectory: Trajectory, /) -> Sequence[Message] | str | Prompt: ...


@dataclass(frozen=True, slots=True)
class RemediedHarness:
    """`base` with `remedies` put before it, in their order.

    `block` is what a decoder does about failed actions that are made again. It changes no prompt,
    only what a model can answer to it.
    """

    name: str
    base: Harness
    remedies: tuple[Remedy, ...] = ()
    block: BlockKind | None = None

    def __call__(self, trajectory: Trajectory, /) -> Sequence[Message] | str | Prompt:
        for remedy in self.remedies:
            changed: object = remedy.transform(trajectory)
            if not isinstance(changed, Trajectory):
                raise HarnessError(
                    f"the remedy {remedy.name!r} returned a {type(changed).__name__}; its "
                    "transform must return a Trajectory, such as the one that it is given"
                )
            trajectory = changed
        return self.base(trajectory)

    @property
    def by_construction(self) -> str | None:
        """What the remedy or the block makes certain before anything is measured, or None.

        Beside a second remedy nothing is certain of either: each changes what the other's note
        rests on. A block leaves the contexts as they are, but with one no gain is measured.
        """
        remedy = self.remedies[0] if len(self.remedies) == 1 else None
        if self.block:
            notes = (remedy.because if remedy else "", self.block.by_construction)
            return ", and ".join(filter(None, notes))
        if remedy is None or remedy.by_construction is None:
            return None
        return ": ".join(filter(None, (remedy.by_construction, remedy.because)))


def render_verbatim(trajectory: Trajectory) -> list[Message]:
    """Chat messages in which every step stands as it happened.

    Text actions are answered by a user turn "Observation: …", the layout of the published
    experiment; structured calls by tool messages, the layout of chat APIs.
    """
    messages: list[Message] = []
    if trajectory.system:
        messages.append({"role": "system", "content": trajectory.system})
    messages.append({"role": "user", "content": trajectory.goal})
    for index, step in enumerate(trajectory.steps):
        if isinstance(step, UserTurn):
            messages.append({"role": "user", "content": step.text})
        elif step.action.calls:
            messages.extend(_native_turns(index, step))
        else:
            messages.append({"role": "assistant", "content": step.reply or step.action.text})
            if step.observation is not None:
                messages.append({"role": "user", "content": f"Observation: {step.observation}"})
    return messages


def _native_turns(index: int, step: Step) -> list[Message]:
    # Nine alphanumerics: the one form of id that every known chat template accepts.
    ids = [f"call{index:03d}{number:02d}" for number in range(len(step.action.calls))]
    calls = [
        {
            "id": identity,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for identity, call in zip(ids, step.action.calls, strict=True)
    ]
    turns: list[Message] = [
        {"role": "assistant", "content": step.reply or step.action.text, "tool_calls": calls},
    ]
    if step.observation is not None:
        turns.extend(
            {
                "role": "tool",
                "tool_call_id": identity,
                "name": call.name,
                "content": step.observation,
            }
            for identity, call in zip(ids, step.action.calls, strict=True)
        )
    return turns


VERBATIM = RemediedHarness("verbatim", render_verbatim)


def remedied(
    name: str, harness: Harness = VERBATIM, *, added: Sequence[Remedy] = ()
) -> RemediedHarness:
    """`harness` with the remedies that `name` joins by "+", as in "verbatim+instructed".

    "verbatim" stands for the harness as it is. Remedies are applied in one fixed order, whatever
    their order in the name. One of them may be a block, as in "described+searched". `added` are
    remedies beside the built-in ones.

    Raises:
        UsageError: when a part of the name is no remedy, or stands twice, or when two of them
            can't be joined.
    """
    known = {**REMEDIES, **{remedy.name: remedy for remedy in added}}
    parts = [part.strip() for part in name.split("+")]
    for part in parts:
        if part != "verbatim" and part not in known and part not in BLOCKS:
            raise UsageError(
                f"there is no remedy {part!r} (in {name!r}); there are: verbatim, "
                f"{', '.join(known)}, and at the decoder: {', '.join(BLOCKS)}; join several "
                "with '+'"
            )
        if parts.count(part) > 1:
            raise UsageError(f"the remedy {part!r} stands twice in {name!r}; name it once")
    chosen = [known[part] for part in parts if part in known]
    _check_joined(name, chosen)
    block = _only_block(name, [BLOCKS[part] for part in parts if part in BLOCKS], harness)
    if harness is not VERBATIM:
        parts = [harness_name(harness), *(part for part in parts if part != "verbatim")]
    return RemediedHarness("+".join(parts), harness, in_order(chosen), block)


def _check_joined(name: str, chosen: Sequence[Remedy]) -> None:
    taking_away = [one.name for one in chosen if one.failed_step == "taken away"]
    changing = [one.name for one in chosen if one.failed_step == "changed"]
    if len(taking_away) > 1:
        raise UsageError(
            f"{' and '.join(taking_away)} in {name!r} can't be joined: each takes the failed step "
            "away, so only the first would do anything; choose one"
        )
    if taking_away and changing:
        raise UsageError(
            f"{taking_away[0]} and {changing[0]} in {name!r} can't be joined: {taking_away[0]} "
            f"takes away the failed step that {changing[0]} would change; choose one"
        )


def _only_block(name: str, blocks: Sequence[BlockKind], harness: Harness) -> BlockKind | None:
    if isinstance(harness, RemediedHarness) and harness.block:
        blocks = [harness.block, *blocks]
    if len(blocks) > 1:
        raise UsageError(
            f"{' and '.join(block.name for block in blocks)} can't be joined (in {name!r}): a "
            "decoder blocks failed actions in one way; choose one"
        )
    return blocks[0] if blocks else None


def with_remedy(harness: Harness, remedy: Remedy) -> RemediedHarness:
    """`harness` with one remedy more, at its place in the order; itself if it has that one."""
    if not isinstance(harness, RemediedHarness):
        return RemediedHarness(f"{harness_name(harness)}+{remedy.name}", harness, (remedy,))
    if remedy in harness.remedies:
        return harness
    remedies = in_order((*harness.remedies, remedy))
    return replace(harness, name=f"{harness.name}+{remedy.name}", remedies=remedies)


def harness_name(harness: Callable[..., object]) -> str:
    """The harness's `name` attribute, else the name that it, or what it is a partial of, has."""
    given = getattr(harness, "name", None)
    if isinstance(given, str) and given:
        return given
    if isinstance(harness, partial):
        return harness_name(harness.func)
    defined: str = getattr(harness, "__qualname__", type(harness).__qualname__)
    return defined.replace("<locals>.", "")
