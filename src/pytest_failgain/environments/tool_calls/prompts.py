"""The system prompt of each action format, the same for every task: its tokens are read once."""

from __future__ import annotations

from pytest_failgain.environments.tool_calls.calls import ActionFormat
from pytest_failgain.environments.tool_calls.tools import TOOLS

_RULES = """\
You look after the shared workspace of a small office: its documents, calendar, contacts and mail. \
You see and change the workspace only through tools.
Make one tool call at a time and then wait for what it returns. Give every argument that a tool \
takes, and use only what you were told or have looked up. A day is written YYYY-MM-DD and a time \
HH:MM. Mail and invitations go to email addresses."""


def system_prompt(form: ActionFormat) -> str:
    """The rules and, where the chat template does not do it, the format and the tools."""
    if form.instruction is None:
        return _RULES
    tools = "\n".join(
        f"{tool.usage} -> {tool.returns}: {tool.description}" for tool in TOOLS.values()
    )
    return f"{_RULES}\n{form.instruction} Write nothing else.\n\nThe tools:\n{tools}"
