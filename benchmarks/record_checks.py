"""What the checks without a model cost: milliseconds a case, and how they grow with the prompt."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from statistics import median

from benchmarks.figures import Figure, Verdict
from pytest_failgain.environments import build_environment
from pytest_failgain.environments.settings import EnvironmentSettings
from pytest_failgain.harnesses import remedied
from pytest_failgain.laws import assert_harness_lawful
from pytest_failgain.record_checks.assertions import (
    assert_failed_action_absent,
    assert_record_tokens_at_most,
)
from pytest_failgain.trajectory import Action, FailureCase, Step, Trajectory

_WANTED_MS = 10.0
_WANTED_GROWTH = 2.5
_LONG = 100_000
_DESCRIBED = remedied("described")
_LABELLED = remedied("labelled")


def measure(cases: int, repeats: int) -> list[Figure]:
    """The figures, from `cases` cases of the environments and `repeats` rounds."""
    known = [
        *build_environment("tool_calls", EnvironmentSettings(action_format="native")).cases(cases),
        *build_environment("program_repair").cases(cases),
    ]
    long, longer = (
        _seconds(partial(_shown, _long_case(size)), repeats) for size in (_LONG, 2 * _LONG)
    )
    growth = longer / long
    return [
        _per_case("failed action absent", _seconds(lambda: _absent(known), repeats) / len(known)),
        _per_case("record's length", _seconds(lambda: _length(known), repeats) / len(known)),
        _per_case("all laws", _seconds(lambda: _lawful(known), repeats) / len(known)),
        Figure(
            f"failed action in a record of {2 * _LONG:,} characters, over one of half of that",
            f"<= {_WANTED_GROWTH}x",
            f"{growth:.2f}x ({1000 * long:.0f} ms, {1000 * longer:.0f} ms)",
            Verdict.of(growth <= _WANTED_GROWTH),
        ),
    ]


def _absent(cases: Sequence[FailureCase]) -> None:
    assert_failed_action_absent(_DESCRIBED, cases)


def _length(cases: Sequence[FailureCase]) -> None:
    assert_record_tokens_at_most(_DESCRIBED, cases, 1000)


def _lawful(cases: Sequence[FailureCase]) -> None:
    assert_harness_lawful(_DESCRIBED, cases)


def _shown(case: FailureCase) -> None:
    try:
        assert_failed_action_absent(_LABELLED, [case])
    except AssertionError:
        return
    raise RuntimeError("the action was not found")


def _long_case(characters: int) -> FailureCase:
    """An action of a tenth of that length, and an error that is full of its pieces."""
    words = [f"word{number % 977}" for number in range(characters // 80)]
    program = " ".join(words)
    pieces = [" ".join(words[start : start + 12]) for start in range(0, len(words) - 12, 7)]
    error = "\n".join(pieces)
    error = (error * (characters // len(error) + 1))[:characters]
    step = Step(Action(program), error, failed=True)
    case = FailureCase("long", "long", Trajectory("", "Go."), step)
    return replace(case, environment="long")


def _seconds(run: Callable[[], None], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return median(times)


def _per_case(what: str, seconds: float) -> Figure:
    milliseconds = 1000 * seconds
    return Figure(
        f"without a model, a case: {what}",
        f"< {_WANTED_MS:g} ms",
        f"{milliseconds:.1f} ms",
        Verdict.of(milliseconds < _WANTED_MS),
    )
