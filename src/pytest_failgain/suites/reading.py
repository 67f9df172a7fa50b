"""From the text of a `failgain*.yaml` to its suites, with everything checked but the harnesses.

Those are the user's modules, which are not imported before a test runs. The format is described
in docs/suites.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from pytest_failgain.extensions import NO_EXTENSIONS, Extensions
from pytest_failgain.suites.lists import each_once
from pytest_failgain.suites.nodes import (
    Field,
    fields_of,
    line_of,
    number_of,
    one_or_more,
    root_of,
    shown,
)
from pytest_failgain.suites.problems import Problems, SchemaError, SuiteFileError
from pytest_failgain.suites.reading_demands import read_regression, read_thresholds
from pytest_failgain.suites.reading_marks import read_mark
from pytest_failgain.suites.reading_subjects import (
    FieldsByKey,
    read_conditions,
    read_harnesses,
    read_remedy,
    read_sources,
)
from pytest_failgain.suites.suite import NO_REMEDY, MarkUse, Suite

FORMAT = 1

# Keys that begin so are for anchors alone.
_EXTENSION = "x-"
SUITE_KEYS = (
    "harness",
    "harnesses",
    "environment",
    "environments",
    "cases",
    "remedies",
    "thresholds",
    "regression",
    "conditions",
    "marks",
)
_SUITE_NAME = re.compile(r"[\w.-]+")

_T = TypeVar("_T")


def read_suites(
    content: bytes, folder: Path, extensions: Extensions = NO_EXTENSIONS
) -> tuple[Suite, ...]:
    """The suites in a file of this content, which lies in `folder`.

    They may name the environments and remedies of `extensions`, too.

    Raises:
        SuiteFileError: with all that is wrong with it.
    """
    problems = Problems()
    nothing: tuple[Suite, ...] = ()
    suites = problems.attempt(partial(_suites, content, folder, extensions, problems), nothing)
    if problems.found:
        raise SuiteFileError(problems.found)
    return suites


def _suites(
    content: bytes, folder: Path, extensions: Extensions, problems: Problems
) -> tuple[Suite, ...]:
    root = root_of(content)
    anything = fields_of(root, "the file", Problems())
    # Before any other key: those of another version are not known here.
    _check_version(anything)
    for_anchors = [key for key in anything if key.startswith(_EXTENSION)]
    fields = fields_of(root, "the file", problems, ["failgain", "suites", *for_anchors])
    if "suites" not in fields:
        raise SchemaError(line_of(root), "the key 'suites' is missing; it holds suites by name")
    named = fields_of(fields["suites"].value, "'suites'", problems, kind="suite")
    if not named:
        raise SchemaError(fields["suites"].line, "'suites' is empty; it needs a suite, by name")
    suites = [
        problems.attempt(partial(_suite, field, folder, extensions, problems), None)
        for field in named.values()
    ]
    return tuple(suite for suite in suites if suite is not None)


def _check_version(fields: FieldsByKey) -> None:
    if "failgain" not in fields:
        raise SchemaError(
            1, f"the key 'failgain' is missing; begin with the format version, failgain: {FORMAT}"
        )
    value = fields["failgain"].value
    if number_of(value, "'failgain'", f"the format version, {FORMAT}") != FORMAT:
        raise SchemaError(
            line_of(value),
            f"'failgain' is {shown(value)}, but this version of pytest-failgain reads format "
            f"{FORMAT} only; update pytest-failgain, or write failgain: {FORMAT}",
        )


def _suite(named: Field, folder: Path, extensions: Extensions, problems: Problems) -> Suite:
    if not _SUITE_NAME.fullmatch(named.key):
        problems.note(
            named.line,
            f"the suite's name {named.key!r} must be of letters, digits and '_', '.', '-' alone",
        )
    what = f"the suite {named.key!r}"
    known_before = len(problems.found)
    fields = fields_of(named.value, what, problems, SUITE_KEYS)

    def read(key: str, reader: Callable[[Field], _T], otherwise: _T) -> _T:
        field = fields.get(key)
        return otherwise if field is None else problems.attempt(partial(reader, field), otherwise)

    suite = Suite(
        name=named.key,
        line=named.line,
        sources=problems.attempt(
            partial(read_sources, named, fields, folder, [*extensions.environments], problems),
            (),
        ),
        harnesses=problems.attempt(partial(read_harnesses, fields, problems), ()),
        remedies=read(
            "remedies",
            lambda field: each_once(
                field, partial(read_remedy, added=extensions.remedies), problems
            ),
            (NO_REMEDY,),
        ),
        thresholds=read("thresholds", lambda field: read_thresholds(field, problems), ()),
        regression=read("regression", lambda field: read_regression(field, problems), None),
        conditions=read("conditions", lambda field: read_conditions(field, problems), None),
        marks=read("marks", lambda field: _marks(field, problems), ()),
    )
    # Where one of them is there but wrong, that is told already.
    is_sound = len(problems.found) == known_before
    if is_sound and not suite.thresholds and suite.regression is None:
        problems.note(
            named.line,
            f"{what} has neither thresholds nor regression, so nothing could fail; give one, such "
            "as thresholds: {repeat_probability_after: {at_most: 0.5}}",
        )
    return suite


def _marks(field: Field, problems: Problems) -> tuple[MarkUse, ...]:
    marks: Sequence[MarkUse | None] = [
        problems.attempt(partial(read_mark, node), None) for node in one_or_more(field)
    ]
    return tuple(mark for mark in marks if mark is not None)
