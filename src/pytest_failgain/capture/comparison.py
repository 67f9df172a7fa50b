"""What one request says that an earlier one did not: compared by text and tools, never by count."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_failgain.capture.failing_call import FailingCall
from pytest_failgain.errors import TranscriptError
from pytest_failgain.records import record_text
from pytest_failgain.trajectory import ToolCall
from pytest_failgain.transcripts.conversation import Conversation, Result, Turn
from pytest_failgain.transcripts.document import Document
from pytest_failgain.transcripts.read import READERS

# Of the member that holds what was said, the format of the request.
_FORMATS = {"messages": "openai-chat", "input": "openai-responses"}

_ESCAPED_SPACE = re.compile(r"\\+[nrt]")
_ESCAPED_CHARACTER = re.compile(
    r"\\+(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U(000[0-9a-fA-F]{5}|0010[0-9a-fA-F]{4}))"
)
# Of a longer error, so much of its beginning is enough: harnesses cut what is long.
_ENOUGH = 80


@dataclass(frozen=True, slots=True)
class Added:
    """A text that the later request has and the earlier one had not, and who says it.

    `in_earlier` tells that it stands in a message that was there before.
    """

    role: str
    text: str
    turn: Turn
    in_earlier: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two requests of one agent: what the later one adds, in its order, and what it lacks.

    `rewritten` has the earlier messages that say something else now, as they were and as they are.
    The tools are named: `tools_changed` are offered in both, under another description or schema.
    """

    added: tuple[Added, ...]
    rewritten: tuple[tuple[Turn, Turn], ...]
    dropped: tuple[Turn, ...]
    tools_added: tuple[str, ...]
    tools_dropped: tuple[str, ...]
    tools_changed: tuple[str, ...]

    @property
    def text(self) -> str:
        """All that was added, a line or more for each message."""
        return "\n".join(one.text for one in self.added)

    @property
    def same(self) -> bool:
        """Whether the two say the same and offer the same."""
        return not (self.added or self.rewritten or self.dropped or self.tools_differ)

    @property
    def tools_differ(self) -> bool:
        """Whether other tools are offered."""
        return bool(self.tools_added or self.tools_dropped or self.tools_changed)


@dataclass(frozen=True, slots=True)
class Echo:
    """How the failed call stands in the later request.

    `form` is "native" for a structured call in an assistant's message, "text" where the assistant's
    text makes it, "" where neither does. `call` is the structured call as the client wrote it,
    `result` what it answered, `text` the assistant's text.
    """

    form: str = ""
    call: ToolCall | None = None
    result: Result | None = None
    text: str = ""


def request_conversation(body: Mapping[str, Any]) -> Conversation:
    """What a request to chat completions or to the Responses API says, turn by turn.

    Raises:
        TranscriptError: when the body is of neither, or says nothing.
    """
    for member, format in _FORMATS.items():
        if member in body:
            reader = next(one for one in READERS if one.name == format)
            found = reader.read(Document("request", values=(dict(body),)))
            if found and found[0].turns:
                return found[0]
    raise TranscriptError(
        f"the request with the members {', '.join(map(repr, body)) or 'none'} has no messages: "
        "give the body of a request to /chat/completions or /responses"
    )


def compare(before: Conversation, after: Conversation) -> Comparison:
    """What `after` says and offers beside `before`.

    Turns count as the same by their text, calls and results. Of those in between the common
    beginning and end, the ones at the same place with the same role are one message rewritten.
    """
    olds, news = list(before.turns), list(after.turns)
    start = shared_turns(olds, news)
    olds, news = olds[start:], news[start:]
    end = shared_turns(olds[::-1], news[::-1])
    olds, news = olds[: len(olds) - end], news[: len(news) - end]
    rewritten: list[tuple[Turn, Turn]] = []
    while olds and news and olds[0].role == news[0].role != "assistant":
        old, new = olds.pop(0), news.pop(0)
        if _said(old) != _said(new):
            rewritten.append((old, new))
    added = [
        Added(new.role, text, new, in_earlier=True)
        for old, new in rewritten
        if (text := record_text(_text(old), _text(new)))
    ]
    added += [Added(turn.role, _text(turn), turn, in_earlier=False) for turn in news]
    old_tools = {tool.name: tool for tool in before.tools}
    new_tools = {tool.name: tool for tool in after.tools}
    return Comparison(
        tuple(added),
        tuple(rewritten),
        tuple(olds),
        tuple(name for name in new_tools if name not in old_tools),
        tuple(name for name in old_tools if name not in new_tools),
        tuple(name for name, tool in new_tools.items() if old_tools.get(name, tool) != tool),
    )


def echo_of(comparison: Comparison, failing_call: FailingCall) -> Echo:
    """Where the assistant's new messages make the failed call, and in which form."""
    said = [one.turn for one in comparison.added if one.turn.role == "assistant"]
    named: Echo | None = None
    for turn in said:
        for call in turn.calls:
            made = call.action.calls[0] if call.action.calls else None
            if made is None or made.name != failing_call.name:
                continue
            result = _result_of(call.call_id, comparison)
            echo = Echo("native", made, result, turn.text)
            if same_arguments(made.arguments, failing_call.arguments_text):
                return echo
            named = named or echo
    if named:
        return named
    texts = (turn.text for turn in said if makes(failing_call, turn.text))
    return next((Echo("text", text=text) for text in texts), Echo())


def _result_of(call_id: str | None, comparison: Comparison) -> Result | None:
    results = [result for one in comparison.added for result in one.turn.results]
    own = [result for result in results if call_id is not None and result.call_id == call_id]
    return next(iter(own or results), None)


def makes(failing_call: FailingCall, text: str) -> bool:
    """Whether a text contains the call: as it was scripted, or by its name and all arguments."""
    if failing_call.text is not None:
        return loosely(failing_call.action.text) in loosely(text)
    if failing_call.name not in text:
        return False
    return all(loosely(value) in loosely(text) for value in _leaves(failing_call.arguments_text))


def same_arguments(one: str, other: str) -> bool:
    """Whether two texts of arguments mean the same; those that are no JSON by their letters."""
    try:
        return bool(json.loads(one) == json.loads(other))
    except ValueError:
        return one == other


def shows(text: str, error: str) -> bool:
    """Whether `text` tells `error`, escaped or quoted in whichever way, or its beginning."""
    wanted = loosely(error)
    return wanted[:_ENOUGH] in loosely(text) if wanted else error.strip() in text


def loosely(text: str) -> str:
    """The letters and digits of a text, which no way of escaping or quoting changes."""
    decoded = _ESCAPED_CHARACTER.sub(lambda found: chr(int(found[found.lastindex or 0], 16)), text)
    # Two escapes may stand for the halves of one character.
    whole = decoded.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return "".join(filter(str.isalnum, _ESCAPED_SPACE.sub(" ", whole)))


def _leaves(arguments: str) -> list[str]:
    try:
        found: list[Any] = [json.loads(arguments)]
    except ValueError:
        return [arguments]
    leaves = []
    while found:
        value = found.pop()
        if isinstance(value, dict):
            found.extend(value.values())
        elif isinstance(value, list):
            found.extend(value)
        elif isinstance(value, str):
            leaves.append(value)
        elif value is not None and not isinstance(value, bool):
            leaves.append(json.dumps(value))
    return leaves


def shared_turns(one: Sequence[Turn], other: Sequence[Turn]) -> int:
    """How many turns at their beginning say the same."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if _said(left) != _said(right):
            break
        count += 1
    return count


def _said(turn: Turn) -> tuple[object, ...]:
    actions = tuple(call.action for call in turn.calls)
    return turn.role, turn.text, actions, tuple(result.text for result in turn.results)


def _text(turn: Turn) -> str:
    """All that a turn says, calls and results too, each once."""
    parts = [turn.text, *(str(call.action) for call in turn.calls if call.action.calls)]
    parts += [result.text for result in turn.results if result.text not in turn.text]
    return "\n".join(filter(None, parts))
