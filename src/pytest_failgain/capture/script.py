"""What the scripted model answers: chosen from what a request says, never from a counter."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from pytest_failgain.action_key import action_key
from pytest_failgain.capture.endings import ending
from pytest_failgain.capture.failing_call import FailingCall
from pytest_failgain.capture.request import Answer, Request, extends, message_text
from pytest_failgain.errors import UsageError
from pytest_failgain.trajectory import Action, ToolCall

__all__ = ["FINAL", "Answer", "FailingCallScript", "Request", "Script", "call_id", "script_of"]

FINAL = "Done."


class Script(Protocol):
    """Decides what the model says to a request."""

    def answer(self, request: Request, /) -> Answer:
        """The answer; the same for the same request, since clients repeat their posts."""
        ...


@dataclass(frozen=True, slots=True, init=False)
class FailingCallScript:
    """Makes each failing call in turn, then ends with `final`.

    A call is made until the request carries its record: the call's id, the call itself in an
    assistant's message, its spelling or its error where they were not before, or anything at all
    behind a request that was answered with it. Where the request offers no tool, a structured call
    can't be made, and the answer is text.

    `final` stands in the form that the client asks for: as the arguments of its final-answer tool
    where it demands a call, as JSON where it demands a schema.

    Raises:
        UsageError: when there is no failing call.
    """

    failing_calls: tuple[FailingCall, ...]
    final: str = field(default=FINAL)

    def __init__(
        self, failing_call: FailingCall | Sequence[FailingCall], *, final: str = FINAL
    ) -> None:
        calls = (failing_call,) if isinstance(failing_call, FailingCall) else tuple(failing_call)
        if not calls:
            raise UsageError("a script needs at least one failing call, such as FailingCall('add')")
        object.__setattr__(self, "failing_calls", calls)
        object.__setattr__(self, "final", final)

    def answer(self, request: Request, /) -> Answer:
        """The first failing call whose record the request does not carry, or the end."""
        made = self.calls_made(request)
        if made < len(self.failing_calls) and self._can_make(self.failing_calls[made], request):
            return _making(self.failing_calls[made], made)
        return ending(request, self.final, avoid=self._tool_names())

    def calls_made(self, request: Request) -> int:
        """How many of the calls have their record in `request`."""
        stages: list[tuple[Request, int, bool]] = []
        for one in (*request.earlier, request):
            stage = self._stage(one, stages)
            can = stage < len(self.failing_calls) and self._can_make(self.failing_calls[stage], one)
            stages.append((one, stage, can))
        return stages[-1][1]

    def _stage(self, request: Request, earlier: Sequence[tuple[Request, int, bool]]) -> int:
        stage = 0
        for index in range(len(self.failing_calls)):
            answered = [one for one, at, called in earlier if called and at == index]
            if self._carries(request, index, answered):
                stage = index + 1
        for one, at, called in earlier:
            if called and at + 1 > stage and extends(request, one):
                stage = at + 1
        return stage

    def _carries(self, request: Request, index: int, answered: Sequence[Request]) -> bool:
        call = self.failing_calls[index]
        text = request.text
        if call_id(index) in text:
            return True
        same = [i for i, other in enumerate(self.failing_calls) if other.action == call.action]
        if _times_said(request, call) > same.index(index):
            return True
        if same[0] != index:
            return False
        traces = [trace for trace in (call.error, *_spellings(call)) if trace and trace.strip()]
        return any(
            trace in text and any(trace not in one.text for one in answered) for trace in traces
        )

    def _can_make(self, call: FailingCall, request: Request) -> bool:
        return call.text is not None or (bool(request.tools) and not request.forbids_calls)

    def _tool_names(self) -> frozenset[str]:
        return frozenset(call.name for call in self.failing_calls if call.name)


def script_of(value: Script | FailingCall | Sequence[FailingCall], final: str = FINAL) -> Script:
    """The script that `value` is, or the one that makes these failing calls.

    Raises:
        UsageError: when it is neither.
    """
    if isinstance(value, FailingCall):
        return FailingCallScript(value, final=final)
    if isinstance(value, list | tuple) and all(isinstance(one, FailingCall) for one in value):
        return FailingCallScript(value, final=final)
    if callable(getattr(value, "answer", None)):
        return cast("Script", value)
    raise UsageError(
        f"{value!r} is no script: give a FailingCall, a list of them, or an object with "
        "answer(request)"
    )


def call_id(index: int) -> str:
    """The id of the scripted call at this place, the same in every run."""
    return f"call_failgain{index + 1:04}"


def _making(call: FailingCall, index: int) -> Answer:
    if call.text is not None:
        return Answer(call.text)
    made = ToolCall(call.name, call.arguments_text)
    return Answer(call.content, (made,), (call_id(index),))


def _times_said(request: Request, call: FailingCall) -> int:
    """How often the assistant's messages make the call."""
    said = (message for message in request.messages if message.get("role") == "assistant")
    if call.text is not None:
        action = call.action.text.strip()
        return sum(message_text(message).count(action) for message in said)
    key = action_key(Action(calls=call.action.calls))
    made = (action_key(Action(calls=(one,))) for message in said for one in _made(message))
    return sum(one == key for one in made)


def _made(message: Mapping[str, Any]) -> list[ToolCall]:
    calls = message.get("tool_calls")
    listed = calls if isinstance(calls, list) else []
    functions = [one.get("function") for one in listed if isinstance(one, dict)]
    functions.append(message.get("function_call"))
    return [
        ToolCall(str(one.get("name")), str(one.get("arguments", "")))
        for one in functions
        if isinstance(one, dict)
    ]


def _spellings(call: FailingCall) -> list[str]:
    """How a record may spell the call's arguments in a text."""
    if call.text is not None:
        return [call.action.text.strip()]
    try:
        arguments = json.loads(call.arguments_text)
    except ValueError:
        return [call.arguments_text]
    if not isinstance(arguments, dict) or not arguments:
        return []
    keywords = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return [
        call.arguments_text,
        json.dumps(arguments),
        json.dumps(arguments, ensure_ascii=False, separators=(",", ":")),
        repr(arguments),
        f"{call.name}({keywords})",
    ]
