"""The guest: the process that holds the program, and answers calls of its functions."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from types import CodeType, ModuleType
from typing import Any

from . import wire

PROGRAM = "solution.py"
MOST_FRAMES = 12
MOST_CHARACTERS = 1000

# Kept apart from what the program may do to the modules that it shares with this one.
_exit = os._exit
# Given back when memory runs out, so that enough is left to say so.
_RESERVE_BYTES = 1024 * 1024


def serve(link: socket.socket) -> None:
    """Take in the program, then answer one call after the other. Never returns."""
    try:
        _serve(link)
    finally:
        _exit(0)


def _serve(link: socket.socket) -> None:
    source = wire.receive(link)
    reserve = bytearray(_RESERVE_BYTES)
    module = sys.modules["solution"] = ModuleType("solution")  # dataclasses look there for it
    try:
        exec(_compiled(source), vars(module))
    except BaseException as error:
        reserve.clear()
        wire.send(link, _described(error))
        return
    shared = {name: value for name, value in vars(module).items() if not name.startswith("__")}
    functions = {name: {"name": name} for name, value in shared.items() if callable(value)}
    constants = {name: _constant(shared[name], shared) for name in shared.keys() - functions}
    _send(link, {"names": functions | constants}, instead={"names": functions})
    while True:
        name, arguments, keywords = wire.receive(link)

        def find(wanted: str) -> Any:
            return shared[wanted]

        try:
            function = shared[name]
            value = function(*wire.decode(arguments, find), **wire.decode(keywords, find))
            answer = {"value": _sent(value, shared)}
        except BaseException as error:
            reserve.clear()
            answer = _described(error)
        _send(link, answer, instead={"value": {"opaque": "too large"}})


def _send(link: socket.socket, message: dict[str, Any], *, instead: dict[str, Any]) -> None:
    """Send `message`, or what stands for it if it is too large."""
    try:
        wire.send(link, message)
    except (wire.NotPlainError, MemoryError):
        wire.send(link, instead)


class _NotAProgramError(Exception):
    """The source can't be compiled; the cause says why."""


def _compiled(source: str) -> CodeType:
    try:
        return compile(source, PROGRAM, "exec", dont_inherit=True)
    except SyntaxError:
        raise
    except (ValueError, RecursionError, MemoryError) as error:
        # NUL characters or half ones, or brackets nested too deeply: no two Pythons agree on what
        # that is, and all on that it is no program.
        raise _NotAProgramError from error


def _sent(value: Any, shared: dict[str, Any]) -> Any:
    def name_of(wanted: Any) -> str | None:
        return next((name for name, known in shared.items() if known is wanted), None)

    if callable(value):
        name = name_of(value)
        if name is not None:
            return {"name": name}
    try:
        return wire.encode(value, name_of)
    except wire.NotPlainError as error:
        return {"opaque": str(error)}


def _constant(value: Any, shared: dict[str, Any]) -> Any:
    """A global of the program, as it is now."""
    opaque = {"opaque": type(value).__qualname__}
    if isinstance(value, ModuleType):
        return {"module": value.__name__}
    try:
        # Sending an iterator uses it up, and the program may need it yet.
        return opaque if isinstance(value, Iterator) else _sent(value, shared)
    except BaseException:  # the program's own class may do anything
        return opaque


def _described(error: BaseException) -> dict[str, Any]:
    """The error as plain data: its kind and text, and the lines of the program that led to it."""
    if isinstance(error, _NotAProgramError):
        return {"syntax_error": None, "kind": "SyntaxError", "message": "", "frames": []}
    frames = list(_frames(error))
    described: dict[str, Any] = {
        "kind": type(error).__name__[:80],
        "message": _text(error),
        "frames": frames[:MOST_FRAMES],
    }
    if isinstance(error, SyntaxError) and not frames:
        described["message"] = str(error.msg)[:MOST_CHARACTERS]
        described["syntax_error"] = error.lineno
    return described


def _text(error: BaseException) -> str:
    try:
        return str(error)[:MOST_CHARACTERS]
    except BaseException:  # the program's own class may do anything
        return ""


def _frames(error: BaseException) -> list[tuple[int, str]]:
    trace = error.__traceback__
    frames = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == PROGRAM:
            frames.append((trace.tb_lineno, code.co_name))
        trace = trace.tb_next
    return frames
