"""YAML as a tree of nodes that know their lines, and their values with the types checked.

Nothing is ever constructed but plain texts, numbers and flags, whatever tags say.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from pytest_failgain.suites.problems import Problems, SchemaError, unknown

_STANDARD = "tag:yaml.org,2002:"
_TAGS = {
    ScalarNode: ("str", "int", "float", "bool", "null", "timestamp", "merge", "value"),
    SequenceNode: ("seq",),
    MappingNode: ("map",),
}
_TRUE = ("true", "yes", "on")
# YAML 1.1 takes 1e-3 for a text and 1:30 for ninety; people do not.
_NUMBER = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Field:
    """A key with its value, and the key's line."""

    key: str
    line: int
    value: Node


def root_of(content: bytes) -> Node:
    """The root of the one document in a file.

    Raises:
        SchemaError: when the file is empty or is no YAML.
    """
    try:
        root: Node | None = yaml.compose(content.decode("utf-8"), yaml.SafeLoader)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SchemaError(line, f"the file is not UTF-8: {error.reason}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = ", ".join(part for part in (error.context, error.problem) if part)
        raise SchemaError(mark.line + 1 if mark else 1, f"not YAML: {said}") from None
    except yaml.reader.ReaderError as error:
        line = content.decode("utf-8").count("\n", 0, error.position) + 1
        raise SchemaError(line, f"not YAML: {error.reason}") from None
    except RecursionError:
        raise SchemaError(1, "the file is nested too deeply") from None
    except (ValueError, OverflowError) as error:
        # PyYAML itself trips over escapes of no character and the like.
        raise SchemaError(1, f"not YAML: {error}") from None
    if root is None or root.tag == f"{_STANDARD}null":
        raise SchemaError(1, "the file is empty; it needs 'failgain: 1' and 'suites: …'")
    return root


def line_of(node: Node) -> int:
    """The line that the node begins on, counted from 1."""
    return int(node.start_mark.line) + 1


def fields_of(
    node: Node,
    what: str,
    problems: Problems,
    known: Collection[str] | None = None,
    kind: str = "key",
) -> dict[str, Field]:
    """The fields of a mapping, those merged into it (`<<`) included, by key.

    `what` and `kind` say in errors what the mapping and its keys are. Keys that are not `known`,
    and those that stand twice, are noted and left out.

    Raises:
        SchemaError: when it is no mapping.
    """
    _check_tag(node)
    if not isinstance(node, MappingNode):
        raise SchemaError(line_of(node), f"{what} must be a mapping, got {shown(node)}")
    fields: dict[str, Field] = {}
    for field in _own_fields(node, problems):
        if known is not None and field.key not in known:
            problems.note(field.line, unknown(kind, field.key, known))
        elif field.key in fields:
            first = fields[field.key].line
            problems.note(
                field.line, f"the {kind} {field.key!r} already stands on line {first}; keep one"
            )
        else:
            fields[field.key] = field
    for field in _merged_fields(node, problems, {id(node)}):
        if known is not None and field.key not in known:
            problems.note(field.line, unknown(kind, field.key, known))
        fields.setdefault(field.key, field)
    return fields


def _own_fields(node: MappingNode, problems: Problems) -> Iterator[Field]:
    for key, value in node.value:
        if not isinstance(key, ScalarNode):
            problems.note(line_of(key), f"a key must be a text, got {shown(key)}")
        elif not _is_merge(key):
            yield Field(key.value, line_of(key), value)


def _merged_fields(node: MappingNode, problems: Problems, seen: set[int]) -> Iterator[Field]:
    """Fields of the mappings that are merged into `node`; each mapping once, since first wins."""
    for key, value in node.value:
        if not _is_merge(key):
            continue
        for merged in value.value if isinstance(value, SequenceNode) else [value]:
            if not isinstance(merged, MappingNode):
                problems.note(
                    line_of(key), f"'<<' merges a mapping or a list of them, not {shown(merged)}"
                )
            elif id(merged) not in seen:
                seen.add(id(merged))
                yield from _own_fields(merged, problems)
                yield from _merged_fields(merged, problems, seen)


def _is_merge(key: Node) -> bool:
    return bool(key.tag == f"{_STANDARD}merge")


def one_or_more(field: Field) -> list[Node]:
    """The entries of a list, or the value itself where it is no list.

    Raises:
        SchemaError: when the list is empty.
    """
    _check_tag(field.value)
    if not isinstance(field.value, SequenceNode):
        return [field.value]
    if not field.value.value:
        raise SchemaError(field.line, f"{field.key!r} is an empty list; leave it out or fill it")
    return list(field.value.value)


def is_scalar(node: Node) -> bool:
    """Whether it is a text, a number, a flag or nothing."""
    return isinstance(node, ScalarNode)


def is_mapping(node: Node) -> bool:
    """Whether it has keys."""
    return isinstance(node, MappingNode)


def is_text(node: Node) -> bool:
    """Whether YAML takes it for a text."""
    return isinstance(node, ScalarNode) and node.tag == f"{_STANDARD}str"


def text_of(node: Node, what: str) -> str:
    """A text that is not empty.

    Raises:
        SchemaError: when it is anything else.
    """
    _check_tag(node)
    if not is_text(node):
        hint = "; put it into quotes if it is meant as a text" if is_scalar(node) else ""
        raise SchemaError(line_of(node), f"{what} must be a text, got {shown(node)}{hint}")
    text: str = node.value
    if not text.strip():
        raise SchemaError(line_of(node), f"{what} is empty; give a text")
    return text


def number_of(node: Node, what: str, fits: str = "a number") -> float:
    """A finite number; `fits` says what it should be.

    Raises:
        SchemaError: when it is anything else.
    """
    _check_tag(node)
    # A style is quotes.
    if isinstance(node, ScalarNode) and not node.style and _NUMBER.fullmatch(node.value):
        number = float(node.value)
        if math.isfinite(number):
            return number
    raise SchemaError(line_of(node), f"{what} must be {fits}, got {shown(node)}")


def count_of(node: Node, what: str) -> int:
    """A whole number of 1 or more.

    Raises:
        SchemaError: when it is anything else.
    """
    fits = "a whole number of 1 or more"
    number = number_of(node, what, fits)
    if number < 1 or number != int(number):
        raise SchemaError(line_of(node), f"{what} must be {fits}, got {shown(node)}")
    return int(number)


def flag_or_none(node: Node) -> bool | None:
    """True or false, or None where it is no flag."""
    if isinstance(node, ScalarNode) and node.tag == f"{_STANDARD}bool":
        return node.value.lower() in _TRUE
    return None


def plain_value(node: Node, what: str) -> Any:
    """A text, a number, a flag or None, or a list of such.

    Raises:
        SchemaError: when it is anything else.
    """
    _check_tag(node)
    if isinstance(node, SequenceNode):
        return [_plain_scalar(entry, what) for entry in node.value]
    return _plain_scalar(node, what)


def _plain_scalar(node: Node, what: str) -> Any:
    _check_tag(node)
    if node.tag == f"{_STANDARD}null" and is_scalar(node):
        return None
    flag = flag_or_none(node)
    if flag is not None:
        return flag
    if is_text(node):
        return node.value
    number = number_of(node, what, "a text, a number, true or false, or a list of such")
    return int(number) if number == int(number) and node.tag == f"{_STANDARD}int" else number


def shown(node: Node) -> str:
    """What stands there, short enough for an error."""
    if isinstance(node, MappingNode):
        return "a mapping"
    if isinstance(node, SequenceNode):
        return "a list"
    kind = node.tag.removeprefix(_STANDARD)
    value: str = node.value if len(node.value) <= 40 else f"{node.value[:40]}…"
    if kind == "null":
        return "nothing"
    return f"the text {value!r}" if kind == "str" else value


def _check_tag(node: Node) -> None:
    kinds = _TAGS[type(node)]
    if node.tag.removeprefix(_STANDARD) not in kinds or not node.tag.startswith(_STANDARD):
        tag = node.tag.replace(_STANDARD, "!!", 1)
        raise SchemaError(
            line_of(node), f"the tag {tag!r} is not allowed here; leave it out, for plain values"
        )
