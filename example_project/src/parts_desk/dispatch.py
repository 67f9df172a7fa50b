"""From the text of a call to its outcome. Nothing that a model writes is ever evaluated."""

from __future__ import annotations

import ast
import inspect
import sqlite3
from dataclasses import dataclass
from typing import Any, get_type_hints

from parts_desk.errors import ArgumentError, CallSyntaxError, DeskError, UnknownToolError
from parts_desk.tools import TOOLS, Tool

_LONGEST_CALL = 2000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call came to.

    `text` is the tool's answer or the error. `tool` is the tool that was called, None where there
    is none of that name; `problem` is the kind of error, None where there was none.
    """

    text: str
    tool: str | None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A call as it was written, its values read as plain Python literals."""

    name: str
    positional: tuple[Any, ...]
    named: dict[str, Any]


def execute(db: sqlite3.Connection, text: str) -> Outcome:
    """Run the call that `text` is; a call that fails leaves the database as it was."""
    tool = None
    try:
        call = read_call(text)
        if call.name not in TOOLS:
            raise UnknownToolError(f"there is no tool {call.name!r}")
        tool = call.name
        arguments = _bind(TOOLS[tool], call)
        with db:
            return Outcome(TOOLS[tool](db, **arguments), tool)
    except (DeskError, sqlite3.IntegrityError, OverflowError, UnicodeError) as error:
        problem = type(error).__name__
        return Outcome(f"{problem}: {error}", tool, problem)


def read_call(text: str) -> Call:
    """`text` as a call.

    Raises:
        CallSyntaxError: when it is not one call of a plain name with literals as its arguments.
    """
    if len(text) > _LONGEST_CALL:
        raise CallSyntaxError(f"the call is longer than {_LONGEST_CALL} characters")
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise CallSyntaxError("the reply is not a single call") from None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise CallSyntaxError("the reply is not a single call")
    named: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise CallSyntaxError("arguments can't be unpacked with **")
        if keyword.arg in named:
            raise CallSyntaxError(f"{keyword.arg} is given twice")
        named[keyword.arg] = _literal(keyword.value, keyword.arg)
    positional = (_literal(value, f"argument {i}") for i, value in enumerate(node.args, 1))
    return Call(node.func.id, tuple(positional), named)


def _literal(node: ast.expr, name: str) -> object:
    try:
        value: object = ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError):
        raise CallSyntaxError(f"{name} is not a plain value") from None
    return value


def _bind(tool: Tool, call: Call) -> dict[str, Any]:
    """The call's arguments by name, without the database that every tool takes first."""
    signature = inspect.signature(tool)
    own = signature.replace(parameters=list(signature.parameters.values())[1:])
    try:
        arguments = own.bind(*call.positional, **call.named).arguments
    except TypeError as error:
        raise ArgumentError(f"{call.name}(): {error}") from None
    types = get_type_hints(tool)
    for name, value in arguments.items():
        if type(value) is not types[name]:
            wanted, given = types[name].__name__, type(value).__name__
            raise ArgumentError(f"{call.name}(): {name} must be {wanted}, not {given}")
    return arguments
