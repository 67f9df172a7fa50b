"""Calls that fail, each at a point of a real request, and their recording on a real database."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from parts_desk.agent import INSTRUCTIONS
from parts_desk.dispatch import execute
from parts_desk.history import Request
from parts_desk.warehouse import open_warehouse
from pytest_failgain import FailureCase, Transcript


@dataclass(frozen=True)
class Failure:
    """A request dealt with up to some point, and the calls that could be made there.

    `past` are the calls so far, and what the user said between them. Of the calls at that point
    only `correct` works. Failures of one `task` start from the same request.
    """

    name: str
    task: str
    request: str
    past: tuple[str | Request, ...]
    failing: str
    correct: str
    distractors: tuple[str, str]


def warehouse_at(failure: Failure) -> sqlite3.Connection:
    """A warehouse in which the past of `failure` has really happened."""
    db = open_warehouse()
    for entry in failure.past:
        if isinstance(entry, str):
            execute(db, entry)
    return db


def recorded(failure: Failure) -> FailureCase:
    """The case for pytest-failgain, with the answers and errors that the tools really gave."""
    db = open_warehouse()
    transcript = Transcript(failure.name, failure.task).system(INSTRUCTIONS).user(failure.request)
    for entry in failure.past:
        if isinstance(entry, Request):
            transcript = transcript.user(entry.text)
            continue
        outcome = execute(db, entry)
        transcript = transcript.step(
            entry,
            None if outcome.tool == "answer" else outcome.text,
            failed=outcome.problem is not None,
            error_family=outcome.problem,
            tool=outcome.tool,
        )
    outcome = execute(db, failure.failing)
    return (
        transcript.failing_step(
            failure.failing, outcome.text, error_family=outcome.problem, tool=outcome.tool
        )
        .correct(failure.correct)
        .distractors(*failure.distractors)
        .case()
    )


FAILURES = (
    Failure(
        "name-for-number",
        "bearings",
        "How many ball bearings 6204 are free?",
        ("find_part(name='ball bearing')",),
        failing="stock_level(part='ball bearing 6204')",
        correct="stock_level(part='BRG-6204')",
        distractors=("stock_level(number='BRG-6204')", "check_stock(part='BRG-6204')"),
    ),
    Failure(
        "quantity-as-text",
        "seals",
        "Reserve 12 shaft seals for Northfield Dairy.",
        ("find_part(name='shaft seal')",),
        failing="reserve_part(part='SEAL-35', quantity='12', customer='Northfield Dairy')",
        correct="reserve_part(part='SEAL-35', quantity=12, customer='Northfield Dairy')",
        distractors=(
            "reserve_part(part='SEAL-35', quantity=12)",
            "reserve_part(part='SEAL-35', amount=12, customer='Northfield Dairy')",
        ),
    ),
    Failure(
        "more-than-free",
        "motors",
        "Kestrel Mills needs 6 motors of 0.75 kW. Reserve 6, or as many as are free.",
        ("find_part(name='0.75 kW')", "stock_level(part='MTR-075')"),
        failing="reserve_part(part='MTR-075', quantity=6, customer='Kestrel Mills')",
        correct="reserve_part(part='MTR-075', quantity=4, customer='Kestrel Mills')",
        distractors=(
            "reserve_part(part='MTR-075', count=4, customer='Kestrel Mills')",
            "reserve_part(part='MTR-75', quantity=4, customer='Kestrel Mills')",
        ),
    ),
    Failure(
        "spoken-date",
        "bolts",
        "Order 200 hex bolts M8x40 for delivery on 14 May 2027.",
        ("find_part(name='hex bolt M8x40')",),
        failing="place_order(part='BLT-M8-40', quantity=200, deliver_on='14 May 2027')",
        correct="place_order(part='BLT-M8-40', quantity=200, deliver_on='2027-05-14')",
        distractors=(
            "place_order(part='BLT-M8-40', quantity=200, date='2027-05-14')",
            "place_order(part='BLT-M8-40', quantity=200)",
        ),
    ),
    Failure(
        "dotted-date-after-a-spoken-one",
        "bolts",
        "Order 200 hex bolts M8x40 for delivery on 14 May 2027.",
        (
            "find_part(name='hex bolt M8x40')",
            "place_order(part='BLT-M8-40', quantity=200, deliver_on='14 May 2027')",
        ),
        failing="place_order(part='BLT-M8-40', quantity=200, deliver_on='14.05.2027')",
        correct="place_order(part='BLT-M8-40', quantity=200, deliver_on='2027-05-14')",
        distractors=(
            "place_order(part='M8x40', quantity=200, deliver_on='2027-05-14')",
            "order_part(part='BLT-M8-40', quantity=200, deliver_on='2027-05-14')",
        ),
    ),
    Failure(
        "broken-pack",
        "filters",
        "We need at least 50 filter mats G4 on 2027-06-08. Order them.",
        ("find_part(name='filter mat')",),
        failing="place_order(part='FLT-G4', quantity=50, deliver_on='2027-06-08')",
        correct="place_order(part='FLT-G4', quantity=60, deliver_on='2027-06-08')",
        distractors=(
            "place_order(part='FLT-G4', quantity=60, deliver_on='08/06/2027')",
            "place_order(part='filter mat G4', quantity=60, deliver_on='2027-06-08')",
        ),
    ),
    Failure(
        "part-for-order",
        "chain-order",
        "Cancel the open order of roller chain.",
        ("list_orders(status='open')",),
        failing="cancel_order(order='CHN-08B')",
        correct="cancel_order(order=503)",
        distractors=("cancel_order(part='CHN-08B')", "delete_order(order=503)"),
    ),
    Failure(
        "shipped-order",
        "belt-orders",
        "There are two orders of belts BELT-A42. Cancel the one that has not been shipped.",
        ("list_orders(status='shipped')", "list_orders(status='open')"),
        failing="cancel_order(order=504)",
        correct="cancel_order(order=507)",
        distractors=("cancel_order(order='507')", "cancel_order(order_id=507)"),
    ),
    Failure(
        "made-up-status",
        "shipped-orders",
        "Which orders have been sent out?",
        (),
        failing="list_orders(status='sent')",
        correct="list_orders(status='shipped')",
        distractors=("list_orders(state='shipped')", "list_orders()"),
    ),
    Failure(
        "made-up-argument",
        "belt-number",
        "What is the part number of the V-belt A42?",
        (),
        failing="find_part(part='V-belt A42')",
        correct="find_part(name='V-belt A42')",
        distractors=("search_parts(name='V-belt A42')", "find_part()"),
    ),
    Failure(
        "short-customer",
        "nuts-for-aldgate",
        "Reserve 300 hex nuts M8 for Aldgate Press.",
        ("find_part(name='hex nut')",),
        failing="reserve_part(part='NUT-M8', quantity=300, customer='Aldgate')",
        correct="reserve_part(part='NUT-M8', quantity=300, customer='Aldgate Press')",
        distractors=(
            "reserve_part(part='hex nut M8', quantity=300, customer='Aldgate Press')",
            "reserve(part='NUT-M8', quantity=300, customer='Aldgate Press')",
        ),
    ),
    Failure(
        "missing-day",
        "nuts-low",
        "If fewer than 500 hex nuts M8 are free, order 400 for 2027-06-01.",
        ("find_part(name='hex nut')", "stock_level(part='NUT-M8')"),
        failing="place_order(part='NUT-M8', quantity=400)",
        correct="place_order(part='NUT-M8', quantity=400, deliver_on='2027-06-01')",
        distractors=(
            "place_order(part='NUT-M8', quantity='400', deliver_on='2027-06-01')",
            "place_order(number='NUT-M8', quantity=400, deliver_on='2027-06-01')",
        ),
    ),
    Failure(
        "sum-for-quantity",
        "bearing-packs",
        "Reserve 3 packs of ball bearings 6204 for Kestrel Mills.",
        ("find_part(name='6204')",),
        failing="reserve_part(part='BRG-6204', quantity=3*10, customer='Kestrel Mills')",
        correct="reserve_part(part='BRG-6204', quantity=30, customer='Kestrel Mills')",
        distractors=(
            "reserve_part(part='BRG-6204', packs=3, customer='Kestrel Mills')",
            "reserve_part(part='6204', quantity=30, customer='Kestrel Mills')",
        ),
    ),
    Failure(
        "unknown-tool",
        "chain-for-aldgate",
        "How many of CHN-08B are free?",
        (
            "stock_level(part='CHN-08B')",
            "answer(text='30 of CHN-08B are free.')",
            Request("Then reserve 10 of them for Aldgate Press."),
        ),
        failing="reserve_stock(part='CHN-08B', quantity=10, customer='Aldgate Press')",
        correct="reserve_part(part='CHN-08B', quantity=10, customer='Aldgate Press')",
        distractors=(
            "reserve_part(part='CHN-08B', quantity=10)",
            "reserve_part(part='CHN-08B', quantity=10, customer='Aldgate Printing')",
        ),
    ),
)
