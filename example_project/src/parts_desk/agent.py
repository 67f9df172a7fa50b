"""The agent's loop: show the model what happened so far, run the call that it makes, and go on."""

from __future__ import annotations

import inspect
import sqlite3
from collections.abc import Callable

from parts_desk.dispatch import execute
from parts_desk.history import History, Message, Request, Turn, explain_failure, render_messages
from parts_desk.tools import TOOLS, Tool


class NoAnswerError(Exception):
    """The agent used up its calls and never came to an answer."""


def _usage(tool: Tool) -> str:
    parameters = list(inspect.signature(tool).parameters.values())[1:]
    listed = ", ".join(f"{parameter.name}: {parameter.annotation}" for parameter in parameters)
    return f"{tool.__name__}({listed}) - {tool.__doc__}"


INSTRUCTIONS = "\n".join(
    [
        "You run the parts desk of a warehouse. You work by calling tools:",
        *(_usage(tool) for tool in TOOLS.values()),
        "Reply with exactly one call, every argument named, and nothing else.",
    ]
)


class Agent:
    """A conversation with the desk.

    `complete` is any chat model: it is given the messages and returns the text of its reply.
    `record` writes failed calls into the prompt, see `history`.
    """

    def __init__(
        self,
        complete: Callable[[list[Message]], str],
        db: sqlite3.Connection,
        *,
        record: Callable[[Turn], list[Message]] = explain_failure,
        max_calls: int = 8,
    ) -> None:
        self.history: History | None = None
        self._complete = complete
        self._db = db
        self._record = record
        self._max_calls = max_calls

    def ask(self, request: str) -> str:
        """Deal with `request`, the first one or a further one, and return the answer to it.

        Raises:
            NoAnswerError: when the model gives no answer within `max_calls` calls.
        """
        if self.history is None:
            self.history = History(INSTRUCTIONS, request)
        else:
            self.history.entries.append(Request(request))
        for _ in range(self._max_calls):
            call = self._complete(render_messages(self.history, self._record)).strip()
            outcome = execute(self._db, call)
            answered = outcome.tool == "answer" and outcome.problem is None
            result = None if answered else outcome.text
            self.history.entries.append(Turn(call, result, outcome.tool, outcome.problem))
            if answered:
                return outcome.text
        raise NoAnswerError(f"no answer to {request!r} within {self._max_calls} calls")
