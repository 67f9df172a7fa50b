"""The agent without a model: its tools, its dispatch, its loop and its prompts."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import pytest

from parts_desk.agent import Agent, NoAnswerError
from parts_desk.dispatch import execute
from parts_desk.history import (
    REASONS,
    History,
    Message,
    Request,
    Turn,
    explain_failure,
    quote_failure,
    render_messages,
)

from .failures import FAILURES, Failure, warehouse_at

each_failure = pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.name)
each_record = pytest.mark.parametrize("record", [quote_failure, explain_failure])


def contents(db: sqlite3.Connection) -> list[str]:
    return list(db.iterdump())


@pytest.mark.parametrize(
    ("call", "answered"),
    [
        ("find_part(name='hex')", "BLT-M8-40: hex bolt M8x40, packs of 100; "),
        ("stock_level(part='MTR-075')", "MTR-075: 4 free"),
        ("stock_level('MTR-075')", "MTR-075: 4 free"),
        ("  list_orders(status='cancelled')\n", "505: 20 of SEAL-35 on 2027-04-13"),
    ],
)
def test_questions_are_answered_from_the_database(
    db: sqlite3.Connection, call: str, answered: str
) -> None:
    before = contents(db)
    outcome = execute(db, call)
    assert outcome.text.startswith(answered)
    assert outcome.problem is None
    assert contents(db) == before


def test_a_reservation_takes_parts_from_the_stock(db: sqlite3.Connection) -> None:
    execute(db, "reserve_part(part='NUT-M8', quantity=80, customer='Aldgate Press')")
    assert execute(db, "stock_level(part='NUT-M8')").text == "NUT-M8: 300 free"


def test_an_order_can_be_placed_and_cancelled(db: sqlite3.Connection) -> None:
    placed = execute(db, "place_order(part='FLT-G4', quantity=40, deliver_on='2027-06-08')")
    assert placed.text == "order 508: 40 of FLT-G4 on 2027-06-08"
    assert execute(db, "cancel_order(order=508)").text == "order 508 is cancelled"
    assert "508" in execute(db, "list_orders(status='cancelled')").text


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("Let me look.", "CallSyntaxError"),
        ("stock_level(part='MTR-075'", "CallSyntaxError"),
        ("db.execute('DROP TABLE parts')", "CallSyntaxError"),
        ("answer(text=__import__('os').getcwd())", "CallSyntaxError"),
        ("answer(**{'text': 'done'})", "CallSyntaxError"),
        ("answer(text='" + "x" * 3000 + "')", "CallSyntaxError"),
        ("answer(text='yes', text='no')", "CallSyntaxError"),
        ("(" * 900 + ")" * 900, "CallSyntaxError"),
        ("cancel_order(order=" + "-" * 1900 + "1)", "CallSyntaxError"),
        ("cancel_order(1" + "+1" * 900 + ")", "CallSyntaxError"),
        ("drop_part(part='MTR-075')", "UnknownToolError"),
        ("stock_level()", "ArgumentError"),
        ("stock_level('MTR-075', 'NUT-M8')", "ArgumentError"),
        ("cancel_order(order=True)", "ArgumentError"),
        ("find_part(name='flywheel')", "UnknownPartError"),
        ("cancel_order(order=999)", "UnknownOrderError"),
        ("cancel_order(order=501)", "OrderStateError"),
        ("list_orders(status='late')", "StatusError"),
        ("place_order(part='MTR-075', quantity=1, deliver_on='soon')", "DateError"),
        ("place_order(part='FLT-G4', quantity=7, deliver_on='2027-06-08')", "PackError"),
        ("place_order(part='FLT-G4', quantity=-20, deliver_on='2027-06-08')", "IntegrityError"),
        ("reserve_part(part='MTR-075', quantity=5, customer='Aldgate Press')", "IntegrityError"),
        ("reserve_part(part='MTR-075', quantity=1, customer='Nobody')", "IntegrityError"),
        (f"cancel_order(order={10**30})", "OverflowError"),
        (r"find_part(name='\ud800')", "UnicodeEncodeError"),
    ],
)
def test_a_call_that_fails_says_why_and_changes_nothing(
    db: sqlite3.Connection, call: str, error: str
) -> None:
    before = contents(db)
    outcome = execute(db, call)
    assert outcome.problem == error
    assert outcome.text.startswith(f"{error}: ")
    assert contents(db) == before


def scripted(*replies: str) -> tuple[Callable[[list[Message]], str], list[list[Message]]]:
    """A model that gives `replies` in turn, and the list of all prompts that it was given."""
    waiting = iter(replies)
    prompts: list[list[Message]] = []

    def complete(messages: list[Message]) -> str:
        prompts.append(messages)
        return next(waiting)

    return complete, prompts


def test_the_agent_works_until_it_can_answer(db: sqlite3.Connection) -> None:
    complete, prompts = scripted(
        "stock_level(part='motor')",
        "find_part(name='motor')",
        "stock_level(part='MTR-075')\n",
        "answer(text='There are 4.')",
    )
    assert Agent(complete, db).ask("How many motors are there?") == "There are 4."
    assert [message["role"] for message in prompts[-1]] == [
        *("system", "user", "assistant", "user", "assistant", "user"),
    ]
    assert prompts[-1][-1]["content"] == "Tool result: MTR-075: 4 free"


def test_a_further_request_continues_the_conversation(db: sqlite3.Connection) -> None:
    complete, prompts = scripted("answer(text='Good day.')", "answer(text='Good bye.')")
    agent = Agent(complete, db)
    agent.ask("Good day!")
    assert agent.ask("Good bye!") == "Good bye."
    assert prompts[-1][1:] == [
        {"role": "user", "content": "Good day!"},
        {"role": "assistant", "content": "answer(text='Good day.')"},
        {"role": "user", "content": "Good bye!"},
    ]


def test_the_agent_gives_up_when_no_answer_comes(db: sqlite3.Connection) -> None:
    complete, prompts = scripted(*["Hm."] * 3)
    with pytest.raises(NoAnswerError, match="within 3 calls"):
        Agent(complete, db, max_calls=3).ask("How many motors are there?")
    assert len(prompts) == 3


@each_record
def test_the_agent_shows_failures_as_its_record_writes_them(
    db: sqlite3.Connection, record: Callable[[Turn], list[Message]]
) -> None:
    complete, prompts = scripted("stock_level()", "answer(text='Sorry.')")
    Agent(complete, db, record=record).ask("How many motors are there?")
    assert ("stock_level()" in str(prompts[1])) is (record is quote_failure)
    assert "stock_level" in prompts[1][-1]["content"]


@each_record
def test_the_record_makes_no_difference_where_nothing_failed(
    record: Callable[[Turn], list[Message]],
) -> None:
    history = History("Be brief.", "Hello!", [Turn("answer(text='Hi.')", None), Request("Bye!")])
    assert render_messages(history, record) == render_messages(history)


@each_failure
def test_the_explanation_keeps_the_failed_call_out_of_the_prompt(failure: Failure) -> None:
    outcome = execute(warehouse_at(failure), failure.failing)
    assert outcome.problem in REASONS
    turn = Turn(failure.failing, outcome.text, outcome.tool, outcome.problem)
    (message,) = explain_failure(turn)
    assert failure.failing not in message["content"]
    assert REASONS[outcome.problem] in message["content"]


@each_failure
def test_of_the_calls_at_a_failure_only_the_correct_one_works(failure: Failure) -> None:
    db = warehouse_at(failure)
    before = contents(db)
    for call in (failure.failing, *failure.distractors):
        assert execute(db, call).problem is not None
    assert contents(db) == before
    assert execute(db, failure.correct).problem is None
