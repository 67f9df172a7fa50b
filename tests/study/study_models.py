"""A study's scorer without a model, and cases for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from fake_scorer import IDENTITY, FakeScorer, failure_case
from pytest_failgain.errors import ModelError, ScoringError
from pytest_failgain.progress import Progress
from pytest_failgain.prompt import Prompt
from pytest_failgain.scoring.protocol import ModelIdentity, Pair, Refusal, Score
from pytest_failgain.scoring.work import Work
from pytest_failgain.study.folder import StudyFolder
from pytest_failgain.study.plan import CaseSet, ModelSettings
from pytest_failgain.trajectory import Action, FailureCase, Observations, Step


@dataclass
class SizedScorer:
    """A fake scorer of `n_parameters` that computes every pair anew: one token of ten, a second.

    It fails at its call number `breaks_at`, if there is one.
    """

    name: str
    n_parameters: int = 1000
    breaks_at: int | None = None
    inner: FakeScorer = field(default_factory=FakeScorer)
    work: Work = field(default_factory=Work)

    @property
    def identity(self) -> ModelIdentity:
        return replace(IDENTITY, name=self.name, fingerprint=f"of {self.name}")

    def count_tokens(self, text: str) -> int:
        return self.inner.count_tokens(text)

    def count_prompt_tokens(self, prompt: Prompt) -> int:
        return self.inner.count_prompt_tokens(prompt)

    def score(self, pairs: Sequence[Pair]) -> list[Score | Refusal]:
        if len(self.inner.batches) == self.breaks_at:
            raise ScoringError("the numbers are impossible")
        self.work += Work(len(pairs), 10 * len(pairs), len(pairs), float(len(pairs)))
        return self.inner.score(pairs)


def load(
    spec: str, settings: ModelSettings, folder: StudyFolder, progress: Progress
) -> SizedScorer:
    """The scorer that `spec` tells of: a name, or "missing", "broken", "name:parameters"."""
    name, _, parameters = spec.partition(":")
    if name == "missing":
        raise ModelError("there is no model 'missing'")
    breaks_at = 0 if name == "broken" else None
    return SizedScorer(name, int(parameters or 1000), breaks_at)


def study_case(case_id: str, operator: str = "typo", task_id: str | None = None) -> FailureCase:
    """A case that has what every condition needs."""
    case = failure_case(case_id, distractors=("send(to=1)", "post()"), task_id=task_id)
    return replace(
        case,
        operator=operator,
        template="mail",
        failed=replace(case.failed, error_family="type_error", tool="send"),
        observations=Observations(
            case.observations.neutral,
            case.observations.success,
            terse="no",
            verbose="no, since it is no address",
            echoed="no: send(to='Ann')",
        ),
        other_failed=Step(Action("send(to=1)"), "TypeError: 1", failed=True),
    )


def case_set(name: str = "mails", count: int = 6) -> CaseSet:
    """Cases of two to a task and of two operators."""
    operators = ("typo", "dropped")
    return CaseSet(
        name,
        tuple(
            study_case(f"c{number}", operators[number % 2], f"t{number // 2}")
            for number in range(count)
        ),
    )
