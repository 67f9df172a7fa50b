from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kept_entries import MODEL, entry, kept, spread

from pytest_failgain.baseline.comparison import Change, Comparison, Limits, compare
from pytest_failgain.baseline.entry import NOISE, Entry
from strategies import quick


def changes(comparison: Comparison) -> dict[str, Change]:
    return {change.measure: change for change in comparison.changes}


def regressed(comparison: Comparison) -> set[str]:
    return {change.measure for change in comparison.changes if change.regressed}


def test_the_same_again_is_no_regression() -> None:
    one = entry(spread(5, gain=-1.0, share=0.9, greedy=True))
    found = compare(one, one, Limits(0, 0))
    assert found.verdict == "no regression"
    assert [change.difference.value for change in found.changes] == [0, 0, 0]
    assert found.notes == ()


@pytest.mark.parametrize(
    ("values", "measure"),
    [
        ({"share": 0.31}, "repeat probability"),
        ({"gain": -0.11}, "gain per token"),
        ({"greedy": True}, "greedy repeat"),
    ],
)
def test_each_measure_can_regress_by_itself(values: dict[str, float], measure: str) -> None:
    found = compare(entry(spread(5, **values)), entry(spread(5)))
    assert found.verdict == "regression"
    assert regressed(found) == {measure}


@pytest.mark.parametrize(
    "values", [{"share": 0.0}, {"gain": 3.0}, {"share": 0.29}, {"gain": -0.09}, {}]
)
def test_better_and_a_little_worse_are_no_regression(values: dict[str, float]) -> None:
    assert compare(entry(spread(5, **values)), entry(spread(5))).verdict == "no regression"


def test_the_limits_are_what_is_allowed() -> None:
    now, before = entry(spread(5, gain=-0.3, share=0.45)), entry(spread(5))
    assert compare(now, before, Limits(0.21, 0.31)).verdict == "no regression"
    assert regressed(compare(now, before, Limits(0.19, 0.31))) == {"repeat probability"}
    assert regressed(compare(now, before, Limits(0.21, 0.29))) == {"gain per token"}


def test_a_change_within_chance_is_no_regression() -> None:
    cases = spread(8)
    cases["case0"] = kept(gain=-4.0, share=1.0, greedy=True, task="task0")
    found = compare(entry(cases), entry(spread(8)))
    change = changes(found)["gain per token"]
    assert change.difference.value == -0.5
    assert change.difference.high == 0
    assert found.verdict == "no regression"


def test_the_interval_resamples_tasks() -> None:
    """Eight cases that got worse are one observation where they are of one task."""
    worse, same = spread(8, gain=-1.0), spread(16)
    of_one_task = {
        case_id: replace(case, task="one") if case_id in worse else case
        for case_id, case in {**same, **worse}.items()
    }
    assert compare(entry({**same, **worse}), entry(same)).verdict == "regression"
    assert compare(entry(of_one_task), entry(same)).verdict == "no regression"


def test_a_single_task_is_judged_by_its_mean() -> None:
    assert compare(entry({"a": kept(-1.0)}), entry({"a": kept()})).verdict == "regression"


def test_means_are_over_the_pairs_only() -> None:
    now = entry({**spread(3, gain=-0.5), "new": kept(-100.0)})
    before = entry({**spread(4), "old": kept(50.0)})
    now = replace(now, cases={**now.cases, **spread(4, gain=-0.5)})
    found = compare(now, before)
    change = changes(found)["gain per token"]
    assert (change.before, change.now, change.difference.value) == (0, -0.5, -0.5)
    assert change.difference.n == 4
    assert (found.added, found.removed) == (("new",), ("old",))
    assert found.notes == ("1 case not in the baseline: new", "1 case only in the baseline: old")


def test_many_added_cases_are_named_in_part() -> None:
    now = entry({**spread(1), **{f"new{i}": kept() for i in range(8)}})
    (note,) = compare(now, entry(spread(1))).notes
    assert note == "8 cases not in the baseline: new0, new1, new2, new3, new4, and 3 more"


def test_cases_without_another_candidate_have_no_repeat_probability() -> None:
    now = entry({"a": kept(share=None), "b": kept(share=0.75)})
    before = entry({"a": kept(share=None), "b": kept(share=0.5)})
    change = changes(compare(now, before))["repeat probability"]
    assert (change.before, change.now, change.difference.n) == (0.5, 0.75, 1)
    nothing = entry({"a": kept(share=None)})
    found = compare(nothing, nothing)
    assert changes(found)["repeat probability"].difference.n == 0
    assert found.verdict == "no regression"


def test_no_entry_is_missing() -> None:
    found = compare(entry(spread(2)), None)
    assert (found.verdict, found.before, found.changes) == ("missing", None, ())


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"weights": "ffff"}, "the model's weights differ: 0f3c in the baseline (tiny, a folder"),
        ({"template": ""}, "chat template differs: 91ab in the baseline (tiny, a folder, float32)"),
        ({"dtype": "bfloat16"}, "dtype differs: float32 in the baseline"),
    ],
)
def test_another_model_cannot_be_compared(changed: dict[str, str], reason: str) -> None:
    before = entry(spread(2))
    now = replace(before, model=replace(MODEL, **changed))
    found = compare(now, before)
    assert found.verdict == "not comparable"
    assert reason in str(found.reason)
    assert found.changes == ()


def test_the_same_model_may_have_another_name() -> None:
    before = entry(spread(2))
    now = replace(before, model=replace(MODEL, name="other", source="a wheel", revision="main"))
    assert compare(now, before).verdict == "no regression"


def test_other_settings_alone_make_no_difference() -> None:
    now, before = entry(spread(2), seed=1, fold_system=True), entry(spread(2), seed=2)
    assert compare(now, before).verdict == "no regression"


def test_a_limit_that_is_just_met_is_met() -> None:
    now, before = entry(spread(3, share=1.0, gain=1.0)), entry(spread(3, share=0.95, gain=1.1))
    assert compare(now, before).verdict == "no regression"


def test_too_few_of_the_cases_cannot_be_compared() -> None:
    before = entry(spread(10))
    assert compare(entry(spread(8)), before).verdict == "no regression"
    found = compare(entry(spread(7)), before)
    assert found.verdict == "not comparable"
    assert str(found.reason).startswith(
        "only 7 of 10 cases of the baseline were measured now, at least 80% are needed; missing: "
        "case7, case8, case9 (several tests can't share an entry"
    )


def test_a_case_that_was_skipped_now_cannot_be_left_out() -> None:
    found = compare(entry(spread(9)), entry(spread(10)), skipped={"case9": "too long", "new": "-"})
    assert found.verdict == "not comparable"
    assert found.reason == (
        "1 of 10 cases of the baseline could not be measured now: case9 (too long)"
    )


def test_a_share_that_is_known_in_one_of_the_two_only_cannot_be_compared() -> None:
    found = compare(entry(spread(3)), entry(spread(3, share=None)))
    assert found.verdict == "not comparable"


def test_another_prompt_format_is_named_before_the_template_that_it_brings() -> None:
    before = entry(spread(2), prompt_format="template")
    now = replace(
        before, model=replace(MODEL, template="ffff"), settings={"prompt_format": "plain"}
    )
    found = compare(now, before)
    assert found.verdict == "not comparable"
    assert found.reason == "the prompt format is 'template' in the baseline and 'plain' now"
    # With the same template it is the same format under two names.
    same = replace(now, model=before.model)
    assert compare(same, before).verdict == "no regression"


def test_another_seed_is_named_where_it_brings_other_cases() -> None:
    found = compare(entry({"a": kept()}, seed=3), entry({"b": kept()}, seed=0))
    assert "missing: b (seed 0 in the baseline, 3 now)" in str(found.reason)


def test_what_is_over_the_limit_but_within_chance_is_said() -> None:
    cases = spread(8)
    cases["case0"] = kept(gain=-4.0, task="task0")
    found = compare(entry(cases), entry(spread(8)))
    assert found.verdict == "no regression"
    assert [change.exceeds for change in found.changes] == [False, True, False]
    (note,) = found.notes
    assert note.startswith(
        "over the limit, but within chance: gain per token +0.000 -> -0.500, -0.500 ["
    )


def test_other_cases_cannot_be_compared() -> None:
    found = compare(entry({"a": kept()}), entry({"b": kept()}))
    assert found.verdict == "not comparable"
    assert str(found.reason).startswith("only 0 of 1 cases of the baseline were measured now")


def test_cases_about_something_else_cannot_be_compared() -> None:
    now = entry({**spread(2), "case0": kept(decision="ffff")})
    found = compare(now, entry(spread(2)))
    assert found.verdict == "not comparable"
    assert "1 of 2 cases are about something else than in the baseline" in str(found.reason)
    assert "case0" in str(found.reason)
    assert "case1" not in str(found.reason)


moves = st.floats(-NOISE, NOISE)
values = st.lists(st.tuples(st.floats(-5, 5), st.floats(0, 1), st.booleans()), min_size=1)


def of(rows: list[tuple[float, float, bool]]) -> Entry:
    return entry({f"case{i}": kept(*row, task=f"task{i % 3}") for i, row in enumerate(rows)})


@quick
@given(values, st.data())
def test_noise_is_never_a_regression(
    rows: list[tuple[float, float, bool]], data: st.DataObject
) -> None:
    moved = [
        (gain + data.draw(moves) * 0.99, share + data.draw(moves) * 0.99, greedy)
        for gain, share, greedy in rows
    ]
    assert compare(of(moved), of(rows), Limits(0, 0)).verdict == "no regression"


@quick
@given(values, st.data())
def test_what_regressed_in_one_direction_did_not_in_the_other(
    rows: list[tuple[float, float, bool]], data: st.DataObject
) -> None:
    other = data.draw(st.permutations(rows))
    there = compare(of(other), of(rows), Limits(0, 0))
    back = compare(of(rows), of(other), Limits(0, 0))
    assert not regressed(there) & regressed(back)
    for one, reverse in zip(there.changes, back.changes, strict=True):
        assert one.difference.value == pytest.approx(-reverse.difference.value, abs=1e-9)
