"""pytest's view of a `failgain*.yaml`: a file of tests, each at the line of its suite."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_failgain.suites.expansion import SuiteTest, tests_of
from pytest_failgain.suites.problems import SuiteFileError
from pytest_failgain.suites.reading import read_suites
from pytest_failgain.suites.suite import HarnessName, MarkUse, Suite

if TYPE_CHECKING:
    from pytest_failgain.failgain import Failgain
    from pytest_failgain.harnesses import Harness

# What raises the assertions that are the user's to read; any other is a defect to trace.
_ASSERTING = ("pytest_failgain.assertions", "pytest_failgain.suites.checking")


class SuiteFile(pytest.Module):
    """The file. As a module it has fixtures of the module's scope, though no code is in it."""

    # What pytest would import and look into. Doctests in text files do the same.
    obj = None

    def collect(self) -> Iterable[pytest.Collector]:
        """The suites of the file.

        Raises:
            CollectError: with all that is wrong with the file.
        """
        try:
            content = self.path.read_bytes()
        except OSError as error:
            raise self.CollectError(f"can't read {self.nodeid}: {error.strerror}") from None
        from pytest_failgain.hooks import extensions_at

        try:
            suites = read_suites(content, self.path.parent, extensions_at(self))
        except SuiteFileError as error:
            raise self.CollectError(
                "\n".join(f"{self.place(one.line)}: {one.problem}" for one in error.problems)
            ) from None
        return [SuiteCollector.from_parent(self, suite=suite, file=self) for suite in suites]

    def place(self, line: int) -> str:
        """A line of this file, as messages name it."""
        return f"{self.nodeid}:{line}"

    def harness(self, named: HarnessName) -> Harness:
        """The harness that the file names, its module found as if beside this file.

        Raises:
            FailgainError: when there is none, or its module can't be imported.
        """
        from pytest_failgain.suites.harness_source import (
            harness_named,
            root_beside,
            search_beside,
        )

        search_beside(self.path, self.config.getoption("importmode"))
        return harness_named(named.text, self.place(named.line), root_beside(self.path))


class SuiteCollector(pytest.Collector):
    """A suite, whose name is a part of its tests' ids.

    Ids with brackets, as parametrised tests have them, would need parts of pytest that are not
    public: of any others `--lf` finds nothing.
    """

    def __init__(self, *, suite: Suite, file: SuiteFile, **others: Any) -> None:
        super().__init__(name=suite.name, **others)
        self.suite = suite
        self.file = file

    def collect(self) -> Iterable[pytest.Item]:
        """A test for each case source, harness and remedy.

        Raises:
            CollectError: when a mark is not registered and has to be.
        """
        marks = [self._mark(use) for use in self.suite.marks]
        return [
            SuiteItem.from_parent(
                self, name=test.name, callobj=_function(test, self.file, marks), suite=self.suite
            )
            for test in tests_of(self.suite)
        ]

    def _mark(self, use: MarkUse) -> pytest.MarkDecorator:
        """pytest's mark; one that is not registered is told of at its own line.

        Raises:
            CollectError: where it has to be registered.
        """
        with warnings.catch_warnings(record=True) as unknown:
            warnings.simplefilter("always")
            try:
                mark: pytest.MarkDecorator = getattr(pytest.mark, use.name)
            except pytest.fail.Exception as error:
                raise self.CollectError(f"{self.file.place(use.line)}: {error.msg}") from None
        for warning in unknown:
            message = f"unknown mark {use.name!r}: register it, or mend it if it is a typo"
            try:
                warnings.warn_explicit(message, warning.category, str(self.path), use.line)
            except Warning:  # where warnings are errors
                raise self.CollectError(f"{self.file.place(use.line)}: {message}") from None
        return mark.with_args(*use.args, **dict(use.kwargs)) if use.args or use.kwargs else mark


class SuiteItem(pytest.Function):
    """One test of a suite."""

    def __init__(self, *, suite: Suite, **others: Any) -> None:
        super().__init__(**others)
        self._suite = suite

    def reportinfo(self) -> tuple[os.PathLike[str], int, str]:
        """Where the suite is; pytest counts lines from 0."""
        # Not the end of the id, whose dots pytest would take for those of a class.
        return self.path, self._suite.line - 1, f"suite {self._suite.name}: {self.name}"

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What an assertion says, at the line of the suite: no line of Python has to do with it."""
        if not self._is_unmet(excinfo) or self.config.getoption("fulltrace", False):
            return super().repr_failure(excinfo)
        shown: Any = excinfo.getrepr(style="value", chain=False)
        crash = replace(shown.reprcrash, path=str(self.path), lineno=self._suite.line)
        *_, entry = shown.reprtraceback.reprentries
        place = replace(crash, path=self._shown_path(), message="AssertionError")
        entries = [replace(entry, reprfileloc=place)]
        traceback = replace(shown.reprtraceback, reprentries=entries)
        return type(shown)([(traceback, crash, None)])

    def _shown_path(self) -> str:
        try:
            return os.path.relpath(self.path, self.config.invocation_params.dir)
        except ValueError:  # on another drive
            return str(self.path)

    @staticmethod
    def _is_unmet(excinfo: pytest.ExceptionInfo[BaseException]) -> bool:
        raised_by = excinfo.traceback[-1].frame.f_globals.get("__name__", "")
        return isinstance(excinfo.value, AssertionError) and raised_by in _ASSERTING


def _function(
    test: SuiteTest, file: SuiteFile, marks: Iterable[pytest.MarkDecorator]
) -> Callable[..., None]:
    """What pytest calls for `test`: its arguments are the fixtures that the test needs."""
    named = test.harness

    def measure_fixture(failgain: Failgain, failgain_harness: Harness) -> None:
        _check(test, failgain, failgain_harness)

    def measure_named(failgain: Failgain) -> None:
        assert named is not None
        _check(test, failgain, file.harness(named))

    function = measure_fixture if named is None else measure_named
    for mark in marks:
        mark(function)
    return function


def _check(test: SuiteTest, failgain: Failgain, harness: Harness) -> None:
    from pytest_failgain.suites.checking import check

    check(test, failgain, harness)
