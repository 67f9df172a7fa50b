"""Assertions on rollouts, in whose failures the figure stands first."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from fake_scorer import SETTING, rolled, rolled_out, solved_by, turn
from pytest_failgain.assertions import DEMANDS
from pytest_failgain.errors import UsageError
from pytest_failgain.rollout.assertions import (
    assert_not_stuck,
    assert_repeat_rate_at_most,
    assert_success_not_reduced,
    assert_success_rate_at_least,
)
from pytest_failgain.rollout.results import NotStarted, Rollouts

ANN, RESPELT, BOB = "send(to='Ann')", 'send( to="Ann" )', "send(to='Bob')"
HARM, POINT, SAFETY = DEMANDS

# One task solved, one stuck: (1/3, 2/3) of its failures repeat an earlier one.
MIXED = rolled_out(solved_by(task="a"), rolled(ANN, RESPELT, ANN, task="b"))
NONE = rolled_out(*(rolled(ANN, BOB, task=task, outcome="quit") for task in "ab"))
ALL = rolled_out(*(solved_by(task=task) for task in "ab"))

Assertion = Callable[[Rollouts], None]
ASSERTIONS: dict[str, Assertion] = {
    "success": partial(assert_success_rate_at_least, minimum=0.0),
    "repeats": partial(assert_repeat_rate_at_most, maximum=1.0),
    "exact repeats": partial(assert_repeat_rate_at_most, maximum=1.0, match="exact"),
    "stuck": partial(assert_not_stuck, maximum=1.0),
    "remedy": partial(assert_success_not_reduced, verbatim=MIXED, tolerance=1.0),
    "verbatim": lambda result: assert_success_not_reduced(MIXED, result, tolerance=1.0),
}
every_assertion = pytest.mark.parametrize("check", ASSERTIONS.values(), ids=ASSERTIONS.keys())


def message_of(assertion: Callable[..., None], *args: Any, **kwargs: Any) -> list[str]:
    """The lines of the failure."""
    with pytest.raises(AssertionError) as caught:
        assertion(*args, **kwargs)
    return str(caught.value).splitlines()


def test_a_success_rate_of_at_least() -> None:
    assert_success_rate_at_least(MIXED, 0.5)
    assert_success_rate_at_least(ALL, 1.0)
    first, *_ = message_of(assert_success_rate_at_least, MIXED, 0.51)
    assert first == (
        "verbatim on tool_calls: success rate 50% [0%, 100%], at least 51% wanted, n = 2"
    )


def test_a_repeat_rate_of_at_most() -> None:
    assert_repeat_rate_at_most(MIXED, 2 / 3)
    assert_repeat_rate_at_most(NONE, 0.0)
    first, *_ = message_of(assert_repeat_rate_at_most, MIXED, 0.6)
    assert first == (
        "verbatim on tool_calls: repeat rate 67% [67%, 67%] of the failed actions (canonical), at "
        "most 60% allowed, n = 1"
    )


def test_the_same_text_or_the_same_call_can_be_asked_about() -> None:
    assert_repeat_rate_at_most(MIXED, 1 / 3, match="exact")
    first, *_ = message_of(assert_repeat_rate_at_most, MIXED, 0.3, match="exact")
    assert first == (
        "verbatim on tool_calls: repeat rate 33% [33%, 33%] of the failed actions (exact), at most "
        "30% allowed, n = 1"
    )


def test_where_no_action_failed_nothing_was_repeated() -> None:
    assert_repeat_rate_at_most(ALL, 0.0)


def test_nobody_is_stuck_unless_told_otherwise() -> None:
    assert_not_stuck(NONE)
    assert_not_stuck(MIXED, 0.5)
    first, *_ = message_of(assert_not_stuck, MIXED)
    assert first == (
        "verbatim on tool_calls: stuck in 50% [0%, 100%] of the rollouts, at most 0% allowed, n = 2"
    )


REDUCED = rolled_out(
    *(rolled(ANN, task=task) for task in "ab"), solved_by(task="c"), harness="described"
)
BEFORE = rolled_out(*(solved_by(task=task) for task in "abc"))
# Two tasks, one of them lost: from one task's change to the other's.
HALF = rolled_out(solved_by(task="a"), rolled(ANN, task="b"), harness="described")


@pytest.mark.parametrize(
    ("demand", "edge", "part"),
    [
        pytest.param(HARM, 0.0, "upper bound", id="the upper bound decides"),
        pytest.param(POINT, 0.5, "mean", id="the mean decides"),
        pytest.param(SAFETY, 1.0, "lower bound", id="the lower bound decides"),
    ],
)
def test_a_demand_looks_at_its_own_part_of_the_difference(
    demand: str, edge: float, part: str
) -> None:
    assert_success_not_reduced(HALF, ALL, edge, demand=demand)
    if not edge:
        return
    first, *_ = message_of(assert_success_not_reduced, HALF, ALL, edge - 0.01, demand=demand)
    assert first == (
        "described on tool_calls: success changes by -0.50 [-1.00, +0.00] against verbatim, its "
        f"{part} is under {0.01 - edge:+.2f} (demand: {demand}), n = 2"
    )


def test_by_default_any_evident_loss_of_success_fails() -> None:
    lost = rolled_out(*(rolled(ANN, task=task) for task in "ab"), harness="described")
    first, *_ = message_of(assert_success_not_reduced, lost, ALL)
    assert first == (
        "described on tool_calls: success changes by -1.00 [-1.00, -1.00] against verbatim, its "
        "upper bound is under +0.00 (demand: no evidence of harm), n = 2"
    )
    assert_success_not_reduced(ALL, lost)
    assert_success_not_reduced(ALL, ALL, demand=SAFETY)
    assert_success_not_reduced(lost, ALL, 1.0)


def test_what_is_reduced_counts_the_common_tasks() -> None:
    setting = replace(SETTING, tasks=("a", "b"))
    late = [NotStarted("b", "too long")]
    one = rolled_out(rolled(ANN, task="a"), setting=setting, not_started=late)
    other = rolled_out(solved_by(task="a"), replace(solved_by(task="b"), place=1), setting=setting)
    assert message_of(assert_success_not_reduced, one, other)[0].endswith("n = 1")


def test_an_unknown_difference_meets_no_demand() -> None:
    setting = replace(SETTING, tasks=("a", "b"))
    one = rolled_out(solved_by(task="a"), setting=setting)
    other = rolled_out(replace(solved_by(task="b"), place=1), setting=setting)
    first, *_ = message_of(assert_success_not_reduced, one, other, 1.0)
    assert "success changes by - against verbatim" in first
    assert first.endswith("n = 0")


@every_assertion
def test_these_assertions_pass_where_there_is_something_to_judge(check: Assertion) -> None:
    check(MIXED)


@every_assertion
def test_where_nothing_was_run_every_assertion_fails_with_the_reasons(check: Assertion) -> None:
    assert message_of(check, rolled_out()) == [
        "verbatim on tool_calls: no rollout was run (n = 0), so nothing can be asserted"
    ]
    late = [NotStarted(f"task{i}", "too long") for i in range(7)]
    first, *reasons = message_of(check, rolled_out(not_started=late))
    assert first.endswith("(n = 0), so nothing can be asserted")
    assert reasons == [f"  task{i}: too long" for i in range(5)]


def test_the_worst_rollouts_are_listed_worst_first_and_at_most_five() -> None:
    repeats = {"c": 2, "a": 5, "b": 4, "f": 1, "d": 3, "e": 3}
    result = rolled_out(
        *(rolled(*[ANN] * n, BOB, task=task) for task, n in repeats.items()), solved_by(task="g")
    )
    lines = message_of(assert_repeat_rate_at_most, result, 0.1)
    assert lines[1:4] == [
        "worst rollouts:  repeats  ended    last action",
        "                     67%  limit    send(to='Bob')  (a)",
        "                     60%  limit    send(to='Bob')  (b)",
    ]
    assert [line.rpartition("(")[2] for line in lines[2:7]] == ["a)", "b)", "d)", "e)", "c)"]
    assert not any("(f)" in line or "(g)" in line for line in lines)


def test_the_repeats_that_are_listed_are_those_that_are_asked_about() -> None:
    result = rolled_out(rolled(ANN, RESPELT, task="a"), rolled(ANN, BOB, ANN, task="b"))
    by_meaning = message_of(assert_repeat_rate_at_most, result, 0.0)
    assert [line.rpartition("(")[2] for line in by_meaning[2:4]] == ["a)", "b)"]
    by_text = message_of(assert_repeat_rate_at_most, result, 0.0, match="exact")
    assert by_text[2:4] == [
        "                     33%  limit    send(to='Ann')  (b)",
        '                      0%  limit    send( to="Ann" )  (a)',
    ]


def test_of_a_success_rate_the_unsolved_are_listed() -> None:
    result = rolled_out(
        solved_by(task="a"),
        rolled(turn("Well.", failed=False), task="b", outcome="full"),
        rolled(turn(), turn("", writing="empty"), task="c", outcome="quit"),
    )
    lines = message_of(assert_success_rate_at_least, result, 1.0)
    # Without a failure there are no repeats, and that is no bad figure.
    assert lines[2:4] == [
        "                      0%  quit     (nothing)  (c)",
        "                       -  full     Well.  (b)",
    ]
    assert not any("(a)" in line for line in lines)


def test_of_the_stuck_only_the_stuck_are_listed() -> None:
    result = rolled_out(rolled(ANN, ANN, ANN, task="a"), rolled(ANN, ANN, task="b"))
    lines = message_of(assert_not_stuck, result)
    assert any("(a)" in line for line in lines)
    assert not any("(b)" in line for line in lines)


def test_of_a_loss_the_remedy_s_unsolved_are_listed() -> None:
    lines = message_of(assert_success_not_reduced, REDUCED, BEFORE, demand=POINT)
    assert [line.rpartition("(")[2] for line in lines[2:4]] == ["a)", "b)"]
    assert not any("(c)" in line for line in lines)


def test_a_long_action_is_shown_on_one_line_and_cut() -> None:
    result = rolled_out(rolled("run(code='''" + "line\n" * 40 + "''')"))
    shown = message_of(assert_success_rate_at_least, result, 1.0)[2]
    assert shown.endswith("...  (a)")
    assert "run(code='''line line line" in shown
    assert len(shown) < 120


def test_a_failure_says_what_to_distrust_what_was_not_started_and_what_to_try() -> None:
    late = [NotStarted("b", "too long")]
    result = rolled_out(rolled(turn("Well.", writing="prose")), not_started=late)
    lines = message_of(assert_success_rate_at_least, result, 1.0)
    notes = [line for line in lines if line.startswith("note: ")]
    assert notes == [
        *(f"note: {warning}" for warning in result.warnings),
        "note: 1 of 2 rollouts not started",
    ]
    assert notes[0].startswith("note: on the floor: ")
    assert lines[-1].startswith("try: another record of failures")
    assert "Repeating less is not succeeding more" in lines[-1]


# As from an option or an environment variable.
TEXT: Any = "0.1"


@pytest.mark.parametrize(
    ("assertion", "said"),
    [
        (partial(assert_success_rate_at_least, minimum=1.1), "minimum .* not 1.1"),
        (partial(assert_success_rate_at_least, minimum=50), "minimum .* not 50"),
        (partial(assert_success_rate_at_least, minimum=TEXT), "minimum .* not '0.1'"),
        (partial(assert_repeat_rate_at_most, maximum=-0.1), "maximum .* not -0.1"),
        (partial(assert_repeat_rate_at_most, maximum=math.nan), "maximum .* not nan"),
        (
            partial(assert_repeat_rate_at_most, maximum=0.1, match="fuzzy"),
            "no match 'fuzzy'; take 'exact' or 'canonical'",
        ),
        (partial(assert_not_stuck, maximum=1.5), "maximum .* not 1.5"),
        (partial(assert_success_not_reduced, verbatim=ALL, tolerance=-0.1), "tolerance .* -0.1"),
        (partial(assert_success_not_reduced, verbatim=ALL, tolerance=math.inf), "tolerance .* inf"),
        (
            partial(assert_success_not_reduced, verbatim=ALL, demand="proof"),
            "no demand 'proof'; there are: 'no evidence of harm'",
        ),
    ],
)
def test_an_argument_that_means_nothing_is_an_error_that_names_it(
    assertion: Assertion, said: str
) -> None:
    # Before anything else: also where there is no rollout to look at.
    for result in (MIXED, rolled_out()):
        with pytest.raises(UsageError, match=said):
            assertion(result)


def test_success_on_other_tasks_is_no_comparison() -> None:
    other = rolled_out(solved_by(task="x"))
    with pytest.raises(UsageError, match="differ in: tasks; run both on the same tasks"):
        assert_success_not_reduced(MIXED, other)


CALLS = (
    "assert_success_rate_at_least(result, 0.5)",
    "assert_repeat_rate_at_most(result, 0.1)",
    "assert_not_stuck(result)",
    "assert_success_not_reduced(result, solved)",
    "assert_not_stuck(rolled_out())",
)


@pytest.mark.parametrize("plugin", ["failgain", "no:failgain"])
def test_a_failing_test_is_shown_at_the_users_line(project: pytest.Pytester, plugin: str) -> None:
    head = "from fake_scorer import *\nfrom pytest_failgain import *"
    made = 'result, solved = rolled_out(rolled(*["f()"] * 3)), rolled_out(solved_by())'
    tests = (f"def test_{i}():\n    {made}\n    {call}" for i, call in enumerate(CALLS))
    project.makepyfile(test_record="\n".join([head, *tests]))
    arguments = () if plugin == "failgain" else ("-p", plugin)
    output = project.runpytest_inprocess("-p", "no:cacheprovider", *arguments).stdout
    for i, call in enumerate(CALLS):
        output.fnmatch_lines(
            [
                f"_* test_{i} _*",
                f">       {call}".replace("[", "[[]"),
                "E       AssertionError: verbatim on tool_calls: *",
                f"test_record.py:{3 * i + 5}: AssertionError",
            ]
        )
    output.no_fnmatch_line("*assertions.py*")
