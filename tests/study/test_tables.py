"""The rows of a study's tables, from measurements."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from study_models import case_set, study_case

from fake_scorer import FakeScorer, failure_case
from pytest_failgain.conditions import CONDITIONS, DEFAULT_CONDITIONS
from pytest_failgain.harnesses import VERBATIM
from pytest_failgain.measurement import Measurement, measure
from pytest_failgain.measures import MEASURES
from pytest_failgain.statistics import ClusterBootstrap
from pytest_failgain.study.tables import (
    BREAKDOWNS,
    FEWEST_CASES,
    EstimateRow,
    estimate_rows,
    group_rows,
    holm_adjusted,
    natural_order,
)


@pytest.fixture(scope="module")
def measurement() -> Measurement:
    return measure(
        FakeScorer(), VERBATIM, case_set(count=8).cases, conditions=tuple(CONDITIONS.values())
    )


@pytest.fixture(scope="module")
def rows(measurement: Measurement) -> list[EstimateRow]:
    return estimate_rows("tiny", measurement, "mails")


def test_there_is_a_row_for_every_measure_under_every_condition_it_applies_to(
    rows: list[EstimateRow],
) -> None:
    expected = [
        (measure.name, condition)
        for measure in MEASURES.values()
        for condition in measure.conditions
    ]
    assert [(row.measure, row.condition) for row in rows] == expected
    assert {(row.model, row.environment) for row in rows} == {("tiny", "mails")}
    assert {(row.n, row.n_tasks) for row in rows} == {(8, 4)}


def test_a_row_is_the_bootstrap_of_the_cases_values(
    rows: list[EstimateRow], measurement: Measurement
) -> None:
    for row in rows:
        measure = MEASURES[row.measure]
        values = measurement.values_of(measure.name, row.condition)
        effect = ClusterBootstrap.over(measurement.task_ids).effect(values)
        assert (row.value, row.low, row.high) == (effect.value, effect.low, effect.high)
        assert row.unit == measure.unit
        assert row.paper == measure.paper.get(row.condition, "")
        for given, expected in ((row.p, effect.p), (row.d_z, effect.d_z)):
            known = measure.signed and not math.isnan(expected)
            assert given == expected if known else math.isnan(given)
    assert not all(math.isnan(row.d_z) for row in rows)


def test_conditions_that_were_not_scored_have_no_row() -> None:
    measurement = measure(FakeScorer(), VERBATIM, case_set().cases, conditions=DEFAULT_CONDITIONS)
    found = {row.condition for row in estimate_rows("tiny", measurement, "mails")}
    assert found == {"before", "failed", "neutral"}


def test_a_mean_of_two_cases_is_left_out() -> None:
    bare = [failure_case(f"bare{number}") for number in range(4)]
    cases = (study_case("whole1"), study_case("whole2"), *bare)
    measurement = measure(FakeScorer(), VERBATIM, cases, conditions=tuple(CONDITIONS.values()))
    rows = {
        (row.measure, row.condition): row for row in estimate_rows("tiny", measurement, "mails")
    }
    assert ("gain", "terse") not in rows
    assert rows["gain", "failed"].n == 6
    more = measure(
        FakeScorer(),
        VERBATIM,
        (*cases, study_case("whole3")),
        conditions=tuple(CONDITIONS.values()),
    )
    (row,) = (
        row
        for row in estimate_rows("tiny", more, "mails")
        if (row.measure, row.condition) == ("gain", "terse")
    )
    assert (row.n, row.n_tasks) == (FEWEST_CASES, 3)


def test_only_gains_of_the_usual_record_are_one_family(rows: list[EstimateRow]) -> None:
    other = [replace(row, model="other", p=0.04) for row in rows]
    family = holm_adjusted([*[replace(row, p=0.03) for row in rows], *other])
    gains = [row for row in family if (row.measure, row.condition) == ("gain", "failed")]
    assert [row.p_holm for row in gains] == [0.06, 0.06]
    assert all(math.isnan(row.p_holm) for row in family if row not in gains)


def test_groups_are_by_what_cases_have_in_common(measurement: Measurement) -> None:
    rows = group_rows("tiny", measurement, "mails")
    assert list(dict.fromkeys(row.by for row in rows)) == list(BREAKDOWNS)
    groups = {
        by: list(dict.fromkeys(row.group for row in rows if row.by == by)) for by in BREAKDOWNS
    }
    assert groups == {
        "operator": ["dropped", "typo"],
        "error_family": ["type_error"],
        "template": ["mail"],
        "depth": ["0"],
        "action_tokens": ["1-8"],
    }
    (typo,) = (
        row
        for row in rows
        if (row.by, row.group, row.measure) == ("operator", "typo", "gain_per_token")
    )
    gains = measurement.values_of("gain_per_token", "failed")
    assert typo.value == pytest.approx(gains[::2].mean())
    assert (typo.n, typo.n_tasks) == (4, 4)


@pytest.mark.parametrize(
    ("tokens", "group"), [(1, "1-8"), (8, "1-8"), (9, "9-16"), (16, "9-16"), (33, "33-64")]
)
def test_lengths_are_grouped_by_octaves(tokens: int, group: str) -> None:
    action = "!" * tokens
    cases = [failure_case(f"c{number}", action) for number in range(3)]
    measurement = measure(FakeScorer(), VERBATIM, cases)
    (measured, *_) = measurement.case_rows
    assert measured.n_tokens == tokens
    rows = group_rows("tiny", measurement, "mails")
    assert {row.group for row in rows if row.by == "action_tokens"} == {group}


def test_groups_stand_in_natural_order() -> None:
    cases = [
        failure_case(f"{tokens}-{number}", "!" * tokens)
        for tokens in (40, 4, 100, 12)
        for number in range(3)
    ]
    rows = group_rows("tiny", measure(FakeScorer(), VERBATIM, cases), "mails")
    found = dict.fromkeys(row.group for row in rows if row.by == "action_tokens")
    assert list(found) == ["1-8", "9-16", "33-64", "65-128"]


def test_names_that_hold_a_number_are_ordered_by_the_alphabet() -> None:
    assert sorted(["swap2", "drop", "10-19", "9"], key=natural_order) == [
        "9",
        "10-19",
        "drop",
        "swap2",
    ]


def test_tasks_without_a_value_are_not_counted() -> None:
    whole = [study_case(f"w{number}", task_id=f"t{number}") for number in range(3)]
    bare = [failure_case(f"b{number}", task_id=f"u{number}", correct=None) for number in range(4)]
    cases = [replace(case, operator="typo") for case in (*whole, *bare)]
    measurement = measure(FakeScorer(), VERBATIM, cases)
    groups = group_rows("tiny", measurement, "mails")
    counts = {
        (row.measure, row.condition): (row.n, row.n_tasks) for row in groups if row.by == "operator"
    }
    assert counts["gain", "failed"] == (7, 7)
    assert counts["repeat_probability", "failed"] == (3, 3)


def test_small_groups_are_left_out() -> None:
    cases = [study_case(f"c{number}", "typo") for number in range(3)]
    cases += [study_case(f"d{number}", "rare") for number in range(2)]
    rows = group_rows("tiny", measure(FakeScorer(), VERBATIM, cases), "mails")
    assert {row.group for row in rows if row.by == "operator"} == {"typo"}
