"""SWE-agent's .traj files: steps in `trajectory`, messages in `history`."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_failgain.prompt import Message, Prompt
from pytest_failgain.trajectory import Action
from pytest_failgain.transcripts.chat import as_chat
from pytest_failgain.transcripts.conversation import Call, Conversation, Result, Turn
from pytest_failgain.transcripts.document import Document
from pytest_failgain.transcripts.messages import (
    call_id_of,
    native_calls,
    plain_turn,
    role_of,
    text_of,
)

_SENT = ("role", "content", "tool_calls", "tool_call_id", "name")

# Around an observation stand its heading and the shell prompt.
_HEADING = re.compile(r"\AOBSERVATION:\s*|\AObservation:\s*")
_SHELL_PROMPT = re.compile(r"\n\((?:Open file|Current directory):[^\n]*\)(?:\n[^\n]{0,500}){0,4}\Z")
_FENCED = re.compile(r"^```\S*[ \t]*\n", re.M)
_FUNCTION = re.compile(r"<function=[^>\n]{1,200}>")


class SWEAgentReader:
    """A run, or the attempts of one; the record of each is read from its `history`."""

    name = "swe-agent"

    def recognises(self, document: Document) -> bool:
        return any(True for value in document.entries for _ in _runs(value))

    def read(self, document: Document) -> Sequence[Conversation]:
        runs = (run for value in document.entries for run in _runs(value))
        return [conversation for run in runs for conversation in _conversations(run)]


def _runs(value: Any) -> Iterator[Mapping[str, Any]]:
    if not isinstance(value, dict):
        return
    attempts = value.get("attempts")
    if isinstance(attempts, list) and any(map(_is_run, attempts)):
        # What stands beside the attempts is the best of them once more.
        yield from filter(_is_run, attempts)
    elif _is_run(value):
        yield value


def _is_run(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    steps = value.get("trajectory")
    if not isinstance(steps, list) or len(_steps(value)) != len(steps):
        return False
    return bool(steps) or ("info" in value and bool(_messages(value.get("history"))))


def _steps(run: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    steps = run.get("trajectory")
    return [
        step
        for step in (steps if isinstance(steps, list) else ())
        if isinstance(step, dict) and {"action", "observation"} <= step.keys()
    ]


def _messages(value: Any) -> list[Mapping[str, Any]]:
    return [
        message
        for message in (value if isinstance(value, list) else ())
        if isinstance(message, dict) and isinstance(message.get("role"), str)
    ]


def _conversations(run: Mapping[str, Any]) -> Iterator[Conversation]:
    history = _messages(run.get("history"))
    if not any(role_of(message) == "assistant" for message in history):
        yield _of_steps(run)
        return
    agents = dict.fromkeys(str(message.get("agent", "")) for message in history)
    for agent in agents:
        own = [message for message in history if str(message.get("agent", "")) == agent]
        yield _of_history(own, _steps(run))


def _of_history(
    history: Sequence[Mapping[str, Any]], steps: Sequence[Mapping[str, Any]]
) -> Conversation:
    turns: list[Turn] = []
    queries: dict[int, tuple[Message, ...]] = {}
    ahead = _StepsAhead(steps)
    step: Mapping[str, Any] = {}
    for message in history:
        if message.get("is_demo"):
            turns.append(Turn(role_of(message), text_of(message), message=_sent(message)))
        elif role_of(message) == "assistant":
            step = ahead.next_of(message)
            query = _messages(step.get("query"))
            if query:
                queries[len(turns)] = tuple(map(_sent, query))
            turns.append(_reply(message))
        elif role_of(message) == "system" or not (turns and turns[-1].calls):
            turns.append(plain_turn(message, _sent(message)))
        else:
            turns.append(_observed(message, step))
    return Conversation(tuple(turns), write=_Queries(queries) if queries else None)


def _of_steps(run: Mapping[str, Any]) -> Conversation:
    """A run without a history: what its steps say."""
    steps = _steps(run)
    first = _messages(steps[0].get("query")) if steps else []
    turns = [plain_turn(message, _sent(message)) for message in first]
    for step in steps:
        reply = step.get("response")
        message = {
            "role": "assistant",
            "content": reply if isinstance(reply, str) else str(step["action"]),
            "action": step["action"],
        }
        observation = step["observation"]
        text = observation if isinstance(observation, str) else ""
        turns.append(_reply(message))
        turns.append(_observed({"role": "user", "content": text}, step))
    return Conversation(tuple(turns), notes=("no history in the run: told by its steps",))


def _sent(message: Mapping[str, Any]) -> Message:
    """A message as the model got it, without what was noted beside it."""
    sent = {key: message[key] for key in _SENT if message.get(key) is not None}
    sent["role"] = message.get("role")
    call_id = call_id_of(message)
    if role_of(message) == "tool" and call_id is not None:
        sent["tool_call_id"] = call_id
    return sent


def _reply(message: Mapping[str, Any]) -> Turn:
    text = text_of(message)
    calls = native_calls(message)
    if not calls and text.strip():
        calls = (Call(Action(_action(text, message.get("action")))),)
    return Turn("assistant", text, calls, message=_sent(message))


def _action(reply: str, action: Any) -> str:
    """What of a reply was run, as the model wrote it: the whole reply where it can't be told."""
    if isinstance(action, str) and action.strip():
        for part in (action, action.strip()):
            if part in reply:
                return part
    function = _last(_FUNCTION, reply)
    if function is not None:
        end = reply.find("</function>", function.end())
        return reply[function.start() : end + len("</function>") if end >= 0 else len(reply)]
    start, end = reply.rfind("<command>"), reply.rfind("</command>")
    if 0 <= start < end and reply[start + 9 : end].strip():
        return reply[start + 9 : end].strip("\n")
    fences = list(_FENCED.finditer(reply))
    for opening in reversed(fences):
        end = reply.find("\n```", opening.end() - 1)
        if end >= 0 and reply[opening.end() : end].strip():
            return reply[opening.end() : end + 1]
    return reply


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    found = None
    for match in pattern.finditer(text):
        found = match
    return found


def _observed(message: Mapping[str, Any], step: Mapping[str, Any]) -> Turn:
    text = text_of(message)
    result = Result(_observation(text, step.get("observation")), call_id_of(message))
    role = "tool" if role_of(message) == "tool" else "user"
    return Turn(role, text, results=(result,), message=_sent(message))


def _observation(text: str, observation: Any) -> str:
    """The observation where it stands in the message, without the frame around it."""
    if isinstance(observation, str) and observation.strip():
        for part in (observation, observation.strip()):
            if part in text:
                return part
    bare = _SHELL_PROMPT.sub("", _HEADING.sub("", text))
    return bare if bare.strip() else text


class _StepsAhead:
    """The step of each reply in a history, in which some steps are missing and some are others'."""

    def __init__(self, steps: Sequence[Mapping[str, Any]]) -> None:
        self._steps = steps
        self._places: dict[tuple[str, str], list[int]] = {}
        for place in range(len(steps) - 1, -1, -1):
            self._places.setdefault(_key(steps[place], "response"), []).append(place)
        self._at = 0

    def next_of(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        places = self._places.get(_key(message, "content"), [])
        while places and places[-1] < self._at:
            places.pop()
        if not places:
            return {}
        self._at = places.pop() + 1
        return self._steps[self._at - 1]


def _key(value: Mapping[str, Any], reply: str) -> tuple[str, str]:
    action = value.get("action")
    said = text_of({"content": value.get(reply)})
    return said.strip(), action.strip() if isinstance(action, str) else ""


@dataclass(frozen=True, slots=True)
class _Queries:
    """Writes the prompts that were sent, by the number of turns that they tell of.

    A prompt that was not logged is the last one before it and the turns since.
    """

    sent: Mapping[int, tuple[Message, ...]]

    def __call__(self, turns: Sequence[Turn], conversation: Conversation) -> Prompt:
        counts = list(self.sent)
        place = bisect_right(counts, len(turns))
        if not place:
            return as_chat(turns, conversation)
        known = counts[place - 1]
        since = as_chat(turns[known:], conversation).messages or ()
        return Prompt(
            (*self.sent[known], *since),
            tools=conversation.tools,
            adaptations=conversation.notes,
        )
