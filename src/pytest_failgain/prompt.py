"""What a harness makes: chat messages or text, checked and frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_failgain.trajectory import Tool

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Prompt:
    """Either `messages` for the model's chat template, or `text` that is used as it is.

    `tools` are offered through the chat template and only mean something beside messages.
    """

    messages: tuple[Message, ...] | None = None
    text: str | None = None
    tools: tuple[Tool, ...] = ()
