"""Results find their calls: by id wherever they stand, else by order."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_failgain.trajectory import Action, ToolCall
from pytest_failgain.transcripts.conversation import Call, Result, Turn
from pytest_failgain.transcripts.pairing import EARLY, FURTHER, ORPHAN, OTHER_ID, paired


def calls(*ids: str | None, tools: str = "") -> Turn:
    names = tools.split() or ["tool"] * len(ids)
    made = (
        Call(Action(calls=(ToolCall(name, "{}"),)), call_id)
        for name, call_id in zip(names, ids, strict=True)
    )
    return Turn("assistant", calls=tuple(made))


def results(*ids: str | None, tool: str | None = None) -> Turn:
    return Turn("tool", results=tuple(Result("x", call_id, tool=tool) for call_id in ids))


def test_parallel_results_in_another_order_find_their_calls() -> None:
    pairing = paired([calls("a", "b"), results("b"), results("a")])
    assert pairing.answers == {(0, 0): (2, 0), (0, 1): (1, 0)}
    assert not pairing.notes


def test_id_that_each_turn_uses_again_means_the_last_call_before() -> None:
    turns = [calls("0"), results("0"), calls("0"), results("0")]
    assert paired(turns).answers == {(0, 0): (1, 0), (2, 0): (3, 0)}


def test_id_that_an_unanswered_call_had_means_the_later_one() -> None:
    pairing = paired([calls("0"), calls("0"), results("0")])
    assert pairing.answers == {(1, 0): (2, 0)}


def test_same_id_twice_in_a_turn_is_answered_in_order() -> None:
    pairing = paired([calls("0", "0"), results("0"), results("0")])
    assert pairing.answers == {(0, 0): (1, 0), (0, 1): (2, 0)}


def test_further_result_for_an_answered_call_is_left_out_and_noted() -> None:
    pairing = paired([calls("a"), results("a"), results("a")])
    assert pairing.answers == {(0, 0): (1, 0)}
    assert pairing.notes == {FURTHER: 1}


def test_result_before_its_call_is_found_and_noted() -> None:
    pairing = paired([results("a"), calls("a")])
    assert pairing.answers == {(1, 0): (0, 0)}
    assert pairing.notes == {EARLY: 1}


def test_results_without_ids_belong_to_the_last_calls_in_order() -> None:
    turns = [calls(None), calls(None, None), results(None), results(None)]
    assert paired(turns).answers == {(1, 0): (2, 0), (1, 1): (3, 0)}


def test_named_tool_decides_between_open_calls() -> None:
    turns = [calls(None, None, tools="see book"), results(None, tool="book"), results(None)]
    assert paired(turns).answers == {(0, 1): (1, 0), (0, 0): (2, 0)}


def test_result_of_a_tool_that_no_open_call_has_goes_by_order() -> None:
    assert paired([calls("a"), results(None, tool="other")]).answers == {(0, 0): (1, 0)}


def test_unknown_id_is_taken_for_an_open_call_and_noted() -> None:
    pairing = paired([calls("a"), results("z")])
    assert pairing.answers == {(0, 0): (1, 0)}
    assert pairing.notes == {OTHER_ID: 1}


def test_unknown_id_takes_no_call_from_the_result_that_has_its_id() -> None:
    pairing = paired([calls("a"), results("z"), results("a")])
    assert pairing.answers == {(0, 0): (2, 0)}
    assert pairing.notes == {ORPHAN: 1}


def test_result_without_any_call_is_noted() -> None:
    assert paired([results("a"), results(None)]).notes == {ORPHAN: 2}


def test_result_in_the_turn_of_its_call_is_found() -> None:
    turn = Turn("assistant", calls=calls("a").calls, results=results("a").results)
    assert paired([turn]).answers == {(0, 0): (0, 0)}


IDS = st.lists(st.sampled_from(["a", "b", None]), max_size=3)
TURNS = st.lists(
    st.one_of(
        st.builds(lambda ids: calls(*ids), IDS),
        st.builds(lambda ids, tool: results(*ids, tool=tool), IDS, st.sampled_from([None, "tool"])),
    ),
    max_size=8,
)


@given(TURNS)
@settings(max_examples=150, deadline=None)
def test_every_result_answers_one_call_or_is_noted(turns: list[Turn]) -> None:
    pairing = paired(turns)
    count = sum(len(turn.results) for turn in turns)
    assert len({*pairing.answers.values()}) == len(pairing.answers)
    lost = Counter(pairing.notes)[FURTHER] + Counter(pairing.notes)[ORPHAN]
    assert len(pairing.answers) + lost == count
    for (turn, number), (answer, place) in pairing.answers.items():
        call, result = turns[turn].calls[number], turns[answer].results[place]
        assert result.call_id in (None, call.call_id) or pairing.notes[OTHER_ID]
