"""How a model's reply is read as an action, and when two actions are the same one."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from pytest_failgain.call_text import Call, bare, read_json, read_python

FENCE_ALONE = re.compile(r"\s*```\s*\w*\s*")


@dataclass(frozen=True, slots=True)
class ReplyStyle:
    """How the replies of an agent are read.

    `name` stands for the functions in what is kept on disk: where they change, so must it. `action`
    gives the action's text in a reply that may not be finished, "" where it holds none. `meaning`
    gives what an action does, equal for actions that differ only in how they are written, and None
    for what can't be read. With `one_line` a reply is over once its action's line is. With
    `self_ending` an action that can be read is whole, whatever might be written behind it, as a
    call is at its closing bracket; what can be read of a program may go on.
    """

    name: str
    action: Callable[[str], str]
    meaning: Callable[[str], Hashable | None]
    one_line: bool
    self_ending: bool

    def canonical(self, action: str) -> Hashable:
        """Equal for actions that are the same but for their spelling: by meaning, else by words."""
        meaning = self.meaning(action)
        return " ".join(action.split()) if meaning is None else meaning

    def ends_itself(self, action: str) -> bool:
        """Whether nothing that is written behind `action` makes another action of it."""
        return self.self_ending and self.meaning(action) is not None

    def is_over(self, reply: str) -> bool:
        """Whether more text would change nothing any more."""
        return self.one_line and _first_line(reply)[1]


def call_in_line(reply: str) -> str:
    """The reply's first line that says anything, without label, backticks and fence."""
    return bare(_first_line(reply)[0])


def _first_line(reply: str) -> tuple[str, bool]:
    """The line that holds the action, and whether it is finished."""
    # Not splitlines: it would break lines at characters that a call may hold.
    *finished, last = reply.split("\n")
    for line in finished:
        if bare(line) and not FENCE_ALONE.fullmatch(line):
            return line, True
    return ("", False) if FENCE_ALONE.fullmatch(last) else (last, False)


def read_call(action: str) -> Call | None:
    """The call that `action` is, in Python or in JSON; None where it is neither."""
    try:
        return read_python(action)
    except ValueError:
        pass
    try:
        return read_json(action)
    except ValueError:
        return None


def _call_meaning(action: str) -> Hashable | None:
    try:
        call = read_call(action)
        return None if call is None else call.canonical
    except (ValueError, RecursionError):
        # These come of values that can be read but not printed.
        return None


CALL_LINES = ReplyStyle("call lines", call_in_line, _call_meaning, one_line=True, self_ending=True)
