"""Messages as real agents send them, over templates that can't take all of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tiny_language_models as tiny
from pytest_failgain.prompt import Message, Prompt
from pytest_failgain.scoring import folding
from pytest_failgain.scoring.rendering import Renderer
from pytest_failgain.scoring.template_tokenizer import TemplateTokenizer
from pytest_failgain.trajectory import Action, Tool, ToolCall
from strategies import quick

# In the way of Mistral's: user and assistant alternate but for calls and their results, ids are
# nine letters and digits, and the system prompt stands before the last user's turn.
MISTRAL = (
    "{{ bos_token }}{% set ns = namespace(user=true) %}"
    "{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
    "{{ raise_exception('Only user, assistant and tool roles are supported') }}{% endif %}"
    "{% if m.role == 'user' or (m.role == 'assistant' and not m.tool_calls) %}"
    "{% if (m.role == 'user') != ns.user %}"
    "{{ raise_exception('roles must alternate user and assistant') }}{% endif %}"
    "{% set ns.user = not ns.user %}{% endif %}{% endfor %}"
    "{% for m in messages %}"
    "{% if m.role == 'system' %}[SYSTEM]{{ m.content }}\n"
    "{% elif m.role == 'user' %}[INST]{{ m.content }}[/INST]"
    "{% elif m.role == 'tool' %}{% if m.tool_call_id|length != 9 %}"
    "{{ raise_exception('tool call ids must be 9 long') }}{% endif %}"
    '[TOOL_RESULTS]{"content": {{ m.content|tojson }}, "call_id": "{{ m.tool_call_id }}"}'
    "[/TOOL_RESULTS]"
    "{% elif m.tool_calls %}[TOOL_CALLS]{{ m.content or '' }}[{% for c in m.tool_calls %}"
    "{% if c.id|length != 9 %}{{ raise_exception('tool call ids must be 9 long') }}{% endif %}"
    '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments|tojson }}, '
    '"id": "{{ c.id }}"}{% endfor %}]<|im_end|>'
    "{% else %} {{ m.content }}<|im_end|>{% endif %}{% endfor %}"
)

# In the way of Llama 3's: one call a turn, its results by the role "ipython", content trimmed.
LLAMA = (
    "{% for m in messages %}"
    "{% if m.tool_calls %}{% if m.tool_calls|length != 1 %}"
    "{{ raise_exception('This model only supports single tool-calls at once!') }}{% endif %}"
    "{% set c = m.tool_calls[0].function %}<|start|>assistant\n{{ m.content|trim }}"
    '{"name": "{{ c.name }}", "parameters": {{ c.arguments|tojson }}}<|im_end|>\n'
    "{% elif m.role in ('tool', 'ipython') %}<|start|>ipython\n{{ m.content|tojson }}<|im_end|>\n"
    "{% else %}<|start|>{{ m.role }}\n{{ m.content|trim }}<|im_end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)

# In the way of Qwen 3.5's: the system message must be first, and arguments are gone through.
QWEN = (
    "{% for m in messages %}"
    "{% if m.role == 'system' %}{% if not loop.first %}"
    "{{ raise_exception('System message must be at the beginning.') }}{% endif %}"
    "<|im_start|>system\n{{ m.content }}<|im_end|>\n"
    "{% elif m.role == 'assistant' %}<|im_start|>assistant\n{{ m.content }}"
    "{% for c in m.tool_calls or [] %}\n<function={{ c.function.name }}>\n"
    "{% for name, value in c.function.arguments|items %}<parameter={{ name }}>\n"
    "{{ value if value is string else value|tojson }}\n</parameter>\n{% endfor %}</function>"
    "{% endfor %}<|im_end|>\n"
    "{% elif m.role == 'tool' %}{% if not loop.previtem or loop.previtem.role == 'user' %}"
    "{{ raise_exception('a result needs a call') }}{% endif %}"
    "<|im_start|>user\n<tool_response>\n{{ m.content }}\n</tool_response><|im_end|>\n"
    "{% else %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

TEMPLATES = {
    "ChatML": tiny.CHATML,
    "tools": tiny.TOOLS,
    "Gemma": tiny.NO_SYSTEM,
    "Mistral": MISTRAL,
    "Llama": LLAMA,
    "Qwen": QWEN,
}


def renderer(template: str) -> Renderer:
    tokenizer = tiny.byte_tokenizer(template)
    return Renderer(TemplateTokenizer.of(tokenizer), "tiny", fold_system=True)


def call(identity: str | None, arguments: str = '{"day": "Friday"}', name: str = "book") -> Any:
    function = {"name": name, "arguments": arguments}
    return {"id": identity, "type": "function", "function": function}


def result(identity: str | None, text: str) -> Message:
    return {"role": "tool", "tool_call_id": identity, "content": text}


SYSTEM: Message = {"role": "system", "content": "You book rooms."}
USER: Message = {"role": "user", "content": "Book a room."}
SAID: Message = {"role": "assistant", "content": "Which day?"}
CALLED: Message = {"role": "assistant", "content": None, "tool_calls": [call("call_1-x")]}
BROKEN: Message = {
    "role": "assistant",
    "content": "",
    "tool_calls": [call("callbroke", '{"day": "Fri')],
}

CONVERSATIONS: dict[str, list[Message]] = {
    "a call": [SYSTEM, USER, CALLED, result("call_1-x", "no such day")],
    "parallel calls, results in another order": [
        USER,
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [call("a"), call("b", '{"day": "Monday"}', "free")],
        },
        result("b", "free on Monday"),
        result("a", "no such day"),
    ],
    "calls without ids": [
        USER,
        {"role": "assistant", "content": "", "tool_calls": [call(None)]},
        result(None, "no such day"),
    ],
    "broken arguments": [USER, BROKEN, result("callbroke", "arguments are cut off")],
    "results as system messages": [
        SYSTEM,
        USER,
        SAID,
        {"role": "system", "content": "Command book failed."},
        {"role": "user", "content": "Go on."},
    ],
    "two system messages": [SYSTEM, {"role": "system", "content": "Be brief."}, USER],
    "developer role": [{"role": "developer", "content": "You book rooms."}, USER],
    "a result whose call was dropped": [USER, result("call00001", "no such day")],
    "a call without a result": [USER, CALLED],
    "a user's turn behind a result": [
        USER,
        CALLED,
        result("call_1-x", "no such day"),
        {"role": "user", "content": "Try Friday."},
    ],
    "two answers": [USER, SAID, {"role": "assistant", "content": "Or which week?"}, USER],
    "an answer first": [SAID, USER],
    "parts": [
        {
            "role": "user",
            "content": [{"type": "text", "text": "See:"}, {"type": "image_url", "image_url": {}}],
        }
    ],
}


def texts_of(messages: list[Message]) -> list[str]:
    """What must be found in a prompt: each message's text, each call's name and values."""
    texts = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, list):
            texts += ["See:", "[image]"]
        elif content:
            texts.append(content)
        for made in message.get("tool_calls") or ():
            texts.append(made["function"]["name"])
            try:
                texts += json.loads(made["function"]["arguments"]).values()
            except ValueError:
                texts.append(made["function"]["arguments"])
    return texts


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES.keys())
@pytest.mark.parametrize("messages", CONVERSATIONS.values(), ids=CONVERSATIONS.keys())
def test_every_text_of_a_conversation_is_in_the_prompt(
    messages: list[Message], template: str
) -> None:
    text = renderer(template).render(Prompt(tuple(messages))).text
    for wanted in texts_of(messages):
        assert wanted in text or json.dumps(wanted)[1:-1] in text


@pytest.mark.parametrize(
    ("template", "conversation", "adaptations"),
    [
        ("Mistral", "a call", {folding.RENAMED_IDS}),
        ("Mistral", "calls without ids", {folding.RENAMED_IDS}),
        ("Mistral", "two answers", {folding.JOINED_ANSWERS}),
        ("Mistral", "an answer first", {folding.LED_IN}),
        (
            "Mistral",
            "results as system messages",
            {folding.LATER_SYSTEM, folding.JOINED_TURNS},
        ),
        ("Llama", "parallel calls, results in another order", {folding.SPLIT_CALLS}),
        ("Llama", "developer role", {folding.TOLD_ROLES}),
        ("Qwen", "results as system messages", {folding.LATER_SYSTEM}),
        ("Qwen", "two system messages", {folding.JOINED_SYSTEM}),
        ("Qwen", "broken arguments", {folding.FOLDED_BROKEN}),
        ("Qwen", "a result whose call was dropped", {folding.FOLDED_LONE_RESULTS}),
        ("Mistral", "a user's turn behind a result", {folding.RENAMED_IDS, folding.FILLED_TURNS}),
        ("Qwen", "parts", {folding.PLACEHOLDERS}),
        (
            "Gemma",
            "a call",
            {folding.FOLDED_SYSTEM, folding.FOLDED_CALLS, folding.FOLDED_RESULTS},
        ),
        ("ChatML", "results as system messages", set()),
        ("tools", "parallel calls, results in another order", set()),
        ("tools", "a result whose call was dropped", set()),
    ],
)
def test_what_was_folded_is_told_and_nothing_else(
    template: str, conversation: str, adaptations: set[str]
) -> None:
    prompt = Prompt(tuple(CONVERSATIONS[conversation]))
    assert {*renderer(TEMPLATES[template]).render(prompt).adaptations} == adaptations


def test_null_content_is_never_written_out() -> None:
    for template in TEMPLATES.values():
        text = renderer(template).render(Prompt(tuple(CONVERSATIONS["a call"]))).text
        assert "None" not in text
    rude = tiny.TOOLS.replace("{{ message['content'] or '' }}", "{{ message['content'] + '' }}")
    rendered = renderer(rude).render(Prompt(tuple(CONVERSATIONS["a call"])))
    assert rendered.adaptations == (folding.NULL_CONTENT,)


def test_split_calls_have_their_own_results_behind_them() -> None:
    messages = CONVERSATIONS["parallel calls, results in another order"]
    split = folding.with_calls_split(messages)
    assert [message["role"] for message in split] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
    ]
    assert split[2]["content"] == "no such day"
    assert split[4]["content"] == "free on Monday"


def test_ids_are_renamed_alike_in_calls_and_results() -> None:
    messages = CONVERSATIONS["parallel calls, results in another order"]
    renamed = folding.with_plain_ids(messages)
    ids = [made["id"] for made in renamed[1]["tool_calls"]]
    assert [message["tool_call_id"] for message in renamed[2:]] == ids[::-1]
    assert all(len(identity) == 9 and identity.isalnum() for identity in ids)


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES.keys())
def test_a_call_that_is_scored_has_its_own_letters_where_it_is_no_json(template: str) -> None:
    subject = renderer(template)
    prompt = Prompt((USER,), tools=(Tool("book"),))
    action = Action(calls=(ToolCall("book", '{"day": "Fri'),))
    emitted = subject.emit(prompt, subject.render(prompt), action)
    assert emitted.text.strip() == '{"name": "book", "arguments": {"day": "Fri}'


words = st.sampled_from(["Ann", "books", "room 1", "é", "日本", "42"])


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Messages in any order, with calls, results and null content."""
    messages: list[Message] = []
    for index in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(["system", "user", "said", "called", "result", "developer"]))
        text = f"{draw(words)} {index} is told"
        if kind == "called":
            count = draw(st.integers(1, 2))
            calls = [call(f"c{index}{i}", json.dumps({"day": text})) for i in range(count)]
            content = draw(st.sampled_from([None, "", text]))
            messages.append({"role": "assistant", "content": content, "tool_calls": calls})
        elif kind == "result":
            messages.append(result(f"c{max(index - 1, 0)}0", text))
        else:
            role = "assistant" if kind == "said" else kind
            messages.append({"role": role, "content": text})
    return messages


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES.keys())
@quick
@given(messages=conversations())
def test_no_text_of_any_conversation_is_lost(template: str, messages: list[Message]) -> None:
    text = renderer(template).render(Prompt(tuple(messages))).text
    for wanted in texts_of(messages):
        assert wanted in text or json.dumps(wanted)[1:-1] in text
