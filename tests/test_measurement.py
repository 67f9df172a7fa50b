from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fake_scorer import (
    ERROR,
    IDENTITY,
    FakeScorer,
    failure_case,
    hashed,
    measured,
    measured_by,
    prompt_text,
    situation,
    spans_of_tokens,
    written,
)
from progress_recorder import Recorder
from published_rows import FILES, PublishedFile
from pytest_failgain.conditions import (
    BEFORE,
    CONDITIONS,
    DEFAULT_CONDITIONS,
    DESCRIBED_CONDITION,
    FAILED,
    NEUTRAL,
    NEUTRAL_PADDED,
    OTHER_FAILED,
    SUCCEEDED,
    Condition,
)
from pytest_failgain.errors import CaseError, NotRecordedError, ScoringError, UsageError
from pytest_failgain.harnesses import VERBATIM, Harness, remedied
from pytest_failgain.measurement import (
    Measurement,
    Skip,
    gain_difference,
    inversion_removed,
    measure,
)
from pytest_failgain.prompt import Prompt
from pytest_failgain.remedies import REMEDIES
from pytest_failgain.rows import Row
from pytest_failgain.scoring.protocol import Pair, Score
from pytest_failgain.spans import action_spans
from pytest_failgain.trajectory import Action, FailureCase, Step, ToolCall, Trajectory
from strategies import cases, plain_harnesses, quick, render_as_text

ESTIMATES = (
    "corrective_gain",
    "corrective_gain_per_token",
    "negative_share",
    "repeat_probability_before",
    "repeat_probability_after",
    "greedy_repeat_before",
    "greedy_repeat_after",
    "surface",
    "semantic",
    "surface_share",
    "record_tokens",
    "argument_gain_per_token",
)

several_cases = st.lists(cases(), min_size=1, max_size=4, unique_by=lambda case: case.case_id)
single_remedies: st.SearchStrategy[Harness] = st.builds(
    remedied, st.sampled_from(sorted(REMEDIES)), plain_harnesses
)
any_harness = plain_harnesses | single_remedies
ALL = tuple(CONDITIONS.values())
few = settings(quick, max_examples=20)


def by_hand(result: Measurement, case: FailureCase) -> dict[str, float]:
    """Every value of one case, from its rows alone."""
    rows = {(r.condition, r.candidate): r for r in result.rows if r.case_id == case.case_id}
    logprobs = {key: math.fsum(row.token_logprobs) for key, row in rows.items()}

    def share(condition: str) -> float:
        candidates = [name for of, name in rows if of == condition]
        if candidates == ["failed"]:
            return math.nan
        highest = max(logprobs[condition, name] for name in candidates)
        weights = {name: math.exp(logprobs[condition, name] - highest) for name in candidates}
        return weights["failed"] / math.fsum(weights.values())

    before, after = rows["before", "failed"], rows["failed", "failed"]
    gain = logprobs["before", "failed"] - logprobs["failed", "failed"]
    spans = action_spans(before.text)
    moved = [
        one - other
        for one, other, span in zip(
            before.token_logprobs, after.token_logprobs, before.token_spans, strict=True
        )
        if spans.in_arguments(span)
    ]
    return {
        "corrective_gain": gain,
        "corrective_gain_per_token": gain / len(before.token_logprobs),
        "negative_share": float(gain < 0),
        "repeat_probability_before": share("before"),
        "repeat_probability_after": share("failed"),
        "greedy_repeat_before": float(all(x > math.log(0.5) for x in before.token_logprobs)),
        "greedy_repeat_after": float(all(x > math.log(0.5) for x in after.token_logprobs)),
        "surface": logprobs["neutral", "failed"] - logprobs["before", "failed"],
        "semantic": logprobs["failed", "failed"] - logprobs["neutral", "failed"],
        "record_tokens": after.context_tokens - before.context_tokens,
        "argument_gain_per_token": math.fsum(moved) / len(moved) if moved else math.nan,
    }


def mean_of_known(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else math.nan


@few
@given(drawn=several_cases, harness=any_harness)
def test_every_figure_is_what_the_rows_give_by_hand(
    drawn: list[FailureCase], harness: Harness
) -> None:
    result = measure(FakeScorer(), harness, drawn)
    expected = [by_hand(result, case) for case in drawn]
    values = result.values
    assert values.case_ids == tuple(case.case_id for case in drawn)
    assert values.task_ids == tuple(case.task_id for case in drawn)
    for name in set(ESTIMATES) - {"negative_share", "surface_share"}:
        figures = getattr(values, name).tolist()
        assert figures == pytest.approx([entry[name] for entry in expected], nan_ok=True)
    summary = result.summary()
    assert (summary["n"], summary["n_tasks"]) == (len(drawn), len({c.task_id for c in drawn}))
    means = {
        name: mean_of_known([entry[name] for entry in expected])
        for name in ESTIMATES
        if name != "surface_share"
    }
    inverted = summary["corrective_gain_ci"][1] < 0
    means["surface_share"] = means["surface"] / -means["corrective_gain"] if inverted else math.nan
    assert {name: summary[name] for name in ESTIMATES} == pytest.approx(means, nan_ok=True)


@few
@given(drawn=several_cases, harness=any_harness)
def test_the_loss_is_surface_plus_semantic_in_every_case(
    drawn: list[FailureCase], harness: Harness
) -> None:
    values = measure(FakeScorer(), harness, drawn).values
    np.testing.assert_allclose(-values.corrective_gain, values.surface + values.semantic, atol=1e-9)


@few
@given(drawn=several_cases, harness=plain_harnesses)
def test_dropped_has_a_gain_of_exactly_0_on_top_of_any_harness(
    drawn: list[FailureCase], harness: Harness
) -> None:
    result = measure(FakeScorer(), remedied("dropped", harness), drawn)
    assert set(result.values.corrective_gain.tolist()) == {0.0}
    assert set(result.values.record_tokens.tolist()) == {0.0}
    estimates = result.estimates
    assert (estimates["corrective_gain"].value, *estimates["corrective_gain"].interval) == (0, 0, 0)
    assert estimates["negative_share"].value == 0
    assert math.isnan(estimates["surface_share"].value)
    before, failed = (
        [replace(row, condition="") for row in result.rows if row.condition == condition]
        for condition in ("before", "failed")
    )
    assert before == failed
    assert str(result.by_construction).startswith("gain 0")


def goal_only(trajectory: Trajectory) -> list[dict[str, Any]]:
    """A harness that writes no system prompt, and of all turns the last step's answer alone."""
    answers = [step.observation for step in trajectory.steps if isinstance(step, Step)]
    return [{"role": "user", "content": f"{trajectory.goal} {answers[-1:]}"}]


def test_remedies_that_change_no_prompt_are_named() -> None:
    result = measure(FakeScorer(), remedied("instructed", goal_only), [failure_case()])
    (said,) = [warning for warning in result.warnings if "no prompt differs" in warning]
    assert said == (
        "no prompt differs from goal_only's own: instructed changes something only where the "
        "harness writes the trajectory's system prompt"
    )


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("collapsed", ["collapsed changes something only where one and the same failure stands"]),
        (
            "advised+collapsed",
            [
                "; advised changes something only where",
                "the trajectory's tools tell what to advise",
            ],
        ),
    ],
)
def test_remedies_that_had_nothing_to_do_say_what_they_need(name: str, needed: list[str]) -> None:
    without_effect = measure(FakeScorer(), remedied(name), [failure_case()]).without_effect
    assert without_effect is not None
    assert without_effect.startswith("no prompt differs from verbatim's own: collapsed")
    assert all(part in without_effect for part in needed)


@pytest.mark.parametrize(
    "name",
    [
        "verbatim",
        "instructed",
        "redirected",
        "stripped",
        "labelled",
        "described",
        "dropped",
        "collapsed+labelled",
    ],
)
def test_remedies_that_change_a_prompt_are_not(name: str) -> None:
    assert measure(FakeScorer(), remedied(name), [failure_case()]).without_effect is None


def test_a_row_is_one_candidate_in_one_condition() -> None:
    case = failure_case(distractors=("send(to=1)", "mail(to='Ann')"))
    scorer = FakeScorer()
    result = measure(scorer, VERBATIM, [case])
    assert [(row.condition, row.candidate) for row in result.rows] == [
        (condition, candidate)
        for condition in ("before", "failed", "neutral")
        for candidate in ("failed", "correct", "distractor0", "distractor1")
    ]
    assert [field.name for field in fields(Row)][:7] == [
        "case_id",
        "condition",
        "candidate",
        "logprob",
        "n_tokens",
        "context_tokens",
        "argmax_matches",
    ]
    failed = FAILED.trajectory(case)
    assert failed is not None
    messages = VERBATIM(failed)
    assert isinstance(messages, list)
    (score,) = scorer.score([Pair(Prompt(tuple(messages)), case.failed.action)])
    assert isinstance(score, Score)
    assert result.by_key["a", "failed", "failed"] == Row(
        case_id="a",
        condition="failed",
        candidate="failed",
        logprob=math.fsum(score.token_logprobs),
        n_tokens=8,
        context_tokens=score.context_tokens,
        argmax_matches=score.argmax_matches,
        text="send(to='Ann')",
        token_logprobs=score.token_logprobs,
        token_spans=spans_of_tokens("send(to='Ann')"),
    )


def test_candidates_are_those_that_a_case_has() -> None:
    bare = failure_case("bare", correct=None)
    result = measure(FakeScorer(), VERBATIM, [bare, failure_case("full", distractors=("other()",))])
    assert {row.candidate for row in result.rows if row.case_id == "bare"} == {"failed"}
    assert {row.candidate for row in result.rows if row.case_id == "full"} == {
        "failed",
        "correct",
        "distractor0",
    }
    # A share among one candidate would be 1 whatever the model thinks, so it is not known.
    assert np.isnan(result.values.repeat_probability_after).tolist() == [True, False]
    assert result.estimates["repeat_probability_after"].n == 1


def test_the_summary_has_these_keys_and_no_other() -> None:
    keys = {"n", "n_tasks", *ESTIMATES, *(f"{name}_ci" for name in ESTIMATES)}
    assert set(measured({"a": -1.0}).summary()) == keys
    assert set(measured({}).summary()) == keys


def test_the_summary_is_made_of_plain_numbers() -> None:
    summary = measured({"a": -1.0, "b": 0.5}).summary()
    for key, value in summary.items():
        if key.endswith("_ci"):
            assert type(value) is tuple
            assert [type(bound) for bound in value] == [float, float]
        else:
            assert type(value) is (int if key in ("n", "n_tasks") else float)


def test_figures_of_a_small_measurement() -> None:
    # Case a loses 8 nats over 8 tokens, 6 of them by surface; case b gains 4.
    result = measured(
        {"a": -1.0, "b": 0.5},
        tasks={"a": "t", "b": "t"},
        repeat={"a": 0.75, "b": 0.25},
        greedy=["a"],
    )
    summary = result.summary()
    assert (summary["n"], summary["n_tasks"]) == (2, 1)
    assert {name: summary[name] for name in ESTIMATES} == pytest.approx(
        {
            "corrective_gain": -2.0,
            "corrective_gain_per_token": -0.25,
            "argument_gain_per_token": -0.25,
            "negative_share": 0.5,
            "repeat_probability_before": 0.5,
            "repeat_probability_after": 0.5,
            "greedy_repeat_before": 0.0,
            "greedy_repeat_after": 0.5,
            "surface": 1.5,
            "semantic": 0.5,
            "surface_share": 0.75,
            "record_tokens": 15.0,
        }
    )


def test_gains_are_divided_by_the_tokens_of_each_case_before_they_are_averaged() -> None:
    def short_or_long(prompt: Prompt, action: Action) -> list[float]:
        tokens = len(spans_of_tokens(action.text))
        return [-4.0 if situation(prompt) == "before" else -3.0 if tokens == 3 else -2.0] * tokens

    result = measure(
        FakeScorer(short_or_long),
        VERBATIM,
        [failure_case("a", "f()"), failure_case("b", "f(x, y)")],
    )
    summary = result.summary()
    assert result.by_key["b", "before", "failed"].n_tokens == 7
    assert summary["corrective_gain"] == (-3 - 14) / 2
    assert summary["corrective_gain_per_token"] == (-1 - 2) / 2


def test_a_gain_of_exactly_0_is_not_negative() -> None:
    assert measured({"a": 0.0, "b": -0.5}).summary()["negative_share"] == 0.5


def test_the_repeat_probability_is_a_share_among_all_candidates() -> None:
    wanted = {"send(to='Ann')": 0.5, "right()": 0.2, "wrong()": 0.2, "other()": 0.1}

    def answer(prompt: Prompt, action: Action) -> list[float]:
        tokens = len(spans_of_tokens(action.text))
        # Far below what exp can hold: only the differences between candidates count.
        return [(math.log(wanted[action.text]) - 4000) / tokens] * tokens

    case = failure_case(correct="right()", distractors=("wrong()", "other()"))
    values = measure(FakeScorer(answer), VERBATIM, [case]).values
    assert values.repeat_probability_before.tolist() == pytest.approx([0.5])
    assert values.repeat_probability_after.tolist() == pytest.approx([0.5])


def test_greedy_decoding_repeats_only_where_every_token_is_the_first_choice() -> None:
    certain, doubtful = [-0.1] * 8, [-0.1] * 7 + [-0.8]
    result = measured_by({"before": doubtful, "failed": certain, "neutral": certain})
    assert result.values.greedy_repeat_before.tolist() == [0.0]
    assert result.values.greedy_repeat_after.tolist() == [1.0]


def test_the_argument_gain_is_that_of_the_argument_tokens_alone() -> None:
    # send ( to = ' Ann ' )
    before = [-5.0, -5.0, *[-2.0] * 5, -5.0]
    failed = [-1.0, -1.0, *[-4.0] * 5, -1.0]
    result = measured_by({"before": before, "failed": failed, "neutral": failed})
    assert result.values.argument_gain_per_token.tolist() == [2.0]
    assert result.values.corrective_gain.tolist() == [-3 * 4 + 5 * 2]


def test_a_call_without_arguments_has_no_argument_gain() -> None:
    result = measured_by({"failed": [-0.5] * 3}, "finish()")
    assert math.isnan(result.values.argument_gain_per_token[0])
    assert result.estimates["argument_gain_per_token"].n == 0
    assert result.values.corrective_gain.tolist() == [-1.5]


@pytest.mark.parametrize("gains", [{"a": 0.5, "b": -0.25}, {"a": 0.0}])
def test_without_an_inversion_there_is_no_share_of_it(gains: dict[str, float]) -> None:
    estimate = measured(gains).estimates["surface_share"]
    assert estimate.n == 0
    assert all(map(math.isnan, (estimate.value, *estimate.interval)))


def test_the_parts_of_the_loss_need_the_neutral_condition() -> None:
    result = measure(FakeScorer(), VERBATIM, [failure_case()], conditions=(BEFORE, FAILED))
    for name in ("surface", "semantic", "surface_share"):
        assert math.isnan(result.estimates[name].value)
    assert math.isfinite(result.estimates["corrective_gain"].value)


@few
@given(drawn=several_cases, harness=any_harness)
def test_more_conditions_do_not_change_what_is_derived(
    drawn: list[FailureCase], harness: Harness
) -> None:
    fewer = measure(FakeScorer(), harness, drawn)
    many = measure(FakeScorer(), harness, drawn, conditions=ALL[::-1])
    np.testing.assert_equal(many.summary(), fewer.summary())
    assert set(fewer.rows) <= set(many.rows)


@pytest.mark.parametrize(
    ("harness", "remedy"),
    [
        pytest.param(VERBATIM, remedied("described"), id="verbatim"),
        pytest.param(render_as_text, remedied("described", render_as_text), id="own"),
        pytest.param(remedied("instructed"), remedied("instructed+described"), id="instructed"),
    ],
)
def test_the_described_condition_is_the_remedy_on_top_of_the_harness(
    harness: Harness, remedy: Harness
) -> None:
    drawn = [failure_case("a"), failure_case("b")]
    conditions = (BEFORE, FAILED, DESCRIBED_CONDITION)
    described = measure(FakeScorer(), harness, drawn, conditions=conditions)
    expected = [
        row for row in measure(FakeScorer(), remedy, drawn).rows if row.condition == "failed"
    ]
    assert [
        replace(row, condition="failed") for row in described.rows if row.condition == "described"
    ] == expected


def test_a_condition_is_left_out_and_counted_where_a_case_lacks_what_it_needs() -> None:
    drawn = [failure_case("with"), failure_case("without", success=None)]
    result = measure(FakeScorer(), VERBATIM, drawn, conditions=(*DEFAULT_CONDITIONS, SUCCEEDED))
    assert [row.case_id for row in result.rows if row.condition == "succeeded"] == ["with"] * 2
    assert result.skips == ()
    assert result.left_out == (("succeeded", 1),)
    assert result.summary()["n"] == 2
    assert measure(FakeScorer(), VERBATIM, drawn).left_out == ()


def test_the_other_failure_is_left_out_and_counted_where_there_is_none() -> None:
    other = Step(Action("mail(to='Ann')"), "NameError: mail", failed=True)
    drawn = [replace(failure_case("with"), other_failed=other), failure_case("without")]
    conditions = (*DEFAULT_CONDITIONS, OTHER_FAILED)
    result = measure(FakeScorer(), VERBATIM, drawn, conditions=conditions)
    assert [row.case_id for row in result.rows if row.condition == "other-failed"] == ["with"] * 2
    assert (result.left_out, result.skips) == ((("other-failed", 1),), ())


def replaying(*known: str) -> Harness:
    """Replays the prompts of the conditions in `known`, by the last answer in them."""

    def replay(trajectory: Trajectory) -> Prompt:
        last = trajectory.steps[-1] if trajectory.steps else None
        answer = last.observation if isinstance(last, Step) else "before"
        if answer not in known:
            raise NotRecordedError(f"{answer!r} was not recorded")
        messages = ({"role": "user", "content": answer},)
        return Prompt(messages, adaptations=("told otherwise",))

    return replay


def test_what_a_replayed_record_lacks_is_left_out_and_counted() -> None:
    case = failure_case("a")
    result = measure(FakeScorer(), replaying("before", ERROR), [case])
    assert {row.condition for row in result.rows} == {"before", "failed"}
    assert (result.left_out, result.skips) == ((("neutral", 1),), ())
    assert result.adaptations == (("told otherwise", 1),)


def test_a_case_whose_own_record_was_not_kept_is_skipped() -> None:
    result = measure(FakeScorer(), replaying("before"), [failure_case("a")])
    assert result.skips == (Skip("a", "failed: 'ValueError: no' was not recorded"),)


def test_what_a_turn_says_before_its_action_is_given_in_every_condition_and_not_scored() -> None:
    case = failure_case("a", "ls")
    case = replace(case, failed=replace(case.failed, reply="Look around: ls now"))
    given: list[str] = []

    def noted(prompt: Prompt, action: Action) -> list[float]:
        given.append(prompt.lead)
        return hashed(prompt, action)

    result = measure(FakeScorer(noted), VERBATIM, [case])
    assert set(given) == {"Look around: "}
    assert len(given) == len(result.rows)
    assert {row.text for row in result.rows if row.candidate == "failed"} == {"ls"}


def test_the_padded_answer_is_as_long_as_the_error_in_the_scorers_own_tokens() -> None:
    error = Step(Action("send(to='Ann')"), "ValueError: there is no '@' in 'Ann'", failed=True)
    drawn = [replace(failure_case(), failed=error)]
    result = measure(
        FakeScorer(), VERBATIM, drawn, conditions=(*DEFAULT_CONDITIONS, NEUTRAL_PADDED)
    )
    lengths = {row.condition: row.context_tokens for row in result.rows}
    assert lengths["neutral-padded"] == lengths["failed"] > lengths["neutral"]
    assert result.values_of("padding_gap", "neutral-padded").tolist() == [0.0]


def test_the_padded_prompt_is_as_long_as_the_failed_one_whatever_the_harness_adds() -> None:
    def warning(trajectory: Trajectory) -> str:
        lines = [trajectory.goal]
        for step in trajectory.steps:
            assert isinstance(step, Step)
            lines += [step.action.text, f"!! {step.observation} !!" if step.failed else "ok:"]
            lines += [] if step.failed else [str(step.observation)]
        return "\n".join(lines)

    error = Step(Action("send(to='Ann')"), "ValueError: there is no '@' in 'Ann'", failed=True)
    drawn = [replace(failure_case(), failed=error)]
    conditions = (*DEFAULT_CONDITIONS, NEUTRAL_PADDED)
    result = measure(FakeScorer(), warning, drawn, conditions=conditions)
    assert result.values_of("padding_gap", "neutral-padded").tolist() == [0.0]


class OnlyScores:
    """A scorer that can't tell how long a text is."""

    def __init__(self) -> None:
        self.identity = IDENTITY
        self.score = FakeScorer().score


def test_a_scorer_that_counts_no_tokens_measures_all_but_the_padded_condition() -> None:
    with pytest.raises(UsageError) as caught:
        measure(OnlyScores(), VERBATIM, [failure_case()], conditions=ALL)
    assert str(caught.value) == (
        "the condition 'neutral-padded' needs the length of texts in tokens, which OnlyScores "
        "can't tell: give it the methods count_tokens(text) and count_prompt_tokens(prompt), "
        "or leave the condition out"
    )
    others = [condition for condition in ALL if condition is not NEUTRAL_PADDED]
    result = measure(OnlyScores(), VERBATIM, [failure_case()], conditions=others)
    assert result.summary()["n"] == 1


@pytest.mark.parametrize("needed", [BEFORE, FAILED])
def test_a_case_that_lacks_a_needed_condition_is_skipped(needed: Condition) -> None:
    def not_for_b(case: FailureCase) -> Trajectory | None:
        return None if case.case_id == "b" else needed.trajectory(case)

    others = [condition for condition in DEFAULT_CONDITIONS if condition is not needed]
    result = measure(
        FakeScorer(),
        VERBATIM,
        [failure_case("a"), failure_case("b")],
        conditions=(*others, Condition(needed.name, needed.paper_name, not_for_b)),
    )
    reason = f"{needed.name}: the case lacks what the condition needs"
    assert result.skips == (Skip("b", reason),)
    assert result.values.case_ids == ("a",)


def refusing(*goals: str, within: str = "failed") -> FakeScorer:
    def refusal(prompt: Prompt, action: Action) -> str | None:
        goal = next((goal for goal in goals if f"Do {goal}." in prompt_text(prompt)), None)
        return f"{goal} is too long" if goal and situation(prompt) == within else None

    return FakeScorer(refusal=refusal)


def test_a_case_that_the_model_refuses_is_named_and_left_out() -> None:
    drawn = [failure_case(case_id) for case_id in "abcd"]
    result = measure(refusing("b", "d"), VERBATIM, drawn)
    assert result.skips == (Skip("b", "failed: b is too long"), Skip("d", "failed: d is too long"))
    assert result.values.case_ids == ("a", "c")
    assert {row.case_id for row in result.rows} == {"a", "c"}
    assert result.cases == tuple(drawn)
    kept = measure(FakeScorer(), VERBATIM, [drawn[0], drawn[2]])
    np.testing.assert_equal(result.summary(), kept.summary())


def test_a_candidate_that_is_refused_takes_its_case_along() -> None:
    scorer = FakeScorer(refusal=lambda prompt, action: "no" if "long" in action.text else None)
    result = measure(
        scorer, VERBATIM, [failure_case("a", distractors=("long()",)), failure_case("b")]
    )
    assert result.skips == (Skip("a", "before: no"),)


def test_when_all_cases_are_skipped_nothing_is_known() -> None:
    result = measure(refusing("a", "b"), VERBATIM, [failure_case("a"), failure_case("b")])
    assert len(result.skips) == 2
    assert_nothing_known(result)


def test_of_no_cases_nothing_is_known() -> None:
    result = measure(FakeScorer(), VERBATIM, [])
    assert (result.rows, result.skips, result.environment) == ((), (), "no cases")
    assert_nothing_known(result)


def assert_nothing_known(result: Measurement) -> None:
    summary = result.summary()
    assert (summary.pop("n"), summary.pop("n_tasks")) == (0, 0)
    figures = [x for value in summary.values() for x in np.atleast_1d(np.array(value))]
    assert all(math.isnan(figure) for figure in figures)
    assert result.warnings == (
        "no case was measured: nothing can be concluded, and every assertion fails",
    )


def test_two_cases_with_one_id_are_an_error() -> None:
    drawn = [failure_case("x"), failure_case("y"), failure_case("y"), failure_case("y")]
    with pytest.raises(CaseError, match="the case id 'y' stands 3 times among the cases"):
        measure(FakeScorer(), VERBATIM, drawn)


@pytest.mark.parametrize(
    ("conditions", "missing"),
    [
        ((), "before and failed"),
        ((NEUTRAL, FAILED), "before"),
        ((BEFORE, NEUTRAL), "failed"),
    ],
)
def test_conditions_without_before_or_failed_are_an_error(
    conditions: tuple[Condition, ...], missing: str
) -> None:
    scorer = FakeScorer()
    with pytest.raises(UsageError, match=f"the conditions lack {missing}, which"):
        measure(scorer, VERBATIM, [failure_case()], conditions=conditions)
    assert scorer.batches == []


def test_two_conditions_with_one_name_are_an_error() -> None:
    other = Condition("failed", "fail", BEFORE.trajectory)
    with pytest.raises(UsageError, match="two of the conditions have one name"):
        measure(FakeScorer(), VERBATIM, [failure_case()], conditions=(BEFORE, FAILED, other))


def test_conditions_and_cases_may_be_given_as_they_are_made() -> None:
    made: Any = (condition for condition in DEFAULT_CONDITIONS)
    drawn: Any = (failure_case(case_id) for case_id in "ab")
    result = measure(FakeScorer(), VERBATIM, drawn, conditions=made)
    assert result.summary()["n"] == 2


def test_adaptations_are_counted_by_case() -> None:
    def adaptations(prompt: Prompt) -> tuple[str, ...]:
        everywhere = ("system prompt folded",)
        answered = situation(prompt) != "before" and "Do b." in prompt_text(prompt)
        return (*everywhere, "tool results folded") if answered else everywhere

    drawn = [failure_case(case_id) for case_id in "abc"]
    result = measure(FakeScorer(adaptations=adaptations), VERBATIM, drawn)
    assert result.adaptations == (("system prompt folded", 3), ("tool results folded", 1))
    assert measure(FakeScorer(), VERBATIM, drawn).adaptations == ()


def test_cases_are_scored_a_few_at_a_time_and_the_progress_is_told() -> None:
    recorder, scorer = Recorder(), FakeScorer()
    drawn = [failure_case(f"case{i}", environment="mine") for i in range(40)]
    result = measure(scorer, VERBATIM, drawn, progress=recorder)
    # Of 6 pairs each, 17 cases are the first to make 100.
    assert recorder.told == [("verbatim on mine", 40), 17, 34, 40, True]
    assert scorer.batches == [17 * 6, 17 * 6, 6 * 6]
    assert [row.case_id for row in result.rows[::6]] == [case.case_id for case in drawn]
    one_by_one = [row for case in drawn for row in measure(FakeScorer(), VERBATIM, [case]).rows]
    assert list(result.rows) == one_by_one


def test_the_more_pairs_a_case_has_the_fewer_are_scored_at_a_time() -> None:
    scorer = FakeScorer()
    many = tuple(f"wrong{i}()" for i in range(31))
    drawn = [failure_case("few"), failure_case("many", distractors=many), failure_case("last")]
    measure(scorer, VERBATIM, drawn)
    assert scorer.batches == [6 + 3 * 33, 6]
    scorer.batches.clear()
    # 5 conditions of 10 pairs: what is left out for want of an answer counts as if it were there.
    conditions = (*DEFAULT_CONDITIONS, SUCCEEDED, DESCRIBED_CONDITION)
    drawn = [failure_case(f"case{i}", distractors=many[:8], success=None) for i in range(3)]
    measure(scorer, VERBATIM, drawn, conditions=conditions)
    assert scorer.batches == [2 * 40, 40]


def test_a_job_that_fails_is_told_to_be_broken_off() -> None:
    def broken(prompt: Prompt, action: Action) -> list[float]:
        raise ScoringError("no")

    recorder = Recorder()
    with pytest.raises(ScoringError):
        measure(FakeScorer(broken), VERBATIM, [failure_case()], progress=recorder)
    assert recorder.told == [("verbatim on own cases", 1), False]


def test_a_measurement_names_its_harness_its_environments_and_its_model() -> None:
    drawn = [
        failure_case("a", environment="tool_calls"),
        failure_case("b"),
        failure_case("c", environment="tool_calls"),
    ]
    result = measure(FakeScorer(), render_as_text, drawn)
    assert result.harness == "render_as_text"
    assert result.environment == "own cases+tool_calls"
    assert result.model == IDENTITY
    assert result.by_construction is None


@pytest.mark.parametrize("impossible", [math.nan, -math.inf, math.inf, 0.01])
def test_an_impossible_number_from_any_scorer_is_refused(impossible: float) -> None:
    def answer(prompt: Prompt, action: Action) -> list[float]:
        return [-1.0] * (len(spans_of_tokens(action.text)) - 1) + [impossible]

    with pytest.raises(ScoringError, match=r"fake gave the impossible log-probability"):
        measure(FakeScorer(answer), VERBATIM, [failure_case()])


@pytest.mark.parametrize("numbers", [[], [-1.0], [-1.0] * 9])
def test_numbers_that_do_not_match_the_tokens_are_refused(numbers: list[float]) -> None:
    with pytest.raises(ScoringError, match=f"gave {len(numbers)} log-probabilities"):
        measure(FakeScorer(lambda prompt, action: numbers), VERBATIM, [failure_case()])


def test_an_action_that_is_written_differently_in_two_conditions_is_skipped() -> None:
    # Templates may do so, and so does a harness that gives messages once and text another time.
    def write(prompt: Prompt, action: Action) -> str:
        odd = "Do b." in prompt_text(prompt) and situation(prompt) == "failed"
        return f"<think></think>{written(action)}" if odd else written(action)

    drawn = [failure_case(case_id) for case_id in "abc"]
    result = measure(FakeScorer(write=write), VERBATIM, drawn)
    reason = (
        "the candidate 'failed' is not written alike in 'before' and 'failed', so its "
        "log-probabilities can't be compared"
    )
    assert result.skips == (Skip("b", reason),)
    assert result.values.case_ids == ("a", "c")
    assert math.isfinite(result.estimates["corrective_gain"].value)


def test_structured_calls_are_measured_as_the_text_that_they_become() -> None:
    action = Action("Right.", (ToolCall("send", '{"to": "Ann"}'),))
    result = measure(FakeScorer(), VERBATIM, [failure_case("a", action)])
    row = result.by_key["a", "before", "failed"]
    text = '<tool_call>\n{"name": "send", "arguments": {"to": "Ann"}}\n</tool_call>'
    assert row.text == f"Right.{text}"
    assert math.isfinite(result.values.argument_gain_per_token[0])


def test_a_measurement_survives_being_sent_to_another_process() -> None:
    result = measure(FakeScorer(), VERBATIM, [failure_case(f"case{i}") for i in range(30)])
    fresh = len(pickle.dumps(result))
    summary, warnings = result.summary(), result.warnings
    sent = pickle.dumps(result)
    received = pickle.loads(sent)
    assert received == result
    # As text, since NaN does not equal itself.
    assert repr((received.summary(), received.warnings)) == repr((summary, warnings))
    # The draws of the bootstrap, 80 kB a task, are not sent along.
    assert len(sent) < 2 * fresh


# Reasons to distrust a gain.

WRAPPED = '<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>'
EVEN = {"before": -2.0, "failed": -1.0, "neutral": -1.0}


UNLIKELY = (
    "in 12 of 12 cases a wrapper token is under -10 nats (lowest -12.5, 'tool_call'): the model "
    "would not write the action in this format, so trust the gain on its arguments"
)
ONE_TOKEN = (
    "in 12 of 12 cases one token carries over half of the movement: compare the gain on the "
    "arguments, and let greedy decoding confirm"
)


def wrapped(**levels: dict[int, float]) -> Measurement:
    """Twelve cases of the wrapped call, even but for the tokens given by condition and place."""
    tokens = len(spans_of_tokens(WRAPPED))
    logprobs = {
        condition: [levels.get(condition, {}).get(i, level) for i in range(tokens)]
        for condition, level in EVEN.items()
    }
    return measured_by(logprobs, WRAPPED, cases=12)


def token(text: str) -> int:
    spans = spans_of_tokens(WRAPPED)
    return next(i for i, span in enumerate(spans) if WRAPPED[slice(*span)] == text)


def test_an_ordinary_measurement_has_no_warning() -> None:
    assert wrapped().warnings == ()


def test_an_unlikely_wrapper_token_is_warned_of() -> None:
    place = token("tool_call")
    result = wrapped(before={place: -12.5}, failed={place: -11.5})
    assert result.warnings == (UNLIKELY,)


@pytest.mark.parametrize(
    "levels",
    [
        pytest.param({"before": {token("tool_call"): -10.0}}, id="at the limit"),
        pytest.param({"before": {token("x"): -12.5}, "failed": {token("x"): -11.5}}, id="argument"),
        pytest.param({"before": {token("f"): -12.5}, "failed": {token("f"): -11.5}}, id="name"),
        pytest.param({"neutral": {token("tool_call"): -12.5}}, id="another condition"),
    ],
)
def test_only_wrapper_tokens_of_the_format_are_called_unlikely(
    levels: dict[str, dict[int, float]],
) -> None:
    assert not any("wrapper" in warning for warning in wrapped(**levels).warnings)


def test_text_that_is_no_call_has_no_wrapper_to_warn_of() -> None:
    program = "def f(x):\n    return x"
    levels = [-20.0] * len(spans_of_tokens(program))
    result = measured_by({"before": levels, "failed": levels}, program, cases=12)
    assert result.warnings == ()


def test_one_token_that_carries_over_half_of_the_movement_is_warned_of() -> None:
    place = token("x")
    others = len(spans_of_tokens(WRAPPED)) - 1
    # Every other token moves by 1, this one by half a nat more than all of them.
    result = wrapped(before={place: -1.5 - others}, failed={place: -1.0})
    assert result.warnings == (ONE_TOKEN,)


def test_half_of_the_movement_is_not_over_half() -> None:
    before, failed = [-2.0, -2.0, -2.0, -3.0], [-1.5, -1.75, -1.75]
    for last, expected in ((-2.0, False), (-1.9, True)):
        result = measured_by({"before": before, "failed": [*failed, last]}, "stop(1)", cases=12)
        assert any("one token" in warning for warning in result.warnings) == expected


def test_action_of_three_tokens_is_too_short_to_warn_of_one() -> None:
    before, failed = [-2.0, -2.0, -9.0], [-1.5, -1.5, -1.0]
    result = measured_by({"before": before, "failed": failed}, "finish()", cases=12)
    assert not any("one token" in warning for warning in result.warnings)


def test_movements_in_both_directions_do_not_cancel() -> None:
    # The sum moves by 2, of which one token carries half, but every one of them moves by 1.
    before, failed = [-3.0, -3.0, -3.0, -3.0], [-2.0, -2.0, -2.0, -4.0]
    result = measured_by({"before": before, "failed": failed}, "stop(1)", cases=12)
    assert not any("one token" in warning for warning in result.warnings)


def test_an_action_of_one_token_carries_all_of_it_and_is_not_warned_of() -> None:
    result = measured_by({"before": [-3.0], "failed": [-1.0]}, "stop", cases=12)
    assert result.warnings == ()


def test_no_movement_is_not_carried_by_one_token() -> None:
    result = measured_by({}, cases=12)
    assert result.warnings == ()


def test_a_gain_that_the_arguments_contradict_is_warned_of() -> None:
    before, failed = [-1.0, -1.0, *[-3.0] * 5, -1.0], [-5.0, -5.0, *[-2.0] * 5, -5.0]
    result = measured_by({"before": before, "failed": failed}, cases=12)
    # Outside the arguments three tokens lose 4 each, inside five gain 1 each.
    said = (
        "the gain is +0.875 nats per token on the whole action but -1.000 on its arguments: the "
        "wrapping decides the sign, so trust the arguments"
    )
    assert result.warnings == (said,)


@pytest.mark.parametrize("failed", [-1.0, -3.0, -2.0])
def test_a_gain_that_the_arguments_confirm_is_not_contradicted(failed: float) -> None:
    result = measured_by({"before": [-2.0] * 8, "failed": [failed] * 8}, cases=12)
    assert result.warnings == ()


def test_a_gain_that_greedy_decoding_contradicts_is_warned_of() -> None:
    # Less likely on the whole, yet now the first choice at every token.
    before, failed = [*[-0.125] * 7, -0.75], [-0.25] * 8
    result = measured_by({"before": before, "failed": failed}, cases=12)
    said = (
        "the gain is +0.047 nats per token, yet greedy decoding repeats the failed action on 100% "
        "of cases after the record and 0% before"
    )
    assert result.warnings == (said,)


@pytest.mark.parametrize(
    ("before", "failed"),
    [
        pytest.param([-0.8] * 8, [-0.1] * 8, id="the gain is negative too"),
        pytest.param([-0.1] * 8, [-0.2] * 8, id="it was repeated before as well"),
        pytest.param([-0.1] * 8, [-0.8] * 8, id="it is repeated no more"),
    ],
)
def test_greedy_decoding_that_agrees_is_not_warned_of(
    before: list[float], failed: list[float]
) -> None:
    assert measured_by({"before": before, "failed": failed}, cases=12).warnings == ()


@pytest.mark.parametrize(("tasks", "said"), [(1, "only 1 task:"), (9, "only 9 tasks:")])
def test_few_tasks_are_warned_of(tasks: int, said: str) -> None:
    gains = {f"case{i}": -0.5 for i in range(20)}
    result = measured(gains, tasks={case_id: str(int(case_id[4:]) % tasks) for case_id in gains})
    assert [warning.split(" intervals")[0] for warning in result.warnings] == [said]


def test_ten_tasks_are_enough() -> None:
    assert measured({f"case{i}": -0.5 for i in range(10)}).warnings == ()


# Comparisons of two measurements.


def test_the_share_of_an_inversion_that_is_removed() -> None:
    verbatim = measured({"a": -1.0, "b": -0.5})
    for gains, removed in (
        ({"a": -0.25, "b": -0.125}, 0.75),
        ({"a": -1.0, "b": -0.5}, 0.0),
        ({"a": 0.0, "b": 0.0}, 1.0),
        ({"a": 0.5, "b": 0.25}, 1.5),
        ({"a": -2.0, "b": -1.0}, -1.0),
    ):
        estimate = inversion_removed(measured(gains, harness="remedy"), verbatim)
        # In proportion on every case, so every draw says the same.
        assert [estimate.value, *estimate.interval] == pytest.approx([removed] * 3)
        assert estimate.n == 2


def test_the_interval_of_what_is_removed_is_in_order() -> None:
    verbatim = measured({"a": -1.0, "b": -1.0, "c": -2.0})
    estimate = inversion_removed(measured({"a": 0.0, "b": -0.5, "c": -2.0}), verbatim)
    assert estimate.value == pytest.approx(1 - 2.5 / 4)
    # Two of the three tasks' draws are all the same case: nothing and everything is removed.
    assert estimate.interval == pytest.approx((0.0, 1.0))


def test_the_difference_of_two_gains() -> None:
    estimate = gain_difference(measured({"a": -0.25, "b": 0.5}), measured({"a": -1.0, "b": -0.5}))
    assert (estimate.value, *estimate.interval, estimate.n) == (0.875, 0.75, 1.0, 2)


def test_comparisons_pair_by_case_whatever_the_order_and_leave_out_the_others() -> None:
    verbatim = measured({"a": -1.0, "b": -0.5, "only here": -4.0})
    remedy = measured({"only there": 3.0, "b": -0.5, "a": 0.0})
    assert gain_difference(remedy, verbatim).value == 0.5
    removed = inversion_removed(remedy, verbatim)
    assert removed.value == pytest.approx(1 - 0.5 / 1.5)
    assert removed.n == 2


def test_a_skipped_case_is_no_common_case() -> None:
    drawn = [failure_case("a"), failure_case("b")]
    one, other = measure(refusing("b"), VERBATIM, drawn), measure(FakeScorer(), VERBATIM, drawn)
    assert gain_difference(one, other).n == 1
    assert gain_difference(other, one).n == 1


def test_a_comparison_resamples_tasks() -> None:
    tasks = {"a": "t", "b": "t"}
    one = measured({"a": 0.0, "b": 1.0}, tasks=tasks)
    other = measured({"a": -0.5, "b": -0.5}, tasks=tasks)
    assert gain_difference(one, other).interval == (1.0, 1.0)


@pytest.mark.parametrize("compare", [gain_difference, inversion_removed])
def test_measurements_that_can_not_be_compared(compare: Any) -> None:
    verbatim = measured({"a": -1.0})
    for other, said in (
        (measured({"a": -1.0}, model=replace(IDENTITY, name="big")), "with big and verbatim"),
        (measured({"a": -1.0}, model=replace(IDENTITY, dtype="bfloat16")), "within one model"),
        (measured({"b": -1.0}), "share no measured case"),
        (measured({}), "share no measured case"),
    ):
        with pytest.raises(UsageError, match=said):
            compare(other, verbatim)


@pytest.mark.parametrize("compare", [gain_difference, inversion_removed])
def test_different_cases_under_one_id_can_not_be_compared(compare: Any) -> None:
    one = measure(FakeScorer(), VERBATIM, [failure_case("a", "send(to='Ann')")])
    other = measure(FakeScorer(), VERBATIM, [failure_case("a", "send(to='Bob')")])
    with pytest.raises(UsageError, match="measured on different cases with the id 'a'"):
        compare(one, other)


@pytest.mark.parametrize("gains", [{"a": 0.25}, {"a": 0.0}, {"a": -1.0, "b": 1.0}])
def test_without_an_inversion_nothing_can_be_removed(gains: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=r"has a mean gain of \+0\.\d{3} .*no inversion"):
        inversion_removed(measured(gains), measured(gains))


# The published rows, read as a measurement of ours.


@pytest.mark.parametrize("name", FILES)
def test_published_rows_give_the_published_measures_on_every_item(name: str, oracle: Path) -> None:
    published = PublishedFile(oracle, name)
    result = published.measurement()
    expected: dict[str, list[float]] = {}
    for case in result.cases:
        rows = published.rows[case.case_id]
        f = {row["condition"]: row for row in rows if row["candidate"] == "failed"}
        pre, fail, neut = (f[condition]["logprob"] for condition in ("pre", "fail", "neut"))
        shares = {}
        for condition in ("pre", "fail"):
            weights = [math.exp(r["logprob"]) for r in rows if r["condition"] == condition]
            shares[condition] = math.exp(f[condition]["logprob"]) / math.fsum(weights)
        by_name = {
            "corrective_gain": pre - fail,
            "corrective_gain_per_token": (pre - fail) / f["pre"]["n_tokens"],
            "surface": neut - pre,
            "semantic": fail - neut,
            "repeat_probability_before": shares["pre"],
            "repeat_probability_after": shares["fail"],
            "greedy_repeat_before": float(f["pre"]["is_greedy"]),
            "greedy_repeat_after": float(f["fail"]["is_greedy"]),
            "record_tokens": f["fail"]["ctx_tokens"] - f["pre"]["ctx_tokens"],
        }
        for measure_name, value in by_name.items():
            expected.setdefault(measure_name, []).append(value)
    assert len(result.cases) == {"toolshed": 13, "coderepair": 6}[name]
    for measure_name, values in expected.items():
        figures = getattr(result.values, measure_name).tolist()
        assert figures == pytest.approx(values, rel=0, abs=1e-9), measure_name
    summary = result.summary()
    assert summary["negative_share"] == np.mean([gain < 0 for gain in expected["corrective_gain"]])
    assert summary["surface_share"] == pytest.approx(
        sum(expected["surface"]) / -sum(expected["corrective_gain"])
    )
