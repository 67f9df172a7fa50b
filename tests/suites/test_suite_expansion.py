"""The tests that a suite stands for, and their names."""

from __future__ import annotations

from pathlib import Path

from pytest_failgain.suites.expansion import tests_of as expand
from pytest_failgain.suites.suite import EnvironmentCases, FileCases, HarnessName, Suite


def names(suite: Suite) -> list[str]:
    return [test.name for test in expand(suite)]


def file(text: str) -> FileCases:
    return FileCases(Path(text), text)


def test_each_source_harness_and_remedy_makes_a_test_in_their_order() -> None:
    suite = Suite(
        "record",
        1,
        (EnvironmentCases("tool_calls", 3), file("mine.jsonl")),
        (HarnessName("a.b:render", 1), HarnessName("verbatim", 1)),
        ("none", "described"),
    )
    tests = [*expand(suite)]
    assert [test.name for test in tests] == [
        "tool_calls-render-none",
        "tool_calls-render-described",
        "tool_calls-verbatim-none",
        "tool_calls-verbatim-described",
        "mine-render-none",
        "mine-render-described",
        "mine-verbatim-none",
        "mine-verbatim-described",
    ]
    for test in tests:
        assert test.name.endswith(f"-{test.remedy}")
        assert test.harness in suite.harnesses
    assert [test.source for test in tests] == [suite.sources[0]] * 4 + [suite.sources[1]] * 4


def test_the_harness_of_the_fixture_has_no_name() -> None:
    (test,) = expand(Suite("s", 1, (EnvironmentCases("tool_calls", 3),)))
    assert (test.name, test.harness) == ("tool_calls-none", None)


def test_names_that_would_be_alike_are_written_in_full() -> None:
    harnesses = (HarnessName("a:render", 1), HarnessName("b:render", 1), HarnessName("c:other", 1))
    suite = Suite("s", 1, (file("x/cases.jsonl"), file("y/cases.jsonl")), harnesses)
    assert names(suite)[:4] == [
        "x/cases.jsonl-a:render-none",
        "x/cases.jsonl-b:render-none",
        "x/cases.jsonl-other-none",
        "y/cases.jsonl-a:render-none",
    ]


def test_no_two_tests_share_a_name() -> None:
    sources = (file("a.jsonl"), file("a-b.jsonl"))
    suite = Suite("s", 1, sources, (HarnessName("m:c", 1), HarnessName("m:b-c", 1)))
    assert names(suite) == ["a-c-none", "a-b-c-none", "a-b-c-none-2", "a-b-b-c-none"]


def test_names_have_nothing_that_means_something_to_pytest() -> None:
    suite = Suite("s", 1, (file("a::b[1].jsonl"), file("a\n\tb.jsonl")))
    assert names(suite) == ["a__b_1_-none", "a__b-none"]
