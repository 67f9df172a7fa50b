"""What is made of a model's replies: which program one holds, and how it is written."""

from __future__ import annotations

import ast
import re
from collections.abc import Hashable

from pytest_failgain.environments.program_repair.formats import CODE, is_left_open, read_program
from pytest_failgain.environments.program_repair.source import parsed
from pytest_failgain.replies import ReplyStyle
from pytest_failgain.trajectory import Action

_DEFINITIONS = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Assign,
    ast.AnnAssign,
    ast.Import,
    ast.ImportFrom,
)
# Where a program may begin that can't be parsed: prose has no such line.
_BEGINNING = re.compile(rf"{CODE.pattern}|^\w+[ \t]*=", re.MULTILINE)


def _meaning(action: str) -> Hashable | None:
    """The program's syntax tree, which says nothing of its layout and comments."""
    if not action.strip():
        return None
    try:
        return ast.dump(parsed(read_program(Action(action)).rstrip()))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # Besides what is no Python: trees too deep to print, and integers too long.
        return None


PROGRAMS = ReplyStyle("programs", str.strip, _meaning, one_line=False, self_ending=False)


def writing_of(action: Action, compiles: bool) -> str:
    """Which of `protocol.WRITINGS` the action is, whose program compiles or does not."""
    program = read_program(action).rstrip()
    try:
        tree = parsed(program)
    except SyntaxError as error:
        if not _BEGINNING.search(program):
            return "prose"
        return "truncated" if is_left_open(action) or _is_cut(program, error) else "invalid"
    defines = any(isinstance(statement, _DEFINITIONS) for statement in tree.body)
    return "valid" if compiles and defines else "invalid"


def _is_cut(program: str, error: SyntaxError) -> bool:
    """Whether the error is that the program ends where it does."""
    lines = program.split("\n")
    if error.lineno == len(lines) and (error.offset or 0) > len(lines[-1]):
        return True
    # These are told of the place where something began that goes on to the end.
    ends = ("was never closed", f"(detected at line {len(lines)})")
    return error.msg.endswith(ends)
