from __future__ import annotations

import re
import textwrap

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_failgain.environments.sandbox.wording import LONGEST, error_line

# What versions of CPython say, and the one line for all; the versions, where they are known, stand
# above the row in the order of the variants.
VARIANTS: dict[str, list[str]] = {
    # 3.10; 3.11 on
    "UnboundLocalError: cannot access local variable 'x' where it is not associated with a value": [
        "UnboundLocalError: local variable 'x' referenced before assignment",
        (
            "UnboundLocalError: cannot access local variable 'x' where it is not associated with a "
            "value"
        ),
        # The same in a function inside, and to 3.11 in a comprehension.
        "NameError: free variable 'x' referenced before assignment in enclosing scope",
        (
            "NameError: cannot access free variable 'x' where it is not associated with a value in "
            "enclosing scope"
        ),
    ],
    # to 3.12; 3.13 on
    "AttributeError: 'int' object has no attribute 'size'": [
        "AttributeError: 'int' object has no attribute 'size'",
        (
            "AttributeError: 'int' object has no attribute 'size' and no __dict__ for setting new "
            "attributes"
        ),
    ],
    # 3.10; 3.11 on
    "AttributeError: property 'area' has no setter": [
        "AttributeError: can't set attribute 'area'",
        "AttributeError: property 'area' of 'Square' object has no setter",
    ],
    # 3.10, for both methods; 3.11 to 3.13; 3.14
    "TypeError: object does not support the context manager protocol": [
        "AttributeError: __enter__",
        "AttributeError: __exit__",
        "TypeError: 'int' object does not support the context manager protocol",
        (
            "TypeError: 'Q' object does not support the context manager protocol (missed __exit__ "
            "method)"
        ),
    ],
    "ImportError: cannot import name 'gcd' from 'fractions'": [
        "ImportError: cannot import name 'gcd' from 'fractions' (/usr/lib/python3.11/fractions.py)",
        "ImportError: cannot import name 'gcd' from 'fractions' (unknown location)",
    ],
    # all; to 3.13 by type and operator; 3.14 the first again
    "ZeroDivisionError: division by zero": [
        "ZeroDivisionError: division by zero",
        "ZeroDivisionError: integer division or modulo by zero",
        "ZeroDivisionError: integer modulo by zero",
        "ZeroDivisionError: float division by zero",
        "ZeroDivisionError: float floor division by zero",
        "ZeroDivisionError: float modulo",
        "ZeroDivisionError: float modulo by zero",
        "ZeroDivisionError: float divmod()",
        "ZeroDivisionError: complex division by zero",
    ],
    # to 3.13; 3.14
    "ZeroDivisionError: 0.0 cannot be raised to a negative power": [
        "ZeroDivisionError: 0.0 cannot be raised to a negative power",
        "ZeroDivisionError: zero to a negative power",
    ],
    # to 3.13; 3.14
    "TypeError: argument of type 'int' is not iterable": [
        "TypeError: argument of type 'int' is not iterable",
        "TypeError: argument of type 'int' is not a container or iterable",
    ],
    # to 3.13; 3.14
    "TypeError: unhashable type: 'list'": [
        "TypeError: unhashable type: 'list'",
        "TypeError: cannot use 'list' as a set element (unhashable type: 'list')",
        "TypeError: cannot use 'list' as a dict key (unhashable type: 'list')",
        "TypeError: cannot use 'tuple' as a dict key (unhashable type: 'list')",
    ],
    # to 3.11; 3.12 on
    "TypeError: unhashable type: 'slice'": [
        "TypeError: unhashable type: 'slice'",
        "KeyError: slice(0, 1, None)",
    ],
    # 3.10; 3.11 on
    "TypeError: string indices must be integers": [
        "TypeError: string indices must be integers",
        "TypeError: string indices must be integers, not 'str'",
    ],
    # 3.10; 3.11 on
    "TypeError: 'type' object is not subscriptable": [
        "TypeError: 'type' object is not subscriptable",
        "TypeError: type 'Node' is not subscriptable",
    ],
    # to 3.12; 3.13 on
    "TypeError: can only assign an iterable": [
        "TypeError: can only assign an iterable",
        "TypeError: must assign iterable to extended slice",
    ],
    # to 3.13; 3.14
    "ValueError: too many values to unpack (expected 2)": [
        "ValueError: too many values to unpack (expected 2)",
        "ValueError: too many values to unpack (expected 2, got 3)",
    ],
    # to 3.12; 3.13 on, where the parser of arguments is another
    "TypeError: int() takes at most 2 arguments (3 given)": [
        "TypeError: int() takes at most 2 arguments (3 given)",
        "TypeError: int expected at most 2 arguments, got 3",
    ],
    "TypeError: index() takes at least 1 argument (0 given)": [
        "TypeError: index() takes at least 1 argument (0 given)",
        "TypeError: index expected at least 1 argument, got 0",
    ],
    # to 3.10; to 3.12; 3.13 on
    "TypeError: eval() takes at least 1 argument (0 given)": [
        "TypeError: eval expected at least 1 argument, got 0",
        "TypeError: eval() takes at least 1 positional argument (0 given)",
    ],
    "TypeError: rotate() takes exactly one argument (2 given)": [
        "TypeError: rotate() takes exactly one argument (2 given)",
        "TypeError: deque.rotate expected 1 argument, got 2",
        "TypeError: rotate expected 1 argument, got 2",
    ],
    # to 3.12; 3.13 on; those that guess the name
    "TypeError: sorted() got an unexpected keyword argument 'revers'": [
        "TypeError: 'revers' is an invalid keyword argument for sorted()",
        "TypeError: sorted() got an unexpected keyword argument 'revers'",
        "TypeError: sorted() got an unexpected keyword argument 'revers'. Did you mean 'reverse'?",
    ],
    # 3.10; 3.11 on
    "TypeError: count() takes no keyword arguments": [
        "TypeError: count() takes no keyword arguments",
        "TypeError: str.count() takes no keyword arguments",
    ],
    # to 3.12; 3.13 on
    "TypeError: must be str, not NoneType": [
        "TypeError: must be str, not NoneType",
        "TypeError: find() argument 1 must be str, not None",
    ],
    # to 3.11; 3.12 on
    "TypeError: Can't instantiate abstract class Shape with abstract methods area, name": [
        "TypeError: Can't instantiate abstract class Shape with abstract methods area, name",
        (
            "TypeError: Can't instantiate abstract class Shape without an implementation for "
            "abstract methods 'area', 'name'"
        ),
    ],
    # to 3.11; 3.12 on
    "ValueError: max() arg is an empty sequence": [
        "ValueError: max() arg is an empty sequence",
        "ValueError: max() iterable argument is empty",
    ],
    # to 3.13; 3.14
    "ValueError: list.index(x): x not in list": [
        "ValueError: 'pear' is not in list",
        "ValueError: list.index(x): x not in list",
    ],
    # to 3.13; 3.14
    "ValueError: math domain error": [
        "ValueError: math domain error",
        "ValueError: expected a nonnegative input, got -1.0",
        "ValueError: expected a positive input",
        "ValueError: expected a number in range from -1 up to 1, got 2.0",
    ],
    # 3.10; 3.11 on
    "TypeError: expected string or bytes-like object": [
        "TypeError: expected string or bytes-like object",
        "TypeError: expected string or bytes-like object, got 'int'",
    ],
    # to 3.12; 3.13 on
    "error: missing ), unterminated subpattern at position 0": [
        "error: missing ), unterminated subpattern at position 0",
        "PatternError: missing ), unterminated subpattern at position 0",
    ],
    # 3.10; 3.11 on
    "ValueError: Invalid format specifier": [
        "ValueError: Invalid format specifier",
        "ValueError: Invalid format specifier '5 5' for object of type 'int'",
    ],
    # to 3.13; 3.14
    "ValueError: day is out of range for month": [
        "ValueError: day is out of range for month",
        "ValueError: day 30 must be in range 1..29 for month 2 in year 2020",
    ],
    # to 3.13; 3.14
    "ValueError: month must be in 1..12": [
        "ValueError: month must be in 1..12",
        "ValueError: month must be in 1..12, not 13",
    ],
    "RecursionError: maximum recursion depth exceeded": [
        "RecursionError: maximum recursion depth exceeded",
        "RecursionError: maximum recursion depth exceeded in comparison",
        "RecursionError: maximum recursion depth exceeded while calling a Python object",
        "RecursionError",
    ],
    "MemoryError": [
        "MemoryError",
        "MemoryError: Parser stack overflowed - Python source too complex to parse",
    ],
    # Linux; macOS; emscripten
    "OverflowError: (34, 'Numerical result out of range')": [
        "OverflowError: (34, 'Numerical result out of range')",
        "OverflowError: (34, 'Result too large')",
        "OverflowError: (68, 'Result not representable')",
    ],
    # 3.10, in places; 3.10 and later; to 3.12; 3.13 on
    "SyntaxError: invalid syntax": [
        "SyntaxError: invalid syntax",
        "SyntaxError: expected ':'",
        "SyntaxError: invalid syntax. Perhaps you forgot a comma?",
        "SyntaxError: 'in' expected after for-loop variables",
        "SyntaxError: invalid syntax. Maybe you meant '==' or ':=' instead of '='?",
        "SyntaxError: invalid syntax (program.py, line 3)",
    ],
    # to 3.11.3; 3.11.4 on
    "SyntaxError: source code string cannot contain null bytes": [
        "ValueError: source code string cannot contain null bytes",
        "SyntaxError: source code string cannot contain null bytes",
    ],
    # to 3.12; 3.13 on, where a backslash stands before the quote
    "SyntaxError: unterminated string literal (detected at line 2)": [
        "SyntaxError: unterminated string literal (detected at line 2)",
        (
            "SyntaxError: unterminated string literal (detected at line 2); perhaps you escaped "
            "the end quote?"
        ),
        # Of f-strings since 3.12.
        "SyntaxError: unterminated f-string literal (detected at line 2)",
        "SyntaxError: unterminated string literal (detected at line 2) (<string>, line 2)",
    ],
    "SyntaxError: cannot assign to literal here": [
        "SyntaxError: cannot assign to literal here. Maybe you meant '==' instead of '='?",
    ],
    "SyntaxError: Missing parentheses in call to 'print'": [
        "SyntaxError: Missing parentheses in call to 'print'. Did you mean print(...)?",
        "SyntaxError: f-string: Missing parentheses in call to 'print'. Did you mean print(...)?",
    ],
}

# Programs with a slip, and the line on whatever Python runs this test.
SLIPS: dict[str, str] = {
    "print(totl)": "NameError: name 'totl' is not defined",
    "def f():\n    n += 1\nf()": (
        "UnboundLocalError: cannot access local variable 'n' where it is not associated with a "
        "value"
    ),
    "def f():\n    s = [n for _ in 'a']\n    n = 1\nf()": (
        "UnboundLocalError: cannot access local variable 'n' where it is not associated with a "
        "value"
    ),
    "[1] + 1": 'TypeError: can only concatenate list (not "int") to list',
    "'a' + 1": 'TypeError: can only concatenate str (not "int") to str',
    "1 + 'a'": "TypeError: unsupported operand type(s) for +: 'int' and 'str'",
    "None < 1": "TypeError: '<' not supported between instances of 'NoneType' and 'int'",
    "1 in 5": "TypeError: argument of type 'int' is not iterable",
    "1 / 0": "ZeroDivisionError: division by zero",
    "1 // 0": "ZeroDivisionError: division by zero",
    "1 % 0": "ZeroDivisionError: division by zero",
    "1.0 % 0": "ZeroDivisionError: division by zero",
    "divmod(1.0, 0)": "ZeroDivisionError: division by zero",
    "0 ** -1": "ZeroDivisionError: 0.0 cannot be raised to a negative power",
    "[1][1]": "IndexError: list index out of range",
    "'abc'['a']": "TypeError: string indices must be integers",
    "[1]['a']": "TypeError: list indices must be integers or slices, not str",
    "None[0]": "TypeError: 'NoneType' object is not subscriptable",
    "s = 'abc'\ns[0] = 'b'": "TypeError: 'str' object does not support item assignment",
    "{}['a']": "KeyError: 'a'",
    "{}[0:1]": "TypeError: unhashable type: 'slice'",
    "{[1]}": "TypeError: unhashable type: 'list'",
    "{[1]: 2}": "TypeError: unhashable type: 'list'",
    "set([[1]])": "TypeError: unhashable type: 'list'",
    "a, b = 1, 2, 3": "ValueError: too many values to unpack (expected 2)",
    "a, b = [1]": "ValueError: not enough values to unpack (expected 2, got 1)",
    "a, b = 1": "TypeError: cannot unpack non-iterable int object",
    "dict([1])": "TypeError: cannot convert dictionary update sequence element to a sequence",
    "def f(a): pass\nf()": "TypeError: f() missing 1 required positional argument: 'a'",
    "def f(a): pass\nf(1, 2)": "TypeError: f() takes 1 positional argument but 2 were given",
    "def f(a): pass\nf(b=1)": "TypeError: f() got an unexpected keyword argument 'b'",
    "def f(key): pass\nf(ky=1)": "TypeError: f() got an unexpected keyword argument 'ky'",
    "sorted([1], revers=True)": "TypeError: sort() got an unexpected keyword argument 'revers'",
    "len()": "TypeError: len() takes exactly one argument (0 given)",
    "int('1', 2, 3)": "TypeError: int() takes at most 2 arguments (3 given)",
    "[].index()": "TypeError: index() takes at least 1 argument (0 given)",
    "'a'.index()": "TypeError: index() takes at least 1 argument (0 given)",
    "[].pop(1, 2)": "TypeError: pop() takes at most 1 argument (2 given)",
    "'a'.find(1)": "TypeError: must be str, not int",
    "'a'.count(None)": "TypeError: must be str, not NoneType",
    "[3].index(4)": "ValueError: list.index(x): x not in list",
    "[3].remove(4)": "ValueError: list.remove(x): x not in list",
    "max([])": "ValueError: max() arg is an empty sequence",
    "min(x for x in [])": "ValueError: min() arg is an empty sequence",
    "int('x')": "ValueError: invalid literal for int() with base 10: 'x'",
    "len(5)": "TypeError: object of type 'int' has no len()",
    "if n.x = 1: pass": "SyntaxError: cannot assign to attribute here",
    "n = 1\nn.x = 1": "AttributeError: 'int' object has no attribute 'x'",
    "[].push(1)": "AttributeError: 'list' object has no attribute 'push'",
    "with 5: pass": "TypeError: object does not support the context manager protocol",
    "from math import foo": "ImportError: cannot import name 'foo' from 'math'",
    "import math\nmath.sqrt(-1)": "ValueError: math domain error",
    "import math\nmath.log(0)": "ValueError: math domain error",
    "import re\nre.match('a', 1)": "TypeError: expected string or bytes-like object",
    "import re\nre.compile('(')": "error: missing ), unterminated subpattern at position 0",
    "import datetime\ndatetime.date(2021, 2, 29)": "ValueError: day is out of range for month",
    "import datetime\ndatetime.date(0, 1, 1)": "ValueError: year 0 is out of range",
    "'%c' % 1.5": "TypeError: %c requires int or char",
    "'{:5 5}'.format(1)": "ValueError: Invalid format specifier",
    "def f(n): return f(n + 1) > n\nf(0)": "RecursionError: maximum recursion depth exceeded",
    "raise ValueError": "ValueError",
    "raise ValueError('one\\ntwo')": "ValueError: one\ntwo",
    "assert 1 == 2": "AssertionError",
    "if True\n    pass": "SyntaxError: invalid syntax",
    "def f:\n    pass": "SyntaxError: invalid syntax",
    "x = [1 2]": "SyntaxError: invalid syntax",
    "x = [a for a b]": "SyntaxError: invalid syntax",
    "if x = 1: pass": "SyntaxError: invalid syntax",
    "def f(a=1, b): pass": "SyntaxError: invalid syntax",
    "x = (1,\n": "SyntaxError: '(' was never closed",
    "x = (1]": ("SyntaxError: closing parenthesis ']' does not match opening parenthesis '('"),
    "x = 1)": "SyntaxError: unmatched ')'",
    "x = 'a": "SyntaxError: unterminated string literal (detected at line 1)",
    "x = 'a\\'": "SyntaxError: unterminated string literal (detected at line 1)",
    "x = f'a": "SyntaxError: unterminated string literal (detected at line 1)",
    "x = 1\0": "SyntaxError: source code string cannot contain null bytes",
    "x = 2a": "SyntaxError: invalid decimal literal",
    "print 1": "SyntaxError: Missing parentheses in call to 'print'",
    "return 1": "SyntaxError: 'return' outside function",
    "f() = 1": "SyntaxError: cannot assign to function call here",
    "f(a=1, 2)": "SyntaxError: positional argument follows keyword argument",
    "  x = 1": "IndentationError: unexpected indent",
    "if True:\npass": (
        "IndentationError: expected an indented block after 'if' statement on line 1"
    ),
    "if True:\n    x = 1\n  y = 2": (
        "IndentationError: unindent does not match any outer indentation level"
    ),
    "if True:\n\tx = 1\n        y = 2": (
        "TabError: inconsistent use of tabs and spaces in indentation"
    ),
}

ROWS = [(variant, line) for line, variants in VARIANTS.items() for variant in variants]
KINDS = ["TypeError", "ValueError", "SyntaxError", "NameError", "error", "MemoryError", "Odd"]
# Whole messages of the table, their words out of order, and anything else.
PIECES = sorted({piece for line, _ in ROWS for piece in [*line.split(), *re.split("[:(,]", line)]})
MESSAGES = st.one_of(
    st.sampled_from([variant.partition(": ")[2] for variant, _ in ROWS]),
    st.lists(st.sampled_from([*PIECES, " at 0x7f", "at 0xA1"]), max_size=8).map(" ".join),
    st.text(max_size=400),
)


def split(line: str) -> tuple[str, str]:
    kind, _, message = line.partition(": ")
    return kind, message


def failure_of(program: str) -> BaseException:
    try:
        exec(compile(program, "program.py", "exec", dont_inherit=True), {"__name__": "program"})
    except Exception as error:
        return error
    raise AssertionError(f"does not fail: {program}")


@pytest.mark.parametrize(("variant", "line"), ROWS)
def test_what_any_version_says_becomes_one_line(variant: str, line: str) -> None:
    assert error_line(*split(variant)) == line


@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("program", SLIPS)
def test_a_slip_has_the_same_line_on_the_python_that_runs_this(program: str) -> None:
    error = failure_of(program)

    assert error_line(type(error).__name__, str(error)) == SLIPS[program]


def test_a_function_written_in_python_keeps_its_words() -> None:
    said = "area() takes 2 positional arguments but 3 were given"

    assert error_line("TypeError", said) == f"TypeError: {said}"


def test_the_words_of_the_program_itself_are_kept() -> None:
    said = textwrap.dedent("""\
        no route from A to B
            tried 3 of 4""")

    assert error_line("RouteError", said) == f"RouteError: {said}"


def test_the_place_of_a_module_is_left_out() -> None:
    for module in ("<module 'math' from '/opt/python/math.so'>", "<module 'math' (built-in)>"):
        assert error_line("KeyError", module) == "KeyError: <module 'math'>"


def test_a_long_message_is_cut() -> None:
    line = error_line("ValueError", "x" * 1000)

    assert len(line) == LONGEST == 300
    assert line.endswith("xxx...")


@given(st.sampled_from(KINDS), MESSAGES)
@example("KeyError", "<C object at at 0x1 0x2>")
@example("ValueError", "x" * 283 + " is not in list")
@example("TypeError", "f, Did you mean a, did you mean b??")
def test_a_line_is_not_changed_again(kind: str, message: str) -> None:
    line = error_line(kind, message)

    assert error_line(*split(line)) == line


@given(st.sampled_from(KINDS), MESSAGES)
@example("KeyError", "<C object at at 0x1 0x2>")
@example("KeyError", "at 0x1")
def test_a_line_is_bounded_and_has_no_address(kind: str, message: str) -> None:
    line = error_line(kind, message)

    assert line
    assert len(line) <= LONGEST
    assert not re.search(r" at 0x[0-9a-fA-F]", line)
