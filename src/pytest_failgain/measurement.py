"""Scores of one harness on some cases, and all that is derived from them.

With log p of the failed action under a condition: the corrective gain is G = before - failed
(negative: the record makes the failed action likelier), surface = neutral - before, semantic =
failed - neutral, so -G = surface + semantic. All in nats, summed over the action's tokens; "per
token" divides by their number, case by case, before averaging.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pytest_failgain.conditions import CONDITIONS, DEFAULT_CONDITIONS, FAILED, Condition
from pytest_failgain.errors import (
    CaseError,
    HarnessError,
    NotRecordedError,
    ScoringError,
    UsageError,
)
from pytest_failgain.harness_checks import render
from pytest_failgain.harnesses import Harness, RemediedHarness, harness_name, with_remedy
from pytest_failgain.measures import MEASURES, Measure, measure_named
from pytest_failgain.progress import NoProgress, Progress, job
from pytest_failgain.prompt import Prompt
from pytest_failgain.records import prompt_text, record_text
from pytest_failgain.rows import CaseRows, Row
from pytest_failgain.scoring.protocol import (
    ModelIdentity,
    Pair,
    Refusal,
    Score,
    Scorer,
    TokenCounter,
)
from pytest_failgain.spans import action_spans
from pytest_failgain.statistics import ClusterBootstrap, Estimate
from pytest_failgain.summary_values import SUMMARY_ESTIMATES
from pytest_failgain.trajectory import FailureCase, Trajectory

if TYPE_CHECKING:
    from pytest_failgain.baseline.keeper import BaselineKeeper

# Pairs scored together, for so many cases as have them: enough to share prompts, few enough that
# progress moves, and that little is lost when a run is killed.
_PAIRS_AT_ONCE = 100

_NEEDED = frozenset({"before", "failed"})

_UNLIKELY_WRAPPER_NATS = -10.0
_FEW_TASKS = 10
# In a shorter action one token carries half of the movement as a matter of course.
_TOKENS_TO_SPREAD_OVER = 4


@dataclass(frozen=True, slots=True)
class Skip:
    """A case that could not be measured, and why."""

    case_id: str
    reason: str


@dataclass(frozen=True)
class CaseValues:
    """What is derived from the rows, one entry a measured case; NaN where it is not known.

    All arrays have shape (cases,). Gains, surface and semantic are in nats, per-token gains in nats
    a token, repeat values are probabilities or 0/1, record_tokens counts tokens.
    """

    case_ids: tuple[str, ...]
    task_ids: tuple[str, ...]
    corrective_gain: NDArray[np.float64]
    corrective_gain_per_token: NDArray[np.float64]
    argument_gain_per_token: NDArray[np.float64]
    repeat_probability_before: NDArray[np.float64]
    repeat_probability_after: NDArray[np.float64]
    greedy_repeat_before: NDArray[np.float64]
    greedy_repeat_after: NDArray[np.float64]
    surface: NDArray[np.float64]
    semantic: NDArray[np.float64]
    record_tokens: NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Measurement:
    """The scores of one harness on some cases.

    `adaptations` counts, by its description, how many cases needed each change for the model's chat
    template. `left_out` counts, by condition, the cases that lack what the condition needs.
    `by_construction` is what follows from the harness's definition alone. `without_effect` tells of
    remedies that change no prompt, None where they change one or there are none. `records` has, by
    case id, the text that the failed step added to the prompt. `notes` are what else a report has
    to say. `baseline` is what the measurement is to be compared with, None where nobody gave one.
    """

    harness: str
    environment: str
    model: ModelIdentity
    cases: tuple[FailureCase, ...]
    rows: tuple[Row, ...]
    skips: tuple[Skip, ...] = ()
    adaptations: tuple[tuple[str, int], ...] = ()
    left_out: tuple[tuple[str, int], ...] = ()
    by_construction: str | None = None
    without_effect: str | None = None
    records: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    baseline: BaselineKeeper | None = field(default=None, compare=False)

    @cached_property
    def by_key(self) -> dict[tuple[str, str, str], Row]:
        """Rows by case id, condition and candidate."""
        return {(row.case_id, row.condition, row.candidate): row for row in self.rows}

    @cached_property
    def case_rows(self) -> tuple[CaseRows, ...]:
        """The rows of each case that was not skipped, in the order of `cases`."""
        skipped = {skip.case_id for skip in self.skips}
        rows: dict[str, dict[tuple[str, str], Row]] = {}
        for row in self.rows:
            rows.setdefault(row.case_id, {})[row.condition, row.candidate] = row
        return tuple(
            CaseRows(case, rows[case.case_id]) for case in self.cases if case.case_id not in skipped
        )

    @cached_property
    def task_ids(self) -> tuple[str, ...]:
        """The task of each case in `case_rows`."""
        return tuple(measured.case.task_id for measured in self.case_rows)

    def values_of(self, measure: str, condition: str) -> NDArray[np.float64]:
        """A measure of each case in `case_rows` under `condition`, by name; shape (cases,).

        Raises:
            UsageError: when there is no such measure, it has no value under that condition, or the
                condition was not scored.
        """
        measured = measure_named(measure)
        if condition in CONDITIONS and condition not in measured.conditions:
            raise UsageError(
                f"{measure} has no value under {condition!r}, but under: "
                f"{', '.join(measured.conditions)}"
            )
        scored = dict.fromkeys(row.condition for row in self.rows)
        if condition not in scored:
            raise UsageError(
                f"the condition {condition!r} was not scored; these were: "
                f"{', '.join(scored) or 'none'}. Name it among the conditions of measure(…)"
            )
        return self._values(measured, condition)

    def _values(self, measure: Measure, condition: str) -> NDArray[np.float64]:
        return np.array([measure.of(rows, condition) for rows in self.case_rows], np.float64)

    @cached_property
    def values(self) -> CaseValues:
        """The derived values of each case that was not skipped."""

        def of(measure: str, condition: str) -> NDArray[np.float64]:
            return self._values(MEASURES[measure], condition)

        return CaseValues(
            case_ids=tuple(measured.case.case_id for measured in self.case_rows),
            task_ids=self.task_ids,
            corrective_gain=of("gain", "failed"),
            corrective_gain_per_token=of("gain_per_token", "failed"),
            argument_gain_per_token=of("argument_gain_per_token", "failed"),
            repeat_probability_before=of("repeat_probability", "before"),
            repeat_probability_after=of("repeat_probability", "failed"),
            greedy_repeat_before=of("greedy_repeat", "before"),
            greedy_repeat_after=of("greedy_repeat", "failed"),
            surface=of("surface", "neutral"),
            semantic=of("semantic", "neutral"),
            record_tokens=of("record_tokens", "failed"),
        )

    @cached_property
    def estimates(self) -> dict[str, Estimate]:
        """Every estimate of `summary` by name, with its interval and the cases it rests on."""
        values = self.values
        # Not kept: draws are large, and a measurement is kept and sent between processes.
        bootstrap = ClusterBootstrap.over(values.task_ids)
        special = {
            "negative_share": bootstrap.mean(self._values(MEASURES["negative"], "failed")),
            "surface_share": self._surface_share(bootstrap),
        }
        return {
            name: special.get(name) or bootstrap.mean(getattr(values, name))
            for name in SUMMARY_ESTIMATES
        }

    def __repr__(self) -> str:
        # Short, since pytest prints it beside every assertion that fails.
        gain = self.estimates["corrective_gain_per_token"]
        return (
            f"<Measurement {self.harness} on {self.environment}: n={len(self.values.case_ids)}, "
            f"gain per token {gain.value:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]>"
        )

    def summary(self) -> dict[str, Any]:
        """`n`, `n_tasks`, and each estimate with its 95% interval under `<name>_ci`.

        NaN stands where a value is not known: everything for a measurement of no case,
        `surface_share` where the gain's interval is not all negative, so that there may be no
        inversion to share out.
        """
        summary: dict[str, Any] = {
            "n": len(self.values.case_ids),
            "n_tasks": len(set(self.values.task_ids)),
        }
        for name, estimate in self.estimates.items():
            summary[name] = estimate.value
            summary[f"{name}_ci"] = estimate.interval
        return summary

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Reasons to distrust the gain, each one line."""
        return tuple(self._warnings())

    def _surface_share(self, bootstrap: ClusterBootstrap) -> Estimate:
        """Surface over -G, as a ratio of means; NaN unless the gain's interval is negative."""
        values = self.values
        gain = np.where(np.isfinite(values.surface), values.corrective_gain, np.nan)
        if not bootstrap.mean(gain).high < 0:
            return Estimate(math.nan, math.nan, math.nan, 0)
        return bootstrap.ratio(values.surface, -gain)

    def _warnings(self) -> Iterable[str]:
        values = self.values
        n = len(values.case_ids)
        if n == 0:
            yield "no case was measured: nothing can be concluded, and every assertion fails"
            return
        tasks = len(set(values.task_ids))
        if tasks < _FEW_TASKS:
            yield (
                f"only {tasks} task{'s' if tasks > 1 else ''}: intervals resample tasks, and are "
                f"too narrow with fewer than {_FEW_TASKS}"
            )
        if self.without_effect:
            yield self.without_effect
        befores = [self.by_key[case_id, "before", "failed"] for case_id in values.case_ids]
        afters = [self.by_key[case_id, "failed", "failed"] for case_id in values.case_ids]
        wrapped = [_worst_wrapper(row) for row in befores]
        unlikely = [worst for worst in wrapped if worst[0] < _UNLIKELY_WRAPPER_NATS]
        if unlikely:
            worst = min(unlikely)
            yield (
                f"in {len(unlikely)} of {n} cases a wrapper token is under "
                f"{_UNLIKELY_WRAPPER_NATS:g} nats (lowest {worst[0]:.1f}, {worst[1]!r}): the model "
                "would not write the action in this format, so trust the gain on its arguments"
            )
        carried = sum(map(_one_token_moves_most, befores, afters))
        if carried:
            yield (
                f"in {carried} of {n} cases one token carries over half of the movement: compare "
                "the gain on the arguments, and let greedy decoding confirm"
            )
        yield from self._contradictions()

    def _contradictions(self) -> Iterable[str]:
        gain = self.estimates["corrective_gain_per_token"].value
        arguments = self.estimates["argument_gain_per_token"].value
        if gain * arguments < 0:
            yield (
                f"the gain is {gain:+.3f} nats per token on the whole action but {arguments:+.3f} "
                "on its arguments: the wrapping decides the sign, so trust the arguments"
            )
        before = self.estimates["greedy_repeat_before"].value
        after = self.estimates["greedy_repeat_after"].value
        if gain >= 0 and after > before:
            yield (
                f"the gain is {gain:+.3f} nats per token, yet greedy decoding repeats the failed "
                f"action on {after:.0%} of cases after the record and {before:.0%} before"
            )


def _worst_wrapper(row: Row) -> tuple[float, str]:
    """The lowest log-probability (nats) of a wrapper token, and its text; (0, "") without one."""
    spans = action_spans(row.text)
    wrappers = (
        (logprob, row.text[slice(*token)])
        for logprob, token in zip(row.token_logprobs, row.token_spans, strict=True)
        if spans.in_wrapper(token)
    )
    return min(wrappers, default=(0.0, ""))


def _one_token_moves_most(before: Row, after: Row) -> bool:
    moves = np.abs(np.subtract(after.token_logprobs, before.token_logprobs))
    return bool(len(moves) >= _TOKENS_TO_SPREAD_OVER and moves.max() > moves.sum() / 2)


def measure(
    scorer: Scorer,
    harness: Harness,
    cases: Sequence[FailureCase],
    *,
    conditions: Sequence[Condition] = DEFAULT_CONDITIONS,
    progress: Progress | None = None,
    label: str | None = None,
) -> Measurement:
    """Score every candidate of every case under each condition, as `harness` writes it.

    `conditions` must hold `before` and `failed`. A case is skipped and named when its context is
    longer than the model takes, when it lacks what one of those two needs, and when a candidate is
    not written alike in all conditions. Other conditions are left out for the cases that lack what
    they need, and counted. So are those that a harness which replays a record was never asked for
    when it was recorded. What the failed step's turn says before its action is given to the model
    in every condition, and not scored. `label` names the job in the progress.

    Raises:
        CaseError: when two cases have one id.
        HarnessError: when the harness fails on a case.
        ScoringError: when a prompt can't be rendered, or the model gives impossible numbers.
        UsageError: when `before` or `failed` is not among the conditions, or two have one name, or
            when the harness has a block.
    """
    if isinstance(cases, FailureCase):
        raise UsageError("cases must be a list of failure cases; put the one case into a list")
    given: object = cases
    if not isinstance(given, Iterable):
        name = getattr(given, "name", type(given).__name__)
        raise UsageError(
            f"cases must be a list of failure cases, not {name!r}; of an environment give "
            "environment.cases(30)"
        )
    cases, conditions = tuple(cases), tuple(conditions)
    _check_inputs(cases, conditions)
    _check_unblocked(harness)
    name = harness_name(harness)
    environment = "+".join(sorted({case.environment or "own cases" for case in cases}))
    rows: list[Row] = []
    skips: list[Skip] = []
    records: dict[str, str] = {}
    adapted: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    label = label or f"{name} on {environment}"
    with job(progress or NoProgress(), label, len(cases)) as advance:
        done = 0
        for batch in _batches(cases, len(conditions)):
            for outcome in _score_batch(scorer, harness, batch, conditions):
                if isinstance(outcome, Skip):
                    skips.append(outcome)
                else:
                    rows.extend(outcome.rows)
                    adapted.update(outcome.adaptations)
                    records[outcome.case_id] = outcome.record
                    scored = {row.condition for row in outcome.rows}
                    left_out.update(c.name for c in conditions if c.name not in scored)
            done += len(batch)
            advance(done)
    return Measurement(
        harness=name,
        environment=environment or "no cases",
        model=scorer.identity,
        cases=cases,
        rows=tuple(rows),
        skips=tuple(skips),
        adaptations=tuple(adapted.most_common()),
        left_out=tuple(left_out.most_common()),
        by_construction=getattr(harness, "by_construction", None),
        without_effect=_without_effect(harness, cases),
        records=records,
    )


def _batches(cases: Sequence[FailureCase], conditions: int) -> Iterator[Sequence[FailureCase]]:
    batch: list[FailureCase] = []
    pairs = 0
    for case in cases:
        batch.append(case)
        pairs += conditions * len(case.candidates())
        if pairs >= _PAIRS_AT_ONCE:
            yield batch
            batch, pairs = [], 0
    if batch:
        yield batch


def _check_inputs(cases: Sequence[FailureCase], conditions: Sequence[Condition]) -> None:
    for case in cases:
        if not isinstance(case, FailureCase):
            raise UsageError(
                f"{case!r} is not a failure case; measure(harness, cases) takes the harness first"
            )
    names = [condition.name for condition in conditions]
    if missing := _NEEDED.difference(names):
        raise UsageError(
            f"the conditions lack {' and '.join(sorted(missing))}, which the gain is the "
            "difference of; add them"
        )
    if len(set(names)) < len(names):
        raise UsageError(f"two of the conditions have one name ({', '.join(names)}); rename one")
    for case_id, times in Counter(case.case_id for case in cases).items():
        if times > 1:
            raise CaseError(
                f"the case id {case_id!r} stands {times} times among the cases; give every case an "
                "id of its own"
            )


def _check_unblocked(harness: Harness) -> None:
    if isinstance(harness, RemediedHarness) and harness.block:
        raise UsageError(
            f"the harness {harness.name!r} has the block {harness.block.name!r}, which changes "
            "what is decoded and nothing of what is scored: measure the same harness without it, "
            "or see what it does with failgain.rollout"
        )


@dataclass(slots=True)
class _Scored:
    """What was scored of one case so far; `contexts` are the prompts by condition."""

    case_id: str
    rows: list[Row] = field(default_factory=list)
    adaptations: set[str] = field(default_factory=set)
    contexts: dict[str, str] = field(default_factory=dict)

    def add(self, condition: str, candidate: str, prompt: Prompt, score: Score) -> None:
        self.rows.append(_row(self.case_id, condition, candidate, score))
        self.adaptations.update(score.adaptations)
        if condition in _NEEDED and condition not in self.contexts:
            self.contexts[condition] = score.context or prompt_text(prompt)

    @property
    def record(self) -> str:
        """The text that the failed step added to the prompt."""
        return record_text(self.contexts["before"], self.contexts["failed"])


def _score_batch(
    scorer: Scorer,
    harness: Harness,
    cases: Sequence[FailureCase],
    conditions: Sequence[Condition],
) -> list[_Scored | Skip]:
    pairs: list[Pair] = []
    keys: list[tuple[str, str, str]] = []
    results: dict[str, _Scored | Skip] = {case.case_id: _Scored(case.case_id) for case in cases}
    for case in cases:
        for condition in conditions:
            trajectory = _context(scorer, harness, condition, case)
            if trajectory is None:
                if condition.name in _NEEDED:
                    reason = f"{condition.name}: the case lacks what the condition needs"
                    results[case.case_id] = Skip(case.case_id, reason)
                continue
            remedied = with_remedy(harness, condition.remedy) if condition.remedy else harness
            try:
                prompt = render(remedied, trajectory, case_id=case.case_id)
            except NotRecordedError as error:
                if condition.name in _NEEDED:
                    results[case.case_id] = Skip(case.case_id, f"{condition.name}: {error}")
                continue
            prompt = replace(prompt, lead=case.failed.lead)
            for candidate, action in case.candidates().items():
                pairs.append(Pair(prompt, action))
                keys.append((case.case_id, condition.name, candidate))
    scores = scorer.score(pairs)
    for (case_id, condition_name, candidate), pair, score in zip(keys, pairs, scores, strict=True):
        result = results[case_id]
        if isinstance(result, Skip):
            continue
        if isinstance(score, Refusal):
            results[case_id] = Skip(case_id, f"{condition_name}: {score.reason}")
            continue
        _check_numbers(scorer.identity, score, f"case {case_id!r}, {condition_name}")
        result.add(condition_name, candidate, pair.prompt, score)
    return [_comparable(results[case.case_id]) for case in cases]


def _context(
    scorer: Scorer, harness: Harness, condition: Condition, case: FailureCase
) -> Trajectory | None:
    """The trajectory of `case` under `condition`, whose lengths are those of `harness`' prompts."""
    if isinstance(scorer, TokenCounter):
        counter = scorer

        def count_prompt(trajectory: Trajectory) -> int:
            prompt = render(harness, trajectory, case_id=case.case_id)
            return counter.count_prompt_tokens(prompt)

        return condition.context(case, counter.count_tokens, count_prompt)

    def can_not_count(text: str) -> int:
        raise UsageError(
            f"the condition {condition.name!r} needs the length of texts in tokens, which "
            f"{type(scorer).__name__} can't tell: give it the methods count_tokens(text) and "
            "count_prompt_tokens(prompt), or leave the condition out"
        )

    return condition.context(case, can_not_count)


def _without_effect(harness: Harness, cases: Sequence[FailureCase]) -> str | None:
    """What to say if the remedies of `harness` leave every prompt as it was without them."""
    if not isinstance(harness, RemediedHarness) or not harness.remedies or not cases:
        return None
    for case in cases:
        trajectory = FAILED.trajectory(case)
        if trajectory is None:
            continue
        try:
            plain = render(harness.base, trajectory, case_id=case.case_id)
        except HarnessError:  # what it can't write needs the remedy
            return None
        if plain != render(harness, trajectory, case_id=case.case_id):
            return None
    needed = (
        f"{remedy.name} changes something only where {remedy.acts_where}"
        for remedy in harness.remedies
    )
    return f"no prompt differs from {harness_name(harness.base)}'s own: {'; '.join(needed)}"


def _check_numbers(model: ModelIdentity, score: Score, place: str) -> None:
    logprobs = score.token_logprobs
    if not logprobs or not len(logprobs) == len(score.token_spans) == len(score.argmax):
        raise ScoringError(
            f"{place}: {model.name} gave {len(logprobs)} log-probabilities, {len(score.argmax)} "
            f"argmax matches and {len(score.token_spans)} spans for {score.text!r}; there must be "
            "one of each a token"
        )
    impossible = [logprob for logprob in logprobs if not -math.inf < logprob <= 0]
    if impossible:
        raise ScoringError(
            f"{place}: {model.name} gave the impossible log-probability {impossible[0]} for a "
            f"token of {score.text!r}; nothing was recorded"
        )


def _comparable(result: _Scored | Skip) -> _Scored | Skip:
    """`result`, or a skip where a candidate's text or tokens depend on the condition."""
    if isinstance(result, Skip):
        return result
    first: dict[str, Row] = {}
    for row in result.rows:
        known = first.setdefault(row.candidate, row)
        if (row.text, row.token_spans) != (known.text, known.token_spans):
            return Skip(
                result.case_id,
                f"the candidate {row.candidate!r} is not written alike in {known.condition!r} and "
                f"{row.condition!r}, so its log-probabilities can't be compared",
            )
    return result


def _row(case_id: str, condition: str, candidate: str, score: Score) -> Row:
    return Row(
        case_id=case_id,
        condition=condition,
        candidate=candidate,
        logprob=score.logprob,
        n_tokens=score.n_tokens,
        context_tokens=score.context_tokens,
        argmax_matches=score.argmax_matches,
        text=score.text,
        token_logprobs=score.token_logprobs,
        token_spans=score.token_spans,
    )


def gain_difference(remedy: Measurement, verbatim: Measurement) -> Estimate:
    """Mean of remedy's gain per token minus verbatim's, over the cases that both measured.

    Raises:
        UsageError: when they share no case, come from different models, or have different cases
            under one id.
    """
    left, right, bootstrap = _paired(remedy, verbatim)
    return bootstrap.mean(left - right)


def inversion_removed(remedy: Measurement, verbatim: Measurement) -> Estimate:
    """The share of verbatim's inversion that the remedy takes away: 1 - G(remedy) / G(verbatim).

    From mean gains per token over the cases that both measured; the interval resamples tasks. 1 is
    all of it, 0 none, and over 1 means that the failed action became less likely than before.

    Raises:
        UsageError: when they share no case, come from different models, have different cases
            under one id, or when verbatim's mean gain is not negative, so that there is no
            inversion to remove.
    """
    left, right, bootstrap = _paired(remedy, verbatim)
    if not right.mean() < 0:
        raise UsageError(
            f"{verbatim.harness} has a mean gain of {right.mean():+.3f} nats per token: there is "
            "no inversion that a remedy could remove"
        )
    kept = bootstrap.ratio(left, right)
    return replace(kept, value=1 - kept.value, low=1 - kept.high, high=1 - kept.low)


def _paired(
    one: Measurement, other: Measurement
) -> tuple[NDArray[np.float64], NDArray[np.float64], ClusterBootstrap]:
    if one.model != other.model:
        raise UsageError(
            f"{one.harness} was measured with {one.model.name} and {other.harness} with "
            f"{other.model.name} (or in another dtype); compare within one model"
        )
    places = {case_id: i for i, case_id in enumerate(other.values.case_ids)}
    common = [i for i, case_id in enumerate(one.values.case_ids) if case_id in places]
    if not common:
        raise UsageError(
            f"{one.harness} and {other.harness} share no measured case; measure both on the same"
        )
    matching = [places[one.values.case_ids[i]] for i in common]
    actions = {case.case_id: case.failed.action for case in other.cases}
    for case in one.cases:
        if actions.get(case.case_id, case.failed.action) != case.failed.action:
            raise UsageError(
                f"{one.harness} and {other.harness} were measured on different cases with the id "
                f"{case.case_id!r}; measure both on the same"
            )
    bootstrap = ClusterBootstrap.over([one.values.task_ids[i] for i in common])
    return (
        one.values.corrective_gain_per_token[common],
        other.values.corrective_gain_per_token[matching],
        bootstrap,
    )
