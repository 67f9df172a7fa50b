"""ReAct as text: Thought, Action, Action Input and Observation, in one prompt or turn by turn."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from pytest_failgain.prompt import Message, Prompt
from pytest_failgain.trajectory import Action
from pytest_failgain.transcripts.chat import as_chat
from pytest_failgain.transcripts.conversation import Call, Conversation, Result, Turn
from pytest_failgain.transcripts.document import Document
from pytest_failgain.transcripts.messages import (
    MessageList,
    message_lists,
    plain_turn,
    role_of,
    text_of,
)

NO_ACTION = "a ReAct step without an action: no case"

_LABEL = re.compile(
    r"^[ \t>]{0,8}(?:\*\*)?(Question|Thought|Action Input|Action|Observation|Final Answer|Begin!)"
    r"(?: \d{1,4})?(?:\*\*)?(?:(?<=!)|:)(?:\*\*)?",
    re.M | re.I,
)
# The instructions show the layout with words in place of an action.
_INSTRUCTIONS = {
    "question": re.compile(r"the (?:input|original) question|\{\{?(?:input|question)", re.I),
    "thought": re.compile(r"you should always", re.I),
    "action": re.compile(
        r"the (?:action|tool|name)\b|an? (?:action|tool) to\b|tool[_ ]name|one of [\[{]"
        r"|[\[<{](?:the |your |tool|action)|\.\.\.|…|[^\n]{0,80}should be one of"
        r"|[\s\S]{0,80}\$(?:JSON_BLOB|TOOL_NAME)",
        re.I,
    ),
    "action input": re.compile(r"the (?:input|argument)s? (?:to|for|of)\b|[\[<{]the ", re.I),
    "observation": re.compile(r"the (?:result|output)s? of (?:the|your) action", re.I),
    "final answer": re.compile(r"the final answer to", re.I),
}


class _Part(NamedTuple):
    """A labelled part of a text: where its label begins, where its words begin, and its end."""

    label: str
    start: int
    said: int
    end: int


class _Step(NamedTuple):
    """One reply in a text and its observation, as places in the text."""

    start: int
    reply: int
    end: int
    action: tuple[int, int] | None
    observation: tuple[int, int] | None


class ReActReader:
    """A text, a message that holds the whole scratchpad, or one message a reply."""

    name = "react"

    def recognises(self, document: Document) -> bool:
        text = _plain_text(document)
        if text is not None:
            return _is_scratchpad(text)
        return any(map(_is_react, message_lists(document)))

    def read(self, document: Document) -> Sequence[Conversation]:
        text = _plain_text(document)
        if text is not None:
            steps = _steps(text)
            turns, ends = _told(text, steps, None)
            return [_conversation(turns, _Scratchpad(text, ends, (), None))]
        runs = list(message_lists(document))
        # Prompts that were logged one by one grow: the last one tells of all.
        lasting = [one for one, after in pairwise(runs) if not _continued(one, after)]
        return [_of_messages(run.messages) for run in (*lasting, *runs[-1:])]


def _plain_text(document: Document) -> str | None:
    """The document where it is text; a few lines of it may be JSON by themselves."""
    if document.text and document.broken_lines >= len(document.values):
        return document.text
    return document.value if isinstance(document.value, str) else None


def _is_react(run: MessageList) -> bool:
    acted = False
    for message in run.messages:
        text = text_of(message)
        if message.get("tool_calls"):
            return False
        if role_of(message) == "assistant":
            acted = _action_of(text) is not None
            continue
        if acted and _observed(text) is not None:
            return True
        if role_of(message) == "user" and _is_scratchpad(text):
            return True
    return False


def _is_scratchpad(text: str) -> bool:
    acted = False
    for part in _parts(text):
        if _is_instruction(text, part):
            continue
        if part.label == "observation" and acted:
            return True
        acted = part.label == "action" or (acted and part.label == "action input")
    return False


def _continued(run: MessageList, after: MessageList) -> bool:
    *past, last = run.messages
    count = len(run.messages)
    if list(after.messages[: count - 1]) != past or len(after.messages) < count:
        return False
    return text_of(after.messages[count - 1]).startswith(text_of(last))


def _parts(text: str) -> Iterator[_Part]:
    labels = _LABEL.finditer(text)
    label = next(labels, None)
    while label is not None:
        after = next(labels, None)
        end = after.start() if after else len(text)
        yield _Part(label.group(1).lower(), label.start(), label.end(), end)
        label = after


def _steps(text: str, whole: bool = True) -> list[_Step]:
    """The replies in a text that begins with a prompt, behind the last question if there is one.

    With `whole`, all of the text counts from its first question on.
    """
    parts = [part for part in _parts(text) if not _is_instruction(text, part)]
    asked = [i for i, part in enumerate(parts) if part.label in ("question", "begin!")]
    if asked:
        parts = parts[asked[0] if whole else asked[-1] :]
    steps: list[_Step] = []
    open_parts: list[_Part] = []
    for part in parts:
        if part.label in ("question", "begin!"):
            steps += _step(text, open_parts, None)
            open_parts = []
        elif part.label == "observation":
            steps += _step(text, open_parts, part)
            open_parts = []
        else:
            open_parts.append(part)
            if part.label == "final answer":
                steps += _step(text, open_parts, None)
                open_parts = []
    return [*steps, *_step(text, open_parts, None)]


def _is_instruction(text: str, part: _Part) -> bool:
    shown = _INSTRUCTIONS.get(part.label)
    return bool(shown and shown.match(text[part.said : min(part.end, part.said + 400)].lstrip()))


def _step(text: str, parts: Sequence[_Part], observation: _Part | None) -> list[_Step]:
    """The reply that has these parts; none where nothing is said in it yet."""
    if not parts:
        return []
    first = parts[0]
    # The harness writes the first "Thought:" itself, so the reply begins behind it.
    reply = first.said if first.label == "thought" else first.start
    end = observation.start if observation else parts[-1].end
    if not text[reply:end].strip():
        return []
    seen = (observation.said, observation.end) if observation else None
    return [_Step(first.start, reply, end, _action_in(text, parts), seen)]


def _action_in(text: str, parts: Sequence[_Part]) -> tuple[int, int] | None:
    """The last action among the parts of a reply, with its input, without space around it."""
    place = next((i for i in range(len(parts) - 1, -1, -1) if parts[i].label == "action"), None)
    if place is None or not text[parts[place].said : parts[place].end].strip(" \t\n*`"):
        return None
    with_input = place + 1 < len(parts) and parts[place + 1].label == "action input"
    end = parts[place + 1].end if with_input else parts[place].end
    start = parts[place].start
    written = text[start:end]
    return start + len(written) - len(written.lstrip()), start + len(written.rstrip())


def _action_of(reply: str) -> str | None:
    """The action in a reply; what a model makes up behind "Observation:" is none of it."""
    parts = list(_parts(reply))
    seen = next((i for i, part in enumerate(parts) if part.label == "observation"), len(parts))
    place = _action_in(reply, parts[:seen])
    return None if place is None else reply[place[0] : place[1]]


def _observed(text: str) -> str | None:
    """What stands behind "Observation:" where a message begins with that."""
    label = _LABEL.match(text.lstrip())
    if label is None or label.group(1).lower() != "observation":
        return None
    said = text.lstrip()[label.end() :]
    next_label = _LABEL.search(said)
    return (said[: next_label.start()] if next_label else said).strip()


def _told(
    text: str, steps: Sequence[_Step], message: Message | None
) -> tuple[list[Turn], tuple[int, ...]]:
    """The turns that a text tells of, and the end of the text up to each number of them."""
    if not steps:
        return [Turn("user", text, message=message)], (0, len(text))
    turns = [Turn("user", text[: steps[0].start].rstrip())]
    ends = [0, steps[0].reply]
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        calls: tuple[Call, ...] = ()
        if step.action is not None:
            calls = (Call(Action(text[step.action[0] : step.action[1]])),)
        turns.append(Turn("assistant", text[step.reply : step.end].rstrip(), calls))
        ends.append(step.end)
        between = text[step.end : after.start if after else len(text)]
        if not between.strip():
            continue
        results: tuple[Result, ...] = ()
        if calls and step.observation is not None:
            results = (Result(text[step.observation[0] : step.observation[1]].strip()),)
        turns.append(Turn("user", between.strip(), results=results))
        ends.append(after.reply if after else len(text))
    return turns, tuple(ends)


@dataclass(frozen=True, slots=True)
class _Scratchpad:
    """Writes the prompts of a text that grew reply by reply.

    `ends` are the text's ends by the number of turns told in it. `before` are the turns of the
    messages before its own, which is `message`; without one the text is the whole prompt.
    """

    text: str
    ends: Sequence[int]
    before: Sequence[Turn]
    message: Message | None

    def __call__(self, turns: Sequence[Turn], conversation: Conversation) -> Prompt:
        told = len(turns) - len(self.before)
        whole = told >= len(self.ends)
        text = self.text if whole else self.text[: self.ends[told]]
        if self.message is None:
            return Prompt(text=text, adaptations=conversation.notes)
        own = self.message if text == self.text else {**self.message, "content": text}
        since = turns[len(self.before) + len(self.ends) - 1 :]
        sent = [as_chat(part, conversation).messages or () for part in (self.before, since)]
        return Prompt((*sent[0], own, *sent[1]), adaptations=conversation.notes)


def _conversation(turns: Sequence[Turn], write: _Scratchpad | None) -> Conversation:
    unnamed = any(
        turn.role == "assistant"
        and not turn.calls
        and not re.search(r"Final Answer", turn.text, re.I)
        for turn in turns
    )
    return Conversation(tuple(turns), notes=(NO_ACTION,) if unnamed else (), write=write)


def _of_messages(messages: Sequence[Mapping[str, object]]) -> Conversation:
    pads = [
        index
        for index, message in enumerate(messages)
        if role_of(message) == "user" and _is_scratchpad(text_of(message))
    ]
    last_pad = pads[-1] if pads else None
    turns: list[Turn] = []
    write = None
    for index, message in enumerate(messages):
        text = text_of(message)
        if index == last_pad:
            told, ends = _told(text, _steps(text, whole=False), message)
            write = _Scratchpad(text, ends, tuple(turns), message)
            turns += told
        elif role_of(message) == "assistant":
            action = _action_of(text)
            calls = () if action is None else (Call(Action(action)),)
            turns.append(Turn("assistant", text, calls, message=message))
        elif turns and turns[-1].calls and role_of(message) in ("user", "tool"):
            observed = _observed(text)
            result = Result(text if observed is None else observed)
            turns.append(Turn("user", text, results=(result,), message=message))
        else:
            turns.append(plain_turn(message))
    return _conversation(turns, write)
