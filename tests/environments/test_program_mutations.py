from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_failgain.environments.program_repair import mutations
from pytest_failgain.environments.program_repair.mutations import OPERATORS, Mutant, mutants
from pytest_failgain.environments.program_repair.problems import load_problems
from pytest_failgain.environments.program_repair.source import Edit, Source
from strategies import quick

ORDER = [
    "flip_comparison", "flip_comparison2", "off_by_one", "index_shift", "drop_reverse",
    "flip_bool", "drop_negation", "drop_return", "undefined_name", "flip_arith",
    "rename_function", "drop_import", "indent_return", "swap_arguments", "shift_constant",
    "flip_boolean_operator", "drop_colon",
]  # fmt: skip


def made(operator: str, program: str) -> list[str]:
    return [mutant.program for mutant in mutants(program) if mutant.operator == operator]


# Operator, program, and what becomes of it.
EXAMPLES = [
    ("flip_comparison", "a < b; c <= d; e <= f", "a < b; c < d; e <= f"),
    ("flip_comparison", "a > b; c < d; e < f", "a > b; c <= d; e < f"),
    ("flip_comparison", "a < b <= c < d", "a < b < c < d"),
    ("flip_comparison", "f(a <= b) <= c", "f(a < b) <= c"),
    ("flip_comparison", "x = '<=' \"é\" < f'{a<=b}' # <=", "x = '<=' \"é\" <= f'{a<=b}' # <="),
    ("flip_comparison", "((a)  # x <= y\n  <=\n  (b))", "((a)  # x <= y\n  <\n  (b))"),
    ("flip_comparison", "é = '日本' <= ü", "é = '日本' < ü"),
    ("flip_comparison", "a << b < c", "a << b <= c"),
    ("flip_comparison2", "a > b; c >= d; e >= f", "a > b; c > d; e >= f"),
    ("flip_comparison2", "a >> b > c; '>' > d", "a >> b >= c; '>' > d"),
    ("flip_comparison2", "def f() -> bool: return a > b", "def f() -> bool: return a >= b"),
    ("off_by_one", "range(n); range(m)", "range(n - 1); range(m)"),
    ("off_by_one", "range(a, b, 2)", "range(a, b - 1, 2)"),
    ("off_by_one", "'é'; range(len(a), max(b, (c)))", "'é'; range(len(a), max(b, (c)) - 1)"),
    ("off_by_one", "range(n + 1)", "range(n + 1 - 1)"),
    ("off_by_one", "range(-n ** 2)", "range(-n ** 2 - 1)"),
    ("off_by_one", "range(a[0].b, )", "range(a[0].b - 1, )"),
    (
        "off_by_one",
        "range(  # ),\n  0, ((n)  # ),\n  ) , 2)",
        "range(  # ),\n  0, ((n)  # ),\n  ) - 1 , 2)",
    ),
    ("off_by_one", "range(\n  n  # all, (or)\n)", "range(\n  n - 1  # all, (or)\n)"),
    ("off_by_one", "range((a or b))", "range((a or b) - 1)"),
    ("off_by_one", "range(range(n))", "range(range(n - 1))"),
    ("off_by_one", "range(*a); x.range(b); range(c)", "range(*a); x.range(b); range(c - 1)"),
    (
        "off_by_one",
        "'range(a)'; f'{range(b)}'; range(c)",
        "'range(a)'; f'{range(b)}'; range(c - 1)",
    ),
    ("index_shift", "a[0][0]", "a[1][0]"),
    ("index_shift", "a[-1] + b[-1]", "a[0] + b[-1]"),
    ("index_shift", "a[b[0]] = c[0]", "a[b[1]] = c[0]"),
    ("index_shift", "a[0] = b['[0]'][ 0 ] # [0]", "a[0] = b['[0]'][ 1 ] # [0]"),
    ("drop_reverse", "a[::2], b[::-1], c[::-1]", "a[::2], b[:], c[::-1]"),
    ("drop_reverse", "'é[::-1]'[ : :-1]", "'é[::-1]'[ :]"),
    ("flip_bool", "x = False; y = True; z = True", "x = False; y = False; z = True"),
    (
        "flip_bool",
        "x = 'True'; f'{True}'; y = False; z = False",
        "x = 'True'; f'{True}'; y = True; z = False",
    ),
    ("flip_bool", "match a:\n    case True: pass", "match a:\n    case False: pass"),
    ("drop_negation", "x = -a; x = not a; not b", "x = -a; x = a; not b"),
    ("drop_negation", "if a not in b and not c: d", "if a in b and not c: d"),
    ("drop_negation", "a is not b; c not in d", "a is b; c not in d"),
    (
        "drop_negation",
        "'not é' is b or (a  # not b\n  not  in c)",
        "'not é' is b or (a  # not b\n  in c)",
    ),
    ("drop_negation", "x = not(a)", "x = (a)"),
    ("drop_negation", "(not # no\n a)", "(# no\n a)"),
    ("drop_negation", "not not a", "not a"),
    ("drop_negation", "0not in a; b not in c", "0not in a; b in c"),
    ("drop_return", "def f():\n  if a: return 1\n  return 2", "def f():\n  if a: return 1\n  pass"),
    ("drop_return", "def f():\n\n  return (a,  # x\n    b)  # é", "def f():\n\n  pass  # é"),
    (
        "drop_return",
        "def f():\n  return 'é'; return g(\n  '''\nreturn a''')\n  return",
        "def f():\n  return 'é'; pass\n  return",
    ),
    (
        "undefined_name",
        "def f(num):\n  '''num'''\n  return num + num # num",
        "def f(num):\n  '''num'''\n  return num + num_x # num",
    ),
    (
        "undefined_name",
        "é = abc = 'ü'; f(abc); a.abc; f(abc=1); f'{abc}'",
        "é = abc = 'ü'; f(abc_x); a.abc; f(abc=1); f'{abc}'",
    ),
    ("undefined_name", "import re, math\nmath.re(math.pi)", "import re, math\nmath.re(math_x.pi)"),
    ("undefined_name", "import os.path as path\npath.os", "import os.path as path\npath_x.os"),
    ("undefined_name", "import xml.sax\nxml.sax", "import xml.sax\nxml_x.sax"),
    ("undefined_name", "def f(arg): return arg", "def f(arg): return arg_x"),
    ("undefined_name", "if a:\n  one = one\ntwo = two", "if a:\n  one = one_x\ntwo = two"),
    ("undefined_name", "def fib(n): return fib(n)", "def fib(n): return fib_x(n)"),
    ("undefined_name", "one = two = 1; two; one", "one = two = 1; two; one_x"),
    (
        "undefined_name",
        "ab = ab; Abc = Abc; total = 1; total; total += 1; last = last",
        "ab = ab; Abc = Abc; total = 1; total; total += 1; last = last_x",
    ),
    (
        "undefined_name",
        "for one in one: one_x\nfor two in two: pass",
        "for one in one: one_x\nfor two in two_x: pass",
    ),
    ("flip_arith", "a - b + c + d", "a - b - c + d"),
    ("flip_arith", "a += '+' + +b", "a += '+' - +b"),
    (
        "flip_arith",
        "'é+'; +a; f'{a + b}'; ((a)  # +\n + (b))",
        "'é+'; +a; f'{a + b}'; ((a)  # +\n - (b))",
    ),
    ("flip_arith", "a * (b + c) + d", "a * (b - c) + d"),
    (
        "rename_function",
        "def g(): pass\ndef f(n): return f(n - 1) + x.f",
        "def g(): pass\ndef get_f(n): return get_f(n - 1) + x.f",
    ),
    (
        "rename_function",
        "async def find_all(a): pass\nclass A:\n  def g(): pass",
        "async def get_all(a): pass\nclass A:\n  def g(): pass",
    ),
    (
        "rename_function",
        "@é('is_odd')\ndef  is_odd (n): '''is_odd'''; is_odd(n)",
        "@é('is_odd')\ndef  check_odd (n): '''is_odd'''; check_odd(n)",
    ),
    (
        "rename_function",
        "def sum(sum : int): sum = sum",
        "def get_sum(get_sum : int): get_sum = get_sum",
    ),
    ("rename_function", "def größe(): größe", "def get_größe(): get_größe"),
    ("rename_function", "def find(): pass", "def get_find(): pass"),
    ("drop_import", "x = 1\nimport re\nimport os", "x = 1\nimport os"),
    ("drop_import", "from re import *  # é\n\nx", "\nx"),
    ("drop_import", "from a import (\n  b,\n)\nx", "x"),
    (
        "drop_import",
        "from __future__ import annotations\nimport re",
        "from __future__ import annotations",
    ),
    (
        "drop_import",
        "import re; x\ny = '''\nimport os\n'''\n# import os\nimport sys\nz",
        "import re; x\ny = '''\nimport os\n'''\n# import os\nz",
    ),
    ("drop_import", "import re", ""),
    (
        "indent_return",
        "def f():\n  for a in b:\n\n      c\n  # é\n  return d  # e\nx",
        "def f():\n  for a in b:\n\n      c\n  # é\n      return d  # e\nx",
    ),
    (
        "indent_return",
        "class A:\n\tdef f():\n\t\twhile (a,\n\tb):\n\t\t\tif a:\n\t\t\t\tc\n\t\treturn",
        "class A:\n\tdef f():\n\t\twhile (a,\n\tb):\n\t\t\tif a:\n\t\t\t\tc\n\t\t\treturn",
    ),
    (
        "indent_return",
        "def f():\n for a in b:\n  c = (1,\n2); d\n return d",
        "def f():\n for a in b:\n  c = (1,\n2); d\n  return d",
    ),
    (
        "swap_arguments",
        "f(a, a); g('b', c); h(d, e, 1, k=2); f(i, j)",
        "f(a, a); g('b', c); h(e, d, 1, k=2); f(i, j)",
    ),
    (
        "swap_arguments",
        "'é f(a, b)'; f'{f(a, b)}'; x.y(é,  # a, b\n  (b))",
        "'é f(a, b)'; f'{f(a, b)}'; x.y(b,  # a, b\n  (é))",
    ),
    ("swap_arguments", "f(g(a, b), c)", "f(g(b, a), c)"),
    ("shift_constant", "def f(a=0, b=101, c=2): return 3", "def f(a=0, b=101, c=3): return 3"),
    (
        "shift_constant",
        "'é1', f'{1}', x1, 1.0, True, 0x1, a[1], a[f(1):], 9, 1 # 1",
        "'é1', f'{1}', x1, 1.0, True, 0x1, a[1], a[f(1):], 10, 1 # 1",
    ),
    ("shift_constant", "a[b] + 100", "a[b] + 101"),
    ("flip_boolean_operator", "a or b and c and d", "a or b or c and d"),
    ("flip_boolean_operator", "'é and' or f'{a and b}' or c", "'é and' and f'{a and b}' or c"),
    ("flip_boolean_operator", "((a)  # and\n and(band))", "((a)  # and\n or(band))"),
    ("flip_boolean_operator", "0and a; b and c", "0and a; b or c"),
    (
        "drop_colon",
        "def f(a: int):\n  if a[1:]:  # x:\n    b\n  for c in d:\n    e",
        "def f(a: int):\n  if a[1:]  # x:\n    b\n  for c in d:\n    e",
    ),
    ("drop_colon", "if 'é:': a\nwhile (b  # :\n  ) :\n\tc", "if 'é:': a\nwhile (b  # :\n  ) \n\tc"),
    (
        "drop_colon",
        "for a in lambda: b, {c: d}:\n  @e(f[1:])\n  def g(): pass",
        "for a in lambda: b, {c: d}\n  @e(f[1:])\n  def g(): pass",
    ),
    ("drop_colon", "def f(a: b=c[:]):\n  d", "def f(a: b=c[:])\n  d"),
    ("drop_colon", "def f():  # :\n  return {1: 2}", "def f()  # :\n  return {1: 2}"),
    (
        "drop_colon",
        "@é[1:]\ndef f(a: 'é' = (lambda: 1), *b: int, c=d[:]) -> e[1:]:\n  if a: pass",
        "@é[1:]\ndef f(a: 'é' = (lambda: 1), *b: int, c=d[:]) -> e[1:]\n  if a: pass",
    ),
]

# Operator and a program in which there is nothing for it.
NEAR_MISSES = [
    ("flip_comparison", "a << b; a <<= b; '<='; f'{a <= b}'; f'{a:<8}' # <="),
    ("flip_comparison2", "def f() -> a: b >> c; d >>= e; '>'; f'{a:>8}' # >"),
    ("off_by_one", "range(*a); range(b, *c); range(*d, e); range(); range; x.range(f)"),
    ("off_by_one", "range(a if b else c); range(a or b); range(not a); range(a < b)"),
    ("off_by_one", "range(a | b); range(a ^ b); range(a & b); range(a << b); range(a >> b)"),
    (
        "off_by_one",
        "range(lambda: a); range(a := b); range(a for a in b); range(stop=a); range(b, step=c)",
    ),
    ("off_by_one", "'range(a)'; f'{range(b)}'; xrange(c) # range(d)"),
    ("index_shift", "a[0] = 1; a[-1] += 1; del a[0]; a[1]; a[0:]; a[0.0]; a[00]; a[0, 0]"),
    ("index_shift", "[0]; '[0]'; f'{a[0]}'; a[False]; a[-2]; a['0'] # [0]"),
    (
        "drop_reverse",
        "a[:-1], a[::1], a[0::-1], a[:1:-1], a[::-2], a[::+1], '[::-1]', f'{a[::-1]}' # [::-1]",
    ),
    ("flip_bool", "'True'; f'{True}'; a.true; Trueish; None; 1; 0 # True"),
    ("drop_negation", "'not a'; f'{not a}'; note; a in b; a is b; a != b; knot # not a"),
    ("drop_return", "def f():\n  return 1"),
    ("drop_return", "def f():\n  'return 1'\n  return\n# return 1"),
    ("undefined_name", "a = a; ab = ab; Abc = Abc; one; def_ = 1; two = 1; two; two = 2"),
    ("undefined_name", "a.abc; a.abc; f(key=1, **{'key': 2}); f(key=1); f'{one} {one}' # a.abc"),
    ("undefined_name", "from abc import xyz as zyx\nfrom xyz import abc as cba\nimport one"),
    ("flip_arith", "+a; a += +b; '+'; f'{a + b}'; a - b; 1e+5 # +"),
    (
        "rename_function",
        "class A:\n  def f(): pass\nif f:\n  def g(): pass\nh = lambda: 'def f():'",
    ),
    ("rename_function", "def f(): return f'{f(1)}'"),
    ("rename_function", "def f(): pass\ndef g():\n  global f\ndef f(): pass"),
    ("rename_function", "def f(): pass\nx(f=1)"),
    ("rename_function", "def f(): get_f()"),
    ("drop_import", "import re; x\nx = 1; import re\nif x: import re\ndef f():\n  import re"),
    ("drop_import", "x = (1,\n2); import re"),
    ("drop_import", "x = 1; \\\nimport re"),
    ("drop_import", "import re;\n'import re'\n# import re\nimport \\\n  os; x"),
    ("drop_import", "from __future__ import annotations"),
    ("indent_return", "def f():\n  for a in b:\n    c\n  else:\n    d\n  return e"),
    ("indent_return", "def f():\n  for a in b: c\n  return e"),
    ("indent_return", "def f():\n  for a in b: \\\n    c\n  return e"),
    ("indent_return", "def f():\n  for a in (b,\n    c): d\n  return e"),
    ("indent_return", "def f():\n  for a in b:\n    c\n  return (e,\n    g)"),
    ("indent_return", "def f():\n  for a in b:\n    c\n  d\n  return e"),
    ("indent_return", "def f():\n  if a:\n    c\n  return e"),
    ("indent_return", "def f():\n  for a in b:\n    c\n  return e\n  g"),
    ("indent_return", "def f(): return e"),
    ("swap_arguments", "f(a); f(a, b=c); f(*a, b); f(a, *b); f(a, a); f(a, 1, b); f(a.b, c)"),
    ("swap_arguments", "def f(a, b): 'g(a, b)'; f'{g(a, b)}'; (a, b) # g(a, b)"),
    ("shift_constant", "0; 101; 1.0; 1j; 0x10; 1_0; True; a[1]; a[1:2]; a[f(g[1], 2)]"),
    ("shift_constant", "'1'; f'{1}'; f'{a:1}'; x1; b'1' # 1"),
    ("flip_boolean_operator", "'and'; f'{a or b}'; a & b | c; band; order # and"),
    ("flip_boolean_operator", "0and a"),
    ("drop_colon", "if a: b\nfor c in d: e\nwhile f: g\ndef h(): i"),
    ("drop_colon", "if a: \\\n  b\n'''\nif a:\n  b'''\n# if a:"),
    ("drop_colon", "class A:\n  a: int\nwith a:\n  [b for b in c if d]"),
]


@pytest.mark.parametrize(("operator", "program", "mutant"), EXAMPLES)
def test_the_first_place_gets_the_edit_and_nothing_else(
    operator: str, program: str, mutant: str
) -> None:
    assert made(operator, program) == [mutant]


@pytest.mark.parametrize(("operator", "program"), NEAR_MISSES)
def test_what_only_looks_like_a_place_is_left_alone(operator: str, program: str) -> None:
    assert made(operator, program) == []


def test_there_are_examples_and_near_misses_of_every_operator() -> None:
    assert list(OPERATORS) == ORDER
    assert list(dict.fromkeys(operator for operator, *_ in EXAMPLES)) == ORDER
    assert list(dict.fromkeys(operator for operator, _ in NEAR_MISSES)) == ORDER


def test_both_ends_of_a_sequence_are_taken_for_their_neighbours() -> None:
    program = "a[-1] + b[0] + c[-1]"
    shifted = [mutant for mutant in mutants(program) if mutant.operator == "index_shift"]
    assert shifted == [
        Mutant("index_shift", 0, "a[-1] + b[1] + c[-1]"),
        Mutant("index_shift", 1, "a[0] + b[0] + c[-1]"),
    ]


def test_the_way_to_sort_is_turned_round_where_another_true_comes_first() -> None:
    first, second = "f(a=True)", "sorted(b, reverse=True)"
    assert made("flip_bool", f"{first}; {second}") == [
        "f(a=False); sorted(b, reverse=True)",
        "f(a=True); sorted(b, reverse=False)",
    ]
    assert made("flip_bool", f"{second}; {first}") == ["sorted(b, reverse=False); f(a=True)"]
    assert made("flip_bool", "f(a=True); reverse = True; g(reverse=b); h(reverse=None)") == [
        "f(a=False); reverse = True; g(reverse=b); h(reverse=None)"
    ]


def test_a_text_counts_for_the_first_operator_that_makes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none(source: Source) -> Iterator[Edit]:
        yield Edit(0, 1, b"a")

    def both(source: Source) -> Iterator[Edit]:
        yield Edit(0, 1, b"b")
        yield Edit(0, 1, b"c")

    def second(source: Source) -> Iterator[Edit]:
        yield Edit(0, 1, b"c")
        yield Edit(0, 1, b"d")

    operators = {"none": none, "both": both, "second": second}
    monkeypatch.setattr(mutations, "OPERATORS", operators)
    assert mutants("a") == (
        Mutant("both", 0, "b"),
        Mutant("both", 1, "c"),
        Mutant("second", 1, "d"),
    )


def test_white_space_is_kept_but_at_the_end() -> None:
    assert made("drop_import", "x = 1  \n\n\nimport re") == ["x = 1"]
    assert made("flip_arith", "a  \n\n\t\nb + c \\\n + d") == ["a  \n\n\t\nb - c \\\n + d"]


@pytest.mark.parametrize("program", ["def f(:", "x = '\0'", "x = '\ud800'", " x"])
def test_what_is_not_python_is_a_syntax_error(program: str) -> None:
    with pytest.raises(SyntaxError):
        mutants(program)


def test_warnings_about_a_program_are_kept_from_the_reader() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert made("flip_arith", "'\\d' + 1if a else b") == ["'\\d' - 1if a else b"]


def test_a_program_without_a_place_has_no_mutants() -> None:
    assert mutants("") == ()
    assert mutants("pass") == ()


def test_newer_syntax_is_read_where_the_interpreter_knows_it() -> None:
    try:
        ast.parse("def f[T: int](): pass")
    except SyntaxError:
        pytest.skip("needs Python 3.12")
    program = "def f[T: int]():\n  f'{a['+'] + 1 <= x}' + b"
    assert made("drop_colon", program) == ["def f[T: int]()\n  f'{a['+'] + 1 <= x}' + b"]
    assert made("flip_arith", program) == ["def f[T: int]():\n  f'{a['+'] + 1 <= x}' - b"]
    assert made("flip_comparison", program) == []


def test_template_strings_are_left_alone_where_the_interpreter_knows_them() -> None:
    try:
        ast.parse("t''")
    except SyntaxError:
        pytest.skip("needs Python 3.14")
    assert made("flip_arith", "t'{a + b}' + c") == ["t'{a + b}' - c"]
    assert made("flip_bool", "t'{True}'") == []


def tokens(program: str) -> Counter[str]:
    """The texts of a program's tokens, without its layout."""
    readline = io.StringIO(program).readline
    found = Counter(token.string for token in tokenize.generate_tokens(readline))
    return Counter({text: count for text, count in found.items() if text.strip()})


Change = tuple[dict[str, int], dict[str, int]]


def is_one_of(*changes: Change) -> Callable[[Change], bool]:
    return lambda change: change in changes


def is_longer_name(change: Change) -> bool:
    (old,), (new,) = change
    return new == f"{old}_x" and len(old) >= 3 and old.islower()


def is_next_number(change: Change) -> bool:
    (old,), (new,) = change
    return int(new) == int(old) + 1 and 1 <= int(old) <= 100


def is_renaming(change: Change) -> bool:
    ((old, count),), ((new, new_count),) = (part.items() for part in change)
    return old.isidentifier() and new.isidentifier() and count == new_count


def swapped(old: str, new: str) -> Change:
    return {old: 1}, {new: 1}


# What becomes of a program's tokens; that of drop_return and drop_import is looked at below.
CHANGES: dict[str, Callable[[Change], bool]] = {
    "flip_comparison": is_one_of(swapped("<=", "<"), swapped("<", "<=")),
    "flip_comparison2": is_one_of(swapped(">=", ">"), swapped(">", ">=")),
    "off_by_one": is_one_of(({}, {"-": 1, "1": 1})),
    "index_shift": is_one_of(swapped("0", "1"), ({"-": 1, "1": 1}, {"0": 1})),
    "drop_reverse": is_one_of(({":": 1, "-": 1, "1": 1}, {})),
    "flip_bool": is_one_of(swapped("True", "False"), swapped("False", "True")),
    "drop_negation": is_one_of(({"not": 1}, {})),
    "undefined_name": is_longer_name,
    "flip_arith": is_one_of(swapped("+", "-")),
    "rename_function": is_renaming,
    "indent_return": is_one_of(({}, {})),
    "swap_arguments": is_one_of(({}, {})),
    "shift_constant": is_next_number,
    "flip_boolean_operator": is_one_of(swapped("and", "or"), swapped("or", "and")),
    "drop_colon": is_one_of(({":": 1}, {})),
}
IN_SEVERAL_PLACES = ("rename_function", "swap_arguments")


def change_of(program: str, mutant: str) -> Change:
    before, after = tokens(program), tokens(mutant)
    return dict(before - after), dict(after - before)


def common_length(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def edit_of(program: str, mutant: str) -> tuple[str, str]:
    """What is left of both without what they begin and end with alike."""
    start = common_length(program, mutant)
    end = common_length(program[start:][::-1], mutant[start:][::-1])
    return program[start : len(program) - end], mutant[start : len(mutant) - end]


def without_last_return(program: str) -> ast.Module:
    tree = ast.parse(program)
    returns = [node for node in ast.walk(tree) if isinstance(node, ast.Return) and node.value]
    last = max(returns, key=lambda node: (node.lineno, node.col_offset))
    for node in ast.walk(tree):
        for _, block in ast.iter_fields(node):
            if isinstance(block, list) and last in block:
                block[block.index(last)] = ast.Pass()
    return tree


def without_an_import(program: str) -> Iterator[str]:
    tree = ast.parse(program)
    for place, node in enumerate(tree.body):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield ast.dump(ast.Module(tree.body[:place] + tree.body[place + 1 :], []))


def assert_a_confined_edit(program: str, mutant: Mutant) -> None:
    removed, added = edit_of(program, mutant.program)
    match mutant.operator:
        case "drop_return":
            tree = ast.parse(mutant.program)
            assert ast.dump(tree) == ast.dump(without_last_return(program))
            assert added in "pass"
        case "drop_import":
            assert ast.dump(ast.parse(mutant.program)) in set(without_an_import(program))
            assert added == ""
        case operator:
            change = change_of(program, mutant.program)
            assert CHANGES[operator](change), change
            if operator == "indent_return":
                assert not (removed + added).strip()
            elif operator not in IN_SEVERAL_PLACES:
                blanks = len(" \t \t") if operator in ("off_by_one", "drop_negation") else 0
                blanks += removed.count("#") * 100  # a comment in a slice
                longest = max(len("".join(texts)) for texts in change)
                assert max(len(removed), len(added)) <= longest + blanks


def assert_sound(program: str) -> tuple[Mutant, ...]:
    found = mutants(program)
    texts = [mutant.program for mutant in found]
    assert program not in texts
    assert len(set(texts)) == len(texts)
    assert texts == [text.rstrip() for text in texts]
    assert found == mutants(program)

    made_by = [mutant.operator for mutant in found]
    assert made_by == sorted(made_by, key=ORDER.index)
    at_most = {"index_shift": 2, "flip_bool": 2}
    for operator, count in Counter(made_by).items():
        assert count <= at_most.get(operator, 1)
        numbers = [mutant.number for mutant in found if mutant.operator == operator]
        assert numbers == sorted(set(numbers))
        assert max(numbers) < at_most.get(operator, 1)

    for mutant in found:
        if mutant.operator == "drop_colon":
            with pytest.raises(SyntaxError):
                ast.parse(mutant.program)
        else:
            ast.parse(mutant.program)
        assert_a_confined_edit(program, mutant)
    return found


NAMES = st.sampled_from(["total", "num", "n", "größe", "日本", "range", "get_it", "Abc"])
DECOY = "é <= >= range(3) a[0] b[-1] c[::-1] True not in + and or 7 import re if x:"
ATOMS = NAMES | st.sampled_from(
    [
        "0", "1", "-1", "100", "0x1", "1.5", "True", "False", "None", "[0]", "{1: 2}",
        f"'{DECOY}'", f'"""\n{DECOY}\n  """', "b'+'",
        "f'日{total <= num + 1}{not True}{n[0]:<8}{range(n)}'", "'é' f'{n + n}'",
    ]
)  # fmt: skip


def filled(template: str, **parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Texts of a template, in which «A» stands for a text of the part A."""

    def fill(texts: dict[str, str]) -> str:
        return re.sub("«(.)»", lambda place: texts[place[1]], template)

    return st.fixed_dictionaries(parts).map(fill)


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    bracketed = filled("(«E»)", E=inner) | filled(f"(  # {DECOY}\n  «E»  # {DECOY}\n)", E=inner)
    one, other = ATOMS | bracketed, ATOMS | bracketed
    operators = [
        "<", "<=", ">", ">=", "+", "-", "*", "<<", "|", "and", "or", "not in", "is not", "not  in",
        "in", "is",
    ]  # fmt: skip
    templates = [
        "«A»[0]", "«A»[-1]", "«A»[::-1]", "«A»[0:«E»]", "«N».num", "range(«E»)",
        "range(«E» , «E»,)", "f(«N», «M», reverse=True)", "not «A»", "-«A»", "«A» if «B» else «E»",
        "[«E» for «N» in «A»]", "lambda «N»: «E»", "«A» < «B» <= «A»", "f(*«A», num=«E»)",
    ]  # fmt: skip
    templates += [f"«A» {operator} «B»" for operator in operators]
    return st.sampled_from(templates).flatmap(
        lambda template: filled(template, A=one, B=other, E=inner, N=NAMES, M=NAMES)
    )


EXPRESSIONS = st.recursive(ATOMS, larger, max_leaves=6)
SIMPLE = st.sampled_from(
    ["«N» = «E»", "«E»", "return «E»", "return", "pass", "«N» += «E»", "«N»[0] = «E»", "import «N»"]
).flatmap(lambda template: filled(template, N=NAMES, E=EXPRESSIONS))
LINES = st.one_of(
    SIMPLE,
    filled("«A»; «B»", A=SIMPLE, B=SIMPLE),
    filled(f"«A»  # {DECOY}", A=SIMPLE),
    filled("if «E»: «A»", A=SIMPLE, E=EXPRESSIONS),
    st.sampled_from(["", f"# {DECOY}\npass", "for n in num: pass"]),
)
HEADERS = st.sampled_from(
    [
        "for «N» in «E»:", "while «E»:", "if «E» :", f"while «E»:  # {DECOY}", "def «N»():",
        "def «N»(n, num: int = «E», *, total=«E») -> «E»:", "async def «N»(num):", "class «N»:",
    ]
).flatmap(lambda template: filled(template, N=NAMES, E=EXPRESSIONS))  # fmt: skip


@st.composite
def blocks(draw: st.DrawFn, indentation: str, unit: str, depth: int) -> list[str]:
    """Lines, at least one of which does something, at any depth down to `depth`."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        if depth and draw(st.booleans()):
            lines.append(indentation + draw(HEADERS))
            lines += draw(blocks(indentation + unit, unit, depth - 1))
        else:
            line = draw(LINES)
            lines.append(indentation + line.replace("\npass", f"\n{indentation}pass"))
    lines.append(indentation + draw(SIMPLE))
    return lines


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Programs with places for all operators, and the like of them in strings and comments."""
    unit = draw(st.sampled_from(["  ", "    ", "\t"]))
    return "\n".join(draw(blocks("", unit, 3))).rstrip()


@quick
@given(programs())
def test_every_mutant_is_a_program_with_one_confined_edit(program: str) -> None:
    assert_sound(program)


@quick
@given(programs())
def test_what_comes_before_changes_nothing(program: str) -> None:
    assume(program.count("\n") >= 2)
    before = f"\n# {DECOY}\n'''{DECOY}\n'''; '日本'; 0\n"
    assert [mutant.program for mutant in mutants(before + program)] == [
        (before + mutant.program).rstrip() for mutant in mutants(program)
    ]


@quick
@given(programs())
def test_what_comes_after_the_first_place_changes_nothing(program: str) -> None:
    after = "\npass\nf(n, num) + range(7)[::-1]"
    for mutant in mutants(program):
        if mutant.operator in (
            "off_by_one", "drop_reverse", "flip_arith", "swap_arguments", "shift_constant"
        ):  # fmt: skip
            assert made(mutant.operator, program + after) == [mutant.program + after]


@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
def test_the_reference_programs_have_sound_mutants_by_every_operator(mbpp: Path) -> None:
    programs = [problem.solution for problem in load_problems(mbpp)]
    made_by: Counter[str] = Counter()
    for program in programs:
        found = assert_sound(program)
        assert len(found) >= 2
        made_by.update({mutant.operator for mutant in found})
    assert len(programs) == 427
    assert set(made_by) == set(ORDER)
