"""Replays what a harness wrote, as it was logged."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_failgain.errors import NotRecordedError
from pytest_failgain.prompt import Message, Prompt
from pytest_failgain.trajectory import FailureCase, Step, Trajectory

REPLACED = "the error replaced where it stands in the record (that answer was not recorded)"


@dataclass(frozen=True, slots=True)
class RecordedCase:
    """A failure case with the prompts that were sent before and after its failed step.

    `answered` has the prompts that were sent when the call was answered otherwise, by that answer.
    """

    case: FailureCase
    before: Prompt
    after: Prompt
    answered: Mapping[str, Prompt] = field(default_factory=dict)

    def prompt(self, trajectory: Trajectory) -> Prompt | None:
        """What was sent, or would have been, for `trajectory`; None where it tells of another."""
        if trajectory == self.case.trajectory:
            return self.before
        *past, last = trajectory.steps or (None,)
        if not isinstance(last, Step) or last.action != self.case.failed.action:
            return None
        if replace(trajectory, steps=tuple(past)) != self.case.trajectory:
            return None
        if last == self.case.failed:
            return self.after
        return self._answered(last.observation or "")

    def _answered(self, observation: str) -> Prompt | None:
        if observation in self.answered:
            return self.answered[observation]
        error = self.case.failed.observation or ""
        if not error.strip():
            return None
        if self.after.text is not None:
            text = _replaced_last(self.after.text, error, observation)
            changed = None if text is None else replace(self.after, text=text)
        else:
            messages = _replaced_in(self.after.messages or (), error, observation)
            changed = None if messages is None else replace(self.after, messages=messages)
        if changed is None:
            return None
        return replace(changed, adaptations=(*changed.adaptations, REPLACED))


@dataclass(frozen=True, slots=True)
class AsRecorded:
    """A harness that replays recorded prompts, and knows no others.

    For another answer to the failed call than was recorded, such as the neutral one, the error is
    replaced where it stands, and the prompt says so.

    Raises (when called):
        NotRecordedError: for a trajectory that was not recorded.
    """

    recorded: tuple[RecordedCase, ...]
    name: str = "as recorded"

    def __call__(self, trajectory: Trajectory, /) -> Prompt:
        for one in self.recorded:
            prompt = one.prompt(trajectory)
            if prompt is not None:
                return prompt
        raise NotRecordedError(
            f"what the harness {self.name!r} would write here was not recorded: it replays the "
            "prompts before and after each failure. Measure remedies and other conditions with a "
            "harness, such as failgain.remedy('described')"
        )


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
