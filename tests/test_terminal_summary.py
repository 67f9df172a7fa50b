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
    ScriptedDecoder,
    failure_case,
    measured,
    measured_by,
    prompt_text,
    rolled,
    rolled_out,
    situation,
    solved_by,
    turn,
)
from pytest_failgain.conditions import DEFAULT_CONDITIONS, SUCCEEDED
from pytest_failgain.environments.tool_calls import ToolCallsEnvironment
from pytest_failgain.harnesses import VERBATIM, remedied
from pytest_failgain.measurement import Measurement, Skip, measure
from pytest_failgain.report.rollouts import HEADINGS
from pytest_failgain.report.rollouts import LEGEND as ROLLOUT_LEGEND
from pytest_failgain.report.terminal import write_summary
from pytest_failgain.rollout.results import NotStarted, Rollouts
from pytest_failgain.rollout.run import rollout
from pytest_failgain.stash import Findings, Outcome
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
    write_summary(cast(pytest.TerminalReporter, reporter), Findings([*measurements], [], [], {}))
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


def shown(*rollouts: Rollouts, measurements: Sequence[Measurement] = ()) -> Reporter:
    """The summary of rollouts, and of measurements before them."""
    reporter = Reporter()
    write_summary(
        cast(pytest.TerminalReporter, reporter), Findings([*measurements], [*rollouts], [], {})
    )
    assert reporter.lines[0] == "= failgain ="
    assert reporter.lines[-1] == ROLLOUT_LEGEND
    return reporter


ANN, RESPELT = "send(to='Ann')", 'send( to="Ann" )'
TASKS = [f"task{i}" for i in range(10)]
STUCK = [rolled(ANN, RESPELT, ANN, turn("Well.", writing="prose"), task=task) for task in TASKS]
SOLVED = [solved_by(task=task) for task in TASKS]
VERBATIM_DRIVEN = rolled_out(*SOLVED[:4], *STUCK[4:])
DESCRIBED_DRIVEN = rolled_out(*SOLVED[:7], *STUCK[7:], harness="described")


def test_a_row_of_rollouts_holds_every_figure_in_its_column() -> None:
    reporter = shown(VERBATIM_DRIVEN)
    assert reporter.lines[1] == (
        "tool_calls: free rollouts of 10 tasks, 6 steps at most, greedy, 8 demonstrations, "
        "python calls, fake (a hash, float32)"
    )
    low, high = VERBATIM_DRIVEN.estimates["success"].interval
    assert row(reporter, "verbatim") == {
        "harness": "verbatim",
        "n": "10",
        "solved [95%]": f"40% [{low:.0%}, {high:.0%}]",
        "same text": "25%",
        "same call": "50%",
        "stuck": "60%",
        "valid": "85%",
        "effective": "40%",
        "steps": "2.8",
        "written": "14",
        "solved/quit/limit/full": "4/0/6/0",
    }


def test_what_a_primed_rollout_does_first_has_a_column() -> None:
    again = rolled(RESPELT, given=ANN)
    primed = replace(VERBATIM_DRIVEN.setting, tasks=("a", "a"), primed=True)
    result = rolled_out(
        again, replace(rolled("f()", given=ANN), place=1), setting=primed, harness="mine"
    )
    reporter = shown(result)
    assert reporter.lines[1].startswith("tool_calls: primed rollouts of 2 tasks, ")
    assert row(reporter, "mine")["next"] == "50%"


def test_success_is_shown_wherever_repeats_are_and_repeats_only_where_they_are_known() -> None:
    assert "solved [95%]" in row(shown(rolled_out(*STUCK)), "verbatim")
    cells = row(shown(rolled_out(*SOLVED)), "verbatim")
    assert cells["solved [95%]"] == "100% [100%, 100%]"
    assert not {"same text", "same call", "next"} & {*cells}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"temperature": 0.7, "samples": 3, "max_steps": 1, "demonstrations": 1},
            "of 2 tasks, 1 step at most, temperature 0.7, 3 samples a task, 1 demonstration, ",
        ),
        ({"temperature": 1.0}, " temperature 1, 1 sample a task, "),
        ({"tasks": ("a",), "primed": True}, "primed rollouts of 1 task, 6 steps at most, greedy, "),
    ],
)
def test_the_heading_tells_how_the_rollouts_were_run(changes: dict[str, Any], said: str) -> None:
    setting = replace(VERBATIM_DRIVEN.setting, **{"tasks": ("a", "b"), **changes})
    assert said in shown(rolled_out(solved_by(), setting=setting)).lines[1]


def of(reporter: Reporter, harness: str) -> list[str]:
    """The notes on one harness."""
    return [line for line in reporter.lines if line.startswith(f"{harness}: ")]


def test_a_remedy_is_compared_in_success_and_in_repeats_at_once() -> None:
    reporter = shown(DESCRIBED_DRIVEN, VERBATIM_DRIVEN)
    (compared, undefined) = of(reporter, "described")
    assert re.fullmatch(
        r"described: solved \+0\.30 \[\+0\.\d\d, \+0\.\d\d\] over verbatim, same call "
        r"\+0\.00 \[\+0\.00, \+0\.00\] where both failed \(n = 3\)",
        compared,
    )
    assert undefined == "described: 7 of 10 rollouts had no failure to repeat"
    assert of(reporter, "verbatim") == ["verbatim: 4 of 10 rollouts had no failure to repeat"]


def test_a_block_is_compared_with_the_harness_that_it_is_put_behind() -> None:
    blocked = replace(VERBATIM_DRIVEN, harness="described+searched")
    mine = replace(VERBATIM_DRIVEN, harness="mine")
    reporter = shown(VERBATIM_DRIVEN, blocked, DESCRIBED_DRIVEN, mine)
    assert " over described, " in of(reporter, "described+searched")[0]
    assert " over verbatim, " in of(reporter, "described")[0]
    assert " over verbatim, " in of(reporter, "mine")[0]
    assert not any(" over " in line for line in of(reporter, "verbatim"))


def test_without_a_reference_nothing_is_compared() -> None:
    assert not any(" over " in line for line in of(shown(DESCRIBED_DRIVEN), "described"))


def test_greedy_dropped_rollouts_are_said_to_repeat_by_construction() -> None:
    decoder = ScriptedDecoder(lambda request: "list_team(team='nobody')")
    office = ToolCallsEnvironment()
    reporter = shown(
        *(rollout(decoder, remedied(name), office, 10, 5) for name in ("verbatim", "dropped")),
        rollout(decoder, remedied("verbatim"), office, 10, 5, block="searched"),
    )
    assert row(reporter, "dropped")["same call"] == "80%"
    assert (
        "dropped: by construction, at temperature 0 it repeats (k-1)/k of its k failures: the "
        "context is unchanged, so is the reply"
    ) in reporter.lines
    assert (
        "verbatim+searched: by construction, no failed action is made again: the decoder forbids it"
    ) in reporter.lines
    assert not any("by construction" in line for line in of(reporter, "verbatim"))


def test_warnings_adaptations_and_tasks_not_started_are_shown_under_the_table() -> None:
    result = rolled_out(
        *(rolled(turn("Well.", writing="prose"), task=task) for task in TASKS[:6]),
        not_started=[NotStarted(task, "too long") for task in TASKS[6:]],
        adaptations=[("folded", 4)],
    )
    reporter = shown(result)
    assert of(reporter, "verbatim") == [
        *(f"verbatim: warning: {warning}" for warning in result.warnings),
        "verbatim: adapted in 4 of 6 rollouts: folded",
        "verbatim: 4 of 10 rollouts not started: too long",
    ]
    assert len(result.warnings) == 2
    assert yellow_lines(reporter) == of(reporter, "verbatim")[:2]


def test_many_reasons_not_to_start_do_not_flood_the_terminal() -> None:
    late = [NotStarted(f"t{i}", f"the context is {9000 + i} tokens") for i in range(20)]
    result = rolled_out(*SOLVED, not_started=[*late, late[7]])
    assert of(shown(result), "verbatim")[-6:] == [
        "verbatim: 2 of 31 rollouts not started: the context is 9007 tokens",
        *(
            f"verbatim: 1 of 31 rollouts not started: the context is {9000 + i} tokens"
            for i in range(4)
        ),
        "verbatim: 15 of 31 rollouts not started for other reasons",
    ]


def test_draws_that_did_not_start_are_counted_among_all_draws() -> None:
    setting = replace(VERBATIM_DRIVEN.setting, tasks=("a",), samples=3, temperature=0.7)
    result = rolled_out(setting=setting, not_started=[NotStarted("a", "too long")] * 3)
    assert "verbatim: 3 of 3 rollouts not started: too long" in shown(result).lines


def test_rollouts_are_grouped_by_how_they_were_run() -> None:
    longer = replace(VERBATIM_DRIVEN.setting, max_steps=8)
    reporter = shown(
        VERBATIM_DRIVEN, replace(DESCRIBED_DRIVEN, setting=longer), VERBATIM_DRIVEN,
        rolled_out(*SOLVED, harness="dropped"),
    )  # fmt: skip
    tables = [
        line.partition("  ")[0]
        for line in reporter.lines
        if "rollouts of" in line or re.match(r"\S+  ", line)
    ]
    heading = reporter.lines[1]
    assert "6 steps" in heading
    assert tables == [
        heading,
        "harness",
        "verbatim",
        "dropped",
        heading.replace("6 steps", "8 steps"),
        "harness",
        "described",
    ]
    # What was run otherwise is no reference.
    assert not any(" over " in line for line in of(reporter, "described"))


def test_rollouts_of_one_name_that_went_differently_are_both_shown() -> None:
    other = rolled_out(*SOLVED[:5], *STUCK[5:])
    reporter = shown(VERBATIM_DRIVEN, other, rolled_out(*SOLVED[:4], *STUCK[4:]))
    assert sum(line.startswith("verbatim  ") for line in reporter.lines) == 2


def test_rollouts_that_were_not_run_are_shown_without_figures() -> None:
    reporter = shown(rolled_out(not_started=[NotStarted("a", "too long")]))
    assert row(reporter, "verbatim") == {
        "harness": "verbatim",
        "n": "0",
        "solved/quit/limit/full": "0/0/0/0",
    }
    assert yellow_lines(reporter) == [
        "verbatim: warning: no rollout was run: nothing can be concluded, and every assertion fails"
    ]


def test_measurements_and_rollouts_stand_in_one_section_each_with_its_legend() -> None:
    reporter = shown(VERBATIM_DRIVEN, DESCRIBED_DRIVEN, measurements=[VERBATIM_ROW])
    kinds = [
        line.partition(":")[0]
        for line in reporter.lines
        if re.match("= failgain|own cases:|tool_calls:|gain:|solved:", line)
    ]
    assert kinds == ["= failgain =", "own cases", "gain", "tool_calls", "solved"]
    headings = [line.split()[2] for line in reporter.lines if line.startswith("harness  ")]
    assert headings == ["gain/token", "solved"]


def test_the_legend_fits_a_terminal_and_names_the_columns() -> None:
    lines = ROLLOUT_LEGEND.splitlines()
    assert max(map(len, lines)) <= 100
    for heading in HEADINGS[3:-1]:
        if heading != "steps":
            assert re.search(rf"\b{heading}\b", ROLLOUT_LEGEND)
    assert lines[-1].startswith("Repeating less is not succeeding more")


def test_a_usual_table_of_rollouts_fits_a_wide_terminal() -> None:
    reporter = shown(VERBATIM_DRIVEN, replace(DESCRIBED_DRIVEN, harness="described+searched"))
    table = [line for line in reporter.lines if re.match(r"\S+  ", line)]
    assert len(table) == 3
    assert max(map(len, table)) <= 130


def test_what_the_run_wrote_and_what_went_wrong_are_told_last() -> None:
    reporter = Reporter()
    outcome = Outcome(["report out.json"], ["can't write out.html"], ["no step summary"])
    found = Findings([VERBATIM_ROW], [], [], {"a": "kept nothing"})
    write_summary(cast(pytest.TerminalReporter, reporter), found, outcome)
    assert reporter.lines[-4:] == [
        "note: kept nothing",
        "note: no step summary",
        "wrote report out.json",
        "error: can't write out.html",
    ]
    assert reporter.markup[-1] == {"red"}


quick_rollouts = st.lists(
    st.builds(
        lambda actions, failed, outcome: rolled(
            *(turn(action, failed=failed) for action in actions), outcome=outcome
        ),
        st.lists(st.sampled_from([ANN, RESPELT, "Well."]), min_size=1, max_size=3),
        st.booleans(),
        st.sampled_from(["solved", "quit", "limit", "full"]),
    ),
    max_size=3,
)


@quick
@given(quick_rollouts, quick_rollouts)
def test_what_is_not_known_of_rollouts_is_never_shown_as_a_number(
    one: list[Any], other: list[Any]
) -> None:
    setting = replace(VERBATIM_DRIVEN.setting, tasks=("a", "b", "c"))
    made = [
        rolled_out(
            *(replace(each, place=place) for place, each in enumerate(rollouts)),
            setting=setting,
            harness=harness,
        )
        for rollouts, harness in ((one, "verbatim"), (other, "mine"))
    ]
    for line in shown(*made).lines[1:-1]:
        assert not re.search(r"\b(nan|inf)\b", line)
