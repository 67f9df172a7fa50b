"""Running a test of a suite: measure, then look at everything that is asked of the measurement."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile

from pytest_failgain.assertions import require_cases
from pytest_failgain.baseline.assertion import assert_no_regression
from pytest_failgain.baseline.comparison import Limits
from pytest_failgain.case_files import load_cases
from pytest_failgain.conditions import DEFAULT_CONDITIONS
from pytest_failgain.failgain import Failgain
from pytest_failgain.harnesses import Harness, RemediedHarness
from pytest_failgain.measurement import Measurement
from pytest_failgain.suites.expansion import SuiteTest
from pytest_failgain.suites.suite import NO_REMEDY, EnvironmentCases, Regression
from pytest_failgain.suites.thresholds import missed_text

_ALSO = "also: "


def check(test: SuiteTest, failgain: Failgain, harness: Harness) -> None:
    """Measure `harness` as `test` says, and compare with its thresholds and with the baseline.

    Raises:
        AssertionError: with all that is not as it should be, or when no case was measured.
        FailgainError: when it can't be measured or compared.
    """
    source = test.source
    if test.label:
        harness = RemediedHarness(test.label, harness)
    if isinstance(source, EnvironmentCases):
        cases = failgain.environment(source.environment).cases(source.count)
    else:
        cases = load_cases(source.path)
    result = failgain.measure(
        # A remedy of no effect would hide what the harness itself says of its construction.
        harness if test.remedy == NO_REMEDY else failgain.remedy(test.remedy, harness),
        cases,
        conditions=test.suite.conditions or DEFAULT_CONDITIONS,
    )
    require_cases(result)
    # Apart from what other suites and tests measure of the same harness and environment.
    entry = f"{test.suite.name}/{test.cases}"
    problems = {
        result.environment: missed_text(result, test.suite.thresholds),
        entry: _regression(result, test.suite.regression, entry),
    }
    found = {f"{result.harness} on {where}: ": text for where, text in problems.items() if text}
    if found:
        raise AssertionError(_joined(found))


def _regression(result: Measurement, limits: Regression | None, entry: str) -> str | None:
    if limits is None:
        return None
    increase, drop = limits.max_increase, limits.max_gain_drop
    usual = Limits()
    try:
        assert_no_regression(
            result,
            usual.max_increase if increase is None else increase,
            max_gain_drop=usual.max_gain_drop if drop is None else drop,
            name=entry,
        )
    except AssertionError as error:
        return str(error)
    return None


def _joined(problems: Mapping[str, str]) -> str:
    """The headlines of all, then the details, and last what to try.

    Each headline begins with its label, which stands on the first line only.
    """
    heads: list[str] = []
    details: list[str] = []
    for label, problem in problems.items():
        first, *rest = problem.splitlines()
        also = [*takewhile(lambda line: line.startswith(_ALSO), rest)]
        heads += [first.removeprefix(label), *(line.removeprefix(_ALSO) for line in also)]
        details += rest[len(also) :]
    main, *others = heads
    details.sort(key=lambda line: line.startswith("try: "))
    label = next(iter(problems))
    return "\n".join([f"{label}{main}", *(f"{_ALSO}{other}" for other in others), *details])
