"""What is wrong in a YAML file, line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from pytest_failgain.errors import UsageError
from pytest_failgain.nearest import nearest_or_all

_T = TypeVar("_T")


class SchemaError(UsageError):
    """One thing that is wrong, and on which line."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line = line
        self.problem = problem


class SuiteFileError(UsageError):
    """All that is wrong in a file, by line."""

    def __init__(self, problems: Iterable[SchemaError]) -> None:
        # What is merged into several suites is wrong in each of them.
        different = {(one.line, one.problem): one for one in problems}
        self.problems: Sequence[SchemaError] = sorted(different.values(), key=lambda one: one.line)
        super().__init__("; ".join(map(str, self.problems)))


class Problems:
    """Collects what is wrong, so that all of it can be told at once."""

    def __init__(self) -> None:
        self.found: list[SchemaError] = []

    def note(self, line: int, problem: str) -> None:
        """Take down one thing."""
        self.found.append(SchemaError(line, problem))

    def attempt(self, read: Callable[[], _T], otherwise: _T) -> _T:
        """What `read` returns, or `otherwise` where it finds something wrong, which is noted."""
        try:
            return read()
        except SchemaError as error:
            self.found.append(error)
            return otherwise


def unknown(what: str, name: str, choices: Iterable[str]) -> str:
    """Says that there is no such thing, and which is the nearest, or else which there are."""
    return f"there is no {what} {name!r}{nearest_or_all(name, choices)}"
