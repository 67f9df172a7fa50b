"""One harness on the cases of one environment, as a baseline keeps it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from pytest_failgain.errors import UsageError
from pytest_failgain.measurement import Measurement
from pytest_failgain.scoring.protocol import ModelIdentity
from pytest_failgain.trajectory import Action, FailureCase, Step, UserTurn

Setting = str | int | float | bool | None

_DECIMALS = 4

NOISE = 1e-3
"""What is no difference: by how much a gain per token (nats) or a share moves with the number of
threads, the batch that a case is scored in, and the processor, in float32. See docs/baseline.md."""


@dataclass(frozen=True, slots=True)
class Model:
    """What has to be the same for two measurements to be compared; `name` and `source` may differ.

    `weights` stands for all files of the model, `template` for the chat template in use.
    """

    name: str
    source: str
    revision: str | None
    weights: str
    template: str
    dtype: str

    @classmethod
    def of(cls, identity: ModelIdentity) -> Model:
        """The model that gave a measurement's numbers."""
        return cls(
            name=identity.name,
            source=identity.source,
            revision=identity.revision,
            weights=identity.fingerprint[:16],
            template=identity.template,
            dtype=identity.dtype,
        )


@dataclass(frozen=True, slots=True)
class KeptCase:
    """One case: the values of its failed action, and the record that they belong to.

    `decision` is a digest of what the case is about, see `decision_digest`. `gain_per_token` is in
    nats, `repeat_probability` None where the case has no other candidate.
    """

    task: str
    decision: str
    gain_per_token: float
    repeat_probability: float | None
    greedy_repeat: bool
    record: str

    def equals(self, other: KeptCase) -> bool:
        """Whether nothing differs but by rounding."""
        one, two = self.repeat_probability, other.repeat_probability
        return (
            (one == two if one is None or two is None else abs(one - two) <= NOISE)
            and abs(self.gain_per_token - other.gain_per_token) <= NOISE
            and replace(self, gain_per_token=0, repeat_probability=None)
            == replace(other, gain_per_token=0, repeat_probability=None)
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """What a baseline keeps of one measurement: `cases` by case id, in the order of the ids."""

    harness: str
    environment: str
    model: Model
    settings: Mapping[str, Setting] = field(default_factory=dict)
    cases: Mapping[str, KeptCase] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """What it is of, for people."""
        return f"{self.harness} on {self.environment}"

    def is_alike(self, other: Entry) -> bool:
        """Whether nothing but the cases differs."""
        return replace(self, cases={}) == replace(other, cases={})

    def equals(self, other: Entry) -> bool:
        """Whether nothing differs but by rounding."""
        return (
            self.is_alike(other)
            and self.cases.keys() == other.cases.keys()
            and all(case.equals(other.cases[case_id]) for case_id, case in self.cases.items())
        )

    def joined(self, other: Entry) -> Entry:
        """This entry with the cases of another of its name as well.

        Raises:
            UsageError: when a case has other values there, or the models differ.
        """
        if not self.is_alike(other):
            raise UsageError(
                f"{self.label} was measured with two models or settings: update the baseline with "
                "one of them"
            )
        for case_id, case in self.cases.items():
            if not case.equals(other.cases.get(case_id, case)):
                raise UsageError(
                    f"{self.label} was measured twice with different outcomes (case {case_id!r}): "
                    "give the two harnesses different names (an attribute `name`), or their cases "
                    "different ids"
                )
        return self.filled_up(other)

    def filled_up(self, other: Entry) -> Entry:
        """This entry with those cases of another that it lacks."""
        return replace(self, cases=dict(sorted({**other.cases, **self.cases}.items())))


def entry_of(measurement: Measurement, settings: Mapping[str, Setting] | None = None) -> Entry:
    """What a baseline keeps of `measurement`, which was made with `settings`."""
    values = measurement.values
    cases = {
        measured.case.case_id: KeptCase(
            task=measured.case.task_id,
            decision=decision_digest(measured.case),
            gain_per_token=round(float(gain), _DECIMALS),
            repeat_probability=None if math.isnan(share) else round(float(share), _DECIMALS),
            greedy_repeat=bool(greedy),
            record=measurement.records.get(measured.case.case_id, ""),
        )
        for measured, gain, share, greedy in zip(
            measurement.case_rows,
            values.corrective_gain_per_token,
            values.repeat_probability_after,
            values.greedy_repeat_after,
            strict=True,
        )
    }
    return Entry(
        harness=measurement.harness,
        environment=measurement.environment,
        model=Model.of(measurement.model),
        settings=dict(settings or {}),
        cases=dict(sorted(cases.items())),
    )


def decision_digest(case: FailureCase) -> str:
    """A short digest of what is decided in a case: goal, actions so far, and the candidates.

    Prompts and answers of the runtime are no part of it: those are what a baseline watches.
    """
    turns = [
        ["user", turn.text] if isinstance(turn, UserTurn) else _made(turn)
        for turn in case.trajectory.steps
    ]
    correct = None if case.correct is None else _parts(case.correct)
    others = sorted(json.dumps(_parts(action)) for action in case.distractors)
    decided = json.dumps([case.trajectory.goal, turns, _made(case.failed), correct, others])
    return blake2b(decided.encode(), digest_size=6).hexdigest()


def _made(step: Step) -> list[object]:
    return [*_parts(step.action), *([["in", step.reply]] if step.reply else [])]


def _parts(action: Action) -> list[object]:
    return [action.text, *([call.name, call.arguments] for call in action.calls)]
