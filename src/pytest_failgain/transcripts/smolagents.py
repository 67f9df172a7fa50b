"""smolagents: the steps of an agent's memory, whose actions are code or structured calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_failgain.prompt import Message, Prompt
from pytest_failgain.trajectory import Action
from pytest_failgain.transcripts.arguments import as_json
from pytest_failgain.transcripts.conversation import Call, Conversation, Result, Turn
from pytest_failgain.transcripts.document import Document
from pytest_failgain.transcripts.draft import NOT_TEXT, Draft, text_in
from pytest_failgain.transcripts.members import as_dict, as_dicts, as_text

WRITTEN = "steps of smolagents written as it writes them into its prompt"
NO_CODE = "a step without any code or call: no case"
WHOLE_REPLY = "code that does not stand in the model's reply as it was run: the whole reply is told"

_INTERPRETER = "python_interpreter"
_KEYS = ("model_output", "code_action", "observations", "error", "tool_calls")
_PLAN = "Now proceed and carry out this plan."
_RETRY = (
    "\nNow let's retry: take care not to repeat previous errors! If you have retried several "
    "times, try a completely different approach.\n"
)
_ROLES = {"tool-call": "assistant", "tool-response": "user"}
_BLOCKS = (
    (re.compile(r"<code>\n?"), "</code>"),
    (re.compile(r"```(?:python|py)?\n"), "\n```"),
)


class SmolagentsReader:
    """What `agent.memory.get_full_steps()` gives, or an object with it as its `steps`."""

    name = "smolagents"

    def recognises(self, document: Document) -> bool:
        return any(True for _ in _memories(document))

    def read(self, document: Document) -> Sequence[Conversation]:
        return [_conversation(memory) for memory in _memories(document)]


@dataclass(frozen=True, slots=True)
class _Memory:
    steps: Sequence[Any]
    system: Any = None


def _memories(document: Document) -> Iterator[_Memory]:
    if _steps(document.entries):
        yield _Memory(document.entries)
        return
    for entry in document.entries:
        if isinstance(entry, list) and _steps(entry):
            yield _Memory(entry)
        elif isinstance(entry, dict):
            # `memory` as a whole, or the result of a run.
            held = as_dict(entry.get("memory")) or entry
            steps = _steps(held.get("steps"))
            if steps:
                yield _Memory(steps, held.get("system_prompt"))


def _steps(value: Any) -> list[dict[str, Any]]:
    """The steps in `value`, none where it lists no step of an agent."""
    steps = as_dicts(value)
    acted = any("step_number" in one and any(key in one for key in _KEYS) for one in steps)
    return steps if acted else []


def _conversation(memory: _Memory) -> Conversation:
    draft = Draft()
    draft.note(WRITTEN)
    system = memory.system
    if isinstance(system, dict):
        system = system.get("system_prompt")
    if isinstance(system, str):
        draft.say("system", system, _message("system", system))
    sent: dict[int, tuple[Message, ...]] = {}
    for step in as_dicts(memory.steps):
        if "step_number" in step:
            recorded = as_dicts(step.get("model_input_messages"))
            if recorded:
                sent[len(draft.turns)] = _joined(map(_input_message, recorded))
            _act(step, draft)
        elif isinstance(step.get("system_prompt"), str):
            draft.say("system", step["system_prompt"], _message("system", step["system_prompt"]))
        elif isinstance(step.get("task"), str):
            draft.say("user", step["task"], _message("user", f"New task:\n{step['task']}"))
        elif isinstance(step.get("plan"), str):
            draft.reply(step["plan"], [], _message("assistant", step["plan"].strip()))
            draft.say("user", _PLAN, _message("user", _PLAN))
    return draft.conversation(write=_Writer(sent))


def _act(step: Mapping[str, Any], draft: Draft) -> None:
    said = text_in(step.get("model_output"), draft)
    made = as_dicts(step.get("tool_calls"))
    code = as_text(step.get("code_action")) or _interpreted(made)
    calls = [Call(_code_action(code, said, draft))] if code else _structured(step, made, draft)
    spoken = [said.strip()] if said else []
    if made:
        spoken.append(f"Calling tools:\n{_python_text(made)}")
    # What the model said is missing where smolagents forgets it, as with a call that raised.
    message = _message("assistant", "\n".join(spoken)) if spoken else None
    if calls or message is not None:
        draft.turns.append(Turn("assistant", said, tuple(calls), message=message))
    _hear(step, made, calls, draft)


def _hear(
    step: Mapping[str, Any],
    made: Sequence[Mapping[str, Any]],
    calls: Sequence[Call],
    draft: Draft,
) -> None:
    """What the step's outcome is, and how smolagents tells it."""
    error, observed = step.get("error"), as_text(step.get("observations"))
    told = as_text(as_dict(error).get("message")) if isinstance(error, dict) else as_text(error)
    texts = [] if observed is None else [f"Observation:\n{observed}"]
    if told is not None:
        call_id = as_text(made[0].get("id")) if made else None
        head = f"Call id: {call_id}\n" if call_id is not None else ""
        texts.append(f"{head}Error:\n{told}{_RETRY}")
    if step.get("observations_images"):
        draft.note(NOT_TEXT)
        texts.insert(0, "[image]")
    message = _message("user", "\n".join(texts)) if texts else None
    text = told if told is not None else observed or ""
    if not calls:
        if message is not None:
            draft.say("user", text, message)
        draft.remark(NO_CODE)
        return
    kind = as_text(as_dict(error).get("type"))
    mark = "error" if kind is None else f"error {kind}"
    answered = _answered(calls, text) if told is not None else calls
    results = tuple(Result(text, call.call_id, told is not None, mark) for call in answered)
    draft.turns.append(Turn("user", text, results=results, message=message))


def _answered(calls: Sequence[Call], error: str) -> Sequence[Call]:
    """The call that an error is of: one error is told of all the calls of a step."""
    named = [call for call in calls if call.tool is not None and f"'{call.tool}'" in error]
    return (named or calls)[:1]


def _interpreted(made: Sequence[Mapping[str, Any]]) -> str | None:
    """The code of a step of an old release, which has it as a call of the interpreter alone."""
    for call in made:
        function = as_dict(call.get("function")) or call
        if function.get("name") == _INTERPRETER:
            return as_text(function.get("arguments"))
    return None


def _code_action(code: str, reply: str, draft: Draft) -> Action:
    """The code as the model wrote it: it is cleaned, joined and mended before it runs."""
    written = as_json(code)[1:-1]
    for candidate in (code, code.strip(), written):
        if candidate.strip() and candidate in reply:
            return Action(candidate)
    if not reply.strip():
        return Action(code)
    for opening, closing in _BLOCKS:
        blocks = list(_blocks(reply, opening, closing))
        if len(blocks) == 1:
            return Action(blocks[0])
    draft.note(WHOLE_REPLY)
    return Action(reply)


def _blocks(reply: str, opening: re.Pattern[str], closing: str) -> Iterator[str]:
    at = 0
    while found := opening.search(reply, at):
        end = reply.find(closing, found.end())
        if end < 0:
            return
        block = reply[found.end() : end].strip()
        if block:
            yield block
        at = end + len(closing)


def _structured(
    step: Mapping[str, Any], made: Sequence[Mapping[str, Any]], draft: Draft
) -> list[Call]:
    """The structured calls, in the model's own message where it is there: a raised one only is."""
    replied = as_dicts(as_dict(step.get("model_output_message")).get("tool_calls"))
    calls = []
    for call in replied or made:
        function = as_dict(call.get("function")) or call
        calls.append(draft.call(function.get("name"), function.get("arguments"), call.get("id")))
    return [call for call in calls if call is not None]


def _python_text(made: Sequence[Mapping[str, Any]]) -> str:
    """Calls as smolagents prints them: as Python writes its own values."""
    try:
        return str(list(made))
    except (RecursionError, ValueError):
        return as_json(list(made))


def _message(role: str, text: str) -> Message:
    return {"role": role, "content": [{"type": "text", "text": text}]}


def _input_message(recorded: Mapping[str, Any]) -> Message:
    role = as_text(recorded.get("role")) or "user"
    return _message(_ROLES.get(role, role), text_in(recorded.get("content"), Draft()))


def _joined(messages: Iterator[Message]) -> tuple[Message, ...]:
    """Messages as they are sent: neighbours of the same role are one."""
    texts: list[tuple[str, list[str]]] = []
    for message in messages:
        text = message["content"][0]["text"]
        if texts and texts[-1][0] == message["role"]:
            texts[-1][1].append(text)
        else:
            texts.append((message["role"], [text]))
    return tuple(_message(role, "\n".join(parts)) for role, parts in texts)


@dataclass(frozen=True)
class _Writer:
    """Writes a memory's first turns into a prompt, as recorded where a step has its input."""

    sent: Mapping[int, tuple[Message, ...]]

    def __call__(self, turns: Sequence[Turn], conversation: Conversation) -> Prompt:
        messages = self.sent.get(len(turns))
        if messages is None:
            messages = _joined(turn.message for turn in turns if turn.message is not None)
        return Prompt(messages, tools=conversation.tools, adaptations=conversation.notes)
