"""A program's text with its syntax tree, to find places in it and to edit them."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

# What a tree gives the place of.
Placed = ast.expr | ast.stmt | ast.arg | ast.alias | ast.pattern
Function = ast.FunctionDef | ast.AsyncFunctionDef
_Node = TypeVar("_Node", bound=ast.AST)

_IDENTIFIER = re.compile(rb"[\w\x80-\xff]+")
_DEF = re.compile(rb"(?:async(?:[ \t\f]|\\\n)+)?def(?:[ \t\f]|\\\n)+")


def parsed(text: str) -> ast.Module:
    """The syntax tree of `text`.

    Raises:
        SyntaxError: when it is not Python.
    """
    with warnings.catch_warnings():
        # An odd escape in a string is worth a warning, of a kind that depends on the Python.
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (ValueError, RecursionError, MemoryError) as error:
            # Null bytes, for some Pythons, half characters, and brackets nested too deeply.
            raise SyntaxError(str(error)) from error


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """`text` in place of the bytes from `start` to `end`."""

    start: int
    end: int
    text: bytes


@dataclass(frozen=True, slots=True)
class Source:
    """A program as UTF-8, since that is what the tree's columns count.

    `nodes` has all but what is inside f-strings: Pythons before 3.12 don't know its places.
    """

    data: bytes
    tree: ast.Module
    nodes: tuple[ast.AST, ...]
    line_starts: tuple[int, ...]

    @classmethod
    def of(cls, program: str) -> Source:
        """`program` must have no line end but `\\n`.

        Raises:
            SyntaxError: when it is not Python.
        """
        tree = parsed(program)
        data = program.encode()
        lengths = (len(line) + 1 for line in data.split(b"\n"))
        return cls(data, tree, tuple(_outside_fstrings(tree)), (0, *accumulate(lengths)))

    def each(self, kind: type[_Node]) -> Iterator[_Node]:
        return (node for node in self.nodes if isinstance(node, kind))

    def start(self, node: Placed) -> int:
        return self.line_starts[node.lineno - 1] + node.col_offset

    def end(self, node: Placed) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.line_starts[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: Placed) -> bytes:
        return self.data[self.start(node) : self.end(node)]

    def find(self, token: bytes, start: int, end: int) -> int:
        """Where `token` first stands in a stretch without strings, outside of comments."""
        for found in re.compile(rb"#[^\n]*|" + re.escape(token)).finditer(self.data, start, end):
            if found[0] == token:
                return found.start()
        raise AssertionError(f"no {token!r} from {start} to {end}")

    def between(self, left: Placed, right: Placed, token: bytes) -> int:
        """Where `token` stands between two neighbours, which only operators and brackets part."""
        return self.find(token, self.end(left), self.start(right))

    def indentation(self, statement: ast.stmt) -> bytes | None:
        """The white space before a statement, or None when it doesn't begin a line."""
        line_start = self.line_starts[statement.lineno - 1]
        before = self.data[line_start : self.start(statement)]
        continues = self.data[:line_start].endswith(b"\\\n")
        return None if continues or before.strip() else before

    def identifier(self, node: ast.Name | ast.arg | Function) -> tuple[int, int]:
        """Where the name stands that `node` reads, sets or defines."""
        start = self.start(node)
        if isinstance(node, Function):
            keyword = _DEF.match(self.data, start)
            assert keyword is not None
            start = keyword.end()
        name = _IDENTIFIER.match(self.data, start)
        assert name is not None
        return name.span()

    def joined(self, edits: Iterable[Edit]) -> Edit:
        """Several edits, at least one, as a single one over all that lies between them."""
        first, *others = sorted(edits)
        end, text = first.end, first.text
        for edit in others:
            text += self.data[end : edit.start] + edit.text
            end = edit.end
        return Edit(first.start, end, text)

    def edited(self, edit: Edit) -> str:
        """The program after `edit`, without white space at its end."""
        return (self.data[: edit.start] + edit.text + self.data[edit.end :]).decode().rstrip()


def _outside_fstrings(tree: ast.Module) -> Iterator[ast.AST]:
    nodes: list[ast.AST] = [tree]
    for node in nodes:
        yield node
        # By name, since only Python 3.14 has the latter.
        if type(node).__name__ not in ("JoinedStr", "TemplateStr"):
            nodes.extend(ast.iter_child_nodes(node))
