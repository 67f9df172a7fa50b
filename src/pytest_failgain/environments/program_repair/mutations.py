"""Single edits that make a correct program wrong, each one a slip that small models make.

They are made in the text, at places that the syntax tree gives, so that strings, comments and
the layout stay as they are, and so that every Python makes the same ones.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_failgain.environments.program_repair.source import Edit, Function, Placed, Source

# An unbracketed argument of these kinds is the left operand of a minus that is put after it.
TIGHT_EXPRESSIONS = (
    ast.Name, ast.Constant, ast.JoinedStr, ast.Attribute, ast.Subscript, ast.Call, ast.Await,
    ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp,
)  # fmt: skip
TIGHT_OPERATORS = (
    ast.Add, ast.Sub, ast.Mult, ast.MatMult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow,
)  # fmt: skip
# The verbs that are taken for each other at the start of a function's name.
NEAR_VERBS: Mapping[str, str] = {"find": "get", "get": "find", "is": "check", "check": "is"}

_LOWER_CASE = re.compile("[a-z_][a-z0-9_]{2,}")  # only ASCII, as Unicode's cases change


@dataclass(frozen=True, slots=True)
class Mutant:
    """`program` with one slip: number `number` of those that `operator` makes."""

    operator: str
    number: int
    program: str


Operator = Callable[[Source], Iterator[Edit]]


def mutants(program: str) -> tuple[Mutant, ...]:
    """Every mutant of `program` that is a different text, operators in their order, each once.

    Raises:
        SyntaxError: when `program` is not Python.
    """
    source = Source.of(program)
    found: dict[str, Mutant] = {}
    for name, operator in OPERATORS.items():
        for number, edit in enumerate(operator(source)):
            text = source.edited(edit)
            if text != program:
                found.setdefault(text, Mutant(name, number, text))
    return tuple(found.values())


def flip_comparison(source: Source) -> Iterator[Edit]:
    """Makes the first `<=` strict, or if there is none the first `<` loose."""
    yield from _flipped_comparison(source, ast.LtE, ast.Lt, b"<")


def flip_comparison2(source: Source) -> Iterator[Edit]:
    """Makes the first `>=` strict, or if there is none the first `>` loose."""
    yield from _flipped_comparison(source, ast.GtE, ast.Gt, b">")


def off_by_one(source: Source) -> Iterator[Edit]:
    """Stops a range one early."""
    yield from _first(
        Edit(stop, stop, b" - 1")
        for call in source.each(ast.Call)
        if isinstance(call.func, ast.Name) and call.func.id == "range"
        if (stop := _stop_end(source, call)) is not None
    )


def index_shift(source: Source) -> Iterator[Edit]:
    """Reads the second item for the first, and the first for the last."""
    for index, shifted in ((b"0", b"1"), (b"-1", b"0")):
        yield from _first(
            _replaced(source, subscript.slice, shifted)
            for subscript in source.each(ast.Subscript)
            if isinstance(subscript.ctx, ast.Load) and source.text(subscript.slice) == index
        )


def drop_reverse(source: Source) -> Iterator[Edit]:
    """Copies a sequence where it was reversed."""
    edits = []
    for subscript in source.each(ast.Subscript):
        match subscript.slice:
            case ast.Slice(lower=None, upper=None, step=ast.UnaryOp() as step):
                if source.text(step) == b"-1":
                    edits.append(_replaced(source, subscript.slice, b":"))
    yield from _first(edits)


def flip_bool(source: Source) -> Iterator[Edit]:
    """Turns a truth value round: the first, and the first that says which way to sort."""
    yield from _first(_literals(source, True, b"False"), _literals(source, False, b"True"))
    yield from _first(
        _replaced(source, keyword.value, b"False")
        for call in source.each(ast.Call)
        for keyword in call.keywords
        if keyword.arg == "reverse"
        if isinstance(keyword.value, ast.Constant) and keyword.value.value is True
    )


def drop_negation(source: Source) -> Iterator[Edit]:
    """Leaves a `not` out, alone or in `not in` and `is not`."""
    places = [
        source.start(node) for node in source.each(ast.UnaryOp) if isinstance(node.op, ast.Not)
    ]
    for kind in (ast.NotIn, ast.IsNot):
        places += _comparisons(source, kind, b"not")
    yield from _first(
        Edit(place, place + len(b"not") + _blanks(source, place + len(b"not")), b"")
        for place in places
        if not _glued(source, place)
    )


def drop_return(source: Source) -> Iterator[Edit]:
    """Computes the result and does not return it."""
    returns = [node for node in source.each(ast.Return) if node.value is not None]
    if returns and source.data.count(b"\n") >= 2:
        yield _replaced(source, max(returns, key=source.start), b"pass")


def undefined_name(source: Source) -> Iterator[Edit]:
    """Ends with a name that nothing has, near to one that there is."""
    occurrences: dict[str, list[tuple[int, ast.AST]]] = {}
    for start, name, node in sorted(_occurrences(source), key=lambda occurrence: occurrence[0]):
        occurrences.setdefault(name, []).append((start, node))
    for name, places in occurrences.items():
        _, last = places[-1]
        if not isinstance(last, ast.Name) or not isinstance(last.ctx, ast.Load):
            continue
        unknown = f"{name}_x"
        if len(places) > 1 and _LOWER_CASE.fullmatch(name) and unknown not in occurrences:
            yield Edit(source.end(last), source.end(last), b"_x")
            return


def flip_arith(source: Source) -> Iterator[Edit]:
    """Subtracts where it should add."""
    places = (
        source.between(node.left, node.right, b"+")
        for node in source.each(ast.BinOp)
        if isinstance(node.op, ast.Add)
    )
    yield from _first(Edit(place, place + 1, b"-") for place in places)


def rename_function(source: Source) -> Iterator[Edit]:
    """Gives the function that the tests call a name that the tests don't know."""
    functions = [node for node in source.tree.body if isinstance(node, Function)]
    if not functions:
        return
    name = functions[-1].name
    verb, _, rest = name.partition("_")
    renamed = f"{NEAR_VERBS[verb]}_{rest}" if verb in NEAR_VERBS and rest else f"get_{name}"
    places = [source.identifier(node) for node in functions if node.name == name]
    places += [source.identifier(node) for node in source.each(ast.Name) if node.id == name]
    places += [source.identifier(node) for node in source.each(ast.arg) if node.arg == name]
    mentions = _mentions(source.tree)
    # Where it stands somewhere else too, an f-string say, only a part of them would be renamed.
    if mentions[name] == len(places) and renamed not in mentions:
        yield source.joined(Edit(start, end, renamed.encode()) for start, end in places)


def drop_import(source: Source) -> Iterator[Edit]:
    """Uses a module without having imported it."""
    for node in source.tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)) and source.indentation(node) == b"":
            end = source.line_starts[node.end_lineno or node.lineno]
            if re.fullmatch(rb"\s*(#.*)?\n?", source.data[source.end(node) : end]):
                yield Edit(source.start(node), end, b"")
                return


def indent_return(source: Source) -> Iterator[Edit]:
    """Returns in a loop's first round what should be returned after its last."""
    loops = (ast.For, ast.AsyncFor, ast.While)
    edits = []
    for function in source.nodes:
        if isinstance(function, Function) and len(function.body) > 1:
            loop, last = function.body[-2:]
            if isinstance(last, ast.Return) and isinstance(loop, loops) and not loop.orelse:
                before = source.indentation(last)
                within = source.indentation(loop.body[0])
                if before is not None and within is not None and last.lineno == last.end_lineno:
                    start = source.start(last)
                    edits.append(Edit(start - len(before), start, within))
    yield from _first(edits)


def swap_arguments(source: Source) -> Iterator[Edit]:
    """Passes the first two arguments in the wrong order."""
    edits = []
    for call in source.each(ast.Call):
        match call.args:
            case [ast.Name() as first, ast.Name() as second, *_] if first.id != second.id:
                swapped = (
                    _replaced(source, first, source.text(second)),
                    _replaced(source, second, source.text(first)),
                )
                edits.append(source.joined(swapped))
    yield from _first(edits)


def shift_constant(source: Source) -> Iterator[Edit]:
    """Is one too high with a number; those of subscripts are `index_shift`'s."""
    indices = {
        node for subscript in source.each(ast.Subscript) for node in ast.walk(subscript.slice)
    }
    yield from _first(
        _replaced(source, node, b"%d" % (node.value + 1))
        for node in source.each(ast.Constant)
        if node not in indices
        if isinstance(node.value, int) and 1 <= node.value <= 100
        if source.text(node) == b"%d" % node.value  # neither True nor 0x1
    )


def flip_boolean_operator(source: Source) -> Iterator[Edit]:
    """Makes the first `and` an `or`, or if there is none the first `or` an `and`."""
    yield from _first(
        _boolean_operators(source, ast.And, b"and", b"or"),
        _boolean_operators(source, ast.Or, b"or", b"and"),
    )


def drop_colon(source: Source) -> Iterator[Edit]:
    """Forgets the colon of a block, which is no Python any more."""
    branches: list[Edit] = []
    functions: list[Edit] = []
    for node in source.nodes:
        match node:
            case ast.If() | ast.While():
                branches += _colon(source, source.end(node.test), node.body)
            case ast.For() | ast.AsyncFor():
                branches += _colon(source, source.end(node.iter), node.body)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                functions += _colon(source, _signature_end(source, node), node.body)
    yield from _first(branches, functions)


OPERATORS: Mapping[str, Operator] = {
    "flip_comparison": flip_comparison,
    "flip_comparison2": flip_comparison2,
    "off_by_one": off_by_one,
    "index_shift": index_shift,
    "drop_reverse": drop_reverse,
    "flip_bool": flip_bool,
    "drop_negation": drop_negation,
    "drop_return": drop_return,
    "undefined_name": undefined_name,
    "flip_arith": flip_arith,
    "rename_function": rename_function,
    "drop_import": drop_import,
    "indent_return": indent_return,
    "swap_arguments": swap_arguments,
    "shift_constant": shift_constant,
    "flip_boolean_operator": flip_boolean_operator,
    "drop_colon": drop_colon,
}


def _first(*kinds: Iterable[Edit]) -> Iterator[Edit]:
    """The earliest edit of the first kind that there is any of."""
    for edits in kinds:
        earliest = min(edits, default=None)
        if earliest is not None:
            yield earliest
            return


def _replaced(source: Source, node: Placed, text: bytes) -> Edit:
    return Edit(source.start(node), source.end(node), text)


def _comparisons(source: Source, kind: type[ast.cmpop], token: bytes) -> list[int]:
    """Where the `token` of each comparison of a kind stands."""
    return [
        source.between(left, right, token)
        for node in source.each(ast.Compare)
        for left, operator, right in zip(
            [node.left, *node.comparators], node.ops, node.comparators, strict=False
        )
        if isinstance(operator, kind)
    ]


def _flipped_comparison(
    source: Source, loose: type[ast.cmpop], strict: type[ast.cmpop], sign: bytes
) -> Iterator[Edit]:
    yield from _first(
        (Edit(place, place + 2, sign) for place in _comparisons(source, loose, sign + b"=")),
        (Edit(place, place + 1, sign + b"=") for place in _comparisons(source, strict, sign)),
    )


def _stop_end(source: Source, call: ast.Call) -> int | None:
    """Where a range's stop ends, brackets included, if a minus may follow there."""
    if not call.args or call.keywords or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    stop, *after = call.args[1:] or call.args
    end = source.end(stop)
    limit = source.start(after[0]) if after else source.end(call) - 1
    # Up to there are only the brackets that close the argument, and a comma.
    for found in re.compile(rb"#[^\n]*|\)").finditer(source.data, end, limit):
        if found[0] == b")":
            end = found.end()
    bracketed = end > source.end(stop)
    return end if bracketed or _is_tight(stop) else None


def _is_tight(expression: ast.expr) -> bool:
    """Whether an expression binds no looser than a minus after it."""
    match expression:
        case ast.BinOp():
            return isinstance(expression.op, TIGHT_OPERATORS)
        case ast.UnaryOp():
            return not isinstance(expression.op, ast.Not)
    return isinstance(expression, TIGHT_EXPRESSIONS)


def _literals(source: Source, value: bool, flipped: bytes) -> list[Edit]:
    return [
        _replaced(source, node, flipped)
        for node in source.nodes
        if isinstance(node, (ast.Constant, ast.MatchSingleton)) and node.value is value
    ]


def _blanks(source: Source, start: int) -> int:
    """How many blanks there are from `start` on."""
    rest = source.data[start:]
    return len(rest) - len(rest.lstrip(b" \t\f"))


def _glued(source: Source, place: int) -> bool:
    """Whether a keyword follows a number without a blank; another might be read as a part of it."""
    return source.data[:place][-1:].isalnum()


def _occurrences(source: Source) -> Iterator[tuple[int, str, ast.AST]]:
    for node in source.nodes:
        match node:
            case ast.Name():
                yield source.start(node), node.id, node
            case ast.arg():
                yield source.start(node), node.arg, node
            case ast.alias():
                yield source.start(node), node.asname or node.name.partition(".")[0], node
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield source.identifier(node)[0], node.name, node


def _mentions(tree: ast.Module) -> Counter[str]:
    """How often each name stands in a program, as whatever but an attribute."""
    names: Counter[str] = Counter()
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Constant, ast.Attribute)):
            for _, value in ast.iter_fields(node):
                values = value if isinstance(value, list) else [value]
                names.update(name for name in values if isinstance(name, str))
    return names


def _boolean_operators(
    source: Source, kind: type[ast.boolop], token: bytes, flipped: bytes
) -> Iterator[Edit]:
    for node in source.each(ast.BoolOp):
        if isinstance(node.op, kind):
            place = source.between(node.values[0], node.values[1], token)
            if not _glued(source, place):
                yield Edit(place, place + len(token), flipped)


def _signature_end(source: Source, function: Function) -> int:
    """A place before a function's colon and after all others of its header."""
    parts: list[Any] = [
        *getattr(function, "type_params", ()),  # since Python 3.12
        *ast.iter_child_nodes(function.args),
        *([function.returns] if function.returns else []),
    ]
    return max(map(source.end, parts), default=source.start(function))


def _colon(source: Source, header_end: int, block: list[ast.stmt]) -> Iterator[Edit]:
    """Drops the colon after a header, if the block is on lines of its own."""
    if source.indentation(block[0]) is not None:
        place = source.find(b":", header_end, source.start(block[0]))
        yield Edit(place, place + 1, b"")
