"""Calls a harness and holds what it makes to what every measurement relies on.

A harness is other people's code. A prompt that is not what the harness meant, or that differs from
call to call, would give a gain that means nothing, without any sign of it; so each way to go wrong
ends in an error that names the harness, the case and the place.
"""

from __future__ import annotations

import inspect
import math
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, NoReturn

import pytest

from pytest_failgain.errors import HarnessError, NotRecordedError
from pytest_failgain.harnesses import Harness, harness_name
from pytest_failgain.prompt import Message, Prompt
from pytest_failgain.trajectory import Trajectory


def render(harness: Harness, trajectory: Trajectory, *, case_id: str) -> Prompt:
    """The prompt that `harness` makes of `trajectory`, checked, and out of the harness's reach.

    The harness is called twice. What passes through untouched is what ends a test run or a test on
    purpose: `KeyboardInterrupt`, `SystemExit`, `pytest.skip()` and its kin.

    Raises:
        HarnessError: when the harness raises, is asynchronous, returns anything but chat messages
            or text, returns nothing, changes the trajectory, or returns something else the second
            time.
    """
    run = _run(harness, case_id)
    untouched = snapshot(trajectory)
    first = run.rendered(trajectory)
    run.check_untouched(untouched, trajectory)
    second = run.rendered(trajectory, again=True)
    run.check_untouched(untouched, trajectory)
    run.check_same(first, second)
    return first


def render_once(harness: Harness, trajectory: Trajectory, *, case_id: str) -> Prompt:
    """The prompt that one call of `harness` makes, looked at by itself alone.

    Raises:
        HarnessError: when the harness raises, is asynchronous, or returns anything but chat
            messages or text, or nothing.
    """
    return _run(harness, case_id).rendered(trajectory)


def _run(harness: Harness, case_id: str) -> _Run:
    run = _Run(harness, f"harness {harness_name(harness)!r}, case {case_id!r}")
    if not callable(harness):
        run.fail(f"it is a {type(harness).__name__}, which can't be called; give a function")
    return run


@dataclass(frozen=True, slots=True)
class _Run:
    """One harness on one case; `label` names both at the head of every error."""

    harness: Harness
    label: str

    def fail(self, problem: str) -> NoReturn:
        raise HarnessError(f"{self.label}: {problem}")

    def rendered(self, trajectory: Trajectory, again: bool = False) -> Prompt:
        """What the harness returns: text, or messages copied down to the last value."""
        result = self._call(trajectory, again)
        if not isinstance(result, Prompt):
            content = self._content(result)
            if isinstance(content, str):
                return Prompt(text=content)
            return Prompt(messages=tuple(content), tools=trajectory.tools)
        if result.text is not None:
            self._content(result.text)
            return result
        messages = self._content(result.messages)
        assert not isinstance(messages, str)
        return replace(result, messages=tuple(messages))

    def _content(self, result: object) -> list[Message] | str:
        if isinstance(result, str):
            if not result.strip():
                self.fail("it returned a text that is empty or only white space")
            return _plain_text(result)
        self._check_finished(result)
        if not isinstance(result, Sequence) or isinstance(result, bytes | bytearray | memoryview):
            hint = {
                "NoneType": " (is a return missing?)",
                "dict": " (put a single message into a list)",
            }.get(type(result).__name__, "")
            self.fail(
                f"it returned {_kind(result)}{hint}; a harness returns a list of chat messages, "
                "a text, or a Prompt"
            )
        if not result:
            self.fail("it returned no messages")
        return [self._message(message, f"messages[{i}]") for i, message in enumerate(result)]

    def _call(self, trajectory: Trajectory, again: bool) -> object:
        when = " on its second call with the same trajectory" if again else ""
        try:
            return self.harness(trajectory)
        except pytest.exit.Exception:
            # Unlike the other exceptions of pytest, this one is an ordinary Exception.
            raise
        except NotRecordedError:
            raise
        except Exception as error:
            said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            *_, raised = traceback.extract_tb(error.__traceback__)
            problem = f"it raised{when} at {raised.filename}:{raised.lineno}: {said}"
            if raised.filename == __file__ and isinstance(error, TypeError):
                # No frame of the harness: it did not even begin.
                problem = f"it can't be called with one trajectory as its only argument: {said}"
            raise HarnessError(f"{self.label}: {problem}") from error

    def _check_finished(self, result: object) -> None:
        if inspect.iscoroutine(result):
            result.close()  # else Python warns that nobody awaited it
        if inspect.isawaitable(result) or inspect.isasyncgen(result):
            self.fail(
                f"it is asynchronous: it returned {_kind(result)}; give a plain function, such as "
                "lambda trajectory: asyncio.run(harness(trajectory))"
            )
        if inspect.isgenerator(result):
            self.fail("it returned a generator; let it return a list of its messages")

    def _message(self, message: object, at: str) -> Message:
        if not isinstance(message, Mapping):
            self.fail(f"{at} is {_kind(message)}; a message is a dict with 'role' and 'content'")
        role = message.get("role")
        if not isinstance(role, str) or not role:
            problem = f"has the role {role!r}" if "role" in message else "has no role"
            self.fail(f"{at} {problem}; give a text such as 'user' or 'assistant'")
        content = message.get("content")
        if isinstance(content, list | tuple):
            for index, part in enumerate(content):
                if not isinstance(part, Mapping):
                    self.fail(f"{at}['content'][{index}] is {_kind(part)}; a part is a dict")
        elif content is not None and not isinstance(content, str):
            self.fail(f"{at}['content'] is {_kind(content)}; give a text, None or a list of parts")
        self._check_calls(message.get("tool_calls"), at)
        try:
            copied: dict[str, Any] = self._json(message, at)
        except RecursionError:
            self.fail(f"{at} is nested too deeply, or contains itself")
        return copied

    def _check_calls(self, calls: object, at: str) -> None:
        if calls is None:
            return
        if not isinstance(calls, list | tuple):
            self.fail(f"{at}['tool_calls'] is {_kind(calls)}; give a list")
        for index, call in enumerate(calls):
            function = call.get("function") if isinstance(call, Mapping) else None
            if not (
                isinstance(function, Mapping)
                and isinstance(function.get("name"), str)
                and isinstance(function.get("arguments"), str | Mapping)
            ):
                self.fail(
                    f"{at}['tool_calls'][{index}] is {_kind(call)} without a function's name and "
                    "arguments; give {'function': {'name': …, 'arguments': …}}"
                )

    def _json(self, value: object, at: str) -> Any:
        """A copy of `value` made of nothing but what JSON has."""
        if isinstance(value, Mapping):
            for key in value:
                if not isinstance(key, str):
                    self.fail(f"{at} has the key {key!r}, {_kind(key)}; keys are texts")
            return {
                _plain_text(key): self._json(entry, f"{at}[{key!r}]")
                for key, entry in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._json(entry, f"{at}[{index}]") for index, entry in enumerate(value)]
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return _plain_text(value)
        if isinstance(value, int):
            return int(value)
        if not isinstance(value, float) or not math.isfinite(value):
            self.fail(f"{at} is {_kind(value)}, which JSON can't hold; give dicts, lists and texts")
        return float(value)

    def check_untouched(self, untouched: object, trajectory: Trajectory) -> None:
        """Fail when `trajectory` is not what it was when the snapshot was taken."""
        difference = trajectory_difference(untouched, trajectory)
        if difference:
            self.fail(
                f"it changed the trajectory that it was given: {difference}; let it work on a copy"
            )

    def check_same(self, first: Prompt, second: Prompt) -> None:
        """Fail when two calls with the same trajectory made different prompts."""
        difference = prompt_difference(first, second)
        if difference:
            self.fail(
                f"it is not deterministic: called twice with the same trajectory, {difference}; "
                "leave out times, random ids and what it keeps from earlier calls"
            )


def prompt_difference(first: Prompt, second: Prompt) -> str | None:
    """Where two prompts first differ, with what stands there in each; None where nowhere."""
    at = "messages" if first.text is None else "the text"
    return (
        _first_difference(_written(first), _written(second), at)
        or _first_difference(snapshot(first.tools), snapshot(second.tools), "tools")
        or _first_difference(first.lead, second.lead, "the lead")
    )


def trajectory_difference(untouched: object, trajectory: Trajectory) -> str | None:
    """Where `trajectory` first differs from the `snapshot` that was taken of it."""
    return _first_difference(untouched, snapshot(trajectory), "trajectory")


def _written(prompt: Prompt) -> object:
    return prompt.text if prompt.messages is None else list(prompt.messages)


def _plain_text(text: str) -> str:
    # Not str(text), which for a member of an enumeration of strings is its name in the code.
    return str.__str__(text)


def _kind(value: object) -> str:
    if value is None:
        return "None"
    kind = type(value).__name__
    article = "an" if kind[0].lower() in "aeiou" else "a"
    return f"{article} {kind} ({_shortened(repr(value))})"


def _shortened(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def snapshot(value: object) -> object:
    """A deep copy of a trajectory in dicts and lists, which nobody else can change."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: snapshot(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: snapshot(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [snapshot(entry) for entry in value]
    return value


def _first_difference(one: object, other: object, at: str) -> str | None:
    """Where two nestings of dicts and lists first differ, with what stands there; None if nowhere.

    The order of keys counts: chat templates write arguments and schemas in it.
    """
    if isinstance(one, str) and isinstance(other, str):
        return _text_difference(one, other, at)
    if isinstance(one, dict) and isinstance(other, dict):
        if list(one) != list(other):
            keys = (_shortened(str(list(keyed))) for keyed in (one, other))
            return f"{at} has the keys {', then '.join(keys)}"
        pairs = [(f"{at}[{key!r}]", one[key], other[key]) for key in one]
    elif isinstance(one, list) and isinstance(other, list):
        pairs = [
            (f"{at}[{index}]", *both) for index, both in enumerate(zip(one, other, strict=False))
        ]
    elif type(one) is type(other) and (one is other or one == other):
        return None
    else:
        return f"{at} is {_shortened(repr(one))}, then {_shortened(repr(other))}"
    for place, left, right in pairs:
        difference = _first_difference(left, right, place)
        if difference:
            return difference
    if isinstance(one, list) and isinstance(other, list) and len(one) != len(other):
        return f"the length of {at} is {len(one)}, then {len(other)}"
    return None


def _text_difference(one: str, other: str, at: str) -> str | None:
    if one == other:
        return None
    shared = zip(one, other, strict=False)
    index = next((i for i, (a, b) in enumerate(shared) if a != b), min(len(one), len(other)))
    start = max(0, index - 15)
    left, right = (("…" if start else "") + _shortened(text[start:], 50) for text in (one, other))
    return f"{at} differs from character {index}: {left!r}, then {right!r}"
