"""Rollouts as text and as a page in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from fake_scorer import SETTING, rolled, rolled_out, solved_by, turn
from pytest_failgain.report.rollouts import (
    FURTHER_HEADINGS,
    HEADINGS,
    LEGEND,
    further_cells,
    rollouts_page,
    rollouts_text,
)
from pytest_failgain.rollout.results import Rollouts

ANN = "send(to='Ann')"
TASKS = [f"task{i}" for i in range(10)]
STUCK = [rolled(ANN, 'send( to="Ann" )', f"{ANN} please", task=task) for task in TASKS]
VERBATIM = rolled_out(*(solved_by(task=task) for task in TASKS[:4]), *STUCK[4:])
DESCRIBED = replace(VERBATIM, harness="described")
LONGER = replace(VERBATIM, setting=replace(VERBATIM.setting, max_steps=8))


def tables(page: str) -> Iterator[list[list[str]]]:
    """The tables of a page in Markdown, without the rule below the headings."""
    for block in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        heads, _, *rows = (line.strip("| ").split(" | ") for line in block.splitlines())
        yield [heads, *rows]


def test_the_text_has_a_table_for_each_setting_and_one_legend() -> None:
    lines = rollouts_text([VERBATIM, DESCRIBED, LONGER]).splitlines()
    starts = [re.split(" {2,}|, ", line)[0].partition(":")[0] for line in lines]
    assert starts[:4] == ["tool_calls", "harness", "verbatim", "described"]
    assert starts.count("tool_calls") == 2
    assert lines[-4:] == LEGEND.splitlines()
    assert sum(line == LEGEND.splitlines()[0] for line in lines) == 1
    assert any(line.startswith("described: solved +0.00 ") for line in lines)


def test_the_page_has_every_figure_and_success_in_each_table() -> None:
    page = rollouts_page([VERBATIM, DESCRIBED, LONGER], "pytest-failgain 1.")
    assert page.startswith("# Rollouts\n\npytest-failgain 1.\n")
    assert len(re.findall(r"^## tool_calls: free rollouts of 10 tasks, ", page, re.M)) == 2
    found = [*tables(page)]
    assert [table[0] for table in found] == [[*HEADINGS], [*FURTHER_HEADINGS]] * 2
    assert [row[0] for row in found[1][1:]] == ["verbatim", "described"]
    for table in found:
        place = table[0].index("solved [95%]")
        assert {row[place] for row in table[1:]} == {"40% [10%, 70%]"}
    # All shares of a page have intervals.
    assert found[0][1][HEADINGS.index("same call")] == "33% [33%, 33%]"


def test_what_the_first_table_has_no_room_for_stands_in_the_second() -> None:
    turns = [
        turn(ANN, prompt_tokens=100),
        turn("send(to=", writing="truncated", prompt_tokens=150),
        turn("Well.", writing="prose", prompt_tokens=200),
        turn(f"{ANN} please", writing="prose", prompt_tokens=250),
        turn("", writing="empty", prompt_tokens=300),
    ]
    result = rolled_out(*(rolled(*turns, task=task, outcome="quit") for task in TASKS))
    assert dict(zip(FURTHER_HEADINGS, further_cells(result), strict=True)) == {
        "harness": "verbatim",
        "solved [95%]": "0% [0%, 0%]",
        "in a row": "0% [0%, 0%]",
        "and more": "25% [25%, 25%]",
        "stuck on failures": "0% [0%, 0%]",
        "cut short": "20% [20%, 20%]",
        "prose": "40% [40%, 40%]",
        "empty": "20% [20%, 20%]",
        "read": "1000",
    }
    stuck = rolled_out(*(rolled(ANN, ANN, "f()", "f()", task=task) for task in TASKS))
    cells = dict(zip(FURTHER_HEADINGS, further_cells(stuck), strict=True))
    assert (cells["in a row"], cells["stuck on failures"]) == (
        "50% [50%, 50%]",
        "100% [100%, 100%]",
    )


def test_every_line_of_the_page_s_legend_explains_something_by_itself() -> None:
    _, _, legend = rollouts_page([VERBATIM], "").partition("## How to read it\n\n")
    items = legend.strip().splitlines()
    assert all(
        re.match(r"- [a-z ,]+: |- Repeating less is not succeeding more", one) for one in items
    )
    assert max(map(len, items)) <= 102
    for heading in (*HEADINGS[3:], *FURTHER_HEADINGS[2:]):
        if heading not in ("steps", "solved/quit/limit/full"):
            assert re.search(rf"\b{heading}\b", legend)


def test_a_note_on_a_harness_is_an_item_below_its_tables() -> None:
    few = rolled_out(solved_by(), setting=replace(SETTING, tasks=("a",)))
    page = rollouts_page([few], "")
    assert f"- verbatim: warning: {few.warnings[0]}\n" in page


def test_without_rollouts_there_is_still_a_page() -> None:
    nothing: list[Rollouts] = []
    assert rollouts_text(nothing) == LEGEND
    assert [*tables(rollouts_page(nothing, "made"))] == []
