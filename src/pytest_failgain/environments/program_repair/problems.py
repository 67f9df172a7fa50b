"""Programming problems with a solution and tests: the project's own, or a file of MBPP."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pytest_failgain.environments.program_repair.source import parsed
from pytest_failgain.errors import CaseError, UsageError
from pytest_failgain.json_fields import Fields

_EXPECTED = "An entry has task_id, prompt (or text), code and test_list, as in MBPP's files"
_OWN = Path(__file__).with_name("problems.json")


@dataclass(frozen=True, slots=True)
class Problem:
    """A task in words, the asserts that a program has to pass, and a program that does.

    `setup` is what the asserts need before them, such as imports. Programs have "\\n" line ends and
    no white space at their end.
    """

    name: str
    prompt: str
    solution: str
    tests: tuple[str, ...]
    setup: tuple[str, ...] = ()

    @property
    def checks(self) -> tuple[str, ...]:
        """What a program is run with: the tests, and before them what they need."""
        return (*self.setup, *self.tests)

    @property
    def asserts(self) -> int:
        """The number of tests, as the runtime counts them.

        Raises:
            SyntaxError: when the tests are not Python.
        """
        statements = parsed("\n".join(self.checks)).body
        return sum(isinstance(statement, ast.Assert) for statement in statements)


@cache
def own_problems() -> tuple[Problem, ...]:
    """The problems that come with this package."""
    return tuple(_read(_OWN, "own"))


def load_problems(path: Path) -> tuple[Problem, ...]:
    """The problems of an MBPP file: `sanitized-mbpp.json` or `mbpp.jsonl`, whatever its name is.

    Raises:
        UsageError: when the file can't be read.
        CaseError: when it is neither of the two, naming the entry and what is wrong with it.
    """
    return tuple(_read(path, "mbpp"))


def _read(path: Path, prefix: str) -> Iterator[Problem]:
    names: set[str] = set()
    for place, entry in _entries(path):
        try:
            problem = _problem(entry, prefix)
            if problem.name in names:
                raise CaseError(f"the task {problem.name!r} stands there twice")
        except CaseError as error:
            raise CaseError(f"{path}, {place}: {error}. {_EXPECTED}") from None
        names.add(problem.name)
        yield problem
    if not names:
        raise CaseError(f"{path} holds no problem; give sanitized-mbpp.json or mbpp.jsonl")


def _entries(path: Path) -> Iterator[tuple[str, Any]]:
    """The entries of the file, each with where it stands."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"the problems at {path} can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CaseError(f"{path} is not text in UTF-8, as MBPP's files are") from None
    if text.lstrip().startswith("["):
        try:
            entries = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise CaseError(f"{path} is not JSON: {error}") from None
        yield from ((f"entry {number}", entry) for number, entry in enumerate(entries, start=1))
        return
    # Not splitlines: it would break lines at characters that JSON may hold.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield f"line {number}", json.loads(line)
            except (ValueError, RecursionError) as error:
                raise CaseError(
                    f"{path}, line {number}: not JSON ({error}); each line must be one problem, or "
                    "the file one array of them"
                ) from None


def _problem(entry: Any, prefix: str) -> Problem:
    # Each of the two files has fields of its own that nothing here needs.
    fields = Fields(entry, entry.keys() if isinstance(entry, dict) else ())
    number = fields.required("task_id", "a number")
    if not isinstance(number, int) or isinstance(number, bool):
        raise CaseError(f"the field 'task_id' must be a number, not {number!r}")
    sanitized = fields.value("prompt") is not None or fields.value("text") is None
    setup = [*fields.texts("test_imports"), fields.text_or_none("test_setup_code") or ""]
    tests = tuple(_plain(test) for test in fields.texts("test_list"))
    if not tests:
        raise CaseError("the field 'test_list' has no test, so any program would pass")
    solution = _plain(fields.text("code"))
    if not solution:
        raise CaseError("the field 'code' is empty")
    return Problem(
        name=f"{prefix}-{number:04d}",
        prompt=_plain(fields.text("prompt" if sanitized else "text")),
        solution=solution,
        tests=tests,
        setup=tuple(_plain(part) for part in setup if part.strip()),
    )


def _plain(text: str) -> str:
    """With one kind of line end, and nothing at the end that a reader would not see."""
    return text.replace("\r\n", "\n").replace("\r", "\n").rstrip()
