"""From prompt and action to the tokens that the model is given and the tokens that it would emit.

Prompt and action are tokenised apart, as in generation: the prompt's tokens are fixed before the
first token of the action. A structured call becomes text by rendering and subtracting: the chat
template with the assistant's turn, minus the template up to the generation prompt, minus what ends
a turn. What a template can't show is folded into text, and each such fold is named. Where a
template is no use at all, the plain-text format takes its place, which is named as well.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import takewhile
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from pytest_failgain.choices import PROMPT_FORMATS
from pytest_failgain.errors import ScoringError, UsageError
from pytest_failgain.prompt import Message, Prompt
from pytest_failgain.scoring.folding import (
    FILLED_TURNS,
    FOLDED_BROKEN,
    FOLDED_CALLS,
    FOLDED_LONE_RESULTS,
    FOLDED_RESULTS,
    FOLDED_SYSTEM,
    FOLDED_TOOLS,
    JOINED_ANSWERS,
    JOINED_SYSTEM,
    JOINED_TURNS,
    LATER_SYSTEM,
    LED_IN,
    NULL_CONTENT,
    PLACEHOLDERS,
    RENAMED_IDS,
    SPLIT_CALLS,
    TOLD_ROLES,
    call_as_content,
    calls_as_text,
    has_other_parts,
    is_broken,
    led_in,
    parsed_arguments,
    result_as_user,
    with_broken_calls_told,
    with_calls_split,
    with_known_roles,
    with_later_systems_told,
    with_lone_results_told,
    with_one_system,
    with_parsed_arguments,
    with_plain_ids,
    with_system_folded,
    with_text_content,
    with_texts,
    with_tools_described,
    with_turns_filled,
    with_turns_joined,
)
from pytest_failgain.scoring.plain_format import PLAIN_TEMPLATE
from pytest_failgain.scoring.template_tokenizer import TODAY, TemplateTokenizer, short_hash
from pytest_failgain.trajectory import Action, Tool, ToolCall

if TYPE_CHECKING:
    from pytest_failgain.scoring.chat_template import WrittenChat

OPENED_ANSWER = "calls scored behind what the template opens plain answers with, such as <think>"
LEAD_ELSEWHERE = (
    "what was said before a call put right before it (template writes it otherwise, or not at all)"
)
TEXT_CALLS = "tool calls written as JSON text (the harness gives text, not messages)"
PLAIN_AS_ASKED = "chat messages written in the plain-text format (as asked for)"
PLAIN_FOR_LACK = "chat messages written in the plain-text format (model has no chat template)"
PLAIN_FOR_SYSTEM = "chat messages written in the plain-text format (template has no system role)"
FIXED_DATE = (
    f"template writes today's date: always {TODAY:%Y-%m-%d} (else each day is another prompt)"
)

# A model's context has to take the action twice: in the record, and behind it.
LONGEST_ACTION = 1024
CUT_ACTION = f"only the first {LONGEST_ACTION} tokens of an action scored (it is longer)"

_ACTIONS_REMEMBERED = 512

# Tokens, and their character ranges.
_Spanned = tuple[tuple[int, ...], tuple[tuple[int, int], ...]]

_PROBE = "zqprobe"  # a word that no template contains
_BROKEN = f'{{"{_PROBE}_broken": "a'
_PROBED_USER: Message = {"role": "user", "content": "Hello."}

_PLAIN_ADVICE = "pass --failgain-prompt-format plain for headed turns in place of a template"


@dataclass(frozen=True, slots=True)
class Rendered:
    """A prompt as text and tokens, with the folds that it took."""

    text: str
    tokens: tuple[int, ...]
    adaptations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Emitted:
    """An action as text and tokens; `spans` are the tokens' character ranges in the text."""

    text: str
    tokens: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    adaptations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TemplateSupport:
    """What a chat template really writes out, found by rendering probes."""

    system: bool
    tools: bool
    calls: bool
    results: bool
    adjacent_users: bool
    adjacent_answers: bool
    first_answers: bool
    later_systems: bool
    several_calls: bool
    lone_results: bool
    broken_arguments: bool
    null_content: bool
    any_ids: bool


@dataclass(slots=True)
class Renderer:
    """Renders for one model's tokenizer and chat template.

    With `fold_system`, a system message that the template refuses goes into the first user turn;
    without it, that is an error. `prompt_format` is what writes chat messages: the model's own
    "template", the "plain" format, or ("auto") the template where there is one that has room for a
    system message, else the plain format.

    Raises:
        UsageError: when there is no such prompt format.
    """

    tokenizer: TemplateTokenizer
    model_name: str
    fold_system: bool = False
    prompt_format: str = "template"
    _support: TemplateSupport | None = field(default=None, init=False)
    _plain_note: str | None = field(default=None, init=False)
    _anchor: str | None = field(default=None, init=False)
    _encode_action: Callable[[str], _Spanned] = field(init=False)

    def __post_init__(self) -> None:
        check_prompt_format(self.prompt_format)
        # A case's actions are the same under all conditions.
        self._encode_action = lru_cache(_ACTIONS_REMEMBERED)(self._tokens_of_action)

    def render(self, prompt: Prompt) -> Rendered:
        """The tokens of `prompt`, generation prompt and the reply's beginning included.

        Raises:
            ScoringError: when there is no chat template, or it refuses the messages.
        """
        if prompt.text is not None:
            text = prompt.text + prompt.lead
            bos = self.tokenizer.bos_token
            marked = bool(bos and text.startswith(bos))
            tokens = self.tokenizer.tokens(text) if marked else self._encode_first(text)
            rendered = Rendered(text, tokens, prompt.adaptations)
        else:
            messages, tools, adaptations = self._adapted(prompt)
            written = self._write(messages, tools=tools)
            text, dated = written.text + prompt.lead, (FIXED_DATE,) * written.dated
            # A chat template has the beginning's token in its own text.
            tokens = self._encode_first(text) if self._plain_note else self.tokenizer.tokens(text)
            rendered = Rendered(text, tokens, (*prompt.adaptations, *adaptations, *dated))
        if not rendered.tokens:
            raise ScoringError(
                f"the prompt {prompt.text!r} has no tokens for {self.model_name}: nothing comes "
                "before the action; let the harness give some context"
            )
        return rendered

    def emit(self, prompt: Prompt, rendered: Rendered, action: Action) -> Emitted:
        """The tokens that the model would emit for `action` after `rendered`.

        Raises:
            ScoringError: when the template refuses the assistant's turn.
        """
        text, adaptations = action.text, rendered.adaptations
        if action.calls and prompt.messages is None:
            text, adaptations = _behind(prompt.lead, action), (*adaptations, TEXT_CALLS)
        elif action.calls and not self._supported().calls:
            text, adaptations = _behind(prompt.lead, action), (*adaptations, FOLDED_CALLS)
        elif _has_broken(action) and not self._supported().broken_arguments:
            text, adaptations = _behind(prompt.lead, action), (*adaptations, FOLDED_BROKEN)
        elif action.calls:
            text, notes = self._subtracted(prompt, rendered.text, action)
            adaptations = (*adaptations, *notes)
        tokens, spans = self._encode_action(text)
        if len(tokens) > LONGEST_ACTION:
            tokens, spans = tokens[:LONGEST_ACTION], spans[:LONGEST_ACTION]
            text, adaptations = text[: spans[-1][1]], (*adaptations, CUT_ACTION)
        return Emitted(text, tokens, spans, tuple(dict.fromkeys(adaptations)))

    def count_tokens(self, text: str) -> int:
        """The number of tokens of `text` by itself."""
        return len(self.tokenizer.tokens(text))

    def template_hash(self) -> str:
        """A short hash of what writes chat messages; empty where nothing can."""
        with contextlib.suppress(ScoringError):  # of a broken template, which is the one in use
            self._supported()
        return short_hash(PLAIN_TEMPLATE) if self._plain_note else self.tokenizer.template_hash

    def _subtracted(self, prompt: Prompt, before: str, action: Action) -> tuple[str, list[str]]:
        """The call as text behind its lead, and what has to be said of that.

        `before` is the prompt as it was rendered, which ends with the lead.
        """
        messages, tools, _ = self._adapted(prompt)
        before = before.removesuffix(prompt.lead)
        turn = _assistant_turn(replace(action, text=prompt.lead + action.text))
        full = self._apply([*messages, turn], tools=tools, generation_prompt=False)
        plain = {"role": "assistant", "content": _PROBE}
        sample = self._apply([*messages, plain], tools=tools, generation_prompt=False)
        turn_end = sample[sample.rindex(_PROBE) + len(_PROBE) :]
        opened = not full.startswith(before)
        # A generation prompt may go on where a call would stand, as with "<think>": the call begins
        # no later than a plain answer does, even if the two share their first letters.
        answer = _shared_length(before, sample) if opened else len(before)
        emitted = full[min(_shared_length(before, full), answer) :]
        if turn_end and emitted.endswith(turn_end):
            emitted = emitted[: -len(turn_end)]
        else:
            end_token = self.tokenizer.eos_token or ""
            emitted = emitted.rstrip()
            emitted = emitted.removesuffix(end_token).rstrip() if end_token else emitted
        if not emitted.strip():
            raise ScoringError(
                f"the chat template of {self.model_name} writes nothing for the call "
                f"{str(action)!r}; use the python or json action format"
            )
        notes = [OPENED_ANSWER] if opened else []
        if prompt.lead and not emitted.startswith(prompt.lead):
            notes.append(LEAD_ELSEWHERE)
        said = prompt.lead.strip()
        start = emitted.find(said) + len(said) if said in emitted else 0
        if emitted.startswith(prompt.lead):
            start = len(prompt.lead)
        return emitted[start:], notes

    def _adapted(
        self, prompt: Prompt
    ) -> tuple[list[Message], list[dict[str, Any]] | None, tuple[str, ...]]:
        """The prompt's messages and tools in a form that the template writes out in full."""
        support = self._supported()
        messages: list[Message] = list(prompt.messages or ())
        adaptations = [self._plain_note] if self._plain_note else []

        def told(otherwise: list[Message], name: str) -> None:
            nonlocal messages
            if otherwise != messages:
                messages = otherwise
                adaptations.append(name)

        if not self._plain_note:  # which writes any role as it is
            told(with_known_roles(messages), TOLD_ROLES)
        if any(map(has_other_parts, messages)):
            adaptations.append(PLACEHOLDERS)
        messages = [with_text_content(message) for message in messages]
        if not support.later_systems:
            told(with_later_systems_told(messages), LATER_SYSTEM)
            told(with_one_system(messages), JOINED_SYSTEM)
        own_system = any(message["role"] == "system" for message in messages)
        tools: list[dict[str, Any]] | None = [tool.as_function() for tool in prompt.tools] or None
        if tools and not support.tools:
            messages = with_tools_described(messages, prompt.tools)
            tools = None
            adaptations.append(FOLDED_TOOLS)
        if not support.calls:
            told([call_as_content(message) for message in messages], FOLDED_CALLS)
        elif not support.broken_arguments:
            told(with_broken_calls_told(messages), FOLDED_BROKEN)
        if not support.results:
            told([result_as_user(message) for message in messages], FOLDED_RESULTS)
        elif not support.lone_results:
            told(with_lone_results_told(messages), FOLDED_LONE_RESULTS)
        if not support.several_calls:
            told(with_calls_split(messages), SPLIT_CALLS)
        if not support.any_ids:
            told(with_plain_ids(messages), RENAMED_IDS)
        if not support.system and any(message["role"] == "system" for message in messages):
            # Tools that were described above are ours to put where the template has room.
            if own_system and not self.fold_system:
                raise ScoringError(
                    f"the chat template of {self.model_name} has no system role: let the harness "
                    "put the system prompt into the first user turn, or pass "
                    "--failgain-fold-system to have that done and noted in the report, or "
                    f"{_PLAIN_ADVICE}"
                )
            messages = with_system_folded(messages)
            adaptations.append(FOLDED_SYSTEM)
        if not support.null_content:
            told(with_texts(messages), NULL_CONTENT)
        if not support.adjacent_users:
            told(with_turns_joined(messages, "user"), JOINED_TURNS)
        if not support.adjacent_answers:
            told(with_turns_joined(messages, "assistant"), JOINED_ANSWERS)
        if not support.first_answers:
            told(led_in(messages), LED_IN)
        messages = [with_parsed_arguments(message) for message in messages]
        strict = not (support.adjacent_users and support.adjacent_answers and support.first_answers)
        if strict and self._try(messages) is None:
            told(with_turns_filled(messages), FILLED_TURNS)
        return messages, tools, tuple(adaptations)

    def _supported(self) -> TemplateSupport:
        if self._support is None:
            self._plain_note = self._why_plain()
            self._support = self._probe_template()
        return self._support

    def _why_plain(self) -> str | None:
        """The note on the plain-text format, or None where the model's template is used."""
        if self.prompt_format == "plain":
            return PLAIN_AS_ASKED
        if self.prompt_format == "template":
            return None
        if not self.tokenizer.chat_template:
            return PLAIN_FOR_LACK
        # One that can't even write a user's turn is broken, which this says.
        self._apply([_PROBED_USER])
        # Whether this prompt has a system message or not: all of a model's are to be of one kind.
        return None if self.fold_system or self._shows_system() else PLAIN_FOR_SYSTEM

    def _probe_template(self) -> TemplateSupport:
        if not (self._plain_note or self.tokenizer.chat_template):
            raise ScoringError(
                f"{self.model_name} has no chat template, so chat messages can't be rendered for "
                "it: use an instruction-tuned model, or a harness that returns text, or "
                f"{_PLAIN_ADVICE}"
            )
        user = _PROBED_USER
        call = ToolCall(f"{_PROBE}_tool", f'{{"{_PROBE}_argument": "{_PROBE}_value"}}')
        called = with_parsed_arguments(_assistant_turn(Action(calls=(call,))))
        tool = Tool(f"{_PROBE}_tool", "Does a thing.", {"type": "object", "properties": {}})

        # A template that writes any role's name as it comes does not know the tool role.
        result: Message = {
            "role": "tool",
            "content": f"{_PROBE}_result",
            "tool_call_id": "call00000",
        }
        stranger: Message = {**result, "role": f"{_PROBE}_role"}
        calls = f"{_PROBE}_value" in (self._try([user, called]) or "")
        turns = [user, called] if calls else [user]
        as_tool, as_stranger = self._try([*turns, result]), self._try([*turns, stranger])
        generic = as_stranger is not None and as_tool == as_stranger.replace(
            f"{_PROBE}_role", "tool"
        )
        results = f"{_PROBE}_result" in (as_tool or "") and not generic
        said: Message = {"role": "assistant", "content": f"{_PROBE}_said"}
        later: Message = {"role": "system", "content": f"{_PROBE}_later"}
        return TemplateSupport(
            system=self._shows_system(),
            tools=f"{_PROBE}_tool" in (self._try([user], [tool]) or ""),
            calls=calls,
            results=results,
            adjacent_users=self._try([user, user]) is not None,
            adjacent_answers=self._shows([user, said, said], f"{_PROBE}_said", times=2),
            first_answers=self._shows([said, user], f"{_PROBE}_said"),
            later_systems=self._shows([user, said, later, user], f"{_PROBE}_later"),
            several_calls=not calls or self._shows_several_calls(called, result),
            lone_results=not results or self._shows([user, result], f"{_PROBE}_result"),
            broken_arguments=not calls or self._shows([user, _broken_call()], _BROKEN),
            null_content=self._takes_null(called if calls else said),
            any_ids=not calls or self._takes_ids(called, result if results else None),
        )

    def _shows(self, messages: Sequence[Message], text: str, *, times: int = 1) -> bool:
        return (self._try(messages) or "").count(text) >= times

    def _shows_several_calls(self, called: Message, result: Message) -> bool:
        (call,) = called["tool_calls"]
        function = {**call["function"], "arguments": {f"{_PROBE}_argument": f"{_PROBE}_second"}}
        both = [call, {**call, "id": "call00001", "function": function}]
        return self._shows([_PROBED_USER, {**called, "tool_calls": both}], f"{_PROBE}_second")

    def _takes_null(self, turn: Message) -> bool:
        """Whether null content is written like an empty one."""
        texts = (self._try([_PROBED_USER, {**turn, "content": content}]) for content in (None, ""))
        null, empty = texts
        return null is not None and null == empty

    def _takes_ids(self, called: Message, result: Message | None) -> bool:
        """Whether ids that are not nine letters and digits are taken, and none at all."""
        for given in ("call_1-x", None):
            calls = [{**call, "id": given} for call in called["tool_calls"]]
            turns: list[Message] = [_PROBED_USER, {**called, "tool_calls": calls}]
            turns += [{**result, "tool_call_id": given}] if result else []
            if self._try(turns) is None:
                return False
        return True

    def _shows_system(self) -> bool:
        return _PROBE in (self._try([{"role": "system", "content": _PROBE}, _PROBED_USER]) or "")

    def _try(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> str | None:
        try:
            return self._apply(messages, tools=[tool.as_function() for tool in tools] or None)
        except ScoringError:
            return None

    def _apply(
        self,
        messages: Sequence[Message],
        *,
        tools: list[dict[str, Any]] | None = None,
        generation_prompt: bool = True,
    ) -> str:
        return self._write(messages, tools=tools, generation_prompt=generation_prompt).text

    def _write(
        self,
        messages: Sequence[Message],
        *,
        tools: list[dict[str, Any]] | None = None,
        generation_prompt: bool = True,
    ) -> WrittenChat:
        try:
            return self.tokenizer.write_chat(
                messages,
                tools=tools,
                template=PLAIN_TEMPLATE if self._plain_note else None,
                add_generation_prompt=generation_prompt,
            )
        except Exception as error:  # a template is a program: it may raise anything
            roles = ", ".join(str(message.get("role")) for message in messages)
            reason = f"refuses the messages ({roles}): {type(error).__name__}: {error}"
            if self._plain_note:
                raise ScoringError(
                    f"the plain-text format {reason}; let the harness give messages with a role "
                    "and a text"
                ) from error
            raise ScoringError(
                f"the chat template of {self.model_name} {reason}; let the harness keep to the "
                f"roles and the order that this model's template takes, or {_PLAIN_ADVICE}"
            ) from error

    def _encode_first(self, text: str) -> tuple[int, ...]:
        """The tokens of `text` behind what the tokenizer itself puts before a text.

        What it puts behind one, such as a mark of the end, is no part of a context.
        """
        sample = self.tokenizer.encoded("a", marked=True)
        added = zip(sample.ids, sample.special_tokens_mask, strict=True)
        before = [token for token, special in takewhile(itemgetter(1), added)]
        return (*before, *self.tokenizer.tokens(text))

    def _tokens_of_action(self, text: str) -> _Spanned:
        """Token ids and character spans of `text` as the model emits it after a prompt.

        Some tokenizers put a space marker before a lone string, which a model in mid-line does not
        emit. There `text` is encoded behind an anchor, whose tokens are then taken off.
        """
        anchor = self._anchor_text()
        encoded = self.tokenizer.encoded(anchor + text)
        skipped = len(self.tokenizer.tokens(anchor)) if anchor else 0
        shift = len(anchor)
        return tuple(encoded.ids[skipped:]), tuple(
            (max(start - shift, 0), max(end - shift, 0)) for start, end in encoded.offsets[skipped:]
        )

    def _anchor_text(self) -> str:
        if self._anchor is None:
            behind = (*self.tokenizer.tokens("\n"), *self.tokenizer.tokens("a"))
            self._anchor = "" if self.tokenizer.tokens("\na") == behind else "\n"
        return self._anchor


def check_prompt_format(name: str) -> None:
    """Refuse what is no prompt format.

    Raises:
        UsageError: naming those that there are.
    """
    if name not in PROMPT_FORMATS:
        raise UsageError(
            f"there is no prompt format {name!r}; take one of {', '.join(PROMPT_FORMATS)}"
        )


def _shared_length(left: str, right: str) -> int:
    if right.startswith(left):
        return len(left)
    return next(
        (i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b),
        min(len(left), len(right)),
    )


def _behind(lead: str, action: Action) -> str:
    """The calls as text, on a line of their own where something was said before them."""
    text = calls_as_text(action)
    return f"\n{text}" if lead and not lead.endswith("\n") else text


def _has_broken(action: Action) -> bool:
    return any(is_broken(call.arguments) for call in action.calls)


def _broken_call() -> Message:
    return _assistant_turn(Action(calls=(ToolCall(f"{_PROBE}_tool", _BROKEN),)))


def _assistant_turn(action: Action) -> Message:
    calls = [
        {
            "id": f"call{index:05d}",
            "type": "function",
            "function": {"name": call.name, "arguments": parsed_arguments(call.arguments)},
        }
        for index, call in enumerate(action.calls)
    ]
    return {"role": "assistant", "content": action.text, "tool_calls": calls}
