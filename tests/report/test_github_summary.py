"""The step summary, as Markdown and as the HTML that comes of it."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from reported import (
    DESCRIBED,
    DRIVEN,
    VERBATIM,
    Read,
    document,
    everything,
    findings,
    hostile_regression,
    with_records,
)

from fake_scorer import measured
from pytest_failgain.baseline.worst import RECORD_UNCHANGED
from pytest_failgain.options import Settings
from pytest_failgain.report.characters import visible
from pytest_failgain.report.document import document_of
from pytest_failgain.report.github import MOST_BYTES, step_summary
from pytest_failgain.stash import Findings
from strategies import quick

HOSTILE = [
    "<script>alert(1)</script>",
    "</summary></details></code></pre><img src=x>",
    "[x](javascript:alert(1)) ![y](//z) `code` **b** _i_ ~~s~~",
    "a | b \\| c\n\n# heading\n\n```\nfence",
    "- x\n1. y\n> z\n---",
    "&lt;b&gt; &amp; \\*",
    "a\u202eb\x00\ud800",
    "+ x",
    "     five blanks",
    "www.example.com http://1.2.3.4 @someone #12",
]


def rendered(markdown: str) -> Read:
    """The elements that Markdown makes of the summary."""
    reader = Read()
    html = (
        MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(markdown)
    )
    reader.feed(f"<body>{html}</body>")
    reader.close()
    assert not reader._open
    return reader


@cache
def tags() -> set[str]:
    """The elements of a summary that nobody means any harm with."""
    return {one.tag for one in rendered(summary(everything())).elements}


def summary(found: Findings) -> str:
    return step_summary(document_of(found, Settings()))


def test_verdicts_come_first_then_the_baseline_then_the_tables() -> None:
    parsed = rendered(summary(everything()))
    headings = [one.text for one in parsed.elements if one.tag in ("h2", "h3")]
    assert headings[:4] == [
        ", ".join(
            [
                *("failgain: 1 harmful", "1 fine", "1 unknown"),
                *("1 regression", "1 not comparable", "1 without a baseline"),
                "2 rolled out",
            ]
        ),
        "Compared with the baseline",
        "own cases: 10 cases of 10 tasks, fake (a hash, float32)",
        "own cases: 0 cases of 0 tasks, fake (a hash, float32)",
    ]
    assert headings[4].startswith("tool_calls: free rollouts of 11 tasks, ")
    rows = [" ".join(one.text.split()) for one in parsed.all("tr")]
    low, high = VERBATIM.estimates["corrective_gain_per_token"].interval
    assert any(
        row.startswith(f"verbatim 🔴 harmful 10 -0.438 [{low:+.3f}, {high:+.3f}] -0.438 80% ")
        for row in rows
    )
    assert any(row.startswith("described 🟢 fine 10 ") for row in rows)
    assert any(row.startswith("verbatim 10 40% [10%, 70%] ") for row in rows)
    notes = [one.text for one in parsed.all("li")]
    compared = [note for note in notes if note.startswith(("🔴", "⚪", "🟢"))]
    assert compared[0].splitlines()[0] == "🔴 verbatim on own cases: regression"
    assert compared[1].startswith("⚪ verbatim on own cases: not comparable: the model's weights ")
    assert compared[2] == "⚪ verbatim on own cases: no baseline: there is no file kept.json"
    assert compared[3].startswith("🟢 verbatim on own cases: no regression: repeat probability ")
    assert (
        "repeat probability 0.400 -> 0.750, +0.350 [+0.350, +0.350], n = 10 (+0.05 allowed)"
    ) in notes
    assert any(note.startswith("described: gain +0.619 [") for note in notes)
    assert "nothing was kept" in notes
    paragraphs = [one.text for one in parsed.all("p")]
    assert paragraphs[0] == "Repeating less is not succeeding more: check success too."


def test_the_worst_cases_of_harmful_harnesses_can_be_unfolded() -> None:
    parsed = rendered(summary(findings(VERBATIM, DESCRIBED)))
    folded = [one.text for one in parsed.all("summary")]
    assert folded == ["worst cases of verbatim on own cases", "How to read it"]
    rows = [" ".join(one.text.split()) for one in parsed.all("tr") if "case" in one.text]
    assert rows[1:3] == [
        "case0 -1.000 0.50 0.75 send(to='case0')",
        "case1 -0.875 0.50 0.75 send(to='case1')",
    ]
    assert len(rows) == 6
    assert parsed.all("pre")[0].text == "assistant\nsend(to='case0')\nError: no\n"


def test_what_got_worse_since_the_baseline_can_be_unfolded() -> None:
    parsed = rendered(summary(everything()))
    assert parsed.all("summary")[0].text == "what got worse in verbatim on own cases"
    rows = [" ".join(one.text.split()) for one in parsed.all("tr")]
    assert rows[:3] == [
        "case gain/token before now repeat p before now greedy before now",
        "case0 -0.500 -1.000 0.40 0.75 - repeat",
        "case1 -0.375 -0.875 0.40 0.75 - repeat",
    ]
    assert parsed.all("pre")[0].text.splitlines() == [
        *(" assistant", "-It failed.", "+send(to='case0')", " Error: no", " "),
    ]
    unchanged = [one.text for one in parsed.all("p") if one.text.startswith("case1: ")]
    assert unchanged == [f"case1: {RECORD_UNCHANGED}"]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_regression_of_hostile_texts_has_no_markup(text: str) -> None:
    parsed = rendered(summary(Findings([], [], [hostile_regression(text)], {})))
    assert {one.tag for one in parsed.elements} <= tags()
    shown = visible(text)
    assert parsed.all("summary")[0].text.startswith(f"what got worse in {shown}".rstrip())
    lines = parsed.all("pre")[0].text.split("\n")
    assert "\n".join(line[1:] for line in lines if line[:1] != "-") == shown


@pytest.mark.parametrize("kind", ["measured", "rolled out", "both"])
def test_the_legend_is_that_of_what_is_shown(kind: str) -> None:
    measurements = [] if kind == "rolled out" else [VERBATIM]
    rollouts = [] if kind == "measured" else [*DRIVEN]
    lines = [
        one.text for one in rendered(summary(Findings(measurements, rollouts, [], {}))).all("li")
    ]
    assert any(line.startswith("gain: nats by which") for line in lines) == bool(measurements)
    assert any(line.startswith("solved: share of rollouts") for line in lines) == bool(rollouts)


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_that_a_user_wrote_is_markup(text: str) -> None:
    base = measured({text: -1.0}, harness=text)
    hostile = replace(base, environment=text, records={text: text}, adaptations=((text, 1),))
    parsed = rendered(summary(Findings([hostile], [], [], {"a": text})))
    assert {one.tag for one in parsed.elements} <= tags()
    shown = visible(text)
    assert parsed.all("pre")[0].text.lstrip("\n") == shown.lstrip("\n")
    assert any(f"adapted in 1 of 1 cases: {shown}" in one.text for one in parsed.all("li"))
    assert shown.strip() in [one.text.strip() for one in parsed.all("li")]
    assert any(one.text.startswith(f"worst cases of {shown} on") for one in parsed.all("summary"))
    # A cell does not keep more than one blank.
    (code,) = [one.text for one in parsed.all("code")]
    assert code.split() == f"send(to='{shown}')".split()


@quick
@given(st.text(st.characters(), min_size=1, max_size=30).filter(str.strip))
def test_any_text_is_read_back(text: str) -> None:
    hostile = with_records(measured({"a": -1.0}), {"a": text})
    found = Findings([hostile], [], [], {"a": f"note {text} end"})
    parsed = rendered(summary(found))
    assert {one.tag for one in parsed.elements} <= tags()
    assert parsed.all("pre")[0].text.lstrip("\n") == visible(text).lstrip("\n")
    assert f"note {visible(text)} end" in [one.text for one in parsed.all("li")]


def test_what_has_no_room_is_left_out_and_named() -> None:
    whole = step_summary(document(VERBATIM))
    short = step_summary(document(VERBATIM), most_bytes=len(whole.encode()) - 200)
    assert "Left out, for want of room: legend" in short
    assert short.startswith("## failgain: 1 harmful, 0 fine")
    least = step_summary(document_of(everything(), Settings()), most_bytes=300)
    assert len(least.encode()) < 1_000
    assert re.search(r"Left out, for want of room: baseline, what got worse in verb", least)
    assert re.search(r", own cases, rollouts in tool", least)


def test_very_much_stays_far_below_the_limit_of_a_step() -> None:
    long = "word " * 30_000
    many = [
        replace(
            with_records(measured({f"{n}": -1.0}, harness=f"h{n}"), {f"{n}": long}),
            environment=f"{n}{long}",
            adaptations=tuple((f"{i}{long}", 1) for i in range(50)),
        )
        for n in range(60)
    ]
    text = summary(findings(*many))
    assert len(text.encode()) < MOST_BYTES + 1_000
    assert "Left out, for want of room: " in text
    rendered(text)
