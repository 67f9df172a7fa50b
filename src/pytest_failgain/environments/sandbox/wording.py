"""The last line of a traceback in the same words on every Python from 3.10 to 3.14.

CPython words many errors anew from version to version. Where there is a choice, the words are those
of 3.11; what only some versions say, such as the type of a value, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable

LONGEST = 300

_Said = str | Callable[[re.Match[str]], str]

# What no version needs, wherever it stands in a message: addresses, and guesses at what was meant,
# which are a sentence of their own or follow a comma or semicolon.
_CLUTTER = re.compile(
    r"(?:\A| )at 0x[0-9A-F]+"
    r"|[.,;] (?:did you|or did you|perhaps you|maybe you|is this intended) [^\n]*\?",
    re.IGNORECASE,
)
# 3.12 writes the items as a dict's, and before as a list's.
_ORDERED = re.compile(r"OrderedDict\([^()]*(?:\([^()]*\)[^()]*)*\)")
# Where a module lies, which is another place in every installation.
_MODULE = re.compile(r"(<module '[\w.]+')(?: from '[^'\n]*'| \((?:built-in|frozen)\))>")
# str() of a SyntaxError ends in "(program.py, line 3)"; its traceback does not.
_LOCATION = re.compile(r" \((?:[^()\n]*, )?line \d+\)\Z")


def _counted(found: re.Match[str]) -> str:
    """How many arguments a function takes, in the words that most functions had in 3.11."""
    name, bound, wanted, *given = found.groups()
    if bound in ("", "exactly "):
        bound, wanted = "exactly ", "one" if wanted == "1" else wanted
    noun = "argument" if wanted in ("1", "one") else "arguments"
    return f"TypeError: {name}() takes {bound}{wanted} {noun} ({given[0] or given[1]} given)"


def _abstract(found: re.Match[str]) -> str:
    names = found[3].replace("'", "")
    return f"TypeError: Can't instantiate abstract class {found[1]} with {found[2]} {names}"


# Whole lines, and what is said instead; the first pattern that fits decides. A comment gives the
# versions that a pattern is for. Groups that took no part are empty.
_WORDINGS: tuple[tuple[str, _Said], ...] = (
    # Where a version notices the recursion depends on how it calls functions.
    (r"RecursionError\b.*", "RecursionError: maximum recursion depth exceeded"),
    # 3.12 on: the parser says what it had too little memory for.
    (r"MemoryError\b.*", "MemoryError"),
    # 3.13 has other words for some, and other places.
    (r"JSONDecodeError: .*", "JSONDecodeError: invalid JSON"),
    # 3.13 on: `re.error` is an alias.
    (r"PatternError\b(.*)", r"error\1"),
    #
    # Names. Since 3.12 a comprehension is part of its function, and a free variable in it a local
    # one. 3.10: "referenced before assignment".
    (
        (
            r"(?:NameError: free|UnboundLocalError: local) variable '(\w+)' referenced before .*"
            r"|NameError: cannot access free variable '(\w+)' where it is not associated .*"
        ),
        (
            r"UnboundLocalError: cannot access local variable '\1\2'"
            r" where it is not associated with a value"
        ),
    ),
    #
    # Operators. 3.14 has one text for all divisions; until then the types and operators differ.
    (
        (
            r"ZeroDivisionError: (?:(?:float |complex )?division by zero"
            r"|float floor division by zero|float divmod\(\)|float modulo(?: by zero)?"
            r"|integer (?:division or )?modulo by zero)"
        ),
        "ZeroDivisionError: division by zero",
    ),
    # 3.14
    (
        r"ZeroDivisionError: zero to a negative power",
        "ZeroDivisionError: 0.0 cannot be raised to a negative power",
    ),
    # 3.14
    (
        r"ZeroDivisionError: zero to a negative or complex power",
        "ZeroDivisionError: 0.0 to a negative or complex power",
    ),
    # The C library's text, and its number.
    (r"OverflowError: \(\d+, '[^']*'\)", "OverflowError: (34, 'Numerical result out of range')"),
    # 3.14
    (
        r"TypeError: argument of type (.+) is not a container or iterable",
        r"TypeError: argument of type \1 is not iterable",
    ),
    # 3.11 and 3.12: flags of `re` that are no flags.
    (
        r"TypeError: unsupported operand type\(s\) for (.+) and 'RegexFlag'",
        r"TypeError: unsupported operand type(s) for \1 and 'int'",
    ),
    # 3.14
    (
        r"TypeError: '(.+)' object can't be awaited",
        r"TypeError: object \1 can't be used in 'await' expression",
    ),
    #
    # Subscripts, hashing and unpacking. 3.14
    (
        r"TypeError: cannot use '.+' as a (?:dict key|set element) \((unhashable type: .+)\)",
        r"TypeError: \1",
    ),
    # 3.12 on: slices can be hashed.
    (r"KeyError: slice\(.+\)", "TypeError: unhashable type: 'slice'"),
    # 3.11 on
    (
        r"TypeError: string indices must be integers, not .+",
        "TypeError: string indices must be integers",
    ),
    # 3.11 on
    (
        r"TypeError: type '.+' is not subscriptable",
        "TypeError: 'type' object is not subscriptable",
    ),
    # Some types, which are others in every version.
    (
        r"TypeError: (.+) object doesn't support (item|slice) (.+)",
        r"TypeError: \1 object does not support \2 \3",
    ),
    # Of slices with a step, and since 3.13 of all.
    (
        r"TypeError: must assign iterable to extended slice",
        "TypeError: can only assign an iterable",
    ),
    # 3.14
    (
        r"ValueError: too many values to unpack \((expected \d+), got \d+\)",
        r"ValueError: too many values to unpack (\1)",
    ),
    # To 3.13, and 3.14.
    (
        (
            r"TypeError: cannot convert dictionary update sequence element #\d+ to a sequence"
            r"|TypeError: object is not iterable"
        ),
        "TypeError: cannot convert dictionary update sequence element to a sequence",
    ),
    #
    # Arguments of functions written in C, of which each version makes more parse them in another
    # way. Functions written in Python have kept their words. 3.12 on
    (
        r"TypeError: log expected at (?:least|most) .+",
        "TypeError: math.log requires 1 to 2 arguments",
    ),
    (
        (
            r"TypeError: (?:\w+\.)*(\w+)(?:(?:\(\))? expected |\(\) takes )"
            r"(exactly |at least |at most |)(\d+) (?:positional )?arguments?"
            r"(?:, got (\d+)| \((\d+) given\))"
        ),
        _counted,
    ),
    # To 3.13: "1 arguments".
    (
        r"TypeError: expected (at least|at most) 1 arguments?, got (\d+)",
        r"TypeError: expected \1 1 argument, got \2",
    ),
    # With the module or the class in some versions.
    (r"TypeError: (?:\w+\.)+(\w+\(\) takes no keyword arguments)", r"TypeError: \1"),
    # To 3.12
    (
        r"TypeError: ('.+') is an invalid keyword argument for (.+)",
        r"TypeError: \2 got an unexpected keyword argument \1",
    ),
    # 3.10
    (
        r"TypeError: (.+ missing required argument .+) \(pos \d+\)",
        r"TypeError: \1",
    ),
    # 3.13 on
    (
        r"TypeError: (?:r?find|r?index|count)\(\) argument 1 must be str, not None",
        "TypeError: must be str, not NoneType",
    ),
    (
        r"TypeError: (?:r?find|r?index|count)\(\) argument 1 must be str, not (.+)",
        r"TypeError: must be str, not \1",
    ),
    # "type" in 3.10, then "a type".
    (r"TypeError: super\(\) argument 1 must be .+", "TypeError: super() argument 1 must be a type"),
    # 3.13 on
    (
        r"TypeError: super\(type, obj\): obj \(.+\) is not an instance or subtype of type \(.+",
        "TypeError: super(type, obj): obj must be an instance or subtype of type",
    ),
    #
    # Attributes and protocols. 3.13 on
    (r"AttributeError: (.+) and no __dict__ for setting new attributes", r"AttributeError: \1"),
    # 3.10, and 3.11 on.
    (
        (
            r"AttributeError: can't set attribute ('.+')"
            r"|AttributeError: property ('.+') of .+ has no setter"
        ),
        r"AttributeError: property \1\2 has no setter",
    ),
    (
        (
            r"AttributeError: can't delete attribute ('.+')"
            r"|AttributeError: property ('.+') of .+ has no deleter"
        ),
        r"AttributeError: property \1\2 has no deleter",
    ),
    (
        (
            r"AttributeError: unreadable attribute ('.+')"
            r"|AttributeError: property ('.+') of .+ has no getter"
        ),
        r"AttributeError: property \1\2 has no getter",
    ),
    # 3.10 looks for the methods one by one; 3.14 says which it missed.
    (
        (
            r"AttributeError: __a?(?:enter|exit)__"
            r"|TypeError: '.+' object does not support the (?:asynchronous )?context manager .+"
        ),
        "TypeError: object does not support the context manager protocol",
    ),
    # 3.12 on
    (
        (
            r"TypeError: Can't instantiate abstract class (\w+)"
            r" without an implementation for (abstract methods?) (.+)"
        ),
        _abstract,
    ),
    # To 3.12
    (
        r"TypeError: Cannot create a consistent method resolution\norder (.+)",
        r"TypeError: Cannot create a consistent method resolution order \1",
    ),
    # To 3.11
    (
        r"TypeError: called match pattern must be a type",
        "TypeError: called match pattern must be a class",
    ),
    # With the file of the module.
    (r"ImportError: (cannot import name '\w+' from [^()]+?) \(.*", r"ImportError: \1"),
    #
    # Built-in functions and types. 3.12 on
    (
        r"ValueError: (max|min)\(\) iterable argument is empty",
        r"ValueError: \1() arg is an empty sequence",
    ),
    # 3.12
    (
        r"TypeError: iter\(object, sentinel\): object must be callable",
        "TypeError: iter(v, w): v must be callable",
    ),
    # With the function in 3.10, the type since 3.11.
    (
        r"TypeError: (?:(?:get|has)attr\(\): )?attribute name must be string(?:, not .+)?",
        "TypeError: attribute name must be string",
    ),
    # 3.14 names the parts "real" and "imag"; before they were "first" and "second".
    (
        r"TypeError: complex\(\) (?:argument|first arg|second arg|can't take second arg).*",
        "TypeError: complex() argument must be a string or a number",
    ),
    # 3.10
    (r"(\w+: Exceeds the limit \(\d+)(\) .+)", r"\1 digits\2"),
    # To 3.13; 3.14 does not show the value.
    (r"ValueError: .* is not in (list|range)", r"ValueError: \1.index(x): x not in \1"),
    (
        r"ValueError: .* is not in deque|ValueError: deque\.\w+\(x\): x not in deque",
        "ValueError: x is not in deque",
    ),
    # 3.14: "str or bytes-like".
    (r"TypeError: fromhex\(\) argument must be str.+", "TypeError: fromhex() argument must be str"),
    #
    # Text formats. 3.14
    (
        r"TypeError: %c requires an int or a unicode character, .+",
        "TypeError: %c requires int or char",
    ),
    # 3.14
    (
        r"TypeError: (%c requires an integer in range\(256\) or a single byte), .+",
        r"TypeError: \1",
    ),
    # 3.11 on
    (r"ValueError: Invalid format specifier '.+", "ValueError: Invalid format specifier"),
    #
    # The standard library. 3.14
    (
        (
            r"ValueError: expected (?:a number in range|a number between|a finite input"
            r"|a positive input|a nonnegative input|a noninteger or positive integer"
            r"|argument value).*"
        ),
        "ValueError: math domain error",
    ),
    # 3.11 on
    (
        r"TypeError: expected string or bytes-like object, got '.+'",
        "TypeError: expected string or bytes-like object",
    ),
    # 3.14
    (r"ValueError: day \d+ must be in range .+", "ValueError: day is out of range for month"),
    # 3.14
    (
        r"ValueError: ((?:month|hour|minute|second|microsecond) must be in \d+\.\.\d+), not .+",
        r"ValueError: \1",
    ),
    # 3.14
    (
        r"ValueError: year must be in 1\.\.9999, not (.+)",
        r"ValueError: year \1 is out of range",
    ),
    # 3.14: fromtimestamp()
    (
        r"TypeError: argument must be int or float, not (.+)",
        r"TypeError: '\1' object cannot be interpreted as an integer",
    ),
    # 3.13 on: _replace() of a named tuple.
    (r"TypeError: (Got unexpected field names: .+)", r"ValueError: \1"),
    # 3.13 on: fields of a data class.
    (r"TypeError: (non-default argument '\w+' follows default argument) .+", r"TypeError: \1"),
    # With the bounds, in several ways.
    (
        r"ValueError: empty range (?:for randrange\(\) \(.+\)|in rand(?:range|int)\(.+\))",
        "ValueError: empty range for randrange()",
    ),
    # To 3.11
    (
        r"ValueError: non-integer arg 1 for randrange\(\)",
        "TypeError: 'float' object cannot be interpreted as an integer",
    ),
    # 3.11 on
    (
        r"StatisticsError: (p?)stdev requires (.+)",
        r"StatisticsError: \1variance requires \2",
    ),
    # 3.13 on: geometric_mean()
    (
        r"StatisticsError: Must have a non-empty dataset",
        "StatisticsError: geometric mean requires a non-empty dataset containing positive numbers",
    ),
    # 3.12 on
    (r"ValueError: (Out of range float values are not JSON compliant): .+", r"ValueError: \1"),
    # 3.14
    (
        r"TypeError: (argument should be a string or a Rational instance) or .+",
        r"TypeError: \1",
    ),
    #
    # Syntax. To 3.11.3
    (
        r"ValueError: source code string cannot contain null bytes",
        "SyntaxError: source code string cannot contain null bytes",
    ),
)

_SYNTAX_KINDS = ("SyntaxError", "IndentationError", "TabError")
# Since 3.12 an f-string is parsed like the rest of the program.
_SYNTAX_WORDINGS = (
    (r"unterminated f-string (.+)", r"unterminated string \1"),
    (r"f-string: (closing parenthesis .+|Missing parentheses in call .+)", r"\1"),
    (r"(?:can't|f-string: cannot) use (starred expression here)", r"cannot use \1"),
)
_TARGETS = (
    r"(?:None|True|False|__debug__|attribute|comparison|conditional expression|dict comprehension"
    r"|dict literal|ellipsis|expression|f-string expression|function call|generator expression"
    r"|lambda|list comprehension|literal|set comprehension|set display|starred|subscript"
    r"|yield expression)"
)
# What all versions say of the same text. Left out are "expected ':'" and "expected '('", where 3.10
# says "invalid syntax" at times, and nearly all that is said of f-strings.
_SHARED_SYNTAX = (
    # Brackets
    r"'.' was never closed",
    r"unmatched '.'",
    r"closing parenthesis '.' does not match opening parenthesis '.'(?: on line \d+)?",
    r"too many nested parentheses",
    # Tokens
    r"unterminated (?:triple-quoted )?string literal \(detected at line \d+\)",
    r"unexpected EOF while parsing",
    r"unexpected character after line continuation character",
    r"invalid (?:binary|decimal|hexadecimal|imaginary|octal) literal",
    r"invalid digit '\d' in (?:binary|octal) literal",
    r"leading zeros in decimal integer literals are not permitted; .+",
    r"invalid character '.' \(U\+[0-9A-F]+\)",
    r"source code string cannot contain null bytes",
    r"\((?:unicode|value) error\) .+",
    r"bytes can only contain ASCII literal characters",
    r"cannot mix bytes and nonbytes literals",
    r"f-string: single '}' is not allowed",
    # Indentation
    r"unexpected indent",
    r"unindent does not match any outer indentation level",
    r"expected an indented block after (?:'[\w ]+' statement|\w+ definition) on line \d+",
    r"inconsistent use of tabs and spaces in indentation",
    r"too many levels of indentation",
    r"too many statically nested blocks",
    # Calls and parameters
    r"Missing parentheses in call to '(?:print|exec)'",
    r"positional argument follows keyword argument(?: unpacking)?",
    r"keyword argument repeated: \w+",
    r"expression cannot contain assignment",
    r"Generator expression must be parenthesized",
    r"duplicate argument '\w+' in function definition",
    r"named arguments must follow bare \*",
    # Assignments
    rf"cannot (?:assign to|delete) {_TARGETS}(?: here)?",
    r"'.+' is an illegal expression for augmented assignment",
    r"cannot use assignment expressions with (?:attribute|literal|subscript)",
    r"assignment to yield expression not possible",
    r"illegal target for annotation",
    r"only single target \(not (?:tuple|list)\) can be annotated",
    r"multiple starred expressions in assignment",
    r"starred assignment target must be in a list or tuple",
    r"cannot use starred expression here",
    # Displays and comprehensions
    r"expression expected after dictionary key and ':'",
    r"':' expected after dictionary key",
    r"dict unpacking cannot be used in dict comprehension",
    r"iterable unpacking cannot be used in comprehension",
    # Statements
    r"expected 'else' after 'if' expression",
    r"expected 'except' or 'finally' block",
    r"default 'except:' must be last",
    r"'[\w ]+' (?:outside|inside) (?:async )?function",
    r"'break' outside loop",
    r"'continue' not properly in loop",
    r"name '\w+' is (?:assigned to before|used prior to) global declaration",
    r"name '\w+' is (?:parameter|nonlocal) and (?:global|nonlocal)",
    r"no binding for nonlocal '\w+' found",
    r"nonlocal declaration not allowed at module level",
    r"import \* only allowed at module level",
    r"trailing comma not allowed without surrounding parentheses",
    r"from __future__ imports must occur at the beginning of the file",
    r"future feature \w+ is not defined",
)


def error_line(kind: str, message: str) -> str:
    """The last line of a traceback, "KIND: MESSAGE" or "KIND", in words that no version changes.

    `kind` is the name of the exception's class and `message` its str(). The line is cut at LONGEST
    characters; a message of several lines keeps them.
    """
    message = _tidied(message)
    if kind in _SYNTAX_KINDS:
        message = _syntax(message)
    line = _translated(f"{kind}: {message}" if message else kind)
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."


def _tidied(message: str) -> str:
    # What is taken out can bring together more that has to go.
    while (tidier := _MODULE.sub(r"\1>", _CLUTTER.sub("", message)).strip()) != message:
        message = tidier
    return _ORDERED.sub("OrderedDict(...)", message)


def _syntax(message: str) -> str:
    message = _LOCATION.sub("", message)
    for pattern, said in _SYNTAX_WORDINGS:
        message = re.sub(rf"\A(?:{pattern})\Z", said, message)
    shared = any(re.fullmatch(pattern, message, re.DOTALL) for pattern in _SHARED_SYNTAX)
    return message if shared else "invalid syntax"


def _translated(line: str) -> str:
    for pattern, said in _WORDINGS:
        found = re.fullmatch(pattern, line, re.DOTALL)
        if found:
            return said(found) if callable(said) else found.expand(said)
    return line
