"""Names in lists: each there once, and each one of those that there are."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from yaml.nodes import Node

from pytest_failgain.suites.nodes import Field, line_of, one_or_more, text_of
from pytest_failgain.suites.problems import Problems, SchemaError, unknown


def each_once(
    field: Field, read: Callable[[Node, str], str], problems: Problems
) -> tuple[str, ...]:
    """What is read of the entries of a list, without those that are wrong, which are noted.

    Raises:
        SchemaError: when the list is empty.
    """
    entries: dict[str, int] = {}
    for node in one_or_more(field):
        what = repr(field.key) if node is field.value else f"each of {field.key!r}"
        text = problems.attempt(partial(read, node, what), None)
        if text in entries:
            problems.note(line_of(node), f"{text!r} stands twice in {field.key!r}; name it once")
        elif text is not None:
            entries[text] = line_of(node)
    return tuple(entries)


def choice_of(node: Node, what: str, kind: str, choices: Collection[str]) -> str:
    """A text that is one of `choices`; `kind` says what they are.

    Raises:
        SchemaError: naming the nearest, when it is not.
    """
    name = text_of(node, what)
    if name not in choices:
        raise SchemaError(line_of(node), unknown(kind, name, choices))
    return name
