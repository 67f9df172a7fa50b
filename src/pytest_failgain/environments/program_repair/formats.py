"""How an agent writes a program: as it is, or between the fences that chat models like."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from pytest_failgain.trajectory import Action

_FENCED = re.compile(
    r"^```[\w+-]*[ \t]*\n(?P<program>.*?)(?:(?P<end>\n```[ \t]*$)|\Z)", re.DOTALL | re.MULTILINE
)
# Fences after this are in a program's own strings or comments.
CODE = re.compile(r"^(?:def|class|import|from|@\w+|async def)\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ProgramFormat:
    """`instruction` asks for the format, `write` makes an action of a program."""

    name: str
    instruction: str
    write: Callable[[str], Action]


def read_program(action: Action) -> str:
    """The program in an action: what is in its first fences, or all of its text."""
    fenced = _fenced(action)
    return fenced["program"] if fenced else action.text


def is_left_open(action: Action) -> bool:
    """Whether the program's fence is opened and never closed."""
    fenced = _fenced(action)
    return fenced is not None and fenced["end"] is None


def _fenced(action: Action) -> re.Match[str] | None:
    fenced = _FENCED.search(action.text)
    if fenced is None or CODE.search(action.text, 0, fenced.start()):
        return None
    return fenced


def _fence(program: str) -> Action:
    return Action(f"```python\n{program}\n```")


PROGRAM_FORMATS = {
    form.name: form
    for form in (
        ProgramFormat("python", "Answer with the code alone, without code fences.", Action),
        ProgramFormat("fenced", "Answer with one fenced code block and nothing else.", _fence),
    )
}
