"""What the office makes of a model's replies: which call one means, and how it is written."""

from __future__ import annotations

import re
from collections.abc import Hashable

from pytest_failgain.call_text import Call, bare
from pytest_failgain.environments.tool_calls.calls import ActionFormat
from pytest_failgain.environments.tool_calls.failures import CallError
from pytest_failgain.environments.tool_calls.runtime import Outcome
from pytest_failgain.environments.tool_calls.tools import TOOLS
from pytest_failgain.replies import ReplyStyle, call_in_line
from pytest_failgain.trajectory import Action

# The errors of calls that never reach a tool, whatever the world is.
_UNBOUND = {
    "unknown_tool",
    "arity_error",
    "unexpected_argument",
    "missing_argument",
    "type_error",
}
# A call in either of the formats that are text: one in the wrong format is no prose.
_BEGINNING = re.compile(rf"(?:{'|'.join(TOOLS)})\b|\{{\s*[\"']")


def reply_style(form: ActionFormat) -> ReplyStyle:
    """How replies are read in the format `form`."""

    def meaning(action: str) -> Hashable | None:
        try:
            return _named(form.read(Action(action))).canonical if action.strip() else None
        except (CallError, ValueError, RecursionError):
            # The last two come of values that can be read but not printed.
            return None

    return ReplyStyle(
        f"tool_calls {form.name}", call_in_line, meaning, one_line=True, self_ending=True
    )


def _named(call: Call) -> Call:
    """The call with the names of its positional arguments, as far as the tool has so many."""
    tool = TOOLS.get(call.tool)
    if tool is None or len(call.positional) > len(tool.parameters):
        return call
    names = (parameter.name for parameter in tool.parameters)
    given = tuple(zip(names, call.positional, strict=False))
    return Call(call.tool, (*given, *call.keywords))


def writing_of(action: Action, outcome: Outcome) -> str:
    """Which of `protocol.WRITINGS` the action is, which had that outcome."""
    family = outcome.failure.family if outcome.failure else None
    if family != "parse_error":
        return "invalid" if family in _UNBOUND else "valid"
    text = bare(action.text)
    if not _BEGINNING.match(text):
        return "prose"
    return "truncated" if _count(text, "([{") > _count(text, ")]}") else "invalid"


def _count(text: str, characters: str) -> int:
    return sum(map(text.count, characters))
