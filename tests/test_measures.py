from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_scorer import failure_case, spans_of_tokens
from published_rows import FILES, PublishedFile
from pytest_failgain.conditions import CONDITIONS
from pytest_failgain.measures import AFTER, ALL, CONTROLS, MEASURES, VARIANTS, Measure
from pytest_failgain.rows import CaseRows, Row
from pytest_failgain.trajectory import FailureCase
from strategies import cases, quick

# The published experiment's measures.

# The ways to write the failure that it compared with the usual one.
MANIPULATIONS = (
    "abstract",
    "fail_echo",
    "fail_terse",
    "fail_verbose",
    "fail_instr",
    "fail_k2",
    "fail_k3",
    "fail_early",
    "fail_other",
    "abstract_min",
)
# Two of its names are second names of another: G_pad is G with a length-matched control, which G
# does not use, and polarity is sem_succ.
ALIASES = {"G_pad": "G", "polarity": "sem_succ"}


def paper_measures(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Every measure of one item by the paper's name and formula, from its released rows."""
    scored = {(row["condition"], row["candidate"]): row for row in rows}

    def logprob(condition: str, candidate: str) -> float:
        row = scored.get((condition, candidate))
        return row["logprob"] if row else math.nan

    def f(condition: str) -> float:
        return logprob(condition, "failed")

    def g(condition: str) -> float:
        return logprob(condition, "gold")

    def p_repeat(condition: str) -> float:
        logprobs = [row["logprob"] for row in rows if row["condition"] == condition]
        if not logprobs:
            return math.nan
        # 1 / sum of exp(other - failed), which no size of the log-probabilities upsets.
        return 1 / math.fsum(math.exp(other - f(condition)) for other in logprobs)

    def greedy(condition: str) -> float:
        row = scored.get((condition, "failed"))
        return float(row["is_greedy"]) if row else math.nan

    n_tokens = scored["fail", "failed"]["n_tokens"]
    values = {
        "G": f("pre") - f("fail"),
        "G_pad": f("pre") - f("fail"),
        "copy": f("neut") - f("pre"),
        "sem": f("fail") - f("neut"),
        "copy_pad": f("neut_pad") - f("pre"),
        "sem_pad": f("fail") - f("neut_pad"),
        "copy_succ": f("succ") - f("pre"),
        "sem_succ": f("fail") - f("succ"),
        "polarity": f("fail") - f("succ"),
        "repair": g("fail") - g("pre"),
        "repair_abstract": g("abstract") - g("pre"),
        "margin_shift": (g("fail") - f("fail")) - (g("pre") - f("pre")),
        "G_per_token": (f("pre") - f("fail")) / n_tokens,
        "copy_per_token": (f("neut") - f("pre")) / n_tokens,
        "sem_per_token": (f("fail") - f("neut")) / n_tokens,
        "G_negative": 1.0 if f("pre") < f("fail") else 0.0,
        "p_repeat_shift": p_repeat("fail") - p_repeat("pre"),
    }
    for name in MANIPULATIONS:
        values[f"G_{name}"] = f("pre") - f(name)
        values[f"delta_{name}"] = f(name) - f("fail")
    for name in ("pre", "fail", "succ", "neut", "abstract"):
        values[f"p_repeat_{name}"] = p_repeat(name)
    for name in ("pre", "fail", "abstract"):
        values[f"margin_{name}"] = g(name) - f(name)
        values[f"greedy_repeat_{name}"] = greedy(name)
    return values


def by_paper_name() -> dict[str, tuple[Measure, str]]:
    """Each measure with its condition, by the paper's name of the two."""
    named = [
        (name, measure, condition)
        for measure in MEASURES.values()
        for condition, name in measure.paper.items()
    ]
    assert [name for name, times in Counter(name for name, *_ in named).items() if times > 1] == []
    return {name: (measure, condition) for name, measure, condition in named}


@pytest.mark.parametrize("name", FILES)
def test_every_published_measure_is_as_by_its_formula_on_every_item(
    name: str, oracle: Path
) -> None:
    published, ours = PublishedFile(oracle, name), by_paper_name()
    known: Counter[str] = Counter()
    theirs: dict[str, float] = {}
    for case in published.measurement().case_rows:
        theirs = paper_measures(published.rows[case.case.case_id])
        assert {ALIASES.get(paper_name, paper_name) for paper_name in theirs} == set(ours)
        for paper_name, value in theirs.items():
            measure, condition = ours[ALIASES.get(paper_name, paper_name)]
            figure = measure.of(case, condition)
            assert figure == pytest.approx(value, rel=0, abs=1e-9, nan_ok=True), paper_name
            known[paper_name] += not math.isnan(value)
    # 9 of the 13 items of tool calls were scored under every condition, those of program repair
    # under five.
    assert (known["G"], known["G_fail_k3"]) == {"toolshed": (13, 9), "coderepair": (6, 0)}[name]
    if name == "toolshed":
        assert all(known[paper_name] for paper_name in theirs)


# What holds for any rows.

# Eighths of a nat, which no sum rounds.
logprobs = st.integers(-40_000, 0).map(lambda eighths: eighths / 8)
candidate_names = st.sampled_from(["failed", "correct"])


@st.composite
def measured_cases(draw: st.DrawFn, everywhere: bool = False) -> CaseRows:
    """The rows of a case under `before`, `failed` and some (or all) of the other conditions."""
    case = draw(cases())
    others = st.sets(st.sampled_from([name for name in AFTER if name != "failed"]))
    conditions = ALL if everywhere else ("before", "failed", *draw(others))
    return CaseRows(
        case,
        {
            (condition, candidate): row(case, condition, candidate, draw(logprobs))
            for condition in conditions
            for candidate in case.candidates()
        },
    )


def row(case: FailureCase, condition: str, candidate: str, logprob: float) -> Row:
    text = str(case.candidates()[candidate])
    spans = spans_of_tokens(text)
    return Row(
        case_id=case.case_id,
        condition=condition,
        candidate=candidate,
        logprob=logprob,
        n_tokens=len(spans),
        context_tokens=10 + len(condition),
        argmax_matches=len(spans) - 1,
        text=text,
        token_logprobs=(logprob / len(spans),) * len(spans),
        token_spans=spans,
    )


def value(name: str, case: CaseRows, condition: str) -> float:
    return MEASURES[name].of(case, condition)


def near(value: float) -> Any:
    return pytest.approx(value, rel=1e-9, abs=1e-9, nan_ok=True)


@quick
@given(case=measured_cases())
def test_the_loss_is_surface_plus_semantic_whatever_the_control(case: CaseRows) -> None:
    for unit in ("", "_per_token"):
        loss = -value(f"gain{unit}", case, "failed")
        for control in CONTROLS:
            parts = [value(f"{part}{unit}", case, control) for part in ("surface", "semantic")]
            assert sum(parts) == near(math.nan if case.row(control) is None else loss)


@quick
@given(case=measured_cases())
def test_a_gain_and_the_change_from_failed_differ_by_the_gain_of_failed(case: CaseRows) -> None:
    for condition in VARIANTS:
        change = value("change_from_failed", case, condition)
        assert value("gain", case, condition) + change == near(
            math.nan if case.row(condition) is None else value("gain", case, "failed")
        )


@quick
@given(case=measured_cases())
def test_per_token_is_divided_by_the_failed_actions_tokens(case: CaseRows) -> None:
    tokens = len(spans_of_tokens(str(case.case.failed.action)))
    for name in ("gain", "change_from_failed", "surface", "semantic"):
        for condition in MEASURES[name].conditions:
            each = value(f"{name}_per_token", case, condition)
            assert each * tokens == near(value(name, case, condition))


@quick
@given(case=measured_cases())
def test_the_margin_shifts_by_the_repair_and_the_gain(case: CaseRows) -> None:
    for condition in AFTER:
        parts = value("repair", case, condition) + value("gain", case, condition)
        assert value("margin_shift", case, condition) == near(parts)


@quick
@given(case=measured_cases())
def test_a_gain_is_negative_where_the_condition_makes_the_action_likelier(case: CaseRows) -> None:
    before = case.row("before")
    assert before is not None
    for condition in AFTER:
        after = case.row(condition)
        expected = math.nan if after is None else float(after.logprob > before.logprob)
        assert value("negative", case, condition) == near(expected)


@quick
@given(case=measured_cases(), data=st.data())
def test_repeat_probabilities_are_shares_of_one(case: CaseRows, data: st.DataObject) -> None:
    condition = data.draw(st.sampled_from(sorted({name for name, _ in case.rows})))
    candidates = [*case.case.candidates()]
    shares = [
        value("repeat_probability", with_failed(case, candidate), condition)
        for candidate in candidates
    ]
    if len(candidates) == 1:
        assert all(map(math.isnan, shares))
    else:
        assert all(0 <= share <= 1 for share in shares)
        assert math.fsum(shares) == near(1)


def with_failed(case: CaseRows, candidate: str) -> CaseRows:
    """The same rows with the failed action and `candidate` in each other's place."""
    places = {"failed": candidate, candidate: "failed"}
    return replace(
        case, rows={(of, places.get(name, name)): row for (of, name), row in case.rows.items()}
    )


@quick
@given(case=measured_cases(everywhere=True))
def test_the_published_share_has_distractors_where_the_experiment_scored_them(
    case: CaseRows,
) -> None:
    without_distractors = replace(case, case=replace(case.case, distractors=()))
    for condition in ALL:
        wide = condition in ("before", "failed")
        published = value("published_repeat_probability", case, condition)
        compared = case if wide else without_distractors
        assert published == near(value("repeat_probability", compared, condition))


@quick
@given(case=measured_cases(), data=st.data())
def test_a_share_is_unknown_where_a_candidate_was_not_scored(
    case: CaseRows, data: st.DataObject
) -> None:
    condition, candidate = data.draw(st.sampled_from(sorted(case.rows)))
    rows = {key: row for key, row in case.rows.items() if key != (condition, candidate)}
    assert math.isnan(value("repeat_probability", CaseRows(case.case, rows), condition))


# The rows that a value needs, by measure; "c" stands for its condition.
FAILED_ROWS = ["before failed", "c failed"]
NEEDED = {
    "gain": FAILED_ROWS,
    "gain_per_token": FAILED_ROWS,
    "argument_gain_per_token": FAILED_ROWS,
    "negative": FAILED_ROWS,
    "change_from_failed": ["failed failed", "c failed"],
    "change_from_failed_per_token": ["failed failed", "c failed"],
    "surface": FAILED_ROWS,
    "surface_per_token": FAILED_ROWS,
    "semantic": ["failed failed", "c failed"],
    "semantic_per_token": ["failed failed", "c failed"],
    "repair": ["before correct", "c correct"],
    "margin": ["c failed", "c correct"],
    "margin_shift": [*FAILED_ROWS, "before correct", "c correct"],
    "repeat_probability": ["c failed", "c correct", "c distractor0"],
    "published_repeat_probability": ["c failed", "c correct"],
    "repeat_probability_shift": [
        *FAILED_ROWS,
        "before correct",
        "c correct",
        "before distractor0",
        "c distractor0",
    ],
    "greedy_repeat": ["c failed"],
    "greedy_repeat_shift": FAILED_ROWS,
    "record_tokens": FAILED_ROWS,
    "padding_gap": ["failed failed", "c failed"],
}


def full_case() -> CaseRows:
    case = failure_case(distractors=("other(to='Ann')",))
    names = [(condition, candidate) for condition in ALL for candidate in case.candidates()]
    return CaseRows(case, {name: row(case, *name, -1.0 - i) for i, name in enumerate(names)})


@pytest.mark.parametrize(
    ("name", "condition"),
    [(name, condition) for name, measure in MEASURES.items() for condition in measure.conditions],
)
def test_a_value_is_known_exactly_where_the_rows_that_it_needs_are(
    name: str, condition: str
) -> None:
    case = full_case()
    needed = {
        (condition if of == "c" else of, candidate)
        for of, candidate in (key.split() for key in NEEDED[name])
    }
    if name == "published_repeat_probability" and condition in ("before", "failed"):
        needed.add((condition, "distractor0"))
    for key in case.rows:
        rows = {other: row for other, row in case.rows.items() if other != key}
        figure = value(name, CaseRows(case.case, rows), condition)
        assert math.isnan(figure) == (key in needed), key


UNMOVED_BY_A_LIKELIER_CANDIDATE = (
    *("gain", "gain_per_token", "argument_gain_per_token", "negative"),
    *("change_from_failed", "change_from_failed_per_token"),
    *("surface", "surface_per_token", "semantic", "semantic_per_token"),
    *("repair", "margin_shift", "greedy_repeat", "greedy_repeat_shift"),
    *("record_tokens", "padding_gap"),
)
UNMOVED_BY_A_LIKELIER_CONDITION = (
    *("margin", "margin_shift", "repeat_probability", "published_repeat_probability"),
    *("repeat_probability_shift", "greedy_repeat", "greedy_repeat_shift"),
    *("record_tokens", "padding_gap"),
)


def moved(case: CaseRows, by: Callable[[Row], float]) -> CaseRows:
    """The same rows, each log-probability with so many nats more."""
    return replace(
        case,
        rows={
            key: replace(
                row,
                logprob=row.logprob + by(row),
                token_logprobs=tuple(
                    logprob + by(row) / row.n_tokens for logprob in row.token_logprobs
                ),
            )
            for key, row in case.rows.items()
        },
    )


def assert_same(one: CaseRows, other: CaseRows, names: tuple[str, ...]) -> None:
    for name in names:
        for condition in MEASURES[name].conditions:
            expected = pytest.approx(value(name, one, condition), rel=1e-6, abs=1e-6, nan_ok=True)
            assert value(name, other, condition) == expected, (name, condition)


@quick
@given(case=measured_cases(), more=st.dictionaries(candidate_names, logprobs))
def test_differences_between_conditions_do_not_see_how_likely_a_candidate_is_in_all(
    case: CaseRows, more: dict[str, float]
) -> None:
    other = moved(case, lambda row: more.get(row.candidate, 0.0))
    assert_same(case, other, UNMOVED_BY_A_LIKELIER_CANDIDATE)


@quick
@given(case=measured_cases(), more=st.dictionaries(st.sampled_from(ALL), logprobs))
def test_differences_between_candidates_do_not_see_how_likely_all_are_under_a_condition(
    case: CaseRows, more: dict[str, float]
) -> None:
    other = moved(case, lambda row: more.get(row.condition, 0.0))
    assert_same(case, other, UNMOVED_BY_A_LIKELIER_CONDITION)


@quick
@given(case=measured_cases(), more=logprobs)
def test_nothing_but_shares_between_candidates_sees_the_distractors(
    case: CaseRows, more: float
) -> None:
    other = moved(case, lambda row: more if row.candidate.startswith("distractor") else 0.0)
    shares = {name for name in MEASURES if "repeat_probability" in name}
    assert_same(case, other, tuple(set(MEASURES) - shares))


def test_lengths_are_what_the_condition_adds_to_the_prompt() -> None:
    # `row` gives a prompt 10 tokens, and one more for each letter of the condition's name.
    assert value("record_tokens", full_case(), "neutral-padded") == 14 - 6
    assert value("record_tokens", full_case(), "terse") == 5 - 6
    assert value("padding_gap", full_case(), "neutral-padded") == 14 - 6


def test_greedy_decoding_repeats_where_the_failed_action_is_all_first_choices() -> None:
    case = full_case()
    failed = case.row("failed")
    assert failed is not None
    first = replace(failed, argmax_matches=failed.n_tokens)
    case = replace(case, rows={**case.rows, ("failed", "failed"): first})
    assert [value("greedy_repeat", case, name) for name in ("before", "failed")] == [0.0, 1.0]


# The table of measures.


def test_every_measure_has_its_key_for_a_name_and_a_known_unit() -> None:
    for name, measure in MEASURES.items():
        assert measure.name == name
        assert set(measure.paper) <= set(measure.conditions) <= set(ALL)
        assert measure.unit in ("nats", "nats per token", "probability", "share of cases", "tokens")


def test_every_condition_is_before_failed_a_control_or_a_variant() -> None:
    assert sorted(["before", "failed", *CONTROLS, *VARIANTS]) == sorted(CONDITIONS)
    assert {CONDITIONS[name].paper_name for name in VARIANTS} == set(MANIPULATIONS)


def test_only_values_to_which_0_means_no_effect_are_signed() -> None:
    unsigned = {name for name, measure in MEASURES.items() if not measure.signed}
    assert unsigned == {
        "negative",
        "repeat_probability",
        "published_repeat_probability",
        "greedy_repeat",
        "record_tokens",
        "padding_gap",
    }
