from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fake_scorer import IDENTITY, FakeScorer, by_situation, failure_case, measured, spans_of_tokens
from pytest_failgain import Failgain, assert_no_regression
from pytest_failgain.baseline.comparison import Comparison
from pytest_failgain.baseline.entry import entry_of
from pytest_failgain.baseline.file import update_baseline
from pytest_failgain.baseline.keeper import BaselineKeeper
from pytest_failgain.errors import UsageError
from pytest_failgain.measurement import Measurement, Skip

GOOD = {f"case{i}": 0.0 for i in range(4)}
BAD = {f"case{i}": -1.0 - i / 10 for i in range(4)}
HALF = dict.fromkeys(GOOD, 0.5)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kept.json"


def written(path: Path, gains: Mapping[str, float], **more: Any) -> None:
    """Make the baseline a measurement with these gains."""
    update_baseline(path, [entry_of(measured(gains, **more))])


def failure(result: Measurement, path: Path) -> list[str]:
    """The lines of the failure."""
    with pytest.raises(AssertionError) as caught:
        assert_no_regression(result, baseline=path)
    return str(caught.value).splitlines()


def test_what_is_as_before_passes(path: Path) -> None:
    written(path, BAD, repeat=HALF)
    assert_no_regression(measured(BAD, repeat=HALF), baseline=path)
    assert_no_regression(measured(GOOD, repeat=HALF), 0, max_gain_drop=0, baseline=path)


def test_the_reason_stands_on_the_first_line(path: Path) -> None:
    written(path, GOOD, repeat=HALF)
    first, *_ = failure(measured(BAD, repeat=HALF), path)
    assert first == (
        "verbatim on own cases: regression against kept.json: gain per token +0.000 -> -1.150, "
        "-1.150 [-1.250, -1.050], n = 4 (-0.1 allowed)"
    )


def test_all_that_regressed_is_told_and_what_did_not(path: Path) -> None:
    written(path, GOOD, repeat=HALF)
    worse = measured(BAD, repeat=dict.fromkeys(BAD, 0.9), greedy=["case1"])
    lines = failure(worse, path)
    assert lines[0].startswith("verbatim on own cases: regression against kept.json: repeat prob")
    assert lines[1].startswith("also: gain per token +0.000 -> -1.150")
    assert lines[2].startswith("worst cases:")
    assert (
        "note: over the limit, but within chance: greedy repeat 0.000 -> 0.250, +0.250 "
        "[+0.000, +0.750], n = 4 (+0.05 allowed)"
    ) in lines


def test_the_cases_that_got_worst_come_first(path: Path) -> None:
    written(path, {**GOOD, "case9": -3.0}, repeat=HALF)
    lines = failure(measured({**BAD, "case9": -3.0}, repeat=HALF, greedy=["case2"]), path)
    start = next(i for i, line in enumerate(lines) if line.startswith("worst cases:"))
    rows = [line.split() for line in lines[start + 1 : start + 6]]
    assert [row[-1] for row in rows] == ["case3", "case2", "case1", "case0", "case9"]
    assert rows[1] == ["+0.000", "->", "-1.200", "0.50", "->", "0.50", "repeat", "case2"]
    assert rows[4] == ["-3.000", "->", "-3.000", "-", "->", "-", "-", "case9"]


def test_more_than_five_cases_are_not_listed(path: Path) -> None:
    written(path, {f"case{i}": 0.0 for i in range(9)})
    lines = failure(measured({f"case{i}": -1.0 for i in range(9)}), path)
    start = next(i for i, line in enumerate(lines) if line.startswith("worst cases:"))
    assert [line[:3] for line in lines[start + 1 : start + 8]] == ["   "] * 5 + ["rec", "rec"]


def shown(record: str, verbatim: bool) -> Measurement:
    """A measurement whose record is `record`; a verbatim one makes the failed call likelier."""
    action = "send(to='Ann')"
    tokens = len(spans_of_tokens(action))
    logprobs = {"before": [-2.0] * tokens, "failed": [-1.0 if verbatim else -2.0] * tokens}
    result = Failgain(FakeScorer(by_situation(logprobs, action))).measure(
        lambda trajectory: (
            [{"role": "user", "content": "ValueError: no"}]
            if trajectory.steps
            else [{"role": "user", "content": "Go."}]
        ),
        [failure_case("a"), failure_case("b"), failure_case("c")],
    )
    return replace(result, harness="mine", records=dict.fromkeys(["a", "b", "c"], record))


def test_the_records_are_shown_as_a_diff(path: Path) -> None:
    update_baseline(path, [entry_of(shown("Note:\nthe call to send failed.\n", False))])
    lines = failure(shown("Note:\nsend(to='Ann') failed.\n", True), path)
    start = lines.index("record of a:")
    assert lines[start + 1 : start + 6] == [
        "  --- baseline",
        "  +++ now",
        "   Note:",
        "  -the call to send failed.",
        "  +send(to='Ann') failed.",
    ]
    assert sum(line.startswith("record of ") for line in lines) == 2


def test_a_record_that_is_as_before_is_said_to_be(path: Path) -> None:
    written(path, GOOD)
    assert (
        "record of case3: The record is as before: what changed is the system prompt, the tools "
        "or an earlier turn, which a baseline does not hold."
    ) in failure(measured(BAD), path)


def test_the_last_line_says_what_to_do(path: Path) -> None:
    written(path, GOOD)
    assert failure(measured(BAD), path)[-1] == (
        "try: take back what changed in the prompt; if it shall be like this from now on, write "
        "the baseline anew: pytest --failgain-update-baseline"
    )


def test_added_and_removed_cases_are_said(path: Path) -> None:
    written(path, {**GOOD, "old": 0.0})
    assert "note: 1 case only in the baseline: old" in failure(measured(BAD), path)


def test_a_missing_entry_is_a_failure_that_names_the_command(path: Path) -> None:
    (line,) = failure(measured(GOOD), path)
    assert line == (
        f"verbatim on own cases: no baseline: there is no file {path}; write it with: "
        "pytest --failgain-update-baseline"
    )
    written(path, GOOD, harness="other")
    assert failure(measured(GOOD), path)[0].startswith(
        "verbatim on own cases: no baseline: kept.json has no entry of that name, but of: other "
        "on own cases; write it with: "
    )


def test_another_model_is_a_failure_with_the_reason(path: Path) -> None:
    written(path, GOOD, model=replace(IDENTITY, dtype="float16"))
    first, second = failure(measured(GOOD), path)
    assert first.startswith(
        "verbatim on own cases: not comparable with kept.json: the model's dtype differs: float16"
    )
    assert second.startswith("nothing was concluded: measure as the baseline was, or, if it shall")


def test_a_measurement_of_no_case_fails(path: Path) -> None:
    written(path, GOOD)
    assert "no case was measured (n = 0)" in failure(measured({}), path)[0]


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"max_increase": 1.5}, "max_increase must be a share between 0 and 1, not 1.5"),
        ({"max_increase": float("nan")}, "max_increase must be a share"),
        ({"max_gain_drop": -0.1}, "max_gain_drop must be 0 or more nats per token, not -0.1"),
        ({"max_gain_drop": "much"}, "max_gain_drop must be"),
    ],
)
def test_limits_that_do_not_fit_are_refused(path: Path, limits: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        assert_no_regression(measured(GOOD), baseline=path, **limits)


def test_without_a_baseline_to_compare_with_the_call_is_refused() -> None:
    with pytest.raises(UsageError, match=r"measure with the fixture `failgain`, or give"):
        assert_no_regression(measured(GOOD))


def test_a_measurement_of_failgain_knows_its_baseline(path: Path) -> None:
    told: list[Comparison] = []
    failgain = Failgain(FakeScorer(), baseline=path, seed=3, on_compared=told.append)
    result = failgain.measure(failgain.remedy("verbatim"), [failure_case()])
    with pytest.raises(AssertionError, match="no baseline: there is no file"):
        assert_no_regression(result)
    (comparison,) = told
    assert comparison.verdict == "missing"
    assert comparison.now.settings == {
        "prompt_format": "template",
        "fold_system": False,
        "seed": 3,
    }
    update_baseline(path, [comparison.now])
    assert_no_regression(result)
    assert [one.verdict for one in told] == ["missing", "no regression"]


def test_while_the_baseline_is_updated_nothing_is_a_regression(path: Path) -> None:
    written(path, GOOD)
    told: list[Comparison] = []
    keeper = BaselineKeeper(path, updating=True, on_compared=told.append)
    assert_no_regression(replace(measured(BAD), baseline=keeper))
    (comparison,) = told
    assert comparison.verdict == "updated"
    # What it would have been without the update is still to be told.
    assert [change.regressed for change in comparison.changes] == [False, True, False]


def test_a_case_that_can_not_be_measured_any_more_is_not_passed_over(path: Path) -> None:
    written(path, {**GOOD, "long": 0.0})
    skip = Skip("long", "failed: context and action are 9000 tokens, the model takes 8192")
    first, *_ = failure(replace(measured(GOOD), skips=(skip,)), path)
    assert first == (
        "verbatim on own cases: not comparable with kept.json: 1 of 5 cases of the baseline could "
        "not be measured now: long (failed: context and action are 9000 tokens, the model takes "
        "8192)"
    )


def test_a_harness_without_a_name_of_its_own_is_refused(path: Path) -> None:
    with pytest.raises(UsageError, match="'<lambda>' has no name to be found by in a baseline"):
        assert_no_regression(measured(GOOD, harness="<lambda>"), baseline=path)


def test_another_file_is_compared_with_and_told_of(path: Path, tmp_path: Path) -> None:
    told: list[Comparison] = []
    keeper = BaselineKeeper(tmp_path / "usual.json", {"seed": 1}, on_compared=told.append)
    written(path, GOOD)
    assert_no_regression(replace(measured(GOOD), baseline=keeper), baseline=path)
    assert [(one.path, one.now.settings) for one in told] == [(path, {"seed": 1})]


def test_what_would_move_or_hide_text_is_shown(path: Path) -> None:
    update_baseline(path, [entry_of(shown("calm\n", False))])
    text = "\n".join(failure(shown("a\x1b[2J \u202e b\r\n", True), path))
    assert "+a\\x1b[2J \\u202e b\\r" in text
    assert "\x1b" not in text


def test_records_that_differ_in_their_line_breaks_alone_have_a_diff(path: Path) -> None:
    update_baseline(path, [entry_of(shown("calm", False))])
    lines = failure(shown("calm\n", True), path)
    assert "  +" in lines[lines.index("record of a:") :]


def test_a_long_diff_is_cut(path: Path) -> None:
    update_baseline(path, [entry_of(shown("calm", False))])
    lines = failure(shown("\n".join(map(str, range(99))), True), path)
    assert lines.count("  … and 62 more lines") == 2


def test_where_only_shares_rose_the_cases_with_the_largest_rise_come_first(path: Path) -> None:
    written(path, GOOD, repeat=HALF)
    shares = {"case0": 0.9, "case1": 0.95, "case2": 0.8, "case3": 0.99}
    lines = failure(measured({**GOOD, "case2": -0.05}, repeat=shares), path)
    start = next(i for i, line in enumerate(lines) if line.startswith("worst cases:"))
    assert [line.split()[-1] for line in lines[start + 1 : start + 5]] == [
        *("case3", "case1", "case0", "case2"),
    ]


def test_reasons_to_distrust_the_figures_are_told(path: Path) -> None:
    written(path, {"case0": 0.0})
    lines = failure(measured({"case0": -1.0}), path)
    assert any(line.startswith("note: only 1 task: intervals resample tasks") for line in lines)


@pytest.mark.parametrize("given", [None, {"n": 3}, measured])
def test_what_is_no_measurement_is_refused(given: Any) -> None:
    with pytest.raises(UsageError, match=f"gave, not a {type(given).__name__}"):
        assert_no_regression(given)


def test_two_tests_of_one_harness_have_entries_of_their_own_by_name(path: Path) -> None:
    told: list[Comparison] = []
    keeper = BaselineKeeper(path, updating=True, on_compared=told.append)
    for name, cases in (("first", {"a": 0.0}), ("second", {"b": -1.0})):
        assert_no_regression(replace(measured(cases), baseline=keeper), name=name)
    update_baseline(path, [one.now for one in told])
    assert_no_regression(measured({"a": 0.0}), name="first", baseline=path)
    with pytest.raises(AssertionError, match="verbatim on second: not comparable"):
        assert_no_regression(measured({"a": 0.0}), name="second", baseline=path)
