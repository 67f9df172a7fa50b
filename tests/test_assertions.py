from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from fake_scorer import (
    IDENTITY,
    FakeScorer,
    failure_case,
    measured,
    measured_by,
    spans_of_tokens,
)
from pytest_failgain.assertions import (
    DEMANDS,
    assert_corrective_gain_at_least,
    assert_corrective_gain_nonnegative,
    assert_greedy_repeat_rate_at_most,
    assert_inversion_removed,
    assert_repeat_probability_at_most,
)
from pytest_failgain.errors import UsageError
from pytest_failgain.harnesses import VERBATIM
from pytest_failgain.measurement import Measurement, measure
from pytest_failgain.rows import Row

HARM, POINT, SAFETY = DEMANDS

# Two tasks: the interval is exactly from one case's value to the other's, and the mean is -0.25.
MIXED = measured({"a": -1.0, "b": 0.5}, repeat={"a": 0.75, "b": 0.25}, greedy=["a"])
# One task: value and bounds are the same, -0.25.
CERTAIN = measured({"a": -0.25}, repeat={"a": 0.5})

Assertion = Callable[[Measurement], None]
ASSERTIONS: dict[str, Assertion] = {
    "nonnegative": assert_corrective_gain_nonnegative,
    "safe": partial(assert_corrective_gain_nonnegative, tolerance=1e9, demand=SAFETY),
    "at least": partial(assert_corrective_gain_at_least, minimum=-1e9),
    "repeat probability": partial(assert_repeat_probability_at_most, maximum=1.0),
    "greedy": partial(assert_greedy_repeat_rate_at_most, maximum=1.0),
    "remedy": partial(assert_inversion_removed, verbatim=MIXED, at_least=-1e9),
    "verbatim": lambda result: assert_inversion_removed(MIXED, result, at_least=-1e9),
}
every_assertion = pytest.mark.parametrize("check", ASSERTIONS.values(), ids=ASSERTIONS.keys())


def message_of(assertion: Callable[..., None], *args: Any, **kwargs: Any) -> list[str]:
    """The lines of the failure."""
    with pytest.raises(AssertionError) as caught:
        assertion(*args, **kwargs)
    return str(caught.value).splitlines()


@pytest.mark.parametrize("demand", DEMANDS)
def test_a_certain_gain_at_the_tolerance_passes_every_demand(demand: str) -> None:
    assert_corrective_gain_nonnegative(CERTAIN, 0.25, demand=demand)
    with pytest.raises(AssertionError):
        assert_corrective_gain_nonnegative(CERTAIN, 0.2499, demand=demand)


@pytest.mark.parametrize(
    ("demand", "edge", "part"),
    [
        pytest.param(POINT, 0.25, "mean", id="the mean decides"),
        pytest.param(SAFETY, 1.0, "lower bound", id="the lower bound decides"),
    ],
)
def test_a_demand_looks_at_its_own_part_of_the_interval(
    demand: str, edge: float, part: str
) -> None:
    assert_corrective_gain_nonnegative(MIXED, edge, demand=demand)
    first, *_ = message_of(assert_corrective_gain_nonnegative, MIXED, edge - 0.001, demand=demand)
    assert first == (
        f"verbatim on own cases: corrective gain -0.250 [-1.000, +0.500] nats per token, its "
        f"{part} is under {-edge + 0.001:+.3f} (demand: {demand}), n = 2"
    )


def test_harm_is_evident_when_the_upper_bound_is_below_the_tolerance() -> None:
    assert_corrective_gain_nonnegative(MIXED, demand=HARM)
    both_bad = measured({"a": -1.0, "b": -0.5})
    assert_corrective_gain_nonnegative(both_bad, 0.5, demand=HARM)
    first, *_ = message_of(assert_corrective_gain_nonnegative, both_bad, 0.499, demand=HARM)
    assert first == (
        "verbatim on own cases: corrective gain -0.750 [-1.000, -0.500] nats per token, its "
        "upper bound is under -0.499 (demand: no evidence of harm), n = 2"
    )


def test_by_default_any_evident_harm_fails() -> None:
    assert_corrective_gain_nonnegative(measured({"a": 0.0, "b": -1.0}))
    first, *_ = message_of(assert_corrective_gain_nonnegative, CERTAIN)
    assert "its upper bound is under +0.000 (demand: no evidence of harm)" in first


def test_a_gain_of_at_least() -> None:
    assert_corrective_gain_at_least(MIXED, -0.25)
    assert_corrective_gain_at_least(measured({"a": 0.5}), 0.5)
    first, *_ = message_of(assert_corrective_gain_at_least, MIXED, -0.24)
    assert first == (
        "verbatim on own cases: corrective gain -0.250 [-1.000, +0.500] nats per token, at least "
        "-0.240 wanted, n = 2"
    )


def test_a_repeat_probability_of_at_most() -> None:
    share = MIXED.estimates["repeat_probability_after"].value
    assert share == pytest.approx(0.5)
    assert_repeat_probability_at_most(MIXED, share)
    first, *_ = message_of(assert_repeat_probability_at_most, MIXED, 0.49)
    assert first == (
        "verbatim on own cases: repeat probability 0.500 [0.250, 0.750] after the record (0.500 "
        "before), at most 0.490 allowed, n = 2"
    )


def test_a_repeat_probability_counts_the_cases_that_have_one() -> None:
    result = measured({"a": -1.0, "b": -1.0}, repeat={"a": 0.75})
    first, *_ = message_of(assert_repeat_probability_at_most, result, 0.5)
    assert first.endswith("n = 1")


def test_an_unknown_repeat_probability_fails_with_the_reason() -> None:
    first, *_ = message_of(assert_repeat_probability_at_most, measured({"a": -1.0}), 1.0)
    assert first == (
        "verbatim on own cases: repeat probability is unknown: no case has a correct action or a "
        "distractor to compare the failed action with, n = 1"
    )


def test_a_greedy_repeat_rate_of_at_most() -> None:
    assert_greedy_repeat_rate_at_most(MIXED, 0.5)
    assert_greedy_repeat_rate_at_most(measured({"a": -1.0}), 0.0)
    first, *_ = message_of(assert_greedy_repeat_rate_at_most, MIXED, 0.49)
    assert first == (
        "verbatim on own cases: greedy repeat rate 0.500 [0.000, 1.000] after the record (0.000 "
        "before), at most 0.490 allowed, n = 2"
    )


def test_tenths_are_exact_thresholds_of_rates_over_ten_cases() -> None:
    for repeats in range(11):
        result = measured(dict.fromkeys("abcdefghij", -1.0), greedy="abcdefghij"[:repeats])
        assert_greedy_repeat_rate_at_most(result, repeats / 10)


def test_an_inversion_removed_by_at_least() -> None:
    verbatim = measured({"a": -1.0, "b": -1.0})
    remedy = measured({"a": -0.5, "b": 0.0}, harness="described")
    assert_inversion_removed(remedy, verbatim, at_least=0.75)
    assert_inversion_removed(remedy, verbatim)
    first, *_ = message_of(assert_inversion_removed, remedy, verbatim, at_least=0.76)
    assert first == (
        "described on own cases: removes 75% [50%, 100%] of the inversion of verbatim, at least "
        "76% wanted, n = 2"
    )


def test_sixty_percent_are_wanted_unless_told_otherwise() -> None:
    verbatim = measured({"a": -1.0})
    assert_inversion_removed(measured({"a": -0.375}), verbatim)
    with pytest.raises(AssertionError, match="at least 60% wanted"):
        assert_inversion_removed(measured({"a": -0.5}), verbatim)


def test_what_is_removed_counts_the_common_cases() -> None:
    remedy, verbatim = measured({"a": -1.0, "b": 1.0}), measured({"a": -1.0, "c": -1.0})
    first, *_ = message_of(assert_inversion_removed, remedy, verbatim)
    assert first.endswith("n = 1")


@every_assertion
def test_these_assertions_pass_where_there_is_something_to_judge(check: Assertion) -> None:
    check(MIXED)


@every_assertion
def test_a_measurement_of_no_case_fails_every_assertion(check: Assertion) -> None:
    assert message_of(check, measured({})) == [
        "verbatim on own cases: no case was measured (n = 0), so nothing can be asserted"
    ]


@every_assertion
def test_when_every_case_was_skipped_the_reasons_are_given(check: Assertion) -> None:
    drawn = [failure_case(f"case{i}") for i in range(7)]
    result = measure(FakeScorer(refusal=lambda prompt, action: "too long"), VERBATIM, drawn)
    first, *reasons = message_of(check, result)
    assert first.endswith("(n = 0), so nothing can be asserted; all 7 were skipped:")
    assert reasons == [f"  case{i}: before: too long" for i in range(5)]


@every_assertion
def test_an_unknown_figure_fails_every_assertion(check: Assertion) -> None:
    def unknown(row: Row) -> Row:
        return replace(row, logprob=math.nan)

    result = measured({"a": -1.0, "b": -0.5}, repeat={"a": 0.5})
    result = replace(result, rows=tuple(map(unknown, result.rows)))
    if check is ASSERTIONS["greedy"]:
        # What greedy decoding does is known without log-probabilities.
        check(result)
        return
    with pytest.raises((AssertionError, UsageError)):
        check(result)


GAINS = {"c": -0.5, "a": -3.0, "g": 1.0, "e": -0.25, "b": -1.0, "d": -0.375, "f": 0.5}


def test_the_worst_gains_are_listed_worst_first_and_at_most_five() -> None:
    lines = message_of(assert_corrective_gain_at_least, measured(GAINS, greedy=["b"]), 1.0)
    assert lines[1:4] == [
        "worst cases:  gain/token  greedy  failed action",
        "                  -3.000  -       send(to='a')  (a)",
        "                  -1.000  repeat  send(to='b')  (b)",
    ]
    assert [line.rpartition("(")[2] for line in lines[2:7]] == ["a)", "b)", "c)", "d)", "e)"]
    assert not any("(f)" in line or "(g)" in line for line in lines)


def test_the_likeliest_repeats_are_listed_first() -> None:
    repeat = {"a": 0.25, "b": 0.75, "c": 0.5}
    result = measured({"d": -1.0, **dict.fromkeys(repeat, -1.0)}, repeat=repeat)
    lines = message_of(assert_repeat_probability_at_most, result, 0.1)
    assert lines[1:5] == [
        "worst cases:    repeat p  greedy  failed action",
        "                   0.750  -       send(to='b')  (b)",
        "                   0.500  -       send(to='c')  (c)",
        "                   0.250  -       send(to='a')  (a)",
    ]
    # Case d has no other candidate, so it has no share among candidates.
    assert not any("(d)" in line for line in lines)


def test_the_cases_that_greedy_decoding_repeats_are_listed() -> None:
    result = measured({"a": -1.0, "b": -2.0, "c": -0.5, "d": -9.0}, greedy=["a", "b", "c"])
    lines = message_of(assert_greedy_repeat_rate_at_most, result, 0.5)
    assert lines[1:5] == [
        "worst cases:  gain/token  greedy  failed action",
        "                  -2.000  repeat  send(to='b')  (b)",
        "                  -1.000  repeat  send(to='a')  (a)",
        "                  -0.500  repeat  send(to='c')  (c)",
    ]
    assert not any("(d)" in line for line in lines)


def test_a_long_action_is_shown_on_one_line_and_cut() -> None:
    action = "run(code='''" + "line\n" * 40 + "''')"
    tokens = len(spans_of_tokens(action))
    result = measured_by({"failed": [-0.5] * tokens}, action)
    shown = message_of(assert_corrective_gain_at_least, result, 1.0)[2]
    assert shown.endswith("...  (case0)")
    assert "run(code='''line line line" in shown
    assert len(shown) < 120


def test_a_failure_says_what_to_distrust_what_was_skipped_and_what_to_try() -> None:
    drawn = [failure_case("a"), failure_case("b", "skip()")]
    scorer = FakeScorer(refusal=lambda prompt, action: "no" if "skip" in action.text else None)
    result = measure(scorer, VERBATIM, drawn)
    lines = message_of(assert_corrective_gain_at_least, result, 1e3)
    notes = [line for line in lines if line.startswith("note: ")]
    assert notes[:-1] == [f"note: {warning}" for warning in result.warnings]
    assert result.warnings
    assert notes[-1] == "note: 1 of 2 cases were skipped"
    assert lines[-1].startswith("try: ")
    assert "Repeating less is not succeeding more" in lines[-1]


# As from an option or an environment variable.
TEXT: Any = "0.1"


@pytest.mark.parametrize(
    ("assertion", "said"),
    [
        (partial(assert_corrective_gain_nonnegative, tolerance=-0.1), "tolerance .* not -0.1"),
        (partial(assert_corrective_gain_nonnegative, tolerance=math.nan), "tolerance .* not nan"),
        (partial(assert_corrective_gain_nonnegative, tolerance=math.inf), "tolerance .* not inf"),
        (partial(assert_corrective_gain_nonnegative, tolerance=TEXT), "tolerance .* not '0.1'"),
        (
            partial(assert_corrective_gain_nonnegative, demand="proof"),
            "no demand 'proof'; there are: 'no evidence of harm', 'point estimate', 'evidence of",
        ),
        (partial(assert_corrective_gain_at_least, minimum=-math.inf), "minimum .* not -inf"),
        (partial(assert_corrective_gain_at_least, minimum=math.nan), "minimum .* not nan"),
        (partial(assert_corrective_gain_at_least, minimum=TEXT), "minimum .* not '0.1'"),
        (partial(assert_repeat_probability_at_most, maximum=1.1), "maximum .* not 1.1"),
        (partial(assert_repeat_probability_at_most, maximum=-0.1), "maximum .* not -0.1"),
        (partial(assert_greedy_repeat_rate_at_most, maximum=math.nan), "maximum .* not nan"),
        (partial(assert_greedy_repeat_rate_at_most, maximum=25), "maximum .* not 25"),
        (partial(assert_greedy_repeat_rate_at_most, maximum=TEXT), "maximum .* not '0.1'"),
        (
            partial(assert_inversion_removed, verbatim=MIXED, at_least=math.inf),
            "at_least .* not inf",
        ),
    ],
)
def test_an_argument_that_means_nothing_is_an_error_that_names_it(
    assertion: Assertion, said: str
) -> None:
    # Before anything else: also where there is no case to look at.
    for result in (MIXED, measured({})):
        with pytest.raises(UsageError, match=said):
            assertion(result)


def test_an_inversion_that_is_not_there_can_not_be_asked_to_be_removed() -> None:
    with pytest.raises(UsageError, match="no inversion"):
        assert_inversion_removed(MIXED, measured({"a": 0.5, "b": 0.5}))
    with pytest.raises(UsageError, match="within one model"):
        assert_inversion_removed(MIXED, replace(MIXED, model=replace(IDENTITY, name="other")))


CALLS = (
    "assert_corrective_gain_nonnegative(result)",
    "assert_corrective_gain_at_least(result, 0.0)",
    "assert_repeat_probability_at_most(result, 0.1)",
    "assert_greedy_repeat_rate_at_most(result, 0.1)",
    "assert_inversion_removed(result, result)",
    "assert_corrective_gain_at_least(measured({}), 0.0)",
)


@pytest.mark.parametrize("plugin", ["failgain", "no:failgain"])
def test_a_failing_test_is_shown_at_the_users_line(project: pytest.Pytester, plugin: str) -> None:
    head = "from fake_scorer import measured\nfrom pytest_failgain import *"
    made = 'result = measured({"a": -1.0, "b": -1.0}, repeat={"a": 0.75}, greedy=["a"])'
    tests = (f"def test_{i}():\n    {made}\n    {call}" for i, call in enumerate(CALLS))
    project.makepyfile(test_record="\n".join([head, *tests]))
    arguments = () if plugin == "failgain" else ("-p", plugin)
    output = project.runpytest_inprocess("-p", "no:cacheprovider", *arguments).stdout
    for i, call in enumerate(CALLS):
        output.fnmatch_lines(
            [
                f"_* test_{i} _*",
                f">       {call}".replace("[", "[[]"),
                "E       AssertionError: verbatim on own cases: *",
                f"test_record.py:{3 * i + 5}: AssertionError",
            ]
        )
    output.no_fnmatch_line("*assertions.py*")
