"""Replays what a harness wrote, as it was logged."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, TypeAlias

from pytest_failgain.errors import NotRecordedError
from pytest_failgain.prompt import Message, Prompt
from pytest_failgain.trajectory import Action, FailureCase, Step, Trajectory, UserTurn

REPLACED = "the error replaced where it stands in the record (that answer was not recorded)"

PlaceKey: TypeAlias = Hashable
"""The same for equal trajectories; others may share it."""


class Recorded(Protocol):
    """A failure case with what was sent before and after its failed step.

    `answered` has the prompts that were sent when the call was answered otherwise, by that answer.
    `error_at` is the index of the message of `after` that brings the error, None where it is not
    known: then it is looked for. `key` is that of the case's trajectory. All of it may be made anew
    each time it is asked for, so that a long transcript needs no more memory than its text.
    """

    @property
    def case(self) -> FailureCase: ...

    @property
    def before(self) -> Prompt: ...

    @property
    def after(self) -> Prompt: ...

    @property
    def answered(self) -> Mapping[str, Prompt]: ...

    @property
    def error_at(self) -> int | None: ...

    @property
    def key(self) -> PlaceKey: ...

    @property
    def action(self) -> Action: ...


@dataclass(frozen=True, slots=True)
class RecordedCase:
    """A `Recorded` that holds what it tells of."""

    case: FailureCase
    before: Prompt
    after: Prompt
    answered: Mapping[str, Prompt] = field(default_factory=dict)
    error_at: int | None = None

    @property
    def key(self) -> PlaceKey:
        """The key of the case's trajectory."""
        trajectory = self.case.trajectory
        return place_key(trajectory.system, trajectory.goal, trajectory.steps)

    @property
    def action(self) -> Action:
        """The failed action."""
        return self.case.failed.action


def recorded_prompt(one: Recorded, trajectory: Trajectory) -> Prompt | None:
    """What was sent, or would have been, for `trajectory`; None where it tells of another."""
    case = one.case
    if trajectory == case.trajectory:
        return one.before
    *past, last = trajectory.steps or (None,)
    if not isinstance(last, Step) or last.action != case.failed.action:
        return None
    if replace(trajectory, steps=tuple(past)) != case.trajectory:
        return None
    if last == case.failed:
        return one.after
    return _answered(one, case.failed.observation or "", last.observation or "")


def _answered(one: Recorded, error: str, observation: str) -> Prompt | None:
    answered = one.answered
    if observation in answered:
        return answered[observation]
    changed = _replaced(one.after, one.error_at, error, observation)
    if changed is None:
        return None
    return replace(changed, adaptations=(*changed.adaptations, REPLACED))


def _replaced(prompt: Prompt, error_at: int | None, error: str, observation: str) -> Prompt | None:
    if prompt.text is not None:
        text = _replaced_last(prompt.text, error, observation) if error.strip() else None
        return None if text is None else replace(prompt, text=text)
    messages = prompt.messages or ()
    changed = _replaced_at(messages, error_at, error, observation)
    if changed is None and error.strip():
        changed = _replaced_in(messages, error, observation)
    return None if changed is None else replace(prompt, messages=changed)


@dataclass(frozen=True)
class AsRecorded:
    """A harness that replays recorded prompts, and knows no others.

    For another answer to the failed call than was recorded, such as the neutral one, the error is
    replaced where it stands, and the prompt says so.

    Raises (when called):
        NotRecordedError: for a trajectory that was not recorded.
    """

    recorded: Sequence[Recorded]
    name: str = "as recorded"

    def __call__(self, trajectory: Trajectory, /) -> Prompt:
        for one in self._candidates(trajectory):
            prompt = recorded_prompt(one, trajectory)
            if prompt is not None:
                return prompt
        raise NotRecordedError(
            f"what the harness {self.name!r} would write here was not recorded: it replays the "
            "prompts before and after each failure. Measure remedies and other conditions with a "
            "harness, such as failgain.remedy('described')"
        )

    def _candidates(self, trajectory: Trajectory) -> Iterator[Recorded]:
        system, goal, steps = trajectory.system, trajectory.goal, trajectory.steps
        yield from self._by_place.get(place_key(system, goal, steps), ())
        if steps and isinstance(steps[-1], Step):
            key = place_key(system, goal, steps, len(steps) - 1)
            yield from self._by_action.get((key, steps[-1].action), ())

    @cached_property
    def _by_place(self) -> dict[PlaceKey, list[Recorded]]:
        found: dict[PlaceKey, list[Recorded]] = {}
        for one in self.recorded:
            found.setdefault(one.key, []).append(one)
        return found

    @cached_property
    def _by_action(self) -> dict[tuple[PlaceKey, Action], list[Recorded]]:
        found: dict[tuple[PlaceKey, Action], list[Recorded]] = {}
        for one in self.recorded:
            found.setdefault((one.key, one.action), []).append(one)
        return found


def place_key(
    system: str, goal: str, steps: Sequence[Step | UserTurn], count: int | None = None
) -> PlaceKey:
    """A key for the trajectory of the first `count` of `steps`, all of them where it is None."""
    count = len(steps) if count is None else count
    last = steps[count - 1] if count else None
    told = (last.action, last.observation) if isinstance(last, Step) else last
    return system, goal, count, told


def _replaced_at(
    messages: Sequence[Message], index: int | None, old: str, new: str
) -> tuple[Message, ...] | None:
    """`messages` with the error replaced in the one at `index`, None where it is not there."""
    if index is None or index >= len(messages):
        return None
    message = messages[index]
    if message.get("content") == old:
        changed: Any = {**message, "content": new}
    else:
        changed = _replaced_value(message, old, new) if old.strip() else None
    return None if changed is None else (*messages[:index], changed, *messages[index + 1 :])


def _replaced_in(messages: Sequence[Message], old: str, new: str) -> tuple[Message, ...] | None:
    for index in range(len(messages) - 1, -1, -1):
        changed = _replaced_value(messages[index], old, new)
        if changed is not None:
            return (*messages[:index], changed, *messages[index + 1 :])
    return None


def _replaced_value(value: Any, old: str, new: str) -> Any:
    """`value` with the last place of `old` in its texts replaced; None where it is in none."""
    if isinstance(value, str):
        return _replaced_last(value, old, new)
    if isinstance(value, Mapping):
        for key in reversed(list(value)):
            changed = _replaced_value(value[key], old, new)
            if changed is not None:
                return {**value, key: changed}
    if isinstance(value, list | tuple):
        for index in range(len(value) - 1, -1, -1):
            changed = _replaced_value(value[index], old, new)
            if changed is not None:
                return [*value[:index], changed, *value[index + 1 :]]
    return None


def _replaced_last(text: str, old: str, new: str) -> str | None:
    for before, after in ((old, new), (_escaped(old), _escaped(new))):
        start = text.rfind(before)
        if start >= 0:
            return f"{text[:start]}{after}{text[start + len(before) :]}"
    return None


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
