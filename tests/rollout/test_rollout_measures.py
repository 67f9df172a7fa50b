"""The measures of one rollout: by hand, and by METHOD's section 12 written out once more."""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Hashable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_scorer import rolled, solved_by, turn
from pytest_failgain.environments.protocol import WRITINGS
from pytest_failgain.errors import UsageError
from pytest_failgain.rollout.measures import ROLLOUT_MEASURES, rollout_measure_named
from pytest_failgain.rollout.turns import OUTCOMES, Rollout, Turn
from strategies import quick

REPEATS = ("exact_repeat_rate", "canonical_repeat_rate", "consecutive_repeat_rate")
ANN, RESPELT, BOB = "send(to='Ann', day=1)", 'send(day=1, to="Ann")', "send(to='Bob', day=1)"


def figure(name: str, rollout: Rollout) -> float:
    return rollout_measure_named(name).of(rollout)


def repeats(rollout: Rollout) -> tuple[float, ...]:
    """Exact, canonical, and consecutive repeats."""
    return tuple(figure(name, rollout) for name in REPEATS)


def worked(action: str = "list_team(team='it')") -> Turn:
    return turn(action, failed=False)


def nothing() -> Turn:
    return turn("", writing="empty")


@pytest.mark.parametrize(
    ("rollout", "expected"),
    [
        pytest.param(rolled(ANN), (0, 0, 0), id="a first failure repeats nothing"),
        pytest.param(rolled(ANN, ANN, ANN, ANN), (0.75,) * 3, id="the same again and again"),
        pytest.param(rolled(ANN, RESPELT), (0, 0.5, 0.5), id="another spelling"),
        pytest.param(rolled(ANN, BOB, ANN), (1 / 3, 1 / 3, 0), id="not the one just before"),
        pytest.param(rolled(ANN, BOB, RESPELT, RESPELT), (0.25, 0.5, 0.25), id="mixed"),
        pytest.param(rolled(worked(), ANN, worked(), ANN), (0.5,) * 3, id="successes between"),
        pytest.param(rolled(worked(ANN), ANN), (0, 0, 0), id="what worked before is no failure"),
        pytest.param(rolled(ANN, worked(ANN)), (0, 0, 0), id="what works now is no repeat"),
        pytest.param(rolled("oh  no", "oh no"), (0, 0.5, 0.5), id="what can't be read, by words"),
        pytest.param(rolled(ANN, ANN, nothing(), outcome="quit"), (0.5,) * 3, id="then it quits"),
        pytest.param(rolled(ANN, given=ANN), (1, 1, 1), id="the given failure counts as earlier"),
        pytest.param(rolled(BOB, BOB, given=ANN), (0.5,) * 3, id="but is not one of the failed"),
        pytest.param(rolled(BOB, RESPELT, given=ANN), (0, 0.5, 0), id="the given one, later"),
    ],
)
def test_repeats_are_counted_among_failed_actions(
    rollout: Rollout, expected: tuple[float, ...]
) -> None:
    assert repeats(rollout) == pytest.approx(expected)


@pytest.mark.parametrize(
    "rollout",
    [
        pytest.param(solved_by(), id="solved at once"),
        pytest.param(rolled(worked(), worked(), given=ANN), id="only the given action failed"),
        pytest.param(rolled(nothing(), outcome="quit"), id="nothing was said"),
        pytest.param(rolled(worked(), nothing(), outcome="quit", given=ANN), id="it just quit"),
    ],
)
def test_repeats_are_undefined_where_no_action_failed(rollout: Rollout) -> None:
    for name in (*REPEATS, "extended_repeat_rate"):
        assert math.isnan(figure(name, rollout))


def test_a_failed_action_with_more_around_it_is_an_extended_repeat() -> None:
    assert figure("extended_repeat_rate", rolled(ANN, f"{ANN} please")) == 0.5
    assert figure("extended_repeat_rate", rolled(ANN, ANN)) == 0
    assert figure("extended_repeat_rate", rolled(ANN, BOB)) == 0
    assert figure("extended_repeat_rate", rolled(f"I do {ANN}", given=ANN)) == 1
    # The other way round something is missing.
    assert figure("extended_repeat_rate", rolled(f"{ANN} please", ANN)) == 0


def test_the_first_reply_after_a_given_failure_repeats_it_or_not() -> None:
    name = "next_action_repeat"
    assert figure(name, rolled(RESPELT, BOB, given=ANN)) == 1
    assert figure(name, rolled(BOB, ANN, given=ANN)) == 0
    assert figure(name, rolled(nothing(), outcome="quit", given=ANN)) == 0
    # Also where the environment would let it pass this time.
    assert figure(name, rolled(worked(ANN), given=ANN)) == 1
    assert math.isnan(figure(name, rolled(ANN, ANN)))


@pytest.mark.parametrize(
    ("rollout", "stuck", "on_failures"),
    [
        pytest.param(rolled(ANN, RESPELT, ANN), 1, 1, id="two repeats"),
        pytest.param(rolled(ANN, RESPELT, BOB), 0, 0, id="one repeat"),
        pytest.param(rolled(ANN, ANN, BOB, BOB), 1, 1, id="two things once more"),
        pytest.param(rolled(*[worked()] * 3), 1, 0, id="a loop that succeeds"),
        pytest.param(rolled(ANN, worked(), ANN, worked()), 1, 0, id="a loop of both kinds"),
        pytest.param(rolled(BOB, ANN, ANN, given=ANN), 1, 1, id="the given one twice more"),
        pytest.param(rolled(ANN, ANN, ANN, outcome="solved"), 0, 0, id="solved in the end"),
        pytest.param(rolled(ANN, ANN, ANN, outcome="full"), 0, 0, id="the context was full"),
        pytest.param(
            rolled(ANN, ANN, ANN, nothing(), outcome="quit"), 0, 0, id="it gave up instead"
        ),
    ],
)
def test_stuck_is_who_uses_up_the_steps_repeating(
    rollout: Rollout, stuck: float, on_failures: float
) -> None:
    assert figure("stuck", rollout) == stuck
    assert figure("stuck_on_failures", rollout) == on_failures


def test_the_rates_of_replies_are_shares_of_all_turns() -> None:
    rollout = rolled(
        worked(),
        turn(ANN),
        turn("send(", writing="truncated"),
        turn("Sure!", writing="prose"),
        turn("Well.", writing="prose"),
        turn("send()", writing="invalid"),
        turn("sned()", writing="invalid"),
        nothing(),
        outcome="quit",
    )
    figures = {
        name: figure(name, rollout)
        for name in (
            "valid_call_rate", "effective_call_rate", "truncated_rate", "prose_rate", "empty_rate"
        )
    }  # fmt: skip
    assert figures == {
        "valid_call_rate": 2 / 8,
        "effective_call_rate": 1 / 8,
        "truncated_rate": 1 / 8,
        "prose_rate": 2 / 8,
        "empty_rate": 1 / 8,
    }


def test_steps_and_tokens_are_summed() -> None:
    rollout = rolled(
        turn(n_tokens=5, n_decoded=50, prompt_tokens=100),
        turn(n_tokens=7, prompt_tokens=130),
    )
    assert figure("steps", rollout) == 2
    # What a search went back from was decoded, and paid for.
    assert figure("generated_tokens", rollout) == 57
    assert figure("prompt_tokens", rollout) == 230


def test_only_a_solved_task_is_a_success() -> None:
    assert [figure("success", rolled(ANN, outcome=outcome)) for outcome in OUTCOMES] == [1, 0, 0, 0]


def test_an_unknown_measure_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"no rollout measure 'sucess'; there are: success, exact.*"
                       r"did you mean 'success'\?"):  # fmt: skip
        rollout_measure_named("sucess")


ACTIONS = (
    "f(a=1, b=2)", "f(b=2, a=1)", "f(a=1,b=2)", "f(a=2, b=1)", "f()", "f( )", "g('x')", 'g("x")',
    "oh no", "oh  no", "oh", "f(a=1, b=2) please", "f(a=1", "so f(a=1",
)  # fmt: skip

turns = st.builds(
    lambda action, failed, writing, n: turn(
        action, failed=failed, writing=writing, n_tokens=n, prompt_tokens=10 * n
    ),
    st.sampled_from(ACTIONS),
    st.booleans(),
    st.sampled_from(WRITINGS),
    st.integers(1, 9),
)
rollouts = st.builds(
    lambda turns, outcome, given, quits: rolled(
        *turns, *[nothing()] * quits, outcome="quit" if quits else outcome, given=given
    ),
    st.lists(turns, min_size=1, max_size=8),
    st.sampled_from(OUTCOMES),
    st.none() | st.sampled_from(ACTIONS),
    st.booleans(),
)


def sorted_call(text: str) -> Hashable:
    """METHOD: parsed, keyword arguments sorted; if unparsable, whitespace collapsed."""
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return " ".join(text.split())
    if not isinstance(call, ast.Call):
        return " ".join(text.split())
    keywords = sorted(f"{word.arg}={ast.unparse(word.value)}" for word in call.keywords)
    return ast.unparse(call.func), tuple(map(ast.unparse, call.args)), tuple(keywords)


def from_the_words(rollout: Rollout) -> dict[str, float]:
    """METHOD, section 12, with our given failure as one more failed step at the start."""
    acted = [one for one in rollout.turns if one.writing != "empty"]
    failed = [one.action for one in acted if one.failed]
    before = [rollout.given] if rollout.given is not None else []
    all_failed = before + failed

    def share(same: object) -> float:
        if not failed:
            return math.nan
        assert callable(same)
        count = sum(
            any(same(all_failed[i], all_failed[j]) for j in range(i))
            for i in range(len(before), len(all_failed))
        )
        return count / len(failed)

    neighbours = list(itertools.pairwise(all_failed))
    canonical = share(lambda one, other: sorted_call(one) == sorted_call(other))
    at_the_limit = rollout.outcome == "limit"
    done = [*([rollout.given] if rollout.given else []), *(one.action for one in rollout.turns)]
    once_more = len(done) - len(set(map(sorted_call, done)))
    again = 0 if math.isnan(canonical) else round(canonical * len(failed))
    n = len(rollout.turns)
    return {
        "success": {"solved": 1.0}.get(rollout.outcome, 0.0),
        "exact_repeat_rate": share(lambda one, other: one.strip() == other.strip()),
        "canonical_repeat_rate": canonical,
        "consecutive_repeat_rate": (
            sum(sorted_call(one) == sorted_call(other) for one, other in neighbours) / len(failed)
            if failed
            else math.nan
        ),
        "stuck": float(at_the_limit and once_more >= 2),
        "stuck_on_failures": float(at_the_limit and again >= 2),
        "effective_call_rate": 1 - (len(failed) + n - len(acted)) / n,
        **{
            f"{name}_rate": [one.writing for one in rollout.turns].count(writing) / n
            for name, writing in (
                ("valid_call", "valid"),
                ("truncated", "truncated"),
                ("prose", "prose"),
                ("empty", "empty"),
            )
        },
        "steps": n,
        "prompt_tokens": sum(one.prompt_tokens for one in rollout.turns),
    }


@quick
@given(rollouts)
def test_the_measures_are_what_the_method_says_in_words(rollout: Rollout) -> None:
    expected = from_the_words(rollout)
    assert {name: figure(name, rollout) for name in expected} == pytest.approx(
        expected, nan_ok=True
    )


@quick
@given(rollouts)
def test_the_measures_keep_their_bounds_and_their_order(rollout: Rollout) -> None:
    figures = {name: measure.of(rollout) for name, measure in ROLLOUT_MEASURES.items()}
    for name, measure in ROLLOUT_MEASURES.items():
        assert measure.name == name
        if measure.unit == "share" and not math.isnan(figures[name]):
            assert 0 <= figures[name] <= 1
    unknown = {name for name in figures if math.isnan(figures[name])}
    possible = {*REPEATS, "extended_repeat_rate"}
    assert unknown - {"next_action_repeat"} in (set(), possible)
    assert ("next_action_repeat" in unknown) == (rollout.given is None)
    if not unknown & possible:
        assert figures["exact_repeat_rate"] <= figures["canonical_repeat_rate"]
        assert figures["consecutive_repeat_rate"] <= figures["canonical_repeat_rate"]
        assert figures["canonical_repeat_rate"] + figures["extended_repeat_rate"] <= 1
    assert figures["stuck_on_failures"] <= figures["stuck"]


@quick
@given(rollouts, st.sampled_from(ACTIONS))
def test_a_given_failure_never_lowers_repeats_nor_changes_anything_else(
    rollout: Rollout, action: str
) -> None:
    free = replace(rollout, given=None, given_meaning=None)
    primed = rolled(*rollout.turns, outcome=rollout.outcome, given=action)
    for name in ROLLOUT_MEASURES:
        before, after = figure(name, free), figure(name, primed)
        if name in {*REPEATS, "stuck", "stuck_on_failures"}:
            assert math.isnan(before) == math.isnan(after)
            assert not after < before
        elif name not in ("next_action_repeat", "extended_repeat_rate"):
            assert before == after
