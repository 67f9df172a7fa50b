"""Laws of harnesses: what keeps them, and what each of them catches."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings as make_settings
from hypothesis import strategies as st

from pytest_failgain import call
from pytest_failgain.environments import build_environment
from pytest_failgain.errors import HarnessError, UsageError
from pytest_failgain.harnesses import VERBATIM, Harness, remedied
from pytest_failgain.laws import (
    LAWS,
    HarnessLaws,
    assert_deterministic,
    assert_good_steps_untouched,
    assert_harness_lawful,
    assert_order_kept,
    assert_pure,
)
from pytest_failgain.prompt import Message, Prompt
from pytest_failgain.remedies import REMEDIES
from pytest_failgain.trajectory import (
    Action,
    FailureCase,
    Observations,
    Step,
    Tool,
    Trajectory,
    UserTurn,
)
from strategies import render_as_text, render_last_only

GOOD = (
    Step(Action("look(at='the first room')"), "There is a table in the room."),
    UserTurn("Go on."),
    Step(Action(calls=(call("look", at="the second room"),)), "There is a chair in the room."),
)
TOOLS = (Tool("look", parameters={"type": "object", "properties": {"at": {"type": "string"}}}),)
CASE = FailureCase(
    "room-3",
    "rooms",
    Trajectory("You look at rooms.", "Find the lamp.", GOOD, TOOLS),
    Step(Action("look(at=3)"), "TypeError: at must be text", failed=True),
    correct=Action("look(at='the third room')"),
    observations=Observations(success="There is a lamp in the room."),
)
BARE = replace(CASE, case_id="bare", trajectory=Trajectory("", "Find the lamp."))
CASES = (CASE, BARE)

OFFICE = build_environment("tool_calls").cases(6)
PROGRAMS = build_environment("program_repair").cases(3)

LAWFUL: dict[str, Harness] = {
    **{name: remedied(name) for name in ("verbatim", *REMEDIES)},
    "text": render_as_text,
    "last only": render_last_only,
}


def written(trajectory: Trajectory) -> list[Message]:
    messages = VERBATIM(trajectory)
    assert isinstance(messages, list)
    return messages


def failures(trajectory: Trajectory) -> list[Step]:
    return [step for step in trajectory.steps if isinstance(step, Step) and step.failed]


def never_the_same() -> Harness:
    numbers = itertools.count()
    return lambda trajectory: f"{trajectory.goal} {next(numbers)}"


def changes_schemas(trajectory: Trajectory) -> list[Message]:
    for tool in trajectory.tools:
        tool.parameters["additionalProperties"] = False  # type: ignore[index]
    return written(trajectory)


def remembers_failures() -> Harness:
    met: set[str] = set()

    def render(trajectory: Trajectory) -> str:
        met.update(str(step.action) for step in failures(trajectory))
        return f"{trajectory.goal} Failed so far: {sorted(met)}"

    return render


def cuts_good_steps(trajectory: Trajectory) -> list[Message]:
    messages = written(trajectory)
    if failures(trajectory):
        for message in messages[1:-1]:
            message["content"] = (message["content"] or "")[:12]  # type: ignore[index]
    return messages


def drops_good_steps(trajectory: Trajectory) -> list[Message]:
    if failures(trajectory):
        return written(replace(trajectory, steps=tuple(failures(trajectory))))
    return written(trajectory)


def newest_first(trajectory: Trajectory) -> str:
    return render_as_text(replace(trajectory, steps=trajectory.steps[::-1]))


def cannot_take_user_turns(trajectory: Trajectory) -> str:
    return " ".join(step.action.text for step in trajectory.steps)  # type: ignore[union-attr]


def message_of(assertion: Callable[..., None], harness: Harness) -> list[str]:
    with pytest.raises(AssertionError) as caught:
        assertion(harness, CASES)
    return str(caught.value).splitlines()


@pytest.mark.parametrize("harness", LAWFUL.values(), ids=LAWFUL.keys())
def test_built_in_harnesses_and_remedies_are_lawful(harness: Harness) -> None:
    assert_harness_lawful(harness, CASES)
    assert_harness_lawful(harness, OFFICE)
    assert_harness_lawful(harness, PROGRAMS)


BROKEN: dict[str, tuple[Callable[..., None], Callable[[], Harness]]] = {
    "deterministic": (assert_deterministic, never_the_same),
    "pure, for it changes what it is given": (assert_pure, lambda: changes_schemas),
    "pure, for it remembers": (assert_pure, remembers_failures),
    "good steps untouched, for they are cut": (
        assert_good_steps_untouched,
        lambda: cuts_good_steps,
    ),
    "good steps untouched, for they are gone": (
        assert_good_steps_untouched,
        lambda: drops_good_steps,
    ),
    "order kept": (assert_order_kept, lambda: newest_first),
}


@pytest.mark.parametrize(("assertion", "make"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_harness_breaks_its_own_law_and_no_other(
    assertion: Callable[..., None], make: Callable[[], Harness]
) -> None:
    message_of(assertion, make())
    others = {assert_deterministic, assert_pure, assert_good_steps_untouched, assert_order_kept}
    for other in others - {assertion}:
        other(make(), CASES)


def test_the_failure_names_law_case_place_and_difference() -> None:
    assert message_of(assert_good_steps_untouched, cuts_good_steps) == [
        (
            "cuts_good_steps: it writes successful steps in another way once a step has failed in "
            "2 of 2 cases, none allowed (law: good steps untouched), n = 2"
        ),
        "where it first differs:",
        (
            "  good steps untouched, case 'room-3': messages[2]['content'] (assistant) was "
            '"look(at=\'the first room\')" before the failed step, and became "look(at=\'the" '
            "after it"
        ),
        (
            "  good steps untouched, case 'bare': messages[1]['content'] (assistant) was "
            '"look(at=\'the third room\')" before the failed step, and became "look(at=\'the" '
            "after it"
        ),
        (
            "try: add what is to be said of the failure, and leave what is said of other steps as "
            "it is."
        ),
    ]
    assert "is gone after it" in message_of(assert_good_steps_untouched, drops_good_steps)[2]
    assert message_of(assert_order_kept, newest_first)[2] == (
        "  order kept, case 'room-3': the action '{\"at\": \"the second room\"}' stands before the "
        "action \"look(at='the first room')\", which came first"
    )
    assert message_of(assert_order_kept, newest_first)[3] == (
        "  order kept, case 'bare': the observation 'Done, with the result 5206.' stands before "
        "the observation 'Done, with the result 4071.', which came first"
    )
    assert message_of(assert_pure, changes_schemas)[2] == (
        "  pure, case 'room-3': the trajectory that it was given: "
        "trajectory['tools'][0]['parameters'] has the keys ['type', 'properties'], then ['type', "
        "'properties', 'additionalProperties']"
    )
    assert (
        "after it rendered another trajectory in between: the text differs"
        in (message_of(assert_pure, remembers_failures())[2])
    )
    assert message_of(assert_deterministic, never_the_same())[2] == (
        "  deterministic, case 'room-3': the text differs from character 15: 'Find the lamp. 0', "
        "then 'Find the lamp. 1'"
    )


def test_all_broken_laws_are_told_at_once() -> None:
    numbers = itertools.count()

    def render(trajectory: Trajectory) -> str:
        return f"{newest_first(trajectory)}\n{next(numbers)}"

    first, second, *rest = message_of(assert_harness_lawful, render)
    assert "(law: deterministic)" in first
    assert second.startswith("also: it ")
    assert "(law: order kept)" in second
    assert sum(line.startswith("try: ") for line in rest) == 2


def test_what_the_prompt_names_is_told_beside_a_change() -> None:
    def render(trajectory: Trajectory) -> Prompt:
        messages = tuple(cuts_good_steps(trajectory))
        cut = ("old steps cut",) if failures(trajectory) else ()
        return Prompt(messages, adaptations=cut)

    lines = message_of(assert_good_steps_untouched, render)
    assert lines[2].endswith("after it (the prompt names: old steps cut)")


def test_what_any_step_pushes_out_is_not_the_failures_fault() -> None:
    def last_two(trajectory: Trajectory) -> list[Message]:
        status = {"role": "user", "content": f"{len(trajectory.steps)} steps so far."}
        return [*written(replace(trajectory, steps=trajectory.steps[-2:])), status]

    assert_good_steps_untouched(last_two, CASES)


def test_a_change_of_good_steps_after_an_earlier_failure_is_none_of_this_one() -> None:
    twice = replace(CASE, trajectory=CASE.trajectory.then(CASE.failed))
    assert_good_steps_untouched(cuts_good_steps, [twice])


def test_what_is_changed_before_the_step_is_none_of_its_failures_fault() -> None:
    def cuts_while_the_last_failed(trajectory: Trajectory) -> list[Message]:
        last = trajectory.steps[-1:]
        is_failed = bool(last) and isinstance(last[0], Step) and last[0].failed
        return cuts_good_steps(trajectory) if is_failed else written(trajectory)

    twice = replace(CASE, trajectory=CASE.trajectory.then(CASE.failed))
    assert_good_steps_untouched(cuts_while_the_last_failed, [twice])
    with pytest.raises(AssertionError, match="law: good steps untouched"):
        assert_good_steps_untouched(cuts_while_the_last_failed, [CASE])


@pytest.mark.parametrize(
    "assertion",
    [
        assert_harness_lawful,
        assert_deterministic,
        assert_pure,
        assert_good_steps_untouched,
        assert_order_kept,
    ],
)
def test_laws_need_cases_that_are_some_and_can_be_rendered(assertion: Callable[..., None]) -> None:
    with pytest.raises(AssertionError, match=r"^verbatim: no case was checked \(n = 0\)"):
        assertion(VERBATIM, [])
    with pytest.raises(UsageError, match=r"^cases\[0\] is a str"):
        assertion(VERBATIM, ["room-3"])
    with pytest.raises(HarnessError, match="case 'room-3': it raised"):
        assertion(cannot_take_user_turns, [CASE])


def test_a_law_has_a_name_and_an_advice() -> None:
    assert [law.name for law in LAWS] == [
        "pure",
        "deterministic",
        "good steps untouched",
        "order kept",
    ]
    assert all(law.advice.endswith(".") for law in LAWS)


PROPERTIES = (
    "test_renders_every_case",
    "test_is_deterministic",
    "test_is_pure",
    "test_leaves_good_steps_untouched",
    "test_keeps_the_order",
)

PROPERTY_TESTS = """
import sys

sys.path.insert(0, {tests!r})

import test_laws
from hypothesis import Phase, settings
from pytest_failgain.laws import HarnessLaws


class TestMine(HarnessLaws):
    harness = staticmethod({harness})
    settings = settings(
        deadline=None, max_examples=40, database=None, derandomize=True, phases=[Phase.generate]
    )
"""


def outcomes(project: pytest.Pytester, harness: str) -> dict[str, str]:
    """What became of each property test of `harness`, an expression."""
    project.makepyfile(
        test_mine=PROPERTY_TESTS.format(tests=__file__.rpartition("/")[0], harness=harness)
    )
    result = project.runpytest("-q", "-p", "no:cacheprovider", "-rA")
    told = [line.split() for line in result.outlines if "::" in line]
    return {line[1].rpartition("::")[2]: line[0] for line in told if line[0].isupper()}


def test_a_lawful_harness_passes_all_property_tests(project: pytest.Pytester) -> None:
    assert outcomes(project, "test_laws.written") == dict.fromkeys(PROPERTIES, "PASSED")


@pytest.mark.parametrize(
    ("harness", "broken"),
    [
        ("test_laws.cannot_take_user_turns", "test_renders_every_case"),
        ("test_laws.never_the_same()", "test_is_deterministic"),
        ("test_laws.changes_schemas", "test_is_pure"),
        ("test_laws.drops_good_steps", "test_leaves_good_steps_untouched"),
        ("test_laws.newest_first", "test_keeps_the_order"),
    ],
)
def test_the_property_test_of_the_broken_law_fails(
    project: pytest.Pytester, harness: str, broken: str
) -> None:
    expected = dict.fromkeys(PROPERTIES, "PASSED") | {broken: "FAILED"}
    assert outcomes(project, harness) == expected


def test_a_property_test_fails_with_a_small_case_and_the_harness_own_line(
    project: pytest.Pytester,
) -> None:
    project.makepyfile(
        test_mine="""
        from hypothesis import Phase, settings
        from pytest_failgain.laws import HarnessLaws

        def render(trajectory):
            return [{"role": "user", "content": trajectory.goal}] + [
                {"role": "user", "content": step.observation} for step in trajectory.steps
            ]

        class TestMine(HarnessLaws):
            harness = staticmethod(render)
            settings = settings(
                deadline=None, max_examples=30, database=None, derandomize=True,
                phases=[Phase.generate, Phase.shrink],
            )
        """
    )
    result = project.runpytest("-q", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=4, failed=1)
    text = result.stdout.str()
    assert "AttributeError: 'UserTurn' object has no attribute 'observation'" in text
    assert "steps=(UserTurn(text=''),)" in text


def test_a_class_of_laws_takes_its_own_cases_and_settings() -> None:
    seen: list[Trajectory] = []

    def render(trajectory: Trajectory) -> str:
        seen.append(trajectory)
        return render_as_text(trajectory)

    class Mine(HarnessLaws):
        harness = staticmethod(render)
        cases = st.just(CASE)
        settings = make_settings(max_examples=3, deadline=None, database=None)

    test: Any = Mine().test_renders_every_case  # type: ignore[attr-defined]
    test()
    assert seen == [CASE.trajectory, CASE.trajectory.then(CASE.failed)] * (len(seen) // 2)


def test_each_class_has_tests_of_its_own() -> None:
    class One(HarnessLaws):
        harness = staticmethod(written)

    class Two(HarnessLaws):
        harness = staticmethod(newest_first)
        cases = st.just(CASE)

    one, two = (vars(cls)["test_keeps_the_order"] for cls in (One, Two))
    assert one is not two
    one(One())
    with pytest.raises(AssertionError, match="law: order kept"):
        two(Two())


def test_a_class_of_laws_without_a_harness_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^Mine has no harness to test; give it one:"):

        class Mine(HarnessLaws):
            pass


def test_what_laws_take_is_any_sequence() -> None:
    cases: Sequence[FailureCase] = tuple(CASES)
    assert_harness_lawful(VERBATIM, iter(cases))
