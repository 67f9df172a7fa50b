"""Thresholds of suites: which measurements meet them, and what is told of the others."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase

import pytest

from fake_scorer import measured, measured_by
from pytest_failgain.assertions import HARM_ADVICE
from pytest_failgain.conditions import BEFORE, FAILED
from pytest_failgain.measurement import Measurement, Skip
from pytest_failgain.suites.suite import Threshold
from pytest_failgain.suites.thresholds import missed_text
from pytest_failgain.summary_values import SUMMARY_VALUES

# Two tasks: means are exact, and intervals go from one case's value to the other's.
MIXED = measured({"a": -1.0, "b": 0.5}, repeat={"a": 0.75, "b": 0.25}, greedy=["a"])
ALONE = measured({"a": -0.25})


def told(result: Measurement, *thresholds: Threshold) -> list[str]:
    text = missed_text(result, thresholds)
    assert text is not None
    return text.splitlines()


@pytest.mark.parametrize("name", [*SUMMARY_VALUES])
def test_a_threshold_at_the_value_itself_is_met_and_beyond_it_missed(name: str) -> None:
    result = measured({"a": -1.0, "b": -0.5}, repeat={"a": 0.75, "b": 0.25}, greedy=["a"])
    number = float(result.summary()[name])
    assert missed_text(result, [Threshold(name, at_least=number, at_most=number)]) is None
    for missed in (
        Threshold(name, at_least=number + 0.01),
        Threshold(name, at_most=number - 0.01),
        Threshold(name, at_least=number + 0.01, at_most=number + 1),
        Threshold(name, at_least=number - 1, at_most=number - 0.01),
    ):
        first, *_ = told(result, missed)
        assert first.startswith(f"verbatim on own cases: {name} ")
        assert first.endswith(", n = 2") or name == "n"


def test_first_line_has_figure_interval_unit_threshold_and_n() -> None:
    lines = told(MIXED, Threshold("corrective_gain_per_token", at_least=0.1))
    assert lines == [
        (
            "verbatim on own cases: corrective_gain_per_token -0.250 [-1.000, +0.500] nats per "
            "token, at least +0.100 wanted, n = 2"
        ),
        "worst cases:  corrective_gain_per_token  greedy  failed action",
        "                                 -1.000  repeat  send(to='a')  (a)",
        "                                  0.500  -       send(to='b')  (b)",
        *(f"note: {warning}" for warning in MIXED.warnings),
        HARM_ADVICE,
    ]


def test_worst_cases_are_those_on_the_wrong_side_of_the_threshold() -> None:
    title, first, *_ = told(MIXED, Threshold("repeat_probability_after", at_most=0.2))[1:]
    assert title == "worst cases:  repeat_probability_after  greedy  failed action"
    assert first.endswith("0.750  repeat  send(to='a')  (a)")
    _, first, *_ = told(MIXED, Threshold("repeat_probability_after", at_least=0.9))[1:]
    assert first.endswith("0.250  -       send(to='b')  (b)")


def test_a_share_of_cases_shows_the_gains_that_it_is_of() -> None:
    title, first, *_ = told(MIXED, Threshold("negative_share", at_most=0.2))[1:]
    assert title == "worst cases:  gain/token  greedy  failed action"
    assert first.endswith("-1.000  repeat  send(to='a')  (a)")
    _, first, *_ = told(MIXED, Threshold("negative_share", at_least=0.9))[1:]
    assert first.endswith("0.500  -       send(to='b')  (b)")


def test_all_missed_thresholds_are_told_and_no_other() -> None:
    lines = told(
        MIXED,
        Threshold("n", at_least=1),
        Threshold("negative_share", at_most=0.25),
        Threshold("n_tasks", at_least=3),
        Threshold("n", at_least=30),
        Threshold("record_tokens", at_most=1),
    )
    assert lines[0].startswith("verbatim on own cases: negative_share 0.500 [0.000, 1.000], at ")
    assert lines[1:4] == [
        "also: n_tasks = 2, at least 3 wanted, n = 2",
        "also: n = 2, at least 30 wanted",
        "also: record_tokens 15.0 [15.0, 15.0] tokens, at most 1.0 allowed, n = 2",
    ]
    assert lines[4].startswith("worst cases:")


def test_advice_fits_what_is_missed() -> None:
    def advice(threshold: Threshold) -> list[str]:
        return [line for line in told(MIXED, threshold) if line.startswith("try: ")]

    assert advice(Threshold("n", at_least=30)) == [
        "try: ask for more cases, or see to it that fewer are skipped"
    ]
    assert advice(Threshold("semantic", at_most=-100)) == [HARM_ADVICE]
    # A record that is better than wanted needs no remedy.
    assert advice(Threshold("corrective_gain", at_most=-100)) == []
    assert advice(Threshold("repeat_probability_after", at_least=0.9)) == []
    assert advice(Threshold("n", at_most=1)) == []


def test_a_bound_is_not_rounded_away() -> None:
    first, *_ = told(MIXED, Threshold("repeat_probability_after", at_most=0.0004))
    assert "at most 0.0004 allowed" in first
    first, *_ = told(MIXED, Threshold("corrective_gain", at_least=10.00001))
    assert "at least +10 wanted" in first or "at least +10.0" in first


@pytest.mark.parametrize("bound", ["at_least", "at_most"])
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("repeat_probability_after", " (no case has another candidate)"),
        ("surface_share", " (it needs the condition neutral, and a gain whose interval *)"),
        ("surface", " (it needs the condition neutral)"),
    ],
)
def test_what_is_not_known_meets_no_threshold(name: str, why: str, bound: str) -> None:
    result = measured_by(
        {"before": [-1.0] * 8, "failed": [-2.0] * 8},
        cases=2,
        conditions=[BEFORE, FAILED],
    )
    if name.startswith("repeat"):
        result = measured({"a": 0.5, "b": 0.5})
    first, *_ = told(result, Threshold(name, **{bound: 0.5}))
    assert fnmatchcase(first, f"* on own cases: {name} is unknown{why}, at *, n = 2"), first


def test_skipped_cases_are_noted() -> None:
    cases = (*ALONE.cases, replace(ALONE.cases[0], case_id="b"))
    result = replace(ALONE, cases=cases, skips=(Skip("b", "too long"),))
    assert "note: 1 of 2 cases were skipped" in told(result, Threshold("n", at_least=2))
