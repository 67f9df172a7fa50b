"""An assertion on what an agent did: no failed action is made again with nothing changed."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from pytest_failgain.action_key import action_key
from pytest_failgain.errors import UsageError
from pytest_failgain.tool_effects import reads_only
from pytest_failgain.trajectory import Action, Step, Trajectory

# By a step's index and what it does, the index of the first step of its turn.
_Starts: TypeAlias = dict[tuple[int, Hashable], int]

_SHOWN = 10
_WIDTH = 60

_ADVICE = (
    "try: look at the record that the agent's harness writes after a failure (what the model reads "
    "makes it likelier to repeat the call), and measure it with failgain.measure_agent(...)"
)
_AFTER_CHANGE = (
    "A rerun counts although something changed in between, since allow_after_change=False."
)


class HasTrajectories(Protocol):
    """What tells of whole trajectories, such as a `ReadTranscript`."""

    @property
    def trajectories(self) -> Sequence[Trajectory]: ...


@dataclass(frozen=True, slots=True)
class Repeat:
    """A failed action and where it was made again, in steps counted from 1.

    `errors` are what each of its attempts was answered, the first failure first.
    """

    action: Action
    first: int
    again: tuple[int, ...]
    errors: tuple[str, ...]


def assert_no_repeated_failures(
    transcript: HasTrajectories, allow_after_change: bool = True
) -> None:
    """No action that failed may be made again later in the same trajectory.

    Two actions are the same where they mean the same: arguments are compared as values, whatever
    their order and spelling; other texts exactly, but for white space at their ends. Calls that one
    turn makes side by side are no repeats of each other.

    With `allow_after_change` a rerun is no fault where it succeeds, or where another action
    succeeded in between that may have changed something: any but those known to only look (see
    `tool_effects`). Something that the user says in between does not count as a change, since many
    harnesses write their own reminders in the user's role. Without it every rerun is a fault.

    A transcript in which nothing failed passes.

    Raises:
        AssertionError: naming each action that is made again, or when there is no action at all.
        UsageError: when `transcript` has no trajectories.
    """
    __tracebackhide__ = True
    trajectories = _trajectories(transcript)
    count = sum(_is_act(step) for one in trajectories for step in one.steps)
    if not count:
        raise AssertionError(
            "the transcript has no action in it (n = 0 steps), so there is nothing to judge; was "
            "the agent run, and are its calls in a format that the reader knows?"
        )
    found = repeated_failures(transcript, allow_after_change)
    if found:
        raise AssertionError(_told(found, count, allow_after_change))


def repeated_failures(
    transcript: HasTrajectories, allow_after_change: bool = True
) -> tuple[Repeat, ...]:
    """The failed actions that are made again, each told once; see the assertion for what counts.

    Raises:
        UsageError: when `transcript` has no trajectories.
    """
    starts = _turn_starts(transcript)
    found: dict[Hashable, Repeat] = {}
    for trajectory in _trajectories(transcript):
        # Trajectories with a common beginning tell of the same repeats once more.
        for key, repeat in _repeats(trajectory, starts, allow_after_change):
            longest = found.get((key, repeat.first))
            if longest is None or len(repeat.again) > len(longest.again):
                found[key, repeat.first] = repeat
    return tuple(sorted(found.values(), key=lambda repeat: repeat.first))


@dataclass(slots=True)
class _Failed:
    """An action that failed, as far as it was followed."""

    action: Action
    first: int
    last: int
    again: list[int]
    errors: list[str]


def _repeats(
    trajectory: Trajectory, starts: _Starts, allow_after_change: bool
) -> Iterator[tuple[Hashable, Repeat]]:
    failed: dict[Hashable, _Failed] = {}
    last_change = -1
    for index, step in enumerate(trajectory.steps):
        if not isinstance(step, Step) or not _is_act(step):
            continue
        key = action_key(step.action)
        known = failed.get(key)
        if known is not None and known.last < starts.get((index, key), index):
            changed = last_change > known.last
            if not (allow_after_change and (changed or _succeeded(step))):
                known.again.append(index + 1)
                known.errors.append(_outcome(step))
        if step.failed:
            if known is None:
                failed[key] = _Failed(step.action, index + 1, index, [], [_outcome(step)])
            else:
                known.last = index
        elif _succeeded(step):
            if known is not None and allow_after_change:
                # What fails after it worked has failed for the first time again.
                yield from _repeat_of(key, failed.pop(key))
            if not reads_only(step.action, step.tool):
                last_change = index
    for key, one in failed.items():
        yield from _repeat_of(key, one)


def _repeat_of(key: Hashable, one: _Failed) -> Iterator[tuple[Hashable, Repeat]]:
    if one.again:
        yield key, Repeat(one.action, one.first, tuple(one.again), tuple(one.errors))


def _turn_starts(transcript: HasTrajectories) -> _Starts:
    """Where the turns of failed steps begin.

    Calls of one turn are made side by side, none in the knowledge of another's failure. A failure
    that several trajectories tell of is recorded for one of them, so steps are known by place.
    """
    by_identity = {
        id(one.case.failed): len(one.case.trajectory.steps)
        for one in getattr(transcript, "recorded", ())
    }
    return {
        (index, action_key(step.action)): by_identity[id(step)]
        for trajectory in transcript.trajectories
        for index, step in enumerate(trajectory.steps)
        if isinstance(step, Step) and id(step) in by_identity
    }


def _trajectories(transcript: HasTrajectories) -> Sequence[Trajectory]:
    found = getattr(transcript, "trajectories", None)
    if isinstance(found, list | tuple) and all(isinstance(one, Trajectory) for one in found):
        return found
    raise UsageError(
        f"assert_no_repeated_failures takes what read_transcript gave, or an endpoint's "
        f".transcript, not a {type(transcript).__name__}"
    )


def _is_act(step: object) -> bool:
    """Whether the agent did something, rather than only speak."""
    return isinstance(step, Step) and bool(
        step.action.calls or step.observation is not None or step.failed
    )


def _succeeded(step: Step) -> bool:
    return not step.failed and step.observation is not None


def _outcome(step: Step) -> str:
    if step.observation is None:
        return "(no answer)"
    return step.observation if step.failed else f"(worked) {step.observation}"


def _told(found: Sequence[Repeat], count: int, allow_after_change: bool) -> str:
    reruns = sum(len(one.again) for one in found)
    actions = "1 failed action was" if len(found) == 1 else f"{len(found)} failed actions were"
    times = "once" if reruns == 1 else f"{reruns} times"
    unchanged = " with nothing changed in between" if allow_after_change else ""
    lines = [
        f"{actions} made again {times}{unchanged}, n = {count} steps",
        "failed at  made again at      action",
    ]
    for one in sorted(found, key=lambda repeat: -len(repeat.again))[:_SHOWN]:
        again = _shortened(", ".join(map(str, one.again)), 17)
        lines.append(f"{one.first:>9}  {again:<17}  {_shortened(str(one.action), _WIDTH)}")
        lines += [f"{'':>11}{line}" for line in _errors_told(one)]
    if len(found) > _SHOWN:
        lines.append(f"and {len(found) - _SHOWN} more")
    return "\n".join([*lines, *([] if allow_after_change else [_AFTER_CHANGE]), _ADVICE])


def _errors_told(repeat: Repeat) -> Iterator[str]:
    counted: dict[str, int] = {}
    for error in repeat.errors:
        counted[error] = counted.get(error, 0) + 1
    for error, times in list(counted.items())[:3]:
        many = f" ({times} times)" if times > 1 else ""
        yield f"answered{many}: {_shortened(error, _WIDTH) or '(nothing)'}"


def _shortened(text: str, width: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else f"{text[: width - 3]}..."
