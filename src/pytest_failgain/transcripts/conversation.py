"""What readers make of a transcript: turns, the calls in them, and what came back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_failgain.prompt import Message, Prompt
from pytest_failgain.trajectory import Action, Tool


@dataclass(frozen=True, slots=True)
class Call:
    """An action that an assistant's turn makes, its text as the model wrote it.

    `problem` is the error of a call that the log says never reached a tool: it failed, and no
    result follows. `broken` says how its arguments are no JSON: it failed where no result follows,
    or one that tells so; a harness may also have mended them.
    """

    action: Action
    call_id: str | None = None
    problem: str | None = None
    broken: str = ""

    @property
    def tool(self) -> str | None:
        """The name of the tool that is called, None where the action is text."""
        return self.action.calls[0].name if self.action.calls else None


@dataclass(frozen=True, slots=True)
class Result:
    """What came back for a call.

    `failed` is what the format's own mark says, None where it has none or leaves it open; `mark` is
    the mark's name there, for notes. A `cancelled` call never ran or was rejected: no failure.
    Without a `call_id` it belongs to the oldest call that is still open, of `tool` where it is
    named.
    """

    text: str
    call_id: str | None = None
    failed: bool | None = None
    mark: str = ""
    cancelled: bool = False
    tool: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One message: of the "system", the "user", the "assistant", or a "tool".

    `text` is all that is said, of an assistant the whole reply without its structured calls.
    `message` is the turn as a chat message, where the source has it as one: it is replayed as it
    is. A user's or system's turn may carry `results`, too, as in formats that have no tool role.
    `remarks` tell what was decided while reading it; they are notes, no adaptations.
    """

    role: str
    text: str = ""
    calls: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()
    message: Message | None = None
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """The turns of one conversation, oldest first, with what there is to know about reading them.

    Conversations of one source that have a common beginning share its `Turn` objects; a failure in
    it is counted once. `notes` are also adaptations of every prompt made of it. `write` makes the
    prompt of its first turns where the harness did not send chat messages, None where it did.
    """

    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...] = ()
    notes: tuple[str, ...] = ()
    write: Callable[[Sequence[Turn], Conversation], Prompt] | None = None


def tool_from(schema: Any) -> Tool | None:
    """The tool that a schema of a chat API declares, None where it declares none.

    Taken are chat completions' {"function": {"name": …}}, the Responses API's {"name": …,
    "parameters": …} and Anthropic's {"name": …, "input_schema": …}.
    """
    if not isinstance(schema, dict):
        return None
    inner = schema.get("function")
    declared = inner if isinstance(inner, dict) else schema
    name, description = declared.get("name"), declared.get("description")
    parameters = declared.get("parameters", declared.get("input_schema"))
    if not isinstance(name, str) or not name:
        return None
    return Tool(
        name,
        description if isinstance(description, str) else "",
        parameters if isinstance(parameters, dict) else {},
    )
