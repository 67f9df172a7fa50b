"""The marks of a suite: a name each, or a name with arguments."""

from __future__ import annotations

import re

from yaml.nodes import Node

from pytest_failgain.suites.nodes import (
    Field,
    fields_of,
    is_mapping,
    line_of,
    plain_value,
    text_of,
)
from pytest_failgain.suites.problems import Problems, SchemaError
from pytest_failgain.suites.suite import MarkUse

_NAME = re.compile(r"[^\W\d_]\w*")


def read_mark(node: Node) -> MarkUse:
    """A mark: `slow`, `timeout: 600`, `skipif: [...]` or `xfail: {reason: …}`.

    A list gives its arguments by place, a mapping by name, anything else is the only one.

    Raises:
        SchemaError: when it is none of these.
    """
    if not is_mapping(node):
        return _mark(text_of(node, "a mark"), line_of(node))
    problems = Problems()
    fields = list(fields_of(node, "a mark", problems).values())
    if problems.found:
        raise problems.found[0]
    if len(fields) != 1:
        raise SchemaError(
            line_of(node),
            f"a mark with arguments has one name, got {len(fields)}; begin each mark with '- '",
        )
    return _with_arguments(fields[0])


def _with_arguments(field: Field) -> MarkUse:
    what = f"an argument of the mark {field.key!r}"
    if is_mapping(field.value):
        problems = Problems()
        named = fields_of(field.value, what, problems)
        if problems.found:
            raise problems.found[0]
        kwargs = tuple((key, plain_value(one.value, what)) for key, one in named.items())
        return _mark(field.key, field.line, kwargs=kwargs)
    value = plain_value(field.value, what)
    args = tuple(value) if isinstance(value, list) else (value,)
    return _mark(field.key, field.line, args=args)


def _mark(name: str, line: int, **arguments: tuple[object, ...]) -> MarkUse:
    if not _NAME.fullmatch(name):
        raise SchemaError(line, f"{name!r} can't be the name of a mark; give one such as slow")
    if name == "parametrize":
        raise SchemaError(
            line,
            "the mark 'parametrize' does nothing here; list environments, harnesses or remedies",
        )
    return MarkUse(name, line, **arguments)  # type: ignore[arg-type]
