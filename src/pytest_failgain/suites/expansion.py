"""The tests that a suite stands for: one for each of its case sources, harnesses and remedies."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

from pytest_failgain.suites.suite import CaseSource, EnvironmentCases, HarnessName, Suite

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class SuiteTest:
    """One measurement with what is asked of it; `harness` is None for the fixture's.

    `name` is unique within the suite. `cases` is what `source` is called there, and `label` what
    the harness is, where its own name is that of another one as well, else empty.
    """

    name: str
    suite: Suite
    source: CaseSource
    harness: HarnessName | None
    remedy: str
    cases: str = ""
    label: str = ""


def tests_of(suite: Suite) -> Iterator[SuiteTest]:
    """The tests of `suite` in their order."""
    seen: Counter[str] = Counter()
    for (case_label, source), (harness_label, harness), remedy in product(
        _labelled(suite.sources, _written, _short_source),
        _harnesses(suite),
        suite.remedies,
    ):
        name = "-".join(filter(None, (case_label, harness_label, remedy)))
        seen[name] += 1
        # Labels may have hyphens, so that different ones can give one name.
        numbered = f"{name}-{seen[name]}" if seen[name] > 1 else name
        is_shared = harness is not None and harness_label != _short_harness(harness)
        label = harness_label if is_shared else ""
        yield SuiteTest(numbered, suite, source, harness, remedy, case_label, label)


def _harnesses(suite: Suite) -> list[tuple[str, HarnessName | None]]:
    # What the fixture gives has no name before the test runs.
    named = _labelled(suite.harnesses, lambda one: one.text, _short_harness)
    return [*named] or [("", None)]


def _labelled(
    things: Sequence[_T], full: Callable[[_T], str], short: Callable[[_T], str]
) -> list[tuple[str, _T]]:
    """Each thing with its short name, or with the full one where two share the short one."""
    times = Counter(map(short, things))
    return [(short(one) if times[short(one)] == 1 else full(one), one) for one in things]


def _written(source: CaseSource) -> str:
    return source.environment if isinstance(source, EnvironmentCases) else _plain(source.text)


def _short_source(source: CaseSource) -> str:
    return source.environment if isinstance(source, EnvironmentCases) else _plain(source.path.stem)


def _plain(text: str) -> str:
    # Brackets and colons have a meaning in pytest's ids, and line breaks in its reports.
    return re.sub(r"[\[\]:\s\x00-\x1f]", "_", text)


def _short_harness(harness: HarnessName) -> str:
    return harness.text.rpartition(":")[2]
