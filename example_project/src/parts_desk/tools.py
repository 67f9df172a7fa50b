"""What the agent can do: each tool works on the database and answers with a text.

A tool raises a `DeskError` where it sees that a call makes no sense, and leaves to the database
what the database knows better: whether the stock suffices, and who is a customer.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import date

from parts_desk.errors import (
    DateError,
    OrderStateError,
    PackError,
    StatusError,
    UnknownOrderError,
    UnknownPartError,
)

Tool = Callable[..., str]

STATUSES = ("open", "shipped", "cancelled")


def find_part(db: sqlite3.Connection, name: str) -> str:
    """Find parts by a piece of their name."""
    found = db.execute(
        "SELECT number, name, pack_size FROM parts WHERE instr(lower(name), lower(?)) ORDER BY 1",
        (name,),
    ).fetchall()
    if not found:
        raise UnknownPartError(f"no part has {name!r} in its name")
    return "; ".join(f"{number}: {name}, packs of {size}" for number, name, size in found)


def stock_level(db: sqlite3.Connection, part: str) -> str:
    """Tell how many of a part are free."""
    _require_part(db, part)
    (free,) = db.execute("SELECT free FROM stock WHERE part = ?", (part,)).fetchone()
    return f"{part}: {free} free"


def reserve_part(db: sqlite3.Connection, part: str, quantity: int, customer: str) -> str:
    """Put parts from the stock aside for a customer."""
    _require_part(db, part)
    db.execute(
        "INSERT INTO reservations (part, quantity, customer) VALUES (?, ?, ?)",
        (part, quantity, customer),
    )
    db.execute("UPDATE stock SET free = free - ? WHERE part = ?", (quantity, part))
    return f"reserved {quantity} of {part} for {customer}"


def place_order(db: sqlite3.Connection, part: str, quantity: int, deliver_on: str) -> str:
    """Order whole packs of a part for delivery on a day, YYYY-MM-DD."""
    pack_size = _require_part(db, part)
    if quantity % pack_size:
        raise PackError(f"{part} comes in packs of {pack_size}, so not {quantity} of it")
    try:
        day = date.fromisoformat(deliver_on).isoformat()
    except ValueError as error:
        raise DateError(str(error)) from None
    placed = db.execute(
        "INSERT INTO orders (part, quantity, deliver_on) VALUES (?, ?, ?)", (part, quantity, day)
    )
    return f"order {placed.lastrowid}: {quantity} of {part} on {day}"


def list_orders(db: sqlite3.Connection, status: str) -> str:
    """List the orders that are open, shipped or cancelled."""
    if status not in STATUSES:
        raise StatusError(f"{status!r} is not one of {', '.join(STATUSES)}")
    orders = db.execute(
        "SELECT id, quantity, part, deliver_on FROM orders WHERE status = ? ORDER BY id", (status,)
    ).fetchall()
    lines = (f"{id_}: {quantity} of {part} on {day}" for id_, quantity, part, day in orders)
    return "; ".join(lines) or f"no orders are {status}"


def cancel_order(db: sqlite3.Connection, order: int) -> str:
    """Cancel an order that is still open."""
    row = db.execute("SELECT status FROM orders WHERE id = ?", (order,)).fetchone()
    if row is None:
        raise UnknownOrderError(f"there is no order {order}")
    if row[0] != "open":
        raise OrderStateError(f"order {order} is {row[0]} already")
    db.execute("UPDATE orders SET status = 'cancelled' WHERE id = ?", (order,))
    return f"order {order} is cancelled"


def answer(db: sqlite3.Connection, text: str) -> str:
    """Tell the user the outcome, once the request is dealt with."""
    return text


def _require_part(db: sqlite3.Connection, part: str) -> int:
    """The pack size of `part`."""
    row = db.execute("SELECT pack_size FROM parts WHERE number = ?", (part,)).fetchone()
    if row is None:
        raise UnknownPartError(f"there is no part number {part!r}")
    pack_size: int = row[0]
    return pack_size


TOOLS: dict[str, Tool] = {
    tool.__name__: tool
    for tool in (
        find_part,
        stock_level,
        reserve_part,
        place_order,
        list_orders,
        cancel_order,
        answer,
    )
}
