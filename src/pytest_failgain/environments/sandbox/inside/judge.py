"""The judge: runs the tests on a program that lives in another process."""

from __future__ import annotations

import ast
import builtins
import socket
from collections.abc import Iterable, Iterator
from importlib import import_module
from types import TracebackType
from typing import Any, cast

from . import wire
from .guest import MOST_CHARACTERS, MOST_FRAMES, PROGRAM

TESTS = "tests.py"
MOST_TEXT = 300


class GuestGoneError(BaseException):
    """The program's process does not answer any more. Not an Exception, so no test can catch it."""


class GuestSlowError(BaseException):
    """It took too long to answer."""


class TestsError(Exception):
    """The tests can't be used."""


class Judge:
    """Tries one program on its tests. `verdict` is the outcome so far.

    Raises:
        TestsError: when the tests are not Python, or hold no assert.
    """

    def __init__(self, link: socket.socket, program: str, tests: str) -> None:
        self._link = link
        self._lost: str | None = None
        self._program = program
        self._source = {TESTS: tests, PROGRAM: program}
        self._names: dict[str, Any] = {"__name__": "tests"}
        self._statements = _statements(tests)
        self.verdict: dict[str, Any] = {
            "tests": sum(isinstance(statement, ast.Assert) for statement in self._statements),
            "tests_passed": 0,
        }

    def try_program(self) -> None:
        """Load the program and run the tests, up to the first that fails."""
        try:
            outcome = self._tried()
        except GuestSlowError:
            outcome = "timeout"
        except (GuestGoneError, MemoryError):
            outcome = "gone"
        # A test that catches everything must not hide that nobody answered.
        self.verdict["outcome"] = self._lost or outcome

    def _tried(self) -> str:
        answer = self._ask(self._program, "names")
        if "names" not in answer:
            syntax = "syntax_error" in answer
            return self._failed("syntax_error" if syntax else "runtime_error", answer, ())
        for name in answer["names"].keys() & _wanted(self._statements):
            value = answer["names"][name]
            # Tests may use what the program imports, under no name but its own.
            module = value == {"module": name}
            self._names[name] = import_module(name) if module else self._decoded(value)
        for statement in self._statements:
            failed = self._run(statement)
            if failed:
                return failed
            self.verdict["tests_passed"] += isinstance(statement, ast.Assert)
        return "passed"

    def _run(self, statement: ast.stmt) -> str | None:
        """The outcome if `statement` ends the tests, else None."""
        code = compile(ast.Module([statement], []), TESTS, "exec", dont_inherit=True, optimize=0)
        try:
            exec(code, self._names)
        except (_ProgramError, Exception) as error:
            lines = _lines(error.__traceback__)
            answer = getattr(error, "failgain_answer", None)
            if answer is not None:
                return self._failed("runtime_error", answer, lines)
            message = str(error)[:MOST_CHARACTERS]
            told = {"kind": type(error).__name__, "message": message, "frames": []}
            failed = isinstance(error, AssertionError)
            return self._failed("test_failure" if failed else "runtime_error", told, lines)
        return None

    def _failed(
        self, outcome: str, answer: dict[str, Any], lines: Iterable[tuple[int, str]]
    ) -> str:
        frames = [(TESTS, line, name) for line, name in lines]
        frames += [(PROGRAM, line, name) for line, name in answer["frames"][:MOST_FRAMES]]
        if answer.get("syntax_error"):
            frames.append((PROGRAM, answer["syntax_error"], ""))
        self.verdict.update(
            kind=answer["kind"][:MOST_TEXT],
            message=answer["message"][:MOST_CHARACTERS],
            frames=list(_told(frames, self._source)),
        )
        return outcome

    def _ask(self, message: Any, wanted: str) -> dict[str, Any]:
        """What the guest answers: something under the key `wanted`, or an error."""
        try:
            wire.send(self._link, message)
            answer = wire.receive(self._link)
        except TimeoutError:
            self._lost = "timeout"
            raise GuestSlowError from None
        except (OSError, wire.BrokenFrameError):
            answer = None
        if not _is_answer(answer, wanted):
            raise self._gone()
        return cast(dict[str, Any], answer)

    def _decoded(self, value: Any) -> Any:
        try:
            return wire.decode(value, lambda name: _Function(self, name))
        except (wire.BrokenFrameError, MemoryError):
            raise self._gone() from None

    def _gone(self) -> GuestGoneError:
        self._lost = "gone"
        return GuestGoneError()

    def call(self, name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """What the program's function `name` returns; raises what it raises."""

        def name_of(value: Any) -> str | None:
            return value.name if isinstance(value, _Function) else None

        try:
            sent = [wire.encode(list(arguments), name_of), wire.encode(keywords, name_of)]
        except wire.NotPlainError as error:
            raise wire.NotPlainError(f"a test can't hand {error} to a program") from None
        answer = self._ask([name, *sent], "value")
        if "value" in answer:
            return self._decoded(answer["value"])
        raise _raised(answer)


class _ProgramError(BaseException):
    """Stands for what must not be caught in a test: SystemExit, say."""


class _Function:
    """Stands for a function of the program."""

    def __init__(self, judge: Judge, name: str) -> None:
        self._judge = judge
        self.name = self.__name__ = name

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._judge.call(self.name, arguments, keywords)

    def __repr__(self) -> str:
        return f"<function {self.name}>"


def _statements(tests: str) -> list[ast.stmt]:
    try:
        statements = ast.parse(tests, TESTS).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise TestsError(f"the tests are not Python: {error}") from None
    if not any(isinstance(statement, ast.Assert) for statement in statements):
        raise TestsError("there is no assert among the tests, so any program would pass them")
    return statements


def _wanted(statements: list[ast.stmt]) -> set[str]:
    """The names that the tests take from the program.

    Those of Python's own functions are not among them: with a `len` of its own, a program could
    pass by answering wrongly. Unless it is the only name, as in the tests of a function that is
    called `sum`.
    """
    names = [node for tree in statements for node in ast.walk(tree) if isinstance(node, ast.Name)]
    read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    read = {name for name in read if not name.startswith("__")}
    return read if len(read) == 1 else read - set(dir(builtins))


def _raised(answer: dict[str, Any]) -> BaseException:
    """The exception that the program raised, of the same built-in class if it is one."""
    kind = getattr(builtins, answer["kind"], None)
    if not (isinstance(kind, type) and issubclass(kind, BaseException)):
        kind = type(answer["kind"], (Exception,), {})
    elif not issubclass(kind, Exception) or kind is StopIteration:
        # The latter would silently end a loop of the test.
        kind = _ProgramError
    error: BaseException
    try:
        error = kind(answer["message"])
    except TypeError:  # such as UnicodeDecodeError, which wants more than a text
        error = Exception(answer["message"])
    error.failgain_answer = answer  # type: ignore[attr-defined]
    return error


def _is_answer(answer: object, wanted: str) -> bool:
    """Whether it has the form of something that the guest says; its content may be anything."""
    if not isinstance(answer, dict):
        return False
    if wanted in answer:
        return wanted == "value" or isinstance(answer[wanted], dict)
    return _is_error(answer)


def _is_error(answer: dict[str, Any]) -> bool:
    kind, frames, line = (answer.get(key) for key in ("kind", "frames", "syntax_error"))
    return (
        isinstance(kind, str)
        and kind.isidentifier()
        and isinstance(answer.get("message"), str)
        and isinstance(frames, list)
        and all(
            isinstance(frame, list) and [type(part) for part in frame] == [int, str]
            for frame in frames
        )
        and (line is None or isinstance(line, int))
    )


def _lines(trace: TracebackType | None) -> Iterator[tuple[int, str]]:
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == TESTS:
            yield trace.tb_lineno, code.co_name
        trace = trace.tb_next


def _told(
    frames: list[tuple[str, int, str]], sources: dict[str, str]
) -> Iterator[tuple[str, int, str, str]]:
    """The frames as every Python tells them, with the text of each line.

    Versions disagree about the line of an expression that spans several, and about whether a list
    comprehension has a frame of its own. So each frame is told by the first line of its statement,
    and comprehensions by their function's.
    """
    starts = {file: _statement_starts(source) for file, source in sources.items()}
    for file, line, name in frames:
        if name in ("<listcomp>", "<setcomp>", "<dictcomp>"):
            continue
        lines = sources[file].split("\n")
        first = starts[file].get(line, line)
        text = lines[first - 1].strip()[:MOST_TEXT] if 0 < first <= len(lines) else ""
        yield file, first, name[:80], text


def _statement_starts(source: str) -> dict[int, int]:
    """For each line inside a statement that spans several, the line on which it starts."""
    starts: dict[int, int] = {}
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return starts
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            inner = getattr(node, "body", None)
            body = inner[0] if isinstance(inner, list) and inner else None
            end = (body.lineno - 1) if body is not None else (node.end_lineno or node.lineno)
            for line in range(node.lineno, end + 1):
                starts[line] = max(starts.get(line, 0), node.lineno)
    return starts
