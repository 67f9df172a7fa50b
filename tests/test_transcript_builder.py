from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_failgain.errors import CaseError
from pytest_failgain.trajectory import (
    Action,
    FailureCase,
    Observations,
    Step,
    Tool,
    ToolCall,
    Trajectory,
    UserTurn,
)
from pytest_failgain.transcript import Transcript, call

START = Transcript("refund-42").user("Refund order 42.")
WHOLE = START.failing_step("refund(order='42')", "TypeError: order must be int")


def error_of(build: Callable[[], object]) -> str:
    with pytest.raises(CaseError) as caught:
        build()
    return str(caught.value)


def test_a_whole_transcript_makes_the_case_that_it_tells() -> None:
    schema = {"type": "object", "properties": {"order": {"type": "integer"}}}
    case = (
        Transcript("refund-42", task_id="refund")
        .system("You handle orders.")
        .tool("refund", "Pays back.", parameters=schema)
        .user("Refund order 42.")
        .step("lookup(order=42)", "paid 2026-01-03", tool="lookup")
        .user("Be quick.")
        .step("refund()", "TypeError: no order", failed=True, error_family="missing_argument")
        .failing_step(
            "refund(order='42')",
            error="TypeError: order must be int",
            tool="refund",
            error_family="type_error",
            records={"described": "It failed."},
        )
        .correct("refund(order=42)")
        .distractors("refund(id=42)")
        .distractors("refund(42)", "pay(42)")
        .other_failed(
            "refund(id=42)",
            error="TypeError: no argument 'id'",
            tool="refund",
            error_family="unexpected_argument",
            records={"described": "It failed too."},
        )
        .success("refunded")
        .neutral("Noted.")
        .terse("TypeError")
        .verbose("TypeError: order must be int, got '42'")
        .echoed("TypeError in refund(order='42')")
        .case()
    )
    assert case == FailureCase(
        case_id="refund-42",
        task_id="refund",
        trajectory=Trajectory(
            system="You handle orders.",
            goal="Refund order 42.",
            steps=(
                Step(Action("lookup(order=42)"), "paid 2026-01-03", tool="lookup"),
                UserTurn("Be quick."),
                Step(Action("refund()"), "TypeError: no order", True, "missing_argument"),
            ),
            tools=(Tool("refund", "Pays back.", schema),),
        ),
        failed=Step(
            Action("refund(order='42')"),
            "TypeError: order must be int",
            True,
            "type_error",
            "refund",
            {"described": "It failed."},
        ),
        correct=Action("refund(order=42)"),
        distractors=(Action("refund(id=42)"), Action("refund(42)"), Action("pay(42)")),
        observations=Observations(
            neutral="Noted.",
            success="refunded",
            terse="TypeError",
            verbose="TypeError: order must be int, got '42'",
            echoed="TypeError in refund(order='42')",
        ),
        other_failed=Step(
            Action("refund(id=42)"),
            "TypeError: no argument 'id'",
            True,
            "unexpected_argument",
            "refund",
            {"described": "It failed too."},
        ),
    )


def test_a_goal_and_a_failing_step_are_enough() -> None:
    case = WHOLE.case()
    assert case.task_id == case.case_id == "refund-42"
    assert case.trajectory == Trajectory(system="", goal="Refund order 42.")
    assert case.correct is None
    assert case.observations == Observations()
    assert case.other_failed is None


def test_cases_branch_from_a_common_beginning() -> None:
    one, other = START.failing_step("a", "E").case(), START.failing_step("b", "E").case()
    assert one.failed.action == Action("a")
    assert other.failed.action == Action("b")
    assert Transcript("refund-42").user("Refund order 42.") == START


def test_a_step_without_an_answer_is_a_plain_reply() -> None:
    case = START.step("Which currency?").user("Euro.").failing_step("a", "").case()
    assert case.trajectory.steps == (Step(Action("Which currency?"), None), UserTurn("Euro."))
    assert case.failed.observation == ""


def test_a_call_writes_its_arguments_as_json_in_order() -> None:
    assert call("send", to="Zoë", name="x", tags=[1, None]) == ToolCall(
        "send", '{"to": "Zoë", "name": "x", "tags": [1, null]}'
    )
    assert call("finish") == ToolCall("finish", "{}")


@pytest.mark.parametrize("value", [{1}, float("inf")], ids=["set", "infinity"])
def test_a_call_whose_arguments_are_not_json(value: object) -> None:
    assert error_of(lambda: call("send", to=value)).startswith(
        "the arguments of call('send', …) are not JSON: "
    )


def test_native_calls_stand_wherever_an_action_may() -> None:
    raw = ToolCall("refund", '{"order":"42"}')
    both = Action("Let me look.", (call("lookup", order=42),))
    case = START.step(both, "paid").failing_step(raw, "E").correct(call("refund", order=42)).case()
    assert case.trajectory.steps == (Step(both, "paid"),)
    assert case.failed.action == Action(calls=(raw,))
    assert case.correct == Action(calls=(ToolCall("refund", '{"order": 42}'),))


def test_the_tool_of_a_native_call_is_known_from_the_tools() -> None:
    case = (
        START.step(call("refund", order=1), "done")
        .step(Action(calls=(call("refund"), call("refund", order=2))), "done")
        .failing_step(call("refunds", order=42), "NameError")
        .tool("refund")
        .case()
    )
    one, two = case.trajectory.steps
    assert isinstance(one, Step)
    assert isinstance(two, Step)
    assert (one.tool, two.tool, case.failed.tool) == ("refund", None, None)


def test_the_other_failure_may_stand_anywhere_and_knows_its_tool_too() -> None:
    other = call("refund", id=42)
    first = Transcript("refund-42").other_failed(other, "TypeError").user("Refund order 42.")
    last = START.failing_step("a", "E").other_failed(other, "TypeError").tool("refund")
    cases = first.tool("refund").failing_step("a", "E").case(), last.case()
    assert cases[0] == cases[1]
    assert cases[0].other_failed == Step(
        Action(calls=(other,)), "TypeError", failed=True, tool="refund"
    )


def test_the_other_failure_may_be_a_distractor() -> None:
    case = WHOLE.distractors("pay()").other_failed("pay()", "NameError").case()
    assert case.other_failed == Step(Action("pay()"), "NameError", failed=True)
    assert case.distractors == (Action("pay()"),)


def test_a_tool_that_is_given_is_kept() -> None:
    case = START.tool("refund").failing_step(call("refund"), "E", tool="shop.refund").case()
    assert case.failed.tool == "shop.refund"


@pytest.mark.parametrize(
    ("build", "said"),
    [
        pytest.param(
            lambda: Transcript("refund-42").system("x").case(),
            "case 'refund-42' has no goal; give it with user(…)",
            id="no-goal",
        ),
        pytest.param(
            lambda: START.correct("a").case(),
            "case 'refund-42' has no failing step; give it with failing_step(…)",
            id="no-failing-step",
        ),
        pytest.param(
            lambda: WHOLE.failing_step("b", "E"),
            "case 'refund-42' has two failing steps; a case measures one. Write an earlier failure "
            "as step(…, failed=True), and a further one as a case of its own",
            id="two-failing-steps",
        ),
        pytest.param(
            lambda: WHOLE.step("b", "E"),
            "case 'refund-42' has step(…) after failing_step(…); a case ends at the failure, so "
            "put step(…) before it",
            id="step-after-failure",
        ),
        pytest.param(
            lambda: WHOLE.user("b"),
            "case 'refund-42' has user(…) after failing_step(…); a case ends at the failure, so "
            "put user(…) before it",
            id="user-after-failure",
        ),
        pytest.param(
            lambda: Transcript("refund-42").step("a", "b"),
            "case 'refund-42' has step(…) before its goal; call user(…) first",
            id="step-before-goal",
        ),
        pytest.param(
            lambda: Transcript("refund-42").failing_step("a", "b"),
            "case 'refund-42' has failing_step(…) before its goal; call user(…) first",
            id="failure-before-goal",
        ),
        pytest.param(
            lambda: Transcript("refund-42").user(" \n"),
            "case 'refund-42' has an empty goal; give the task to the first user(…)",
            id="blank-goal",
        ),
        pytest.param(
            lambda: START.system("a").system("b"),
            "case 'refund-42' has two system prompts; call system(…) once",
            id="two-systems",
        ),
        pytest.param(
            lambda: START.tool("a").tool("a", "again"),
            "case 'refund-42' has two tools named 'a'; call tool('a', …) once",
            id="two-tools",
        ),
        pytest.param(
            lambda: START.correct("a").correct("b"),
            "case 'refund-42' has two correct actions; call correct(…) once",
            id="two-correct",
        ),
        pytest.param(
            lambda: START.success("a").success("b"),
            "case 'refund-42' has two success answers; call success(…) once",
            id="two-successes",
        ),
        pytest.param(
            lambda: START.neutral("a").neutral("a"),
            "case 'refund-42' has two neutral answers; call neutral(…) once",
            id="two-neutrals",
        ),
        pytest.param(
            lambda: WHOLE.correct("refund(order='42')").case(),
            "case 'refund-42' has the action \"refund(order='42')\" both in failing_step(…) and in "
            "correct(…); each candidate must differ",
            id="correct-is-failed",
        ),
        pytest.param(
            lambda: WHOLE.correct("b").distractors("c", "b").case(),
            "case 'refund-42' has the action 'b' both in correct(…) and in distractors(…); each "
            "candidate must differ",
            id="distractor-is-correct",
        ),
        pytest.param(
            lambda: START.other_failed("a", "E").other_failed("b", "E"),
            "case 'refund-42' has two other failures; call other_failed(…) once",
            id="two-other-failures",
        ),
        pytest.param(
            lambda: WHOLE.other_failed("refund(order='42')", "E").case(),
            "case 'refund-42' has the action \"refund(order='42')\" both in failing_step(…) and in "
            "other_failed(…); another action has to fail there",
            id="other-failure-is-failed",
        ),
        pytest.param(
            lambda: WHOLE.correct("b").other_failed("b", "E").case(),
            "case 'refund-42' has the action 'b' both in correct(…) and in other_failed(…); "
            "another action has to fail there",
            id="other-failure-is-correct",
        ),
        pytest.param(
            lambda: START.step(" ", "ok"),
            "case 'refund-42' has an unusable action in step(…): the action ' ' is empty or only "
            "white space, so there is nothing to score: give the exact text that the model "
            "emitted, or its tool calls",
            id="blank-action",
        ),
    ],
)
def test_what_is_missing_or_doubled_is_named_with_its_method(
    build: Callable[[], object], said: str
) -> None:
    assert error_of(build) == said


@pytest.mark.parametrize(
    ("build", "method"),
    [
        (lambda: START.step("a", {"ok": 1}), "step"),  # type: ignore[arg-type]
        (lambda: START.failing_step("a", ValueError()), "failing_step"),  # type: ignore[arg-type]
        (lambda: START.other_failed("a", None), "other_failed"),  # type: ignore[arg-type]
        (lambda: START.correct({"name": "a"}), "correct"),  # type: ignore[arg-type]
        (lambda: START.success(3), "success"),  # type: ignore[arg-type]
        (lambda: START.user(None), "user"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_text_is_named_with_its_method(build: Callable[[], object], method: str) -> None:
    said = error_of(build)
    assert said.startswith("case 'refund-42' has a ")
    assert f" in {method}(…) where a text is meant: " in said
