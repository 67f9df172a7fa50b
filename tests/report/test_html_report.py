"""The HTML report, as a parser reads it."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from functools import cache
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reported import (
    DESCRIBED,
    GAINS,
    SETTINGS,
    VERBATIM,
    Read,
    comparisons,
    document,
    everything,
    findings,
    hostile_regression,
    read,
    with_records,
)

from fake_scorer import measured
from pytest_failgain.baseline.comparison import compare
from pytest_failgain.baseline.entry import entry_of
from pytest_failgain.baseline.worst import RECORD_UNCHANGED
from pytest_failgain.options import Settings
from pytest_failgain.report.characters import visible
from pytest_failgain.report.document import document_of
from pytest_failgain.report.html_report import html_report
from pytest_failgain.report.page import (
    FULL_CASES,
    LISTED_CASES,
    SHADE_STEPS,
    shade_of,
    shown_groups,
)
from pytest_failgain.stash import Findings
from strategies import quick

HOSTILE = [
    "<script>alert(1)</script>",
    "</code></pre><img src=x onerror=alert(1)>",
    "\" onmouseover='alert(1)' x=\"",
    "</style><style>body{display:none}</style>",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;b&gt; &amp; &#0; &#x202e;",
    "a\u202eb\u2066c\x00d\ud800e\u2028f\r\ng",
    "\n\n  two breaks first, blanks last  \n",
    "<!-- --> ]]> <![CDATA[",
]


@cache
def tags() -> set[str]:
    """The elements of a page that nobody means any harm with."""
    harmless = read(html_report(document_of(everything(), SETTINGS)))
    return {one.tag for one in harmless.elements}


def page(found: Findings, settings: Settings = SETTINGS) -> Read:
    """The page of what was found, which can be written and has only the templates' elements."""
    text = html_report(document_of(found, settings))
    text.encode()
    parsed = read(text)
    assert {one.tag for one in parsed.elements} <= tags()
    for element in parsed.elements:
        assert not [name for name in element.attributes if name.startswith("on")]
        assert not {"src", "style", "action", "srcset"} & element.attributes.keys()
        assert element.attributes.get("href", "#").startswith("#")
    return parsed


def text_of(parsed: Read) -> str:
    return parsed.all("body")[0].text


def row_of(parsed: Read, name: str) -> str:
    """The text of the first row of a table that begins with a name."""
    return next(
        " ".join(row.text.split())
        for row in parsed.all("tr")
        if " ".join(row.text.split()).startswith(f"{name} ")
    )


def test_the_page_tells_the_verdict_of_every_harness_in_words() -> None:
    parsed = page(everything())
    assert parsed.all("title")[0].text == (
        "failgain: 1 harmful, 1 fine, 1 regression, 1 not comparable, 1 without a baseline"
    )
    tiles = [" ".join(one.text.split()) for one in parsed.all("li") if one.attributes.get("class")]
    assert tiles[:7] == [
        *("1 harmful", "1 fine", "1 unknown"),
        *("1 regression", "1 not comparable", "1 without a baseline"),
        "2 rolled out",
    ]
    low, high = VERBATIM.estimates["corrective_gain_per_token"].interval
    assert row_of(parsed, "verbatim ▼").startswith(
        f"verbatim ▼ harmful 10 -0.438 [{low:+.3f}, {high:+.3f}] "
    )
    assert row_of(parsed, "verbatim ▼").endswith(" 80% 0.50 → 0.75 0.00 → 0.20 75% 15")
    assert row_of(parsed, "described ●").startswith("described ● fine 10 ")
    assert row_of(parsed, "none").startswith("none ? unknown 0 - ")
    assert "described: gain +0.619 [" in " ".join(text_of(parsed).split())
    assert "Repeating less is not succeeding more: check success too." in text_of(parsed)


def test_the_page_compares_with_the_baseline_and_shows_rollouts_with_their_success() -> None:
    parsed = page(everything())
    text = " ".join(text_of(parsed).split())
    assert "▼ regression repeat probability ▼ 0.400 → 0.750 +0.350 [+0.350, +0.350] +0.05" in text
    assert "greedy repeat 0.000 → 0.200 " in text
    assert "? no baseline there is no file kept.json" in text
    assert "-0.1" in row_of(parsed, "gain per token ▼")
    assert "the model's weights differ" in text
    assert "2 cases not in the baseline: case8, case9" in text
    assert row_of(parsed, "verbatim 10 40%").startswith("verbatim 10 40% [10%, 70%] ")
    assert "described: solved +0.30 [" in text
    assert "verbatim: 1 of 11 rollouts not started: too long" in text
    assert "nothing was kept" in text


def test_what_got_worse_and_why_stands_before_the_tables() -> None:
    parsed = page(everything())
    assert parsed.all("h2")[0].text == "Compared with the baseline"
    names = [" ".join(one.text.split()) for one in parsed.all("th", scope="rowgroup")]
    verdicts = [
        " ".join(one.text.split())
        for one in parsed.all("td")
        if one.attributes.get("class", "").startswith("words verdict ")
    ]
    assert names == ["verbatim on own cases"] * 2
    assert verdicts[:4] == ["▼ regression", "? not comparable", "? no baseline", "● no regression"]
    (worse,) = parsed.all("details", class_="worse")
    assert "open" in worse.attributes
    assert row_of(parsed, "case0") == "case0 -0.500 → -1.000 0.40 → 0.75 no → yes"
    assert row_of(parsed, "case9") == "case9 +0.625 → +0.125 0.40 → 0.75 no → no"
    assert "The record of case0: - in the baseline, + now" in worse.text
    assert parsed.all("pre", class_="diff")[0].text.splitlines() == [
        *(" assistant", "-It failed.", "+send(to='case0')", " Error: no", " "),
    ]
    assert parsed.all("del")[0].text == "-It failed.\n"
    assert parsed.all("ins")[0].text == "+send(to='case0')\n"
    # That of case1 did not change.
    assert len(parsed.all("pre", class_="diff")) == 2
    assert worse.text.count(RECORD_UNCHANGED) == 1


def test_what_got_worse_while_the_baseline_is_written_is_folded() -> None:
    updated = replace(comparisons()[0], verdict="updated")
    parsed = page(Findings([], [], [updated], {}))
    (worse,) = parsed.all("details", class_="worse")
    assert "open" not in worse.attributes
    assert "updated, though worse than its limits allow" in text_of(parsed)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_regression_of_hostile_texts_has_no_markup(text: str) -> None:
    parsed = page(Findings([], [], [hostile_regression(text)], {}))
    (diff,) = parsed.all("pre", class_="diff")
    lines = diff.text.removesuffix("\n").split("\n")
    assert "\n".join(line[1:] for line in lines if line[:1] != "-") == visible(text)
    assert parsed.all("span", class_="name")[0].text == f"{visible(text)} on own cases"


def test_long_records_and_many_regressions_are_cut_and_the_page_says_so() -> None:
    long = "\n".join("x" * 20_000 + str(number) for number in range(300))
    one = hostile_regression(long)
    many = [replace(one, now=replace(one.now, harness=f"h{number}")) for number in range(25)]
    text = html_report(document_of(Findings([], [], many, {}), SETTINGS))
    assert len(text) < 1_500_000
    parsed = read(text)
    assert len(parsed.all("details", class_="worse")) == 20
    assert "Of 25 regressions, 20 are shown case by case." in text_of(parsed)
    assert parsed.all("ins")[0].text == f"+{'x' * 499}… (19,502 more characters)\n"
    assert "… and " in parsed.all("pre", class_="diff")[0].text


def test_a_page_of_nothing_says_so() -> None:
    parsed = page(findings(), Settings())
    assert "Nothing was measured, rolled out or compared in this run." in text_of(parsed)
    assert not parsed.all("table")


def test_settings_and_model_are_named() -> None:
    parsed = page(findings(VERBATIM))
    assert row_of(parsed, "--failgain-seed") == "--failgain-seed 3 FAILGAIN_SEED"
    assert "Made with fake (a hash, float32)" in text_of(parsed)


def test_cases_stand_with_the_worst_first_and_lead_to_their_texts() -> None:
    parsed = page(findings(VERBATIM))
    links = [one for one in parsed.all("a") if re.match(r"#m\d", one.attributes["href"])]
    assert [link.text for link in links] == sorted(GAINS, key=lambda case_id: GAINS[case_id])
    places = {one.attributes["id"]: one.text for one in parsed.all("div") if "id" in one.attributes}
    for link in links:
        assert f"send(to='{link.text}')" in places[link.attributes["href"][1:]]
    assert row_of(parsed, "case1") == "case1 -0.875 0.50 → 0.75 yes"
    assert row_of(parsed, "case9") == "case9 +0.125 0.50 → 0.75 no"


def test_a_case_without_another_candidate_has_no_repeat_probability() -> None:
    parsed = page(findings(measured({"a": -1.0})))
    assert row_of(parsed, "a") == "a -1.000 - no"
    assert "nan" not in html_report(document(measured({"a": -1.0})))


def test_each_token_has_its_change_below_it_and_its_shade_in_the_record() -> None:
    parsed = page(findings(VERBATIM))
    figures = [one.text for one in parsed.all("rt")]
    assert figures[:8] == ["+1.00"] * 8  # a gain of -1 nat per token over 8 tokens
    assert figures[-8:] == ["-0.12"] * 8
    tokens = parsed.all("ruby")[:8]
    assert "".join(one.text for one in tokens) == "send(to='case0')"
    assert {one.attributes["class"] for one in tokens} == {"u2"}
    in_record = [one for one in parsed.all("span", class_="u2") if "title" in one.attributes]
    assert "".join(one.text for one in in_record[:8]) == "send(to='case0')"
    assert in_record[0].attributes["title"] == "+1.00 nats"


@pytest.mark.parametrize(
    ("record", "coloured"),
    [
        ("nothing of it", 0),
        ("send(to='case0') and send(to='case0')", 2),
        ("send(to='case0')" * 9, 5),
        ("", 0),
    ],
)
def test_the_action_is_coloured_wherever_the_record_has_it(record: str, coloured: int) -> None:
    alone = measured({"case0": -1.0})
    parsed = page(findings(with_records(alone, {"case0": record})))
    marked = [one for one in parsed.all("span") if "title" in one.attributes]
    assert len(marked) == 8 * coloured
    texts = [one.text for one in parsed.all("pre")]
    assert record in texts if record else "adds nothing to the prompt" in text_of(parsed)


def test_white_space_around_an_action_does_not_hide_it_in_the_record() -> None:
    one = measured({"case0": -1.0})
    rows = [
        replace(
            row,
            text=f" {row.text}\n",
            token_spans=((0, 5), *((start + 1, end + 1) for start, end in row.token_spans[1:])),
        )
        for row in one.rows
    ]
    padded = replace(with_records(one), rows=tuple(rows))
    parsed = page(findings(padded))
    marked = [each.text for each in parsed.all("span") if "title" in each.attributes]
    assert "".join(marked) == "send(to='case0')"
    assert parsed.all("ruby")[0].text == " send"


@pytest.mark.parametrize(
    ("change", "shade"),
    [
        (0.0, ""),
        (0.09, ""),
        (0.1, "u1"),
        (-0.1, "d1"),
        (0.5, "u2"),
        (1.5, "u3"),
        (-2.9, "d3"),
        (3.0, "u4"),
        (-40.0, "d4"),
        (float("nan"), ""),
    ],
)
def test_a_larger_change_has_a_stronger_shade(change: float, shade: str) -> None:
    assert shade_of(change) == shade


def test_the_legend_shows_every_shade() -> None:
    parsed = page(findings(VERBATIM))
    legend = {
        one.attributes["class"]: one.text
        for one in parsed.all("li")
        if re.fullmatch("[ud][1-4]", one.attributes.get("class", ""))
    }
    for number, step in enumerate(SHADE_STEPS, start=1):
        assert legend[f"u{number}"] == f"+{step} or more"
        assert legend[f"d{number}"] == f"-{step} or less"


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_that_a_user_wrote_is_markup(text: str) -> None:
    base = measured({text: -1.0}, harness=text, repeat={text: 0.6}, tasks={text: text})
    case = base.cases[0]
    hostile = replace(
        base,
        environment=text,
        model=replace(base.model, name=text, source=text),
        cases=(replace(case, trajectory=replace(case.trajectory, goal=text)),),
        records={text: text},
        adaptations=((text, 1),),
        by_construction=text,
    )
    entry = entry_of(hostile)
    other = replace(entry, model=replace(entry.model, weights=text))
    found = Findings([hostile], [], [compare(entry, other)], {"a": text})
    parsed = page(found, Settings(model=text, sources={"model": text}))
    shown = visible(text)
    body = text_of(parsed)
    for place in (
        f"by construction, {shown}",
        f"adapted in 1 of 1 cases: {shown}",
        f"Goal (task {shown})",
        f"differ: {shown} in the baseline",
    ):
        assert place in body
    assert shown in [one.text for one in parsed.all("pre")]
    assert shown in [one.text for one in parsed.all("dd")]
    assert shown in [one.text for one in parsed.all("a")]
    assert f"Cases of {shown}" in {one.attributes.get("aria-label") for one in parsed.all("div")}


@quick
@given(
    st.text(st.characters(), max_size=40) | st.sampled_from(HOSTILE),
    st.text(st.characters(), min_size=1, max_size=10),
)
def test_any_record_and_any_action_are_read_back_from_the_page(record: str, name: str) -> None:
    one = measured({name: -1.0})
    parsed = page(findings(with_records(one, {name: f"{record}send(to='{name}'){record}"})))
    shown = [pre.text for pre in parsed.all("pre")]
    assert shown == [visible(f"send(to='{name}')"), visible(f"{record}send(to='{name}'){record}")]


def test_the_policy_lets_nothing_in_but_the_style_of_the_page() -> None:
    parsed = page(everything())
    (policy,) = [
        one.attributes["content"]
        for one in parsed.all("meta")
        if one.attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    (style,) = parsed.all("style")
    digest = base64.b64encode(sha256(style.text.encode()).digest()).decode()
    assert policy.split("; ")[:2] == ["default-src 'none'", f"style-src 'sha256-{digest}'"]
    assert "url(" not in style.text
    assert "@import" not in style.text


def test_landmarks_headings_and_headers_are_there_for_those_who_do_not_see() -> None:
    parsed = page(everything())
    assert parsed.all("html")[0].attributes["lang"] == "en"
    for tag in ("header", "nav", "main", "footer", "h1"):
        assert len(parsed.all(tag)) == 1
    assert all("scope" in one.attributes for one in parsed.all("th"))
    names = {one.attributes["id"]: one.text for one in parsed.elements if "id" in one.attributes}
    ids = [one.attributes["id"] for one in parsed.elements if "id" in one.attributes]
    assert len(ids) == len(names)
    for element in parsed.elements:
        labelled = element.attributes.get("aria-labelledby")
        assert labelled is None or names[labelled].strip()
        if element.attributes.get("class") == "scroll":
            assert element.attributes["role"] == "region"
            assert element.attributes["tabindex"] == "0"
            assert labelled or element.attributes["aria-label"]
    for link in parsed.all("a"):
        assert link.attributes["href"][1:] in names
    assert all(one.attributes["aria-hidden"] == "true" for one in parsed.all("svg"))


def luminance(colour: str) -> float:
    """The relative luminance that WCAG defines."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
def test_every_text_stands_out_from_its_ground(theme: str) -> None:
    style = read(html_report(document(VERBATIM))).all("style")[0].text
    blocks = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    values = dict(
        re.findall(r"--(\w+): (#\w{6})", blocks[["light", "dark", "print"].index(theme)], re.DOTALL)
    )
    shades = [f"{way}{strength}" for way in "ud" for strength in range(1, 5)]
    words = ["ink", "quiet", "harmful", "fine", "unknown", "link", "careful"]
    pairs = [("ink", shade) for shade in (*shades, "gone", "new")]
    pairs += [(word, ground) for word in words for ground in ("ground", "panel")]
    for text, ground in pairs:
        lighter, darker = sorted((luminance(values[text]), luminance(values[ground])), reverse=True)
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5, (text, ground)


def test_with_very_many_cases_the_worst_are_shown_in_full_and_the_page_says_so() -> None:
    count = LISTED_CASES + 50
    gains = {f"c{number}": -1.0 + number / count for number in range(count)}
    # The bootstrap of thousands of tasks takes seconds, and is not what is looked at here.
    many = measured(gains, tasks=dict.fromkeys(gains, "one"))
    parsed = page(findings(with_records(many)))
    assert len(parsed.all("details", class_="case")) == FULL_CASES
    (table,) = parsed.all("table", class_="cases")
    rows = [one for one in parsed.all("tr") if re.match(r"\s*c\d", one.text)]
    assert len(rows) == LISTED_CASES
    assert f"c{LISTED_CASES - 1}" in table.text
    assert f"c{LISTED_CASES}" not in table.text
    said = " ".join(text_of(parsed).split())
    assert (
        f"The {FULL_CASES} worst of {count} cases are shown in full, and the {LISTED_CASES} worst "
        "are listed. The JSON report has all of them."
    ) in said


def test_a_page_that_shows_all_of_its_cases_says_nothing_of_a_cut() -> None:
    assert "JSON report has all" not in text_of(page(findings(VERBATIM, DESCRIBED)))


@pytest.mark.slow
def test_huge_texts_are_cut_and_fewer_cases_shown_so_that_the_page_stays_usable() -> None:
    ids = [f"case{number}-{'x' * 100_000}" for number in range(3)]
    cases = {f"{case_id}{', ' * 5_000}": -1.0 for case_id in ids}
    huge = with_records(measured(cases))
    page_text = html_report(document(huge, *(replace(huge, harness=f"h{n}") for n in range(8))))
    assert len(page_text) < 9 * 400_000
    parsed = read(page_text)
    # At least one of each measurement.
    assert len(parsed.all("details", class_="case")) >= 9
    gaps = [one.text for one in parsed.all("span", class_="gap")]
    goal, action = huge.cases[0].trajectory.goal, huge.rows[0].text
    for place, text in ((parsed.all("dd")[0], goal), (parsed.all("pre")[0], action)):
        gap = next(one for one in gaps if one in place.text)
        assert f"[… {len(text) - 8_000:,} characters are left out here" in gap
        assert place.text.partition(gap) == (text[:4_000], gap, text[-4_000:])


@pytest.mark.slow
def test_however_many_measurements_there_are_each_shows_its_worst_case() -> None:
    long = ", " * 5_000
    huge = measured({f"a{long}": -1.0, f"b{long}": -2.0})
    many = document(huge, *(replace(huge, harness=f"h{n}") for n in range(40)))
    for group in shown_groups(many):
        for shown in group.measurements:
            assert [one.case.case_id[0] for one in shown.full] == ["b"]
            assert [one.case.case_id[0] for one in shown.listed] == ["b", "a"]
