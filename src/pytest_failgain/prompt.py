"""What a harness makes: chat messages or text, checked and frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_failgain.errors import UsageError
from pytest_failgain.trajectory import Tool

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Prompt:
    """Either `messages` for the model's chat template, or `text` that is used as it is.

    `tools` are offered through the chat template and only mean something beside messages. `lead` is
    the beginning of the reply that is to come, which stands behind the generation prompt.
    `adaptations` says what had to be changed already to come to messages.

    Raises:
        UsageError: when there are both messages and text, or neither.
    """

    messages: tuple[Message, ...] | None = None
    text: str | None = None
    tools: tuple[Tool, ...] = ()
    lead: str = ""
    adaptations: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.messages is None) == (self.text is None):
            raise UsageError("a prompt has either messages or a text; give one of the two")
