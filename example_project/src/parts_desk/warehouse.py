"""The warehouse's database."""

from __future__ import annotations

import sqlite3
from importlib.resources import files


def open_warehouse(path: str = ":memory:") -> sqlite3.Connection:
    """A new warehouse at `path`, with the parts, stock and orders of `warehouse.sql`."""
    db = sqlite3.connect(path)
    db.execute("PRAGMA foreign_keys = ON")
    db.executescript(files("parts_desk").joinpath("warehouse.sql").read_text("utf-8"))
    return db
