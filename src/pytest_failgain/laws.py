"""Laws that every harness should keep, checked without a model.

Each is an assertion on cases of one's own. As property tests, on whatever cases hypothesis can
think of, they come with a class to derive from:

    class TestMyHarness(HarnessLaws):
        harness = staticmethod(render_messages)

What a harness fails to render at all is a `HarnessError` in any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from difflib import get_close_matches
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_failgain.errors import HarnessError, UsageError
from pytest_failgain.harness_checks import (
    prompt_difference,
    render_once,
    snapshot,
    trajectory_difference,
)
from pytest_failgain.harnesses import Harness
from pytest_failgain.prompt import Prompt
from pytest_failgain.record_checks.assertions import checked_cases, fail
from pytest_failgain.record_checks.parts import Part, common, lines, parts, surplus
from pytest_failgain.trajectory import FailureCase, Step, Trajectory

if TYPE_CHECKING:
    from hypothesis import settings as Settings  # noqa: N812
    from hypothesis.strategies import SearchStrategy

_BROKEN_SHOWN = 5

# Shorter texts may stand in a prompt for another reason than their step.
_SHORTEST_TOLD = 8
_RESULTS = ("Done, with the result 4071.", "Done, with the result 5206.")


@dataclass(frozen=True, slots=True)
class Law:
    """A law: `broken` says in few words what a harness does that breaks it.

    `check` gives what is wrong on one case, None where nothing is.
    """

    name: str
    broken: str
    check: Callable[[Harness, FailureCase], str | None]
    advice: str


def assert_harness_lawful(harness: Harness, cases: Iterable[FailureCase]) -> None:
    """`harness` keeps all laws on `cases`.

    Raises:
        AssertionError: when it breaks one on a case, or there is no case.
        HarnessError: when it makes no prompt of a case.
        UsageError: when `cases` holds anything but cases.
    """
    __tracebackhide__ = True
    _hold(LAWS, harness, cases)


def assert_deterministic(harness: Harness, cases: Iterable[FailureCase]) -> None:
    """Of equal trajectories `harness` makes equal prompts.

    Raises:
        AssertionError, HarnessError, UsageError: as `assert_harness_lawful` does.
    """
    __tracebackhide__ = True
    _hold([DETERMINISTIC], harness, cases)


def assert_pure(harness: Harness, cases: Iterable[FailureCase]) -> None:
    """`harness` changes no trajectory, and remembers none that it rendered before.

    Raises:
        AssertionError, HarnessError, UsageError: as `assert_harness_lawful` does.
    """
    __tracebackhide__ = True
    _hold([PURE], harness, cases)


def assert_good_steps_untouched(harness: Harness, cases: Iterable[FailureCase]) -> None:
    """What `harness` writes of successful steps does not depend on a failure after them.

    It is compared line by line with what stands there before the failed step, and if the same step
    had succeeded; what is not there then, either, as in a harness that forgets old steps, may be
    gone. A case with fewer than two successful steps is given two in front.

    Raises:
        AssertionError, HarnessError, UsageError: as `assert_harness_lawful` does.
    """
    __tracebackhide__ = True
    _hold([GOOD_STEPS_UNTOUCHED], harness, cases)


def assert_order_kept(harness: Harness, cases: Iterable[FailureCase]) -> None:
    """`harness` writes the actions of successful steps in their order, and so their observations.

    What it does not write letter for letter, or what stands in a prompt more than once, has no
    order. A case with fewer than two successful steps is given two in front.

    Raises:
        AssertionError, HarnessError, UsageError: as `assert_harness_lawful` does.
    """
    __tracebackhide__ = True
    _hold([ORDER_KEPT], harness, cases)


def _hold(laws: Sequence[Law], harness: Harness, cases: Iterable[FailureCase]) -> None:
    __tracebackhide__ = True
    found = checked_cases(harness, cases)
    headlines: list[str] = []
    details: list[str] = []
    advice: list[str] = []
    for law in laws:
        broken = [(case, law.check(harness, case)) for case in found]
        broken = [(case, problem) for case, problem in broken if problem]
        if broken:
            headlines.append(
                f"it {law.broken} in {len(broken)} of {len(found)} cases, none allowed "
                f"(law: {law.name}), n = {len(found)}"
            )
            details += [
                f"  {law.name}, case {case.case_id!r}: {problem}"
                for case, problem in broken[:_BROKEN_SHOWN]
            ]
            advice.append(f"try: {law.advice}")
    if headlines:
        fail(harness, headlines, ["where it first differs:", *details], *advice)


def _prompt(harness: Harness, trajectory: Trajectory, case: FailureCase) -> Prompt:
    # A copy for each call: one that a call changed must not look like another fault in the next.
    copied: Trajectory = _copied(trajectory)
    return render_once(harness, copied, case_id=case.case_id)


def _copied(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        of_fields = {field.name: _copied(getattr(value, field.name)) for field in fields(value)}
        return replace(value, **of_fields)
    if isinstance(value, Mapping):
        return {key: _copied(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_copied, value))
    return value


def _before_and_after(case: FailureCase) -> tuple[Trajectory, Trajectory]:
    return case.trajectory, case.trajectory.then(case.failed)


def _is_deterministic(harness: Harness, case: FailureCase) -> str | None:
    for trajectory in _before_and_after(case):
        first, second = (_prompt(harness, trajectory, case) for _ in range(2))
        difference = prompt_difference(first, second)
        if difference:
            return difference
    return None


def _is_pure(harness: Harness, case: FailureCase) -> str | None:
    before, after = _before_and_after(case)
    first = _prompt(harness, before, case)
    if prompt_difference(first, _prompt(harness, before, case)):
        return None  # it differs from call to call, which is against another law
    for trajectory in (before, after):
        given: Trajectory = _copied(trajectory)
        untouched = snapshot(given)
        render_once(harness, given, case_id=case.case_id)
        difference = trajectory_difference(untouched, given)
        if difference:
            return f"the trajectory that it was given: {difference}"
    difference = prompt_difference(first, _prompt(harness, before, case))
    return difference and f"after it rendered another trajectory in between: {difference}"


def _keeps_good_steps(harness: Harness, case: FailureCase) -> str | None:
    case = _with_good_steps(case)
    before, after = _before_and_after(case)
    good = tuple(step for step in before.steps if not (isinstance(step, Step) and step.failed))
    told = surplus(
        lines(_prompt(harness, replace(before, steps=good), case)),
        lines(_prompt(harness, replace(before, steps=()), case)),
    )
    earlier = lines(_prompt(harness, before, case))
    succeeded = lines(_prompt(harness, before.then(_succeeded(case)), case))
    expected = common(common(earlier, told), succeeded)
    later = _prompt(harness, after, case)
    gone = surplus(expected, lines(later))
    return _gone(gone[0], later) if gone else None


def _succeeded(case: FailureCase) -> Step:
    success = case.observations.success
    answer = case.observations.neutral if success is None else success
    return replace(case.failed, observation=answer, failed=False, error_family=None)


def _gone(part: Part, later: Prompt) -> str:
    told = f"{part.place} was {_in_short(part.text)} before the failed step"
    nearest = get_close_matches(part.text, [line.text for line in lines(later)], n=1)
    changed = f"became {_in_short(nearest[0])}" if nearest else "is gone"
    named = f" (the prompt names: {'; '.join(later.adaptations)})" if later.adaptations else ""
    return f"{told}, and {changed} after it{named}"


def _keeps_order(harness: Harness, case: FailureCase) -> str | None:
    case = _with_good_steps(case)
    trajectory = case.trajectory.then(case.failed)
    text = "\n".join(part.text for part in parts(_prompt(harness, trajectory, case)))
    good = [step for step in trajectory.steps if isinstance(step, Step) and not step.failed]
    for what, texts in (
        ("action", [_text_of_action(step) for step in good]),
        ("observation", [step.observation or "" for step in good]),
    ):
        places = [
            (text.index(told), told) for told in texts if _is_told_once(told, text, trajectory)
        ]
        for (place, told), (next_place, next_told) in pairwise(places):
            if next_place < place:
                return (
                    f"the {what} {_in_short(next_told)} stands before the {what} "
                    f"{_in_short(told)}, which came first"
                )
    return None


def _text_of_action(step: Step) -> str:
    calls = step.action.calls
    return calls[0].arguments if calls else step.action.text


def _is_told_once(told: str, text: str, trajectory: Trajectory) -> bool:
    if len(told.strip()) < _SHORTEST_TOLD or text.count(told) != 1:
        return False
    return sum(source.count(told) for source in _sources(snapshot(trajectory))) == 1


def _sources(value: object) -> list[str]:
    """All texts in a snapshot of a trajectory, but for the replies that actions are a part of."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        inner = [entry for key, entry in value.items() if key != "reply"]
    else:
        inner = value if isinstance(value, list) else []
    return [text for entry in inner for text in _sources(entry)]


def _with_good_steps(case: FailureCase) -> FailureCase:
    steps = case.trajectory.steps
    if sum(isinstance(step, Step) and not step.failed for step in steps) >= len(_RESULTS):
        return case
    action = next(iter(filter(None, (case.correct, *case.distractors))), case.failed.action)
    made = [Step(action, result, tool=case.failed.tool) for result in _RESULTS]
    return replace(case, trajectory=replace(case.trajectory, steps=(*made, *steps)))


def _in_short(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= 60 else f"{line[:59]}…")


DETERMINISTIC = Law(
    "deterministic",
    "makes different prompts of equal trajectories",
    _is_deterministic,
    "leave out times, random ids, and the order of sets.",
)
PURE = Law(
    "pure",
    "changes what it is given or remembers it",
    _is_pure,
    "work on a copy of the trajectory, and keep nothing from call to call.",
)
GOOD_STEPS_UNTOUCHED = Law(
    "good steps untouched",
    "writes successful steps in another way once a step has failed",
    _keeps_good_steps,
    "add what is to be said of the failure, and leave what is said of other steps as it is.",
)
ORDER_KEPT = Law(
    "order kept",
    "writes successful steps in another order than theirs",
    _keeps_order,
    "write the steps from the oldest to the newest.",
)
# Purity first: what a harness remembers of a case shows only where it meets the case anew.
LAWS = (PURE, DETERMINISTIC, GOOD_STEPS_UNTOUCHED, ORDER_KEPT)


class HarnessLaws:
    """Property tests of all laws for the `harness` of a class that derives from this one.

    `cases` is a strategy for failure cases, `strategies.failure_cases()` unless given, and
    `settings` are those of hypothesis, its present profile without a deadline unless given.

        class TestMyHarness(HarnessLaws):
            harness = staticmethod(render_messages)

    Raises (when a class derives from it):
        UsageError: when the class has no harness.
        MissingPackageError: when hypothesis is not installed.
    """

    harness: ClassVar[Any]  # a Callable would be taken for a method
    cases: ClassVar[SearchStrategy[FailureCase] | None] = None
    settings: ClassVar[Settings | None] = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        harness = getattr(cls, "harness", None)
        if not callable(harness):
            raise UsageError(
                f"{cls.__name__} has no harness to test; give it one: harness = "
                "staticmethod(your_function)"
            )
        for name, check in _CHECKS.items():
            # Made anew for every class: hypothesis keeps one test of one class.
            setattr(cls, name, _property_test(cls, name, check))


def _renders(harness: Harness, case: FailureCase) -> None:
    """Every case is made a prompt of."""
    __tracebackhide__ = True
    for trajectory in _before_and_after(case):
        _prompt(harness, trajectory, case)


def _keeps(law: Law) -> Callable[[Harness, FailureCase], None]:
    def check(harness: Harness, case: FailureCase) -> None:
        __tracebackhide__ = True
        # What can't be rendered is for the test of rendering to tell.
        with suppress(HarnessError):
            _hold([law], harness, [case])

    return check


_CHECKS: dict[str, Callable[[Harness, FailureCase], None]] = {
    "test_renders_every_case": _renders,
    "test_is_deterministic": _keeps(DETERMINISTIC),
    "test_is_pure": _keeps(PURE),
    "test_leaves_good_steps_untouched": _keeps(GOOD_STEPS_UNTOUCHED),
    "test_keeps_the_order": _keeps(ORDER_KEPT),
}


def _property_test(
    cls: type[HarnessLaws], name: str, check: Callable[[Harness, FailureCase], None]
) -> Callable[..., None]:
    from pytest_failgain.strategies import failure_cases, given_case

    harness: Any = cls.harness

    def test(self: HarnessLaws, case: FailureCase) -> None:
        __tracebackhide__ = True
        check(harness, case)

    test.__name__ = name
    test.__qualname__ = f"{cls.__qualname__}.{name}"
    test.__module__ = cls.__module__
    cases = failure_cases() if cls.cases is None else cls.cases
    return given_case(test, cases, cls.settings)
