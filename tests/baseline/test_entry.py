from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kept_entries import entries, entry, kept

from fake_scorer import IDENTITY, failure_case, measured, measured_by
from pytest_failgain.baseline.entry import NOISE, Entry, decision_digest, entry_of
from pytest_failgain.errors import UsageError
from pytest_failgain.harnesses import remedied
from pytest_failgain.trajectory import Action, FailureCase, Step, ToolCall, UserTurn
from strategies import quick


def test_an_entry_holds_the_values_of_each_case() -> None:
    result = measured(
        {"b": -0.123456, "a": 0.5}, repeat={"b": 0.75}, tasks={"a": "one", "b": "two"}, greedy="b"
    )
    found = entry_of(result, {"seed": 3})
    assert (found.harness, found.environment, found.settings) == (
        "verbatim",
        "own cases",
        {"seed": 3},
    )
    assert list(found.cases) == ["a", "b"]
    one, other = found.cases.values()
    assert (one.task, one.gain_per_token, one.repeat_probability, one.greedy_repeat) == (
        *("one", 0.5, None, False),
    )
    assert (other.task, other.gain_per_token, other.repeat_probability, other.greedy_repeat) == (
        *("two", -0.1235, 0.75, True),
    )


def test_an_entry_names_its_model() -> None:
    identity = replace(IDENTITY, fingerprint="0123456789abcdef0123", template="77", revision="main")
    model = entry_of(measured({"a": 0.0}, model=identity)).model
    assert (model.name, model.source, model.revision) == ("fake", "a hash", "main")
    assert (model.weights, model.template, model.dtype) == ("0123456789abcdef", "77", "float32")


def test_an_entry_holds_the_record_as_the_prompt_has_it() -> None:
    assert "ValueError: no" in entry_of(measured_by({})).cases["case0"].record
    dropped = entry_of(measured_by({}, harness=remedied("dropped")))
    assert dropped.cases["case0"].record == ""


CASE = failure_case("a", distractors=["send(to='Bob')"])
LATER = replace(CASE, trajectory=CASE.trajectory.then(Step(Action("look()"), "seen")))
SAID = replace(CASE, trajectory=CASE.trajectory.then(UserTurn("Now.")))
CALLED = replace(CASE, correct=Action(calls=(ToolCall("send", "{}"),)))


@pytest.mark.parametrize(
    "other",
    [
        replace(CASE, trajectory=replace(CASE.trajectory, goal="Something else.")),
        replace(CASE, failed=replace(CASE.failed, action=Action("send(to='ann')"))),
        replace(CASE, failed=replace(CASE.failed, reply="So: send(to='Ann')")),
        replace(CASE, correct=None),
        replace(CASE, correct=Action("send(to='x')")),
        replace(CASE, distractors=()),
        replace(CASE, distractors=(Action("send(to='Bo')"),)),
        LATER,
        SAID,
        CALLED,
        replace(CASE, correct=Action(calls=(ToolCall("send", "[]"),))),
        replace(CASE, correct=Action(calls=(ToolCall("sent", "{}"),))),
    ],
)
def test_cases_about_different_things_have_different_digests(other: FailureCase) -> None:
    assert decision_digest(other) != decision_digest(CASE)


@pytest.mark.parametrize(
    "other",
    [
        replace(CASE, trajectory=replace(CASE.trajectory, system="Other words.")),
        replace(CASE, failed=replace(CASE.failed, observation="Another error.")),
        replace(CASE, case_id="b", task_id="b", environment="else"),
    ],
)
def test_words_that_a_prompt_change_may_change_are_no_part_of_the_digest(
    other: FailureCase,
) -> None:
    assert decision_digest(other) == decision_digest(CASE)


def test_the_order_of_distractors_is_no_part_of_the_digest() -> None:
    actions = (Action("send(to='Bob')"), Action("send(to='Cy')"))
    one, other = (replace(CASE, distractors=order) for order in (actions, actions[::-1]))
    assert decision_digest(one) == decision_digest(other)


def test_an_answer_of_an_earlier_step_is_no_part_of_the_digest() -> None:
    answered = replace(CASE, trajectory=CASE.trajectory.then(Step(Action("look()"), "gone")))
    assert decision_digest(answered) == decision_digest(LATER)
    assert decision_digest(SAID) != decision_digest(LATER)


@quick
@given(entries)
def test_an_entry_equals_itself_and_joins_with_itself(one: Entry) -> None:
    assert one.equals(one)
    assert one.joined(one) == one


@pytest.mark.parametrize(("step", "same"), [(0.9 * NOISE, True), (2 * NOISE, False)])
def test_rounding_is_no_difference(step: float, same: bool) -> None:
    base = entry({"a": kept(0.5, 0.25)})
    assert base.equals(entry({"a": kept(0.5 + step, 0.25)})) is same
    assert base.equals(entry({"a": kept(0.5, 0.25 - step)})) is same


@pytest.mark.parametrize(
    "other",
    [
        entry({}),
        entry({"b": kept()}),
        entry({"a": kept(), "b": kept()}),
        entry({"a": kept(share=None)}),
        entry({"a": kept(greedy=True)}),
        entry({"a": kept(record="Other.")}),
        entry({"a": kept(decision="ffff")}),
        entry({"a": kept(task="other")}),
        entry({"a": kept()}, seed=1),
        entry({"a": kept()}, harness="other"),
    ],
)
def test_anything_else_is_a_difference(other: Entry) -> None:
    assert not entry({"a": kept()}).equals(other)
    assert not other.equals(entry({"a": kept()}))


def test_entries_of_one_name_join_their_cases() -> None:
    joined = entry({"b": kept(1.0), "c": kept()}).joined(entry({"a": kept(), "b": kept(1.0005)}))
    assert list(joined.cases) == ["a", "b", "c"]
    assert joined.cases["b"].gain_per_token == 1.0


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (entry({"a": kept(1.0)}), r"measured twice with different outcomes \(case 'a'\)"),
        (entry({"a": kept()}, seed=2), "measured with two models or settings"),
    ],
)
def test_entries_of_one_name_that_disagree_are_refused(other: Entry, said: str) -> None:
    with pytest.raises(UsageError, match=f"mine on own cases was {said}"):
        entry({"a": kept()}).joined(other)


@quick
@given(st.lists(st.sampled_from("abcd"), unique=True), st.lists(st.sampled_from("abcd")))
def test_joining_does_not_depend_on_the_order(one: list[str], other: list[str]) -> None:
    left, right = (entry({case_id: kept() for case_id in ids}) for ids in (one, other))
    assert left.joined(right) == right.joined(left)
