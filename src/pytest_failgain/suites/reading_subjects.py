"""What a suite measures: cases, harnesses, remedies and conditions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from yaml.nodes import Node

from pytest_failgain.blocking.kinds import BLOCKS
from pytest_failgain.conditions import CONDITIONS
from pytest_failgain.errors import UsageError
from pytest_failgain.fixtures import ENVIRONMENT_NAMES, REMEDY_NAMES
from pytest_failgain.harnesses import remedied
from pytest_failgain.remedies import Remedy
from pytest_failgain.suites.lists import choice_of, each_once
from pytest_failgain.suites.nodes import (
    Field,
    count_of,
    is_text,
    line_of,
    one_or_more,
    shown,
    text_of,
)
from pytest_failgain.suites.problems import Problems, SchemaError, unknown
from pytest_failgain.suites.suite import (
    NO_REMEDY,
    VERBATIM,
    CaseSource,
    EnvironmentCases,
    FileCases,
    HarnessName,
)

DEFAULT_CASES = 30

_DOTTED = r"[^\W\d]\w*(\.[^\W\d]\w*)*"
_FUNCTION = re.compile(f"{_DOTTED}:{_DOTTED}")
_NEEDED_CONDITIONS = ("before", "failed")

FieldsByKey = dict[str, Field]


def read_sources(
    named: Field, fields: FieldsByKey, folder: Path, added: Sequence[str], problems: Problems
) -> tuple[CaseSource, ...]:
    """What gives the cases of the suite `named`: environments, or files by paths from `folder`.

    `added` are the names of environments beside the built-in ones.

    Raises:
        SchemaError: when neither is given, or both.
    """
    known = (*ENVIRONMENT_NAMES, *added)
    environments = _either(fields, "environment", "environments")
    cases = fields.get("cases")
    if environments is None:
        return _file_sources(named, cases, folder, known, problems)
    count = DEFAULT_CASES
    if cases is not None:
        if is_text(cases.value):
            raise SchemaError(
                cases.line,
                f"'cases' is the file {cases.value.value!r} beside {environments.key!r}; keep one "
                "of the two, or write how many cases the environment is to give, without quotes",
            )
        count = problems.attempt(partial(count_of, cases.value, "'cases'"), count)
    names = each_once(
        environments,
        lambda node, what: choice_of(node, what, "environment", known),
        problems,
    )
    return tuple(EnvironmentCases(name, count) for name in names)


def _file_sources(
    named: Field,
    cases: Field | None,
    folder: Path,
    environments: Sequence[str],
    problems: Problems,
) -> tuple[CaseSource, ...]:
    if cases is None:
        raise SchemaError(
            named.line,
            f"the suite {named.key!r} has no cases; give an environment "
            f"({', '.join(environments)}), or as 'cases' a file of them",
        )
    sources: list[CaseSource] = []
    for node in one_or_more(cases):
        if not is_text(node):
            raise SchemaError(
                line_of(node),
                f"'cases' is {shown(node)}, without an environment; say which is to give them "
                f"({', '.join(environments)}), or name a file",
            )
        source = problems.attempt(partial(_case_file, node, folder), None)
        if source in sources:
            problems.note(line_of(node), f"{node.value!r} stands twice in 'cases'; name it once")
        elif source is not None:
            sources.append(source)
    return tuple(sources)


def _case_file(node: Node, folder: Path) -> FileCases:
    text = text_of(node, "a case file")
    path = folder / text
    try:
        there, is_folder = path.is_file(), path.is_dir()
    except OSError as error:
        raise SchemaError(line_of(node), f"{text!r} can't be a case file: {error}") from None
    if not there:
        problem = "is a folder" if is_folder else "is not there"
        raise SchemaError(
            line_of(node),
            f"the case file {text!r} {problem}; its path is taken from the folder of this file, "
            f"{folder}",
        )
    return FileCases(path, text)


def _either(fields: FieldsByKey, key: str, other: str) -> Field | None:
    if key in fields and other in fields:
        raise SchemaError(
            fields[other].line, f"{key!r} and {other!r} are the same key; keep one of them"
        )
    return fields.get(key) or fields.get(other)


def read_harnesses(fields: FieldsByKey, problems: Problems) -> tuple[HarnessName, ...]:
    """The names of harnesses; none where the fixture is to give one.

    Raises:
        SchemaError: when they are given twice, or as an empty list.
    """
    field = _either(fields, "harness", "harnesses")
    if field is None:
        return ()
    lines: dict[str, int] = {}

    def read(node: Node, what: str) -> str:
        text = _harness(node, what)
        lines.setdefault(text, line_of(node))
        return text

    return tuple(HarnessName(text, lines[text]) for text in each_once(field, read, problems))


def _harness(node: Node, what: str) -> str:
    text = text_of(node, what)
    if text != VERBATIM and not _FUNCTION.fullmatch(text):
        module, dot, function = text.rpartition(".")
        is_dotted = dot and _FUNCTION.fullmatch(f"{module}:{function}")
        hint = f"; did you mean '{module}:{function}'?" if is_dotted else ""
        raise SchemaError(
            line_of(node),
            f"a harness must be '{VERBATIM}' or package.module:function, got {text!r}{hint}",
        )
    return text


def read_remedy(node: Node, what: str, *, added: Sequence[Remedy] = ()) -> str:
    """The name of a remedy, or of several that can be joined and measured.

    `added` are remedies beside the built-in ones.

    Raises:
        SchemaError: when it is none.
    """
    text = text_of(node, what)
    if text == NO_REMEDY:
        return text
    known = (VERBATIM, *REMEDY_NAMES, *(remedy.name for remedy in added))
    for part in (part.strip() for part in text.split("+")):
        if part in BLOCKS:
            raise SchemaError(
                line_of(node),
                f"{part!r} (in {text!r}) is a block: it changes what is decoded and nothing of "
                "what is scored, so it can't be measured; leave it out, or test it with "
                "failgain.rollout",
            )
        if part not in known:
            raise SchemaError(line_of(node), unknown("remedy", part, (NO_REMEDY, *known)))
    try:
        remedied(text, added=added)
    except UsageError as error:
        raise SchemaError(line_of(node), str(error)) from None
    return text


def read_conditions(field: Field, problems: Problems) -> tuple[str, ...]:
    """The names of conditions.

    Raises:
        SchemaError: when those that every measurement needs are not among them.
    """
    known_before = len(problems.found)
    names = each_once(
        field, lambda node, what: choice_of(node, what, "condition", CONDITIONS), problems
    )
    missing = [name for name in _NEEDED_CONDITIONS if name not in names]
    # A needed one may be among those that are misspelt.
    if missing and len(problems.found) == known_before:
        raise SchemaError(
            field.line,
            f"'conditions' lacks {' and '.join(missing)}, which the gain is the difference of; "
            "add what is missing",
        )
    return names
