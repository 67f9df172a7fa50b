"""The parts of a result's text in which a runtime tells of a failure: its beginning and its end."""

from __future__ import annotations

import re

# A result may be megabytes long; what tells of a failure stands at one of its ends.
LOOKED_AT = 2000
_LINES = 4


def any_of(*patterns: str) -> str:
    """A regular expression for one of several."""
    return f"(?:{'|'.join(patterns)})"


# What harnesses write before the output of a command or tool.
_FRAME = re.compile(
    any_of(
        r"\s",
        r"(?:Command|Tool|Action|Ability|Function) [\w.`'\"-]{1,80} "
        r"(?:returned|gave|replied|says|responded|result(?:ed in)?)(?: with)?:",
        r"(?:(?:Tool|Function|Command|Execution)[ _])?"
        r"(?:observation|result|output|response|logs|stdout|stderr)s?:(?=\s)",
        r"Call id: [\w-]{1,80}(?=\n)",
        r"Command executed\.?(?=\n)",
        r"</?(?:output|stdout|stderr|result|tool_result|error|tool_use_error|system)>",
        r"<returncode>[^<]{0,12}</returncode>",
        r">(?= )",
        r"```\w{0,12}(?=\n)",
    )
    + "{1,20}",
    re.I,
)


def beginning(text: str) -> str:
    """The first words of a result, without the frame that a harness puts around them."""
    head = text[:LOOKED_AT]
    frame = _FRAME.match(head)
    return head[frame.end() :] if frame else head


def last_lines(text: str, count: int = _LINES) -> list[str]:
    """The last lines that say something."""
    return _lines(text[-LOOKED_AT:])[-count:]


def outer_lines(text: str) -> list[str]:
    """The first and the last lines that say something."""
    return [*_lines(text[:LOOKED_AT])[:_LINES], *last_lines(text)]


def is_short(text: str) -> bool:
    """Whether a result is a message of a few lines rather than the output of a command."""
    return len(text) <= 600 and len(_lines(text)) <= 8


def _lines(text: str) -> list[str]:
    """The lines that say something, without the mark of a quotation."""
    lines = (line.removeprefix("> ").rstrip() for line in text.split("\n"))
    return [line for line in lines if line]
