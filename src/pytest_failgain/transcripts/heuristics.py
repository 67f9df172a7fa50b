"""Telling failures from other results where a format has no mark for them: each rule has a name.

The rules read the beginning and the end of a result, where a runtime tells of a failure, and not
its middle, where the output of a command may mention any error. They know nothing of the call, so
that a file whose whole text is an error message passes for a failure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from pytest_failgain.transcripts.result_members import members_failed, spoken
from pytest_failgain.transcripts.result_text import (
    LOOKED_AT,
    any_of,
    beginning,
    is_short,
    last_lines,
    outer_lines,
)

_LONGEST_LINE = 400

# A word or a quoted name before the word that tells, as in "Error: edit_file failed".
_NAMES = r"(?:[\w`'\"./-]{1,60} ){0,4}"


def _json(text: str) -> bool | None:
    if text.lstrip()[:1] not in ("{", "[", '"'):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    verdict = members_failed(value) if isinstance(value, dict) else None
    if verdict is not None:
        return verdict
    return any(_by_words(said) for said in spoken(value))


def _by_words(text: str) -> bool:
    return next(filter(None, (rule(text) for rule in _WORDS.values())), False)


_PYTHON_DICT = re.compile(
    r"\{"
    + any_of(
        r"'(?:error|errors|exception)': (?!None\b|''|\"\"|\[\]|\{\}|False\b|0\b)",
        r"'(?:success|ok)': False\b",
        r"'(?:isError|is_error)': True\b",
        r"'status': '(?:error|failed|failure)'",
    )
)


def _python_dict(text: str) -> bool | None:
    return True if _PYTHON_DICT.match(beginning(text)) else None


_EXIT_CODE = re.compile(
    r"\b"
    + any_of(
        r"exit(?:ed)?(?: with)?(?: an?)?(?: (?:non-?zero|error))?[ _-](?:exit )?(?:code|status)",
        r"exitcode",
        r"return[ _]?code",
        r"returned(?: a)? non-zero exit status",
    )
    + r"\b[\"'>]{0,2}(?: of| is|:|=)?[ \"'(:=]{0,3}(-?\d{1,10})\b"
    # What explains exit codes is no exit.
    + r"(?! ?(?:means|indicates|if\b|when\b|is\b|for\b|or\b|=>|->|\|))",
    re.I,
)
_SIGNAL = re.compile(
    r"\b(?:terminated|killed) by signal\b|^Segmentation fault|^Killed$|\(core dumped\)", re.I
)


def _exit_code(text: str) -> bool | None:
    for line in outer_lines(text):
        if len(line) > _LONGEST_LINE:
            continue
        found = _EXIT_CODE.search(line)
        if found is not None:
            return int(found.group(1)) != 0
        if _SIGNAL.search(line):
            return True
    return None


_HTTP_STATUS = re.compile(
    any_of(
        r"HTTP(?:/[\d.]{1,3})?(?: error| status)?(?: code)?:? [45]\d\d\b",
        r"[45]\d\d (?:Client|Server) Error\b",
        r"(?:Error code|(?:\w{1,30} ){0,5}(?:status code|HTTP status)(?: of)?):? [45]\d\d\b",
        r"4\d\d (?:Bad Request|Unauthorized|Forbidden|(?:Page )?Not Found|Method Not|Request T"
        r"|Conflict|Gone|Unprocessable|Too Many)",
        r"5\d\d (?:Internal|Bad Gateway|Service|Gateway)",
    ),
    re.I,
)


def _http_status(text: str) -> bool | None:
    return True if _HTTP_STATUS.match(beginning(text)) else None


_SUMMARY_FAILED = re.compile(
    any_of(
        r"=*\s*(?:\d+ \w{1,20}, ){0,4}[1-9]\d* (?:failed|errors?)\b.{0,80} in \d",
        r"FAILED \((?:failures|errors)=",
        r"(?:Tests|Test Suites):\s+[1-9]\d* failed",
        r"test result: FAILED",
        r"FAIL(?:\s+\S{1,200}\s|$)",
        r"BUILD FAILED|Build failed\b",
        r"make(?:\[\d\])?: \*\*\* ",
        r"npm (?:ERR!|error) ",
        r"error: could not compile",
        r"Found [1-9]\d* errors?\b",
        r"\s*[1-9]\d* failing$",
        r".{0,20}\b[1-9]\d* problems? \([1-9]\d* errors?",
    )
)
_SUMMARY_PASSED = re.compile(
    any_of(
        r"=*\s*(?:\d+ (?:passed|skipped|deselected|xfailed|xpassed|warnings?),? ){1,6}in \d",
        r"OK(?: \(.{1,60}\))?$",
        r"Tests:\s+(?:\d+ (?:skipped|todo), )?\d+ passed",
        r"test result: ok",
        r"ok\s+\S{1,200}\s+\d",
        r"BUILD SUCCESS|Build succeeded",
        r"Success: no issues|All checks passed|Found 0 errors",
    )
)


def _test_summary(text: str) -> bool | None:
    for line in reversed(last_lines(text, 6)):
        if _SUMMARY_FAILED.match(line):
            return True
        if _SUMMARY_PASSED.match(line):
            return False
    return None


_TRACEBACK = "Traceback (most recent call last)"
_RAISED = re.compile(
    r"[\w.]{0,120}(?:Error|Exception|Interrupt|Exit|Warning|Failure|Timeout)\b(?::|$)"
)
_FILE_LINE = re.compile(r"^\s{1,20}File \"[^\"\n]{1,500}\", line \d", re.M)
_STACK = re.compile(
    r"^(?:Uncaught |Exception in thread \S{1,60} )?[\w.$]{0,100}(?:Error|Exception)\b"
    r"[^\n]{0,500}\n\s{1,20}at [^\n]{0,300}",
    re.M,
)
_STACK_ENDS = re.compile(r"\s{1,20}at \S|Node\.js v\d|\s{1,20}\.\.\. \d+ more|\}$")


def _traceback(text: str) -> bool | None:
    begins = beginning(text)
    if begins.startswith(_TRACEBACK) or _STACK.match(begins):
        return True
    # In the middle it is what a program shows; at the end it is what ended a program.
    tail = text[-LOOKED_AT:]
    last = last_lines(text, 3)
    if any(map(_RAISED.match, last)) and (f"\n{_TRACEBACK}" in tail or _FILE_LINE.search(tail)):
        return True
    return True if last and _STACK_ENDS.match(last[-1]) and _STACK.search(tail) else None


_NONE = r"[ \t]*(?:(?:none|no|null|n/a|nil|false|\d+|\[\]|\{\})[ \t]*(?:\n|[,;|%]|\Z)|\s*\Z)"
_ERROR = re.compile(
    r"\W{0,12}"
    + any_of(
        # Error: …, ValueError: …, error[E0308]: …, error TS2304: …, fatal: …
        any_of(
            r"[\w.]{0,100}(?:Error|Exception)",
            r"(?:[\w-]{1,30} ){0,2}(?:error|exception)",
            "fatal|panic|failure",
        )
        + r"\s?(?:\[[^\]\n]{0,40}\]|\([^)\n]{0,80}\)|[A-Z]{1,4}\d{2,5}|-?\d{1,6})?\s?[:!]"
        + f"(?!{_NONE})",
        r"(?:error|fatal|critical) [-\u2013\u2014] ",
        # An error occurred …, Error executing …
        r"(?:an? |the following )?(?:[\w-]{1,30} ){0,3}(?:error|exception)s? (?:has |have |was )?"
        + any_of(
            "occurred|encountered|raised|thrown|while|when|during|executing|running|calling",
            "invoking|reading|writing|opening|parsing|processing|fetching|loading|creating",
            "updating|deleting|editing|applying|connecting|searching|accessing",
            r"code \d|in line|at line|from (?:tool|server|the)",
        )
        + r"\b",
        # Failed to …, Login failed.
        _NAMES
        + r"failed(?!\s?[:=]\s?\d+\s*(?:$|[\n,;]))"
        + r"(?:\s*(?:$|\n|[:.!,;(\[\"'`-])| (?:to|with|because|due|after|at|on|in|while|when|by"
        r"|from|for|and)\b)",
        r"npm (?:ERR!|error)|E: |ERR_|make: \*\*\*|thread '[^'\n]{1,80}' panicked",
    ),
    re.I,
)
_COUNTED = re.compile(
    r"\W{0,12}"
    + any_of(
        r"(?:[\w-]{1,30} ){0,3}(?:0|no|zero|without(?: any)?) (?:[\w-]{1,30} ){0,2}"
        r"(?:error|failure|exception|problem|issue|failed)",
        r"\d+ passed\b",
    ),
    re.I,
)
_TESTS_FAILED = re.compile(r"\W{0,12}[1-9]\d* (?:tests? )?failed\b", re.I)


def _error_word(text: str) -> bool | None:
    begins = beginning(text)
    if _COUNTED.match(begins):
        return None
    return True if _ERROR.match(begins) or _TESTS_FAILED.match(begins) else None


_THING = any_of(
    "tool|function|command|method|action|operation|api|agent|model|module|package|symbol|element",
    "argument|parameter|option|flag|input|value|key|name|identifier|id|type|property|properties",
    "file|directory|folder|path|url|host|server|resource|branch|ref|line|range|date|character",
    "json|syntax|format|schema|regex|pattern|match|request|response|token|credentials|keyword",
    "table|column|record|field|query|user|end",
)
_REFUSED = re.compile(
    r"\W{0,12}"
    + any_of(
        # Edit refused: …, Permission denied
        _NAMES + r"(?:rejected|refused|denied|forbidden|unauthori[sz]ed|not permitted|not allowed|"
        r"disallowed|blocked)(?=\s*(?:$|\n|[:.!,;(\[-])| (?:by|because|for|since|to|as|it)\b)",
        # Unknown tool …, Invalid path …, Missing required argument
        any_of(
            "unknown|invalid|unsupported|unrecogni[sz]ed|unexpected|missing|malformed|illegal",
            "no such|bad|undefined|unresolved|ambiguous|duplicate|incorrect|wrong",
        )
        + rf" (?:[\w`'\"./-]{{1,40}} ){{0,3}}[`'\"]?{_THING}s?\b"
        r"(?! (?:are|raise|will|should|can)\b)",
        r"no (?:tool|function|command|such|matching (?:tool|function|command)|module) "
        r"(?:with|named|called|of|by|is|\w{1,40} (?:named|called|found|exists))",
        any_of(
            "cannot|can't|can not|could not|couldn't|unable to|not able to",
            r"access (?:to [^\n]{1,200} )?(?:is )?(?:denied|blocked|forbidden)",
            "you (?:must|may not|cannot|can't|are not allowed|do not have|don't have|haven't)",
            "segmentation fault|out of memory|stack overflow|syntax error",
        )
        + r"\b",
        r"abort(?:ed)?: ",
    ),
    re.I,
)
_MISSING = re.compile(
    r"\b"
    + any_of(
        r"not found|not recogni[sz]ed|does(?: not|n't) exist|did(?: not|n't) (?:exist|match)",
        rf"no such {_THING}|there (?:is|was) no (?:such )?{_THING}",
        r"is not (?:an? )?(?:valid|defined|available|recogni[sz]ed|supported|allowed|registered"
        r"|known|permitted|installed|enabled)",
        r"permission denied|access is denied|connection refused|operation not permitted",
        r"timed out|timeout (?:exceeded|expired|reached|after)",
        r"is required(?! to\b)|missing (?:\d+ )?required",
        r"(?:must be|expected) [^\n]{1,80}\b(?:got|received|not)\b",
        r"must be (?:an? |one of|of type|greater|less|at least|at most|provided|specified)",
        r"read[- ]only (?:file ?system|connection|transaction|database)",
        r"exceeds? (?:the )?(?:maximum|limit)|(?:rate|quota) limit(?:ed)?|quota exceeded",
        r"unknown (?:tool|function|command|option|argument)",
        r"invalid (?:syntax|argument|input|json|value)|syntax error",
        r"cannot (?:be|access|open|stat|create|find|read|remove|import|resolve|execute)",
    )
    + r"\b",
    re.I,
)
_SHELL = re.compile(
    any_of(
        r"[\w./-]{1,80}(?:: line \d+|: \d+)?: (?:[^:\n]{1,200}: ){0,3}"
        + any_of(
            "command not found|not found|No such file or directory|Permission denied",
            "Is a directory|Not a directory|Operation not permitted|unbound variable",
            "cannot [a-z]|can't [a-z]|invalid option|unrecognized option|missing operand",
            "syntax error|too many arguments",
        ),
        "zsh: command not found",
        r"[\w./\\-]{1,200}(?::\d+(?::\d+)?:|\(\d+,\d+\):) (?:fatal )?error\b",
    ),
    re.I,
)
# How the output of a command begins that shows something, or says that it did it.
_NO_FAULT = re.compile(
    r"\W{0,8}"
    + any_of(
        r"(?:ok|done|success|successfully)\b",
        r"no (?:errors?|issues?|problems?|failures?|warnings?)\b",
        r"the file .{1,200} has been (?:updated|created)",
        r"found \d+ |\d+ (?:results?|matches|files?)\b|\d{1,6}[:|\t→]",
        r"[-dl][rwx-]{9}|import |from \w+ import|def |class |#|//|/\*|<\?|<!|<html",
    ),
    re.I,
)


def _refusal(text: str) -> bool | None:
    begins = beginning(text)
    if _NO_FAULT.match(begins):
        return None
    first = begins.partition("\n")[0]
    if _REFUSED.match(begins) or (len(first) <= _LONGEST_LINE and _SHELL.match(first)):
        return True
    # In a short message the first words need not be those that tell.
    told = is_short(text) and len(first) <= _LONGEST_LINE and _MISSING.search(first)
    return True if told else None


_USAGE_ERROR = re.compile(r"^[^\n]{0,120}\berror: ", re.M | re.I)


def _usage(text: str) -> bool | None:
    if beginning(text)[:7].lower() != "usage: ":
        return None
    return True if _USAGE_ERROR.search(text[-LOOKED_AT:]) else None


_NOT_DONE = re.compile(
    any_of(
        r"changes? ha(?:ve|s) not been applied|no changes (?:were )?applied|file was not changed",
        r"no replacement was performed|did not appear verbatim",
        r"string to replace (?:was )?not found|found \d+ matches of the string",
        r"blocks? (?:failed to|did not) match|introduced new syntax error",
        r"edit was (?:not applied|rejected)|could not be applied|patch does not apply",
        r"was not executed|has been killed|was cancelled because it took|has not been read yet",
    ),
    re.I,
)


def _not_done(text: str) -> bool | None:
    if _NO_FAULT.match(beginning(text)):
        return None
    return True if _NOT_DONE.search(text[:400]) or _NOT_DONE.search(text[-400:]) else None


_WORDS: dict[str, Callable[[str], bool | None]] = {
    "exit code": _exit_code,
    "Python dict": _python_dict,
    "HTTP status": _http_status,
    "test summary": _test_summary,
    "traceback": _traceback,
    "error word": _error_word,
    "refusal": _refusal,
    "usage": _usage,
    "not done": _not_done,
}

HEURISTICS: dict[str, Callable[[str], bool | None]] = {"JSON": _json, **_WORDS}
"""By name, in the order in which they are asked; None from one leaves it to the next."""


def judge(text: str) -> tuple[bool, str]:
    """Whether a result that nothing marks tells of a failure, and the rule that says so.

    A result that no rule knows is none.
    """
    for name, rule in HEURISTICS.items():
        verdict = rule(text)
        if verdict is not None:
            return verdict, name
    return False, ""


CANCELLED: dict[str, re.Pattern[str]] = {
    "rejection": re.compile(
        any_of(
            r"(?:the )?user "
            + any_of(
                "doesn't want to proceed|(?:has )?(?:denied|rejected|declined|refused)",
                "disapproved|did(?: not|n't) approve|chose not to|skipped",
            )
            + r"\b",
            rf"{_NAMES}(?:rejected|denied|declined) by (?:the )?user\b",
            r"commands? not executed\b",
            r"permission to use [^\n]{1,200} has been denied",
        ),
        re.I,
    ),
    "interruption": re.compile(
        any_of(
            r"\[?request interrupted by user",
            rf"{_NAMES}(?:interrupted|aborted|cancell?ed|stopped) by (?:the )?user\b",
            r"(?:the )?user (?:cancell?ed|aborted|interrupted)\b",
            r"\[?operation cancell?ed\]?|(?:command|turn|tool call) aborted",
            r"(?:(?:tool|command|execution|call|request|task) ){0,2}(?:was )?cancell?ed\W*$",
            r"human feedback:",
        ),
        re.I,
    ),
    "cascade": re.compile(
        any_of(
            r"cancell?ed: |(?:sibling|parallel) tool call (?:errored|failed|cancell?ed)",
            r"skipp(?:ed|ing) (?:mcp )?tool\b",
            r"(?:mcp )?tool [^\n]{1,200} was (?:interrupted and )?not executed (?:because|due)",
            r"(?:the )?(?:action|tool|call|tool call) (?:was )?(?:not executed|skipped)\b",
        ),
        re.I,
    ),
}
"""By name, how the texts begin that agents write for a call that was rejected, or never ran."""


def cancelled_by(text: str) -> str | None:
    """The rule that knows a result as that of a rejected or cancelled call, None where none does.

    A call that took too long and was stopped for that is a failure.
    """
    begins = beginning(text).lstrip("\"'* \n")
    return next((name for name, rule in CANCELLED.items() if rule.match(begins)), None)
