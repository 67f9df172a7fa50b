"""What the scripted model says first: a call that the agent's own tool will fail on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_failgain.errors import UsageError
from pytest_failgain.trajectory import Action, ToolCall


@dataclass(frozen=True, slots=True)
class FailingCall:
    """A call that the scripted model makes, so that the agent's own tool runs and fails.

    `arguments` is the JSON text of the arguments, or what becomes it. With `text` the model says
    that instead of making a structured call, for agents that read calls from text; `name` and
    `arguments` may then be left out, and `action_text` is the part of it that is scored, all of it
    by default. `content` is the message's content beside a structured call: None is sent as null,
    and null, "" and a text make different records in some agents.

    `task` is what the agent is asked to do, where it is not the common one. `error` is what the
    tool says, for telling a hidden error from one that is shown. `neutral` and `success` are what
    the tool could have answered instead. `correct` and `distractors` are other candidates.

    Raises:
        UsageError: when there is neither a name nor a text, or the arguments are no JSON.
    """

    name: str = ""
    arguments: str | Mapping[str, Any] = field(default_factory=dict)
    content: str | None = field(default=None, kw_only=True)
    text: str | None = field(default=None, kw_only=True)
    action_text: str | None = field(default=None, kw_only=True)
    task: str | None = field(default=None, kw_only=True)
    error: str | None = field(default=None, kw_only=True)
    neutral: str = field(default="The call was received.", kw_only=True)
    success: str | None = field(default=None, kw_only=True)
    correct: Action | ToolCall | str | None = field(default=None, kw_only=True)
    distractors: tuple[Action | ToolCall | str, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        if not self.name and not self.text:
            raise UsageError("a failing call needs the name of a tool, or a text that makes a call")
        if self.text is not None and (self.action_text or self.text) not in self.text:
            raise UsageError(
                f"the action {self.action_text!r} is no part of the text {self.text!r}"
            )

    @property
    def arguments_text(self) -> str:
        """The arguments as the JSON text that is sent."""
        if isinstance(self.arguments, str):
            return self.arguments
        return json.dumps(dict(self.arguments), ensure_ascii=False)

    @property
    def action(self) -> Action:
        """What is scored."""
        if self.text is not None:
            return Action(self.action_text or self.text)
        return Action(calls=(ToolCall(self.name, self.arguments_text),))
