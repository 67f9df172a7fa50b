from __future__ import annotations

import math

import pytest

from fake_scorer import failure_case, spans_of_tokens
from pytest_failgain.measures import argument_gain_per_token
from pytest_failgain.rows import CaseRows, Row

CALL = "send(to='Ann')"
# send ( to = ' Ann ' )
BEFORE = (-1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0, -8.0)
FAILED = (-0.5,) * 8


def row(
    condition: str,
    logprobs: tuple[float, ...] = FAILED,
    *,
    candidate: str = "failed",
    text: str = CALL,
    matches: int = 0,
) -> Row:
    return Row(
        case_id="a",
        condition=condition,
        candidate=candidate,
        logprob=math.fsum(logprobs),
        n_tokens=len(logprobs),
        context_tokens=10,
        argmax_matches=matches,
        text=text,
        token_logprobs=logprobs,
        token_spans=spans_of_tokens(text),
    )


def case_rows(*rows: Row) -> CaseRows:
    return CaseRows(failure_case(), {(row.condition, row.candidate): row for row in rows})


@pytest.mark.parametrize(("matches", "greedy"), [(0, False), (7, False), (8, True)])
def test_a_row_is_greedy_where_every_token_is_the_first_choice(matches: int, greedy: bool) -> None:
    one = row("before", matches=matches)
    assert one.greedy is greedy
    assert case_rows(one).greedy("before") == float(greedy)


def test_rows_are_found_by_condition_and_candidate() -> None:
    failed, correct = row("before"), row("before", (-1.0,), candidate="correct", text="stop")
    of = case_rows(correct, failed)
    assert of.row("before") is failed
    assert of.row("before", "correct") is correct
    assert of.row("failed") is None
    assert (of.logprob("before"), of.logprob("before", "correct")) == (-4.0, -1.0)
    assert of.context_tokens("before") == 10


def test_what_was_not_scored_is_not_a_number() -> None:
    of = case_rows(row("before"))
    assert math.isnan(of.logprob("failed"))
    assert math.isnan(of.logprob("before", "correct"))
    assert math.isnan(of.argument_logprob("failed"))
    assert math.isnan(of.context_tokens("failed"))
    assert math.isnan(of.greedy("failed"))


def test_the_number_of_tokens_is_the_failed_actions() -> None:
    correct = row("before", (-1.0,), candidate="correct", text="stop")
    assert case_rows(correct, row("before")).n_tokens == 8


def test_the_argument_log_probability_is_the_sum_over_the_argument_tokens() -> None:
    correct = row("before", (-9.0,), candidate="correct", text="stop")
    of = case_rows(correct, row("before", BEFORE), row("failed"))
    # All between the brackets.
    assert of.argument_logprob("before") == -3 - 4 - 5 - 6 - 7
    assert of.argument_logprob("failed") == -2.5

    assert of.n_argument_tokens == 5


def test_a_call_without_arguments_has_no_argument_tokens() -> None:
    of = case_rows(row("before", (-1.0,) * 3, text="f()"), row("failed", (-1.0,) * 3, text="f()"))
    assert of.n_argument_tokens == 0
    assert math.isnan(argument_gain_per_token(of, "failed"))
