"""Whatever a file contains, it is suites or a typed error that names lines of the file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_failgain.suites.expansion import tests_of as expand
from pytest_failgain.suites.problems import SchemaError, SuiteFileError
from pytest_failgain.suites.reading import read_suites
from pytest_failgain.suites.suite import Suite

VALID = """\
failgain: 1
x-base: &base {environment: tool_calls, cases: 3}
suites:
  record:
    <<: *base
    harnesses: [parts_desk.history:render, verbatim]
    remedies: [none, described+instructed]
    thresholds:
      corrective_gain_per_token: {at_least: -0.1}
      repeat_probability_after: {at_least: 0, at_most: 0.25}
    regression: {max_increase: 0.05, max_gain_drop: 0.1}
    conditions: [before, failed, neutral]
    marks: [slow, timeout: 600]
"""

WORDS = [
    "failgain", "suites", "record", "harness", "harnesses", "environment", "environments", "cases",
    "remedies", "thresholds", "regression", "conditions", "marks", "at_least", "at_most", "n",
    "surface_share", "max_increase", "tool_calls", "described", "before", "failed", "a.b:c", "none",
    "x-a", "<<", "slow",
]  # fmt: skip
SCALARS = (
    st.sampled_from(WORDS)
    | st.text(max_size=8)
    | st.none()
    | st.booleans()
    | st.integers(-3, 40)
    | st.floats()
    | st.dates()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SCALARS, inner, max_size=4),
    max_leaves=12,
)


def read(content: bytes) -> None:
    """Read it, and check what comes of it."""
    suites, problems = read_or_refused(content)
    assert bool(suites) != bool(problems)
    lines = content.decode("utf-8", "replace").splitlines()
    for problem in problems:
        assert 1 <= problem.line <= len(lines) + 1
        assert problem.problem
        assert "\n" not in problem.problem
    names = [(suite.name, test.name) for suite in suites for test in expand(suite)]
    assert len(set(names)) == len(names) >= len(suites)


def read_or_refused(content: bytes) -> tuple[Sequence[Suite], Sequence[SchemaError]]:
    try:
        return read_suites(content, Path("/nowhere")), ()
    except SuiteFileError as error:
        return (), error.problems


@given(VALUES)
def test_any_values_are_suites_or_a_typed_error(value: Any) -> None:
    read(yaml.safe_dump(value, allow_unicode=True).encode("utf-8", "replace"))


@given(st.dictionaries(st.sampled_from(WORDS), VALUES, max_size=8), VALUES)
def test_any_suite_is_read_or_a_typed_error(suite: dict[str, Any], other: Any) -> None:
    file = {"failgain": 1, "suites": {"record": suite, "other": other}}
    read(yaml.safe_dump(file, allow_unicode=True).encode("utf-8", "replace"))


@given(
    st.integers(0, len(VALID) - 1),
    st.integers(0, 12),
    st.text(max_size=6)
    | st.sampled_from(
        ["*base", "&base", "!!python/name:os.system ''", "{", "]", ": ", "\n  ", "~"]
    ),
)
@example(0, 0, "")
def test_any_change_of_a_valid_file_leaves_suites_or_a_typed_error(
    place: int, length: int, put: str
) -> None:
    changed = VALID[:place] + put + VALID[place + length :]
    read(changed.encode("utf-8", "surrogatepass"))


@given(st.binary(max_size=40))
@example(b'"\\UFFFFFFFF"')
@example(b'"\\ud800": 1')
@example(b'failgain: 1\nsuites: {a: {cases: "\\0"}}')
@example(b'failgain: 1\nsuites: {a: {cases: "' + b"a" * 5000 + b'"}}')
@example(b"failgain: 1\nsuites: &a {a: *a}")
@example(b"failgain: 1\nsuites: {a: &a {thresholds: *a, environment: *a, marks: [*a, {b: *a}]}}")
@example(b"? {a: b}\n: c")
@example(b"%YAML 9.9\n---\na")
@example(b"=: =\n")
@example(b"0: !<x> y")
def test_any_bytes_are_a_typed_error(content: bytes) -> None:
    read(content)
