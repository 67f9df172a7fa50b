"""Files of suites: what is read of them, and what is told of those that are wrong."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from suite_projects import MET, suite

from pytest_failgain.fixtures import ENVIRONMENT_NAMES, REMEDY_NAMES
from pytest_failgain.suites.problems import SuiteFileError
from pytest_failgain.suites.reading import read_suites
from pytest_failgain.suites.reading_subjects import DEFAULT_CASES
from pytest_failgain.suites.suite import (
    EnvironmentCases,
    FileCases,
    HarnessName,
    MarkUse,
    Regression,
    Suite,
    Threshold,
)
from pytest_failgain.summary_values import SUMMARY_ESTIMATES, SUMMARY_VALUES

ENVIRONMENT = "environment: tool_calls"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tmp_path.joinpath("cases.jsonl").touch()
    tmp_path.joinpath("more.jsonl").touch()
    return tmp_path


def read(text: str | bytes, folder: Path = Path("/nowhere")) -> tuple[Suite, ...]:
    return read_suites(text if isinstance(text, bytes) else text.encode(), folder)


def only(*lines: str, folder: Path = Path("/nowhere")) -> Suite:
    (read_suite,) = read(suite(*lines), folder)
    return read_suite


def problems(text: str | bytes, folder: Path = Path("/nowhere")) -> list[str]:
    """What is told of a wrong file, each beginning with its line."""
    with pytest.raises(SuiteFileError) as caught:
        read(text, folder)
    return [f"{one.line}: {one.problem}" for one in caught.value.problems]


def problem(*lines: str, folder: Path = Path("/nowhere")) -> str:
    """The one thing that is told of a suite; its first line is line 4 of the file."""
    (told,) = problems(suite(*lines), folder)
    return told


def test_all_keys_are_read(folder: Path) -> None:
    text = """
    failgain: 1
    suites:
      record:
        harnesses: [parts_desk.history:render, verbatim]
        environments: [tool_calls, program_repair]
        cases: 12
        remedies: [none, described+instructed]
        thresholds:
          corrective_gain_per_token: {at_least: -0.1}
          repeat_probability_after: {at_least: 1e-3, at_most: .25}
          n: {at_least: +10., at_most: 10}
        regression: {max_increase: 0, max_gain_drop: 2}
        conditions: [before, failed, neutral]
        marks:
        - slow
        - timeout: 600
        - skipif: [false, 1.5]
        - xfail: {reason: it does, strict: yes, raises: }
    """
    assert read(text) == (
        Suite(
            name="record",
            line=4,
            sources=(EnvironmentCases("tool_calls", 12), EnvironmentCases("program_repair", 12)),
            harnesses=(HarnessName("parts_desk.history:render", 5), HarnessName("verbatim", 5)),
            remedies=("none", "described+instructed"),
            thresholds=(
                Threshold("corrective_gain_per_token", at_least=-0.1),
                Threshold("repeat_probability_after", at_least=0.001, at_most=0.25),
                Threshold("n", at_least=10, at_most=10),
            ),
            regression=Regression(0, 2),
            conditions=("before", "failed", "neutral"),
            marks=(
                MarkUse("slow", 16),
                MarkUse("timeout", 17, (600,)),
                MarkUse("skipif", 18, (False, 1.5)),
                MarkUse(
                    "xfail",
                    19,
                    kwargs=(("reason", "it does"), ("strict", True), ("raises", None)),
                ),
            ),
        ),
    )


def test_least_that_a_suite_needs_is_read_with_the_defaults() -> None:
    assert only(ENVIRONMENT, "regression: true") == Suite(
        name="record",
        line=3,
        sources=(EnvironmentCases("tool_calls", 30),),
        regression=Regression(),
    )


def test_singular_and_plural_keys_take_one_name_or_a_list() -> None:
    assert only("environment: [tool_calls]", "harnesses: a:b", "remedies: described", MET) == (
        only("environments: tool_calls", "harness: [a:b]", "remedies: [described]", MET)
    )


def test_cases_are_taken_from_files_beside_the_yaml(folder: Path) -> None:
    assert only("cases: cases.jsonl", MET, folder=folder).sources == (
        FileCases(folder / "cases.jsonl", "cases.jsonl"),
    )
    assert only("cases: [cases.jsonl, ./more.jsonl]", MET, folder=folder).sources == (
        FileCases(folder / "cases.jsonl", "cases.jsonl"),
        FileCases(folder / "more.jsonl", "./more.jsonl"),
    )
    absolute = str(folder / "cases.jsonl")
    assert only(f"cases: {absolute}", MET).sources == (FileCases(Path(absolute), absolute),)


@pytest.mark.parametrize(
    ("line", "read_as"),
    [
        ("regression: false", None),
        ("regression: on", Regression()),
        ("regression: {}", Regression()),
        ("regression: {max_gain_drop: 0.2}", Regression(max_gain_drop=0.2)),
    ],
)
def test_regression_is_a_flag_or_limits(line: str, read_as: Regression | None) -> None:
    assert only(ENVIRONMENT, MET, line).regression == read_as


def test_anchors_aliases_and_merge_keys_work() -> None:
    text = """
    failgain: 1
    x-base: &base {environment: tool_calls, cases: 3}
    x-strict: &strict {cases: 4, thresholds: &met {n: {at_least: 1}}}
    suites:
      one: {<<: *base, thresholds: *met}
      two: {<<: [*base, *strict], marks: slow}
      three: {<<: *base, cases: 5, thresholds: *met}
    """
    one, two, three = read(text)
    assert [suite.sources for suite in (one, two, three)] == [
        (EnvironmentCases("tool_calls", count),) for count in (3, 3, 5)
    ]
    assert one.thresholds == two.thresholds == (Threshold("n", at_least=1),)


def test_merged_keys_are_checked_like_others() -> None:
    text = """
    failgain: 1
    x-base: &base {environmnt: tool_calls}
    suites:
      one: {<<: *base, environment: tool_calls, thresholds: {n: {at_least: 1}}}
      same: {<<: *base, environment: tool_calls, thresholds: {n: {at_least: 1}}}
      two: {<<: 7, environment: tool_calls, thresholds: {n: {at_least: 1}}}
    """
    assert problems(text) == [
        "3: there is no key 'environmnt'; did you mean 'environment'?",
        "7: '<<' merges a mapping or a list of them, not 7",
    ]


def test_a_mapping_that_contains_itself_is_read_once() -> None:
    text = "failgain: 1\nx-a: &a {<<: [*a, *a], environment: tool_calls}\nsuites:\n  s: {<<: *a}"
    assert problems(text) == [
        (
            "4: the suite 's' has neither thresholds nor regression, so nothing could fail; give "
            "one, such as thresholds: {repeat_probability_after: {at_most: 0.5}}"
        )
    ]


def test_merges_of_merges_take_no_time() -> None:
    lines = ["failgain: 1", "x-0: &m0 {environment: tool_calls}"]
    for depth in range(1, 30):
        merged = ", ".join([f"*m{depth - 1}"] * 9)
        lines.append(f"x-{depth}: &m{depth} {{<<: [{merged}]}}")
    lines += ["suites:", "  s: {<<: *m29, thresholds: {n: {at_least: 1}}}"]
    (read_suite,) = read("\n".join(lines))
    assert read_suite.sources == (EnvironmentCases("tool_calls", DEFAULT_CASES),)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "1: the file is empty; it needs 'failgain: 1' and 'suites: \u2026'"),
        (b"# nothing\n---\n", "1: the file is empty; *"),
        (b"- failgain", "1: the file must be a mapping, got a list"),
        (b"suites: {}", "1: the key 'failgain' is missing; begin with *, failgain: 1"),
        (b"failgain: 1", "1: the key 'suites' is missing; it holds suites by name"),
        (b"failgain: 1\nsuites: {}", "2: 'suites' is empty; it needs a suite, by name"),
        (b"failgain: 1\nsuites:", "2: 'suites' must be a mapping, got nothing"),
        (b"failgain: true", "1: 'failgain' must be the format version, 1, got true"),
        (b"failgain: '1'", "1: 'failgain' must be the format version, 1, got the text '1'"),
        (b"failgain: 1\na: [\n]:", "3: not YAML: mapping values are not allowed here"),
        (b"failgain: 1\n\tsuites:", "2: not YAML: *found character '\\t'*"),
        (b"failgain: 1\n---\nfailgain: 1", "2: not YAML: expected a single document*"),
        (b"failgain: 1\nsuites: *no", "2: not YAML: found undefined alias 'no'"),
        (b"failgain: 1\n# \xff", "2: the file is not UTF-8: invalid start byte"),
        (b"failgain: 1\n# \x07", "2: not YAML: special characters are not allowed"),
        (b"[" * 2000, "1: the file is nested too deeply"),
        (b"!!python/name:os.system {}", "1: the tag '!!python/name:os.system' is not allowed*"),
    ],
)
def test_what_is_no_file_of_suites_is_told_with_its_line(content: bytes, told: str) -> None:
    (said,) = problems(content)
    assert fnmatchcase(said, told.replace("[", "[[]")), said


def test_another_version_is_told_alone() -> None:
    assert problems("failgain: 2\nnew_key: 1\nsuites: {a: 3}") == [
        (
            "1: 'failgain' is 2, but this version of pytest-failgain reads format 1 only; update "
            "pytest-failgain, or write failgain: 1"
        )
    ]


def test_a_byte_order_mark_and_other_line_ends_do_not_matter() -> None:
    text = suite(ENVIRONMENT, MET).replace("\n", "\r\n")
    assert read(b"\xef\xbb\xbf" + text.encode()) == read(suite(ENVIRONMENT, MET))


def test_all_problems_of_a_file_are_told_in_the_order_of_its_lines() -> None:
    text = """
    failgain: 1
    suite: {}
    suites:
      record:
        harnes: x
        environment: tool_cals
        cases: 0
        thresholdz: {}
        remedies: [discribed, masked]
        regression: {max_increase: 5, max_gain_drop: -1}
        conditions: [before, neutrall]
        marks: [a b, {a: 1, b: 2}, parametrize, 3]
      other:
        cases: 3
        thresholds:
          corective_gain: {at_least: 0}
          corrective_gain: 3
          n: {at_least: true, at_mots: 3}
          n_tasks: {}
    """
    assert problems(text) == [
        "3: there is no key 'suite'; did you mean 'suites'?",
        "6: there is no key 'harnes'; did you mean 'harness'?",
        "7: there is no environment 'tool_cals'; did you mean 'tool_calls'?",
        "8: 'cases' must be a whole number of 1 or more, got 0",
        "9: there is no key 'thresholdz'; did you mean 'thresholds'?",
        "10: there is no remedy 'discribed'; did you mean 'described'?",
        (
            "10: 'masked' (in 'masked') is a block: it changes what is decoded and nothing of what "
            "is scored, so it can't be measured; leave it out, or test it with failgain.rollout"
        ),
        "11: 'max_increase' must be a share between 0 and 1, got 5",
        "11: 'max_gain_drop' must be 0 or more nats per token, got -1",
        "12: there is no condition 'neutrall'; did you mean 'neutral'?",
        "13: 'a b' can't be the name of a mark; give one such as slow",
        "13: a mark with arguments has one name, got 2; begin each mark with '- '",
        ("13: the mark 'parametrize' does nothing here; list environments, harnesses or remedies"),
        "13: a mark must be a text, got 3; put it into quotes if it is meant as a text",
        (
            "15: 'cases' is 3, without an environment; say which is to give them (tool_calls, "
            "program_repair), or name a file"
        ),
        "17: there is no value of the summary 'corective_gain'; did you mean 'corrective_gain'?",
        (
            "18: the threshold of 'corrective_gain' is 3, on which side? Write {at_least: 3} or "
            "{at_most: 3}"
        ),
        "19: there is no key 'at_mots'; did you mean 'at_most'?",
        "19: 'at_least' of 'n' must be a number, got true",
        "20: the threshold of 'n_tasks' has no bound; give at_least, at_most or both",
    ]


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([MET], "3: the suite 'record' has no cases; give an environment (tool_calls, *"),
        ([ENVIRONMENT], "3: the suite 'record' has neither thresholds nor regression, *"),
        ([ENVIRONMENT, "regression: false"], "3: the suite 'record' has neither *"),
        ([ENVIRONMENT, "thresholds: {}"], "3: the suite 'record' has neither *"),
        ([ENVIRONMENT, "thresholds:"], "5: 'thresholds' must be a mapping, got nothing"),
        (
            [ENVIRONMENT, MET, "regression:"],
            "6: 'regression' is nothing; write true, or limits such as *",
        ),
        (
            [ENVIRONMENT, "environments: tool_calls", MET],
            "5: 'environment' and 'environments' are the same key; *",
        ),
        (
            [ENVIRONMENT, "harness: a:b", "harnesses: a:b", MET],
            "6: 'harness' and 'harnesses' are *",
        ),
        (
            [ENVIRONMENT, "cases: cases.jsonl", MET],
            "5: 'cases' is the file 'cases.jsonl' beside 'environment'; keep one*",
        ),
        (
            [ENVIRONMENT, "cases: 2.5", MET],
            "5: 'cases' must be a whole number of 1 or more, got 2.5",
        ),
        (
            [ENVIRONMENT, "cases: yes", MET],
            "5: 'cases' must be a whole number of 1 or more, got yes",
        ),
        (
            [ENVIRONMENT, "remedies: []", MET],
            "5: 'remedies' is an empty list; leave it out or fill it",
        ),
        (
            [ENVIRONMENT, "remedies: [none, none]", MET],
            "5: 'none' stands twice in 'remedies'; name it once",
        ),
        (
            [ENVIRONMENT, "remedies: [described+dropped]", MET],
            "5: described and dropped in * can't be joined*",
        ),
        (
            [ENVIRONMENT, "remedies: [described + searched]", MET],
            "5: 'searched' (in 'described + searched') is a block*",
        ),
        ([ENVIRONMENT, "remedies: described+none", MET], "5: there is no remedy 'none'*"),
        (
            [ENVIRONMENT, "remedies: zzz", MET],
            "5: there is no remedy 'zzz'; there are: none, verbatim, instructed, *",
        ),
        (
            [ENVIRONMENT, "remedies: [no]", MET],
            "5: each of 'remedies' must be a text, got no; put it into quotes*",
        ),
        ([ENVIRONMENT, "remedies: ['']", MET], "5: each of 'remedies' is empty; give a text"),
        (
            [ENVIRONMENT, "harness: a.history.render", MET],
            "5: a harness must be *, got 'a.history.render'; did you mean 'a.history:render'?",
        ),
        (
            [ENVIRONMENT, "harness: history.py:render()", MET],
            "5: a harness must be *, got 'history.py:render()'",
        ),
        ([ENVIRONMENT, "harness: 3", MET], "5: 'harness' must be a text, got 3; *"),
        ([ENVIRONMENT, "harness: {a: b}", MET], "5: 'harness' must be a text, got a mapping"),
        (
            [ENVIRONMENT, "harness: !!python/name:os.system ''", MET],
            "5: the tag '!!python/name:os.system' is not allowed here; *",
        ),
        (
            [ENVIRONMENT, "conditions: [failed]", MET],
            "5: 'conditions' lacks before, which the gain is the difference of*",
        ),
        (
            [ENVIRONMENT, "thresholds: {n: {at_least: .nan}}"],
            "5: 'at_least' of 'n' must be a number, got .nan",
        ),
        (
            [ENVIRONMENT, "thresholds: {n: {at_least: nan}}"],
            "5: 'at_least' of 'n' must be a number, got the text 'nan'",
        ),
        (
            [ENVIRONMENT, "thresholds: {n: {at_least: 1e999}}"],
            "5: 'at_least' of 'n' must be a number, *",
        ),
        (
            [ENVIRONMENT, "thresholds: {n: {at_least: 010}}"],
            "5: 'at_least' of 'n' must be a number, got 010",
        ),
        (
            [ENVIRONMENT, "thresholds: {n: {at_least: '1'}}"],
            "5: 'at_least' of 'n' must be a number, got the text '1'",
        ),
        (
            [ENVIRONMENT, "thresholds: {n: {at_least: 3, at_most: 2}}"],
            "5: the threshold of 'n' can't be met: at_least 3 is over at_most 2",
        ),
        (
            [ENVIRONMENT, "thresholds: {negative_share: {at_most: 25}}"],
            "5: 'at_most' of 'negative_share' must be a share *, got 25",
        ),
        (
            [ENVIRONMENT, "thresholds: {corrective_gain_ci: {at_most: 25}}"],
            "5: there is no value of the summary *_ci'; did you mean 'corrective_gain'?",
        ),
        ([ENVIRONMENT, "thresholds: [n]"], "5: 'thresholds' must be a mapping, got a list"),
        ([ENVIRONMENT, MET, MET], "6: the key 'thresholds' already stands on line 5; keep one"),
        ([ENVIRONMENT, MET, "? [a]", ": b"], "6: a key must be a text, got a list"),
        (
            [ENVIRONMENT, MET, "marks: [skip: {reason: {}}]"],
            "6: an argument of the mark 'skip' must be *, got a mapping",
        ),
        (
            ["cases: none.jsonl", MET],
            "4: the case file 'none.jsonl' is not there; its path is taken from *",
        ),
        (["cases: .", MET], "4: the case file '.' is a folder; *"),
        (
            ["cases: [cases.jsonl, cases.jsonl]", MET],
            "4: 'cases.jsonl' stands twice in 'cases'; name it once",
        ),
        (["cases: [cases.jsonl, 3]", MET], "4: 'cases' is 3, without an environment; *"),
    ],
)
def test_a_wrong_value_is_told_with_its_line(lines: list[str], told: str, folder: Path) -> None:
    said = problem(*lines, folder=folder)
    assert fnmatchcase(said, told.replace("[", "[[]")), said


def test_a_name_that_is_none_for_a_suite_is_told() -> None:
    assert problems(suite(ENVIRONMENT, MET, name="a/b")) == [
        "3: the suite's name 'a/b' must be of letters, digits and '_', '.', '-' alone"
    ]
    assert problems(f"{suite(ENVIRONMENT, MET)}\n  record: {{}}") == [
        "6: the suite 'record' already stands on line 3; keep one"
    ]


def test_a_suite_is_not_blamed_for_another_one() -> None:
    text = f"{suite('nothing: 1')}\n  other:\n    {ENVIRONMENT}"
    assert [told.partition(";")[0] for told in problems(text)] == [
        "3: the suite 'record' has no cases",
        "4: there is no key 'nothing'",
        "5: the suite 'other' has neither thresholds nor regression, so nothing could fail",
    ]


def test_every_number_of_a_summary_can_have_a_threshold() -> None:
    from fake_scorer import measured

    summary = measured({"a": -1.0}).summary()
    assert [*SUMMARY_VALUES] == [name for name in summary if not name.endswith("_ci")]
    assert set(SUMMARY_ESTIMATES) == {name for name in summary if f"{name}_ci" in summary}
    lines = [f"  {name}: {{at_least: 0}}" for name in SUMMARY_VALUES]
    read_suite = only(ENVIRONMENT, "thresholds:", *lines)
    assert [one.name for one in read_suite.thresholds] == [*SUMMARY_VALUES]


def test_every_environment_and_remedy_can_be_named() -> None:
    read_suite = only(
        f"environments: [{', '.join(ENVIRONMENT_NAMES)}]",
        f"remedies: [none, verbatim, {', '.join(REMEDY_NAMES)}]",
        MET,
    )
    assert len(read_suite.sources) == len(ENVIRONMENT_NAMES)
    assert read_suite.remedies == ("none", "verbatim", *REMEDY_NAMES)
