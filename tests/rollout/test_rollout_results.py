"""What is derived from rollouts, and how two harnesses' rollouts are compared."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from fake_scorer import (
    IDENTITY,
    SETTING,
    ScriptedDecoder,
    rolled,
    rolled_out,
    solved_by,
    turn,
)
from pytest_failgain.environments.tool_calls import ToolCallsEnvironment
from pytest_failgain.errors import UsageError
from pytest_failgain.harnesses import VERBATIM
from pytest_failgain.rollout.measures import ROLLOUT_MEASURES
from pytest_failgain.rollout.results import NotStarted, Rollouts, rollout_difference
from pytest_failgain.rollout.run import rollout
from pytest_failgain.rollout.turns import Rollout
from pytest_failgain.statistics import ClusterBootstrap

ANN, BOB = "send(to='Ann')", "send(to='Bob')"


def with_tasks(*tasks: str, **settings: Any) -> Any:
    return replace(SETTING, tasks=tasks, **settings)


def names(n: int) -> list[str]:
    return [f"task{i}" for i in range(n)]


def test_a_mean_is_over_rollouts_and_its_interval_over_tasks() -> None:
    # Three draws of each task: task a is always solved, task b never.
    drawn = [
        replace(one, task_id=task, place=place, sample=sample)
        for place, (task, one) in enumerate((("a", solved_by()), ("b", rolled(ANN))))
        for sample in range(3)
    ]
    setting = with_tasks("a", "b", samples=3, temperature=0.7)
    solved = rolled_out(*drawn, setting=setting).estimates["success"]
    assert (solved.value, solved.n) == (0.5, 6)
    # With two tasks a draw can be of one task alone.
    assert solved.interval == (0, 1)


def test_estimates_are_those_of_the_cluster_bootstrap() -> None:
    result = rolled_out(
        rolled(ANN, ANN, ANN, task="a"),
        rolled(ANN, BOB, task="b"),
        rolled(ANN, ANN, task="b"),
        solved_by(task="c"),
    )
    expected = ClusterBootstrap.over(["a", "b", "b", "c"]).mean([2 / 3, 0, 0.5, math.nan])
    assert result.estimates["canonical_repeat_rate"] == expected
    assert expected.n == 3


def test_rollouts_without_a_value_are_left_out_and_counted() -> None:
    result = rolled_out(rolled(ANN, ANN, task="a"), solved_by(task="b"), solved_by(task="c"))
    repeats = result.estimates["canonical_repeat_rate"]
    assert (repeats.value, repeats.n) == (0.5, 1)
    assert result.undefined("canonical_repeat_rate") == 2
    assert result.undefined("success") == 0
    assert result.undefined("next_action_repeat") == 3


def test_every_end_is_counted() -> None:
    ends = ["solved", "limit", "limit", "full", "quit", "limit"]
    result = rolled_out(*(rolled(ANN, task=f"t{i}", outcome=end) for i, end in enumerate(ends)))
    assert result.outcomes == {"solved": 1, "quit": 1, "limit": 3, "full": 1}
    assert list(result.outcomes) == ["solved", "quit", "limit", "full"]


def test_the_summary_has_each_measure_with_its_interval() -> None:
    result = rolled_out(rolled(ANN, ANN, task="a"), solved_by(task="b"), solved_by(task="b"))
    summary = result.summary()
    assert list(summary)[:6] == [
        "n", "n_tasks", "ended_solved", "ended_quit", "ended_limit", "ended_full"
    ]  # fmt: skip
    assert [summary[key] for key in list(summary)[:6]] == [3, 2, 2, 0, 1, 0]
    assert list(summary)[6:] == [key for name in ROLLOUT_MEASURES for key in (name, f"{name}_ci")]
    assert summary["success"] == pytest.approx(2 / 3)
    assert summary["success_ci"] == (0, 1)
    assert summary["canonical_repeat_rate"] == 0.5
    assert math.isnan(summary["next_action_repeat"])
    assert summary["steps"] == pytest.approx(4 / 3)


def floor_of(valid: int, of: int) -> Rollouts:
    """Ten tasks, each with so many valid replies of so many."""
    turns = [turn(ANN)] * valid + [turn("Well.", writing="prose")] * (of - valid)
    return rolled_out(*(rolled(*turns, task=name) for name in names(10)))


def test_under_half_of_valid_replies_the_comparison_is_on_the_floor() -> None:
    assert floor_of(2, 5).on_the_floor
    assert floor_of(2, 5).warnings == (
        (
            "on the floor: only 40% of the replies were valid actions, so that comparing harnesses "
            "says little; give more demonstrations, or a larger model"
        ),
    )
    assert not floor_of(1, 2).on_the_floor
    assert floor_of(1, 2).warnings == ()


@pytest.mark.parametrize(("n", "said"), [(1, "only 1 task: "), (9, "only 9 tasks: "), (10, "")])
def test_fewer_than_ten_tasks_are_said_to_be_few(n: int, said: str) -> None:
    # More draws of the same tasks are no more tasks.
    result = rolled_out(*(solved_by(task=name) for name in names(n) * 3))
    assert len(result.warnings) == bool(said)
    assert "".join(result.warnings).startswith(said)


def test_odd_replies_are_counted_among_all() -> None:
    odd = [
        turn(ANN, ended="length"),
        turn(ANN, ended="length", reply=f"{ANN}\ufffd"),
        turn("", ended="dead end", writing="empty"),
        turn(ANN),
        turn(ANN, ended="stop"),
    ]
    result = rolled_out(*(rolled(*odd, task=name) for name in names(10)))
    assert result.warnings == (
        "10 of 50 replies came to a dead end, where the block left nothing to say",
        "20 of 50 replies were cut at the length that a reply may have",
        "10 of 50 replies held bytes that are no text",
    )


def test_where_nothing_was_run_that_alone_is_said() -> None:
    result = rolled_out(not_started=[NotStarted("a", "too long")])
    assert result.warnings == (
        "no rollout was run: nothing can be concluded, and every assertion fails",
    )
    summary = result.summary()
    assert (summary["n"], summary["n_tasks"]) == (0, 0)
    assert all(math.isnan(summary[name]) for name in ROLLOUT_MEASURES)
    assert not result.on_the_floor
    assert result.n_wanted == 1


def test_rollouts_are_shown_in_one_line() -> None:
    result = rolled_out(*(solved_by(task=name) for name in names(4)), harness="described")
    assert repr(result) == "<Rollouts described on tool_calls: n=4, success 1.00 [1.00, 1.00]>"


def test_rollouts_survive_pickling() -> None:
    decoder = ScriptedDecoder(lambda request: "list_team(team=['x', 1])")
    result = rollout(decoder, VERBATIM, ToolCallsEnvironment(), 3, 2, primed=True)
    assert result.estimates
    again = pickle.loads(pickle.dumps(result))
    assert again == result
    assert again.summary().keys() == result.summary().keys()
    assert again.rollouts[0].given_meaning == result.rollouts[0].given_meaning


def test_a_difference_is_paired_by_task_and_draw() -> None:
    setting = with_tasks("a", "b", samples=2, temperature=0.7)

    def drawn(*solved: bool) -> Rollouts:
        made: list[Rollout] = [
            replace(solved_by() if yes else rolled(ANN), task_id="ab"[i // 2], place=i // 2,
                    sample=i % 2)
            for i, yes in enumerate(solved)
        ]  # fmt: skip
        return rolled_out(*made, setting=setting)

    one, other = drawn(True, True, False, True), drawn(False, True, True, False)
    difference = rollout_difference("success", one, other)
    assert (difference.value, difference.n) == (0.25, 4)
    expected = ClusterBootstrap.over(["a", "a", "b", "b"]).effect([1, 0, -1, 1])
    assert difference == expected
    # In whichever order either was run.
    shuffled = replace(one, rollouts=one.rollouts[::-1])
    assert rollout_difference("success", shuffled, other).value == 0.25
    assert rollout_difference("success", other, one).value == -0.25


def test_a_pair_that_lacks_a_value_is_left_out_of_the_difference() -> None:
    one = rolled_out(rolled(ANN, ANN, task="a"), rolled(ANN, ANN, task="b"), solved_by(task="c"))
    other = rolled_out(rolled(ANN, BOB, task="a"), solved_by(task="b"), rolled(ANN, task="c"))
    difference = rollout_difference("canonical_repeat_rate", one, other)
    assert (difference.value, difference.n) == (0.5, 1)
    assert rollout_difference("success", one, other).n == 3


def test_a_task_that_either_did_not_start_is_left_out_of_the_difference() -> None:
    setting = with_tasks("a", "b")
    one = rolled_out(
        solved_by(task="a"), setting=setting, not_started=[NotStarted("b", "too long")]
    )
    other = rolled_out(rolled(ANN, task="a"), solved_by(task="b"), setting=setting)
    assert rollout_difference("success", one, other).n == 1
    nothing = rolled_out(setting=setting)
    assert rollout_difference("success", one, nothing).n == 0
    assert math.isnan(rollout_difference("success", one, nothing).value)


def test_tasks_that_come_twice_are_paired_by_place() -> None:
    # Primed, a task can stand in two failures.
    one = rolled_out(solved_by(task="a"), rolled(ANN, task="a"))
    other = rolled_out(rolled(ANN, task="a"), rolled(ANN, task="a"))
    assert rollout_difference("success", one, other).value == 0.5


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"environment": "program_repair"}, "environment"),
        ({"model": replace(IDENTITY, dtype="bfloat16")}, "model"),
        ({"tasks": ("other",)}, "tasks"),
        ({"max_steps": 8}, "max_steps"),
        ({"primed": True}, "primed"),
        ({"demonstrations": 0}, "demonstrations"),
        ({"temperature": 0.7}, "temperature"),
        ({"samples": 2}, "samples"),
        ({"seed": 1}, "seed"),
        ({"seed": 1, "max_steps": 8}, "max_steps, seed"),
    ],
)
def test_what_was_not_run_alike_is_not_compared(changes: dict[str, Any], named: str) -> None:
    one = rolled_out(solved_by(), setting=with_tasks("a"), harness="described")
    other = rolled_out(solved_by(), setting=replace(with_tasks("a"), **changes))
    message = (
        rf"rollouts of described and verbatim can't be compared, since they differ in: {named};"
    )
    with pytest.raises(UsageError, match=message):
        rollout_difference("success", one, other)


def test_an_unknown_measure_is_refused() -> None:
    result = rolled_out(solved_by())
    with pytest.raises(UsageError, match=r"no rollout measure 'solved'"):
        rollout_difference("solved", result, result)


def test_the_published_rates_of_dropped_records_come_out() -> None:
    """METHOD, section 12: `drop` has .7979 over 16 of 24 tasks, the mean of (k-1)/k.

    Six steps a task. Of the 16, so many fail 4, 5 and 6 times; the other 8 are solved at once.
    """
    failures = Counter({4: 2, 5: 12, 6: 2})
    stuck = [
        rolled(*[turn(failed=False)] * (6 - k), *[ANN] * k, task=f"stuck {k} {i}")
        for k, count in failures.items()
        for i in range(count)
    ]
    result = rolled_out(*stuck, *(solved_by(task=name) for name in names(8)))
    figures = {name: estimate.value for name, estimate in result.estimates.items()}
    assert figures["exact_repeat_rate"] == pytest.approx(0.7979166666666667)
    assert figures["canonical_repeat_rate"] == pytest.approx(0.7979166666666667)
    assert figures["stuck_on_failures"] == pytest.approx(0.6666666666666666)
    assert figures["success"] == pytest.approx(0.3333333333333333)
    assert figures["effective_call_rate"] == pytest.approx(0.4444444444444445)
    assert figures["steps"] == pytest.approx(4.333333333333333)
    repeats = result.estimates["exact_repeat_rate"]
    assert repeats.n == 16
    assert repeats.interval == pytest.approx((0.7875, 0.8083333333333333), abs=0.002)
    assert result.estimates["success"].interval == pytest.approx((1 / 6, 13 / 24), abs=0.05)
