"""What the terminal summary writes, without a pytest run around it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_scorer import (
    IDENTITY,
    FakeScorer,
    failure_case,
    measured,
    measured_by,
    prompt_text,
    situation,
)
from pytest_failgain.conditions import DEFAULT_CONDITIONS, SUCCEEDED
from pytest_failgain.harnesses import VERBATIM, remedied
from pytest_failgain.measurement import Measurement, Skip, measure
from pytest_failgain.report.terminal import write_summary
from strategies import quick


@dataclass
class Reporter:
    """Keeps the lines, each with the markup that is on."""

    lines: list[str] = field(default_factory=list)
    markup: list[set[str]] = field(default_factory=list)

    def write_sep(self, sep: str, title: str, **markup: bool) -> None:
        self.write_line(f"{sep} {title} {sep}", **markup)

    def write_line(self, line: str, **markup: bool) -> None:
        self.lines.append(line)
        self.markup.append({name for name, on in markup.items() if on})


def summary(*measurements: Measurement) -> Reporter:
    reporter = Reporter()
    write_summary(cast(pytest.TerminalReporter, reporter), measurements)
    assert reporter.lines[0] == "= failgain ="
    assert reporter.lines[-1].startswith("gain: nats by which the record lowers")
    return reporter


def line_of(reporter: Reporter, start: str) -> str:
    (line,) = (line for line in reporter.lines if re.match(f"{re.escape(start)}  +", line))
    return line


def row(reporter: Reporter, harness: str, table: int = 0) -> dict[str, str]:
    """The cells of one harness by heading; `table` counts the tables of the summary."""
    headings = [line for line in reporter.lines if line.startswith("harness  ")][table]
    cells = [re.split(" {2,}", line) for line in (headings, line_of(reporter, harness))]
    return dict(zip(*cells, strict=True))


GAINS = {f"case{i}": -1.0 + i / 8 for i in range(10)}
SHARES = dict.fromkeys(GAINS, 0.75)
VERBATIM_ROW = measured(GAINS, repeat=SHARES, greedy=["case0", "case1", "case2"])
HALVED = {case_id: gain / 2 for case_id, gain in GAINS.items()}


def test_a_row_holds_every_figure_in_its_column() -> None:
    reporter = summary(VERBATIM_ROW)
    assert reporter.lines[1] == "own cases: 10 cases of 10 tasks, fake (a hash, float32)"
    cells = row(reporter, "verbatim")
    low, high = VERBATIM_ROW.estimates["corrective_gain_per_token"].interval
    assert cells == {
        "harness": "verbatim",
        "n": "10",
        "gain/token [95%]": f"-0.438 [{low:+.3f}, {high:+.3f}]",
        "arguments": "-0.438",
        "negative": "80%",
        "repeat p": "0.50 -> 0.75",
        "greedy": "0.00 -> 0.30",
        "surface": "75%",
        "record": "15",
    }


def test_columns_line_up() -> None:
    reporter = summary(VERBATIM_ROW, measured(HALVED, harness="a much longer name", repeat=SHARES))
    table = [
        line for line in reporter.lines if re.match("(harness|verbatim|a much longer name) ", line)
    ]
    columns = [[match.span() for match in re.finditer(r"\S+(?: \S+)*", line)] for line in table]
    for first, *figures in zip(*columns, strict=True):
        starts, ends = zip(first, *figures, strict=True)
        # Names stand to the left of their column, figures to the right.
        assert len(set(starts)) == 1 if starts[0] == 0 else len(set(ends)) == 1


def comparisons(reporter: Reporter) -> list[str]:
    return [line for line in reporter.lines if ": gain " in line and " over " in line]


def test_a_remedy_is_compared_with_verbatim() -> None:
    reporter = summary(measured(HALVED, harness="described", repeat=SHARES), VERBATIM_ROW)
    (line,) = comparisons(reporter)
    assert line.startswith("described: gain +0.219 [")
    assert line.endswith(" nats per token over verbatim, removes 50% [50%, 50%] of its inversion")


def test_a_harness_with_a_remedy_is_compared_with_the_harness_itself() -> None:
    mine = measured(GAINS, harness="mine", repeat=SHARES)
    reporter = summary(
        VERBATIM_ROW, mine, measured(HALVED, harness="mine+described", repeat=SHARES)
    )
    by_name = {line.partition(":")[0]: line for line in comparisons(reporter)}
    assert " over verbatim, removes 0% [0%, 0%]" in by_name["mine"]
    assert " over mine, removes 50% [50%, 50%]" in by_name["mine+described"]


def test_without_an_inversion_only_the_difference_is_compared() -> None:
    better = {case_id: gain + 2 for case_id, gain in GAINS.items()}
    reporter = summary(measured(better), measured(GAINS, harness="described"))
    assert comparisons(reporter) == [
        "described: gain -2.000 [-2.000, -2.000] nats per token over verbatim"
    ]


def test_a_column_without_any_value_is_left_out() -> None:
    # No other candidate, no inversion, no arguments, nothing to compare with.
    result = measured_by({"before": [-1.0] * 3, "failed": [-2.0] * 3}, "finish()", cases=10)
    without = [replace(case, correct=None) for case in result.cases]
    rows = [row for row in result.rows if row.candidate == "failed"]
    reporter = summary(replace(result, cases=tuple(without), rows=tuple(rows)))
    assert list(row(reporter, "verbatim")) == [
        "harness",
        "n",
        "gain/token [95%]",
        "negative",
        "greedy",
        "record",
    ]


def test_a_column_stays_where_one_row_has_a_value() -> None:
    reporter = summary(measured(dict.fromkeys(GAINS, 0.5)), measured(GAINS, harness="described"))
    assert row(reporter, "verbatim")["surface"] == "-"
    assert row(reporter, "described")["surface"] == "75%"


@pytest.mark.parametrize(
    ("gains", "colours"),
    [
        pytest.param(dict.fromkeys(GAINS, -0.5), {"red"}, id="harmful"),
        pytest.param(dict.fromkeys(GAINS, 0.5), {"green"}, id="corrective"),
        pytest.param(dict.fromkeys(GAINS, 0.0), {"green"}, id="neither"),
        pytest.param({"a": -1.0, "b": 0.5}, {"green"}, id="harm is not evident"),
        pytest.param({}, set(), id="nothing measured"),
    ],
)
def test_a_row_is_red_when_harm_is_evident(gains: dict[str, float], colours: set[str]) -> None:
    reporter = summary(measured(gains))
    place = reporter.lines.index(line_of(reporter, "verbatim"))
    assert reporter.markup[place] == colours


def test_measurements_are_grouped_by_environment_model_and_cases() -> None:
    big = replace(IDENTITY, name="big", dtype="bfloat16")
    others = {
        "other cases": measured({"x": -0.5}, harness="h1"),
        "other model": measured(GAINS, repeat=SHARES, harness="h2", model=big),
        "other environment": replace(VERBATIM_ROW, environment="tool_calls", harness="h3"),
    }
    described = measured(HALVED, repeat=SHARES, harness="described")
    reporter = summary(VERBATIM_ROW, *others.values(), described)
    headings = [line for line in reporter.lines if line.endswith(")") and " of " in line]
    assert headings == [
        "own cases: 10 cases of 10 tasks, fake (a hash, float32)",
        "own cases: 1 case of 1 task, fake (a hash, float32)",
        "own cases: 10 cases of 10 tasks, big (a hash, bfloat16)",
        "tool_calls: 10 cases of 10 tasks, fake (a hash, float32)",
    ]
    first = reporter.lines[reporter.lines.index(headings[0]) : reporter.lines.index(headings[1])]
    assert [line.split()[0] for line in first] == [
        "own", "harness", "verbatim", "described", "described:"
    ]  # fmt: skip
    # Nothing in another group is compared with this group's verbatim measurement.
    assert [line.partition(":")[0] for line in comparisons(reporter)] == ["described"]


def test_a_measurement_that_was_made_twice_is_shown_once() -> None:
    again = measured(GAINS, repeat=SHARES, greedy=["case0", "case1", "case2"])
    reporter = summary(VERBATIM_ROW, again, VERBATIM_ROW)
    assert sum(line.startswith("verbatim  ") for line in reporter.lines) == 1


def test_two_measurements_of_one_name_that_differ_are_both_shown() -> None:
    reporter = summary(VERBATIM_ROW, measured(HALVED, repeat=SHARES))
    assert sum(line.startswith("verbatim  ") for line in reporter.lines) == 2


def test_what_holds_by_construction_is_said() -> None:
    drawn = [failure_case(f"case{i}") for i in range(10)]
    reporter = summary(
        *(measure(FakeScorer(), harness, drawn) for harness in (VERBATIM, remedied("dropped")))
    )
    assert (
        "dropped: by construction, gain 0: the retry's context is the one before the attempt"
        in reporter.lines
    )
    assert row(reporter, "dropped")["gain/token [95%]"] == "+0.000 [+0.000, +0.000]"
    assert not any(line.startswith("verbatim: by construction") for line in reporter.lines)


def yellow_lines(reporter: Reporter) -> list[str]:
    return [
        line
        for line, markup in zip(reporter.lines, reporter.markup, strict=True)
        if markup == {"yellow"}
    ]


def test_warnings_are_shown_under_their_table() -> None:
    few = measured({"a": -0.5}, harness="mine")
    reporter = summary(few, VERBATIM_ROW)
    assert yellow_lines(reporter) == [f"mine: warning: {warning}" for warning in few.warnings]
    warned = reporter.lines.index(yellow_lines(reporter)[0])
    assert reporter.lines.index(line_of(reporter, "mine")) < warned
    assert warned < reporter.lines.index(line_of(reporter, "verbatim"))
    assert yellow_lines(summary(VERBATIM_ROW)) == []


def test_adaptations_left_out_conditions_and_skips_are_counted() -> None:
    drawn = [failure_case(f"case{i}", success=None if i < 3 else "Done.") for i in range(12)]
    result = measure(
        FakeScorer(
            adaptations=lambda prompt: ("folded",) if "Do case5." in prompt_text(prompt) else (),
            refusal=lambda prompt, action: (
                "too long" if re.search(r"Do case1\d", prompt_text(prompt)) else None
            ),
            logprobs=lambda prompt, action: [-1.0] * len(re.findall(r"\w+|\W", action.text)),
        ),
        VERBATIM,
        drawn,
        conditions=(*DEFAULT_CONDITIONS, SUCCEEDED),
    )
    assert yellow_lines(summary(result)) == [
        "verbatim: adapted in 1 of 12 cases: folded",
        "verbatim: condition 'succeeded' left out in 3 of 12 cases, which lack what it needs",
        "verbatim: skipped 2 of 12 cases: before: too long",
    ]
    assert row(summary(result), "verbatim")["n"] == "10"


def test_many_reasons_for_skips_do_not_flood_the_terminal() -> None:
    skips = [Skip(f"s{i}", f"failed: {9000 + i} tokens") for i in range(40)]
    more = [Skip(f"t{i}", "before: no") for i in range(3)]
    skipped = [failure_case(skip.case_id) for skip in (*skips, *more)]
    result = replace(VERBATIM_ROW, skips=(*skips, *more), cases=(*VERBATIM_ROW.cases, *skipped))
    assert yellow_lines(summary(result)) == [
        "verbatim: skipped 3 of 53 cases: before: no",
        *(f"verbatim: skipped 1 of 53 cases: failed: {9000 + i} tokens" for i in range(4)),
        "verbatim: skipped 36 of 53 cases for other reasons",
    ]


def test_the_heading_counts_all_cases_and_the_row_those_that_were_measured() -> None:
    drawn = [failure_case("a"), failure_case("b"), failure_case("c")]

    def refusal(prompt: Any, action: Any) -> str | None:
        return "no" if "Do b." in prompt_text(prompt) and situation(prompt) == "failed" else None

    reporter = summary(measure(FakeScorer(refusal=refusal), VERBATIM, drawn))
    assert reporter.lines[1].startswith("own cases: 3 cases of 3 tasks, ")
    assert row(reporter, "verbatim")["n"] == "2"


def test_a_measurement_of_no_case_is_shown_without_figures() -> None:
    reporter = summary(measure(FakeScorer(), VERBATIM, []))
    assert reporter.lines[1].startswith("no cases: 0 cases of 0 tasks, ")
    assert row(reporter, "verbatim") == {"harness": "verbatim", "n": "0"}
    (warning,) = yellow_lines(reporter)
    assert warning.startswith("verbatim: warning: no case was measured: nothing can be concluded")


@quick
@given(
    gains=st.dictionaries(st.sampled_from("abcdef"), st.floats(-3, 3), max_size=6),
    other=st.dictionaries(st.sampled_from("abcdef"), st.floats(-3, 3), max_size=6),
    shares=st.dictionaries(st.sampled_from("abcdef"), st.floats(0.01, 0.99), max_size=6),
)
def test_what_is_not_known_is_never_shown_as_a_number(
    gains: dict[str, float], other: dict[str, float], shares: dict[str, float]
) -> None:
    made = [measured(gains, repeat=shares), measured(other, harness="mine", repeat=shares)]
    # One set of cases, so that the two are compared wherever they can be.
    drawn = {case.case_id: case for result in made for case in result.cases}
    measurements: Sequence[Measurement] = [
        replace(
            result,
            cases=tuple(drawn.values()),
            skips=tuple(Skip(case_id, "no") for case_id in drawn if case_id not in known),
        )
        for result, known in zip(made, (gains, other), strict=True)
    ]
    reporter = summary(*measurements)
    for line in reporter.lines[1:-1]:
        assert not re.search(r"\b(nan|inf)\b", line)
