"""Our own tokenizer and chat templates, held to those of transformers."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import TemplateError
from jinja2.exceptions import SecurityError
from tokenizers import AddedToken
from tokenizers.processors import TemplateProcessing

import tiny_language_models as tiny
from pytest_failgain.prompt import Prompt
from pytest_failgain.scoring.rendering import FIXED_DATE, Renderer
from pytest_failgain.scoring.template_tokenizer import TODAY, TemplateTokenizer, short_hash
from strategies import quick, texts

# As Llama 3.1 and later have it.
DATED = (
    "{{- bos_token }}{%- if strftime_now is defined %}"
    "{%- set date_string = strftime_now('%d %b %Y') %}"
    "{%- else %}{%- set date_string = '26 Jul 2024' %}{%- endif %}"
    "{%- if tools is not none %}Tools: {% for t in tools %}{{ t | tojson(indent=4) }}\n"
    "{% endfor %}{%- endif %}Today Date: {{ date_string }}\n"
    "{%- for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' }}"
    "{{- (message['content'] or '') | trim + '<|im_end|>' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{%- endif %}"
)
# The rarer means that templates use: macros, namespaces, loop controls, training's marks, dict().
ODD = """
{%- macro told(message, mark=eos_token) -%}
    {{ message.role ~ ': ' ~ (message.content if message.content is string else 'no text') ~ mark }}
{%- endmacro %}
{% set seen = namespace(system=false, self=1) %}
{% for message in messages %}
    {% if message.role == 'system' %}
        {% if seen.system %}{% continue %}{% endif %}
        {% set seen.system = true %}
    {% endif %}
    {% if loop.index > 4 %}{% break %}{% endif %}
    {% if message.role == 'assistant' %}
        {% generation %}{{ told(message, '') }}{% endgeneration %}
        {%- if message.reasoning_content is defined %}({{ message.thinking }}){% endif %}
    {% else %}{{ told(message) }}{% endif %}
    {{ message.tool_calls | tojson if message.tool_calls is defined else dict(a=[1]) | tojson }}
{% endfor %}
{{ documents }}{{ pad_token }}{{ tools | tojson(sort_keys=true) if tools }}
{%- if add_generation_prompt %} >{% endif %}
"""
NAMED = {"default": tiny.CHATML, "tool_use": tiny.TOOLS, "rag": "{{ documents }}"}
TEMPLATES: Mapping[str, Any] = {
    "ChatML": tiny.CHATML,
    "tools": tiny.TOOLS,
    "no system": tiny.NO_SYSTEM,
    "odd": ODD,
    "named": NAMED,
}
TOOL = {
    "type": "function",
    "function": {"name": "büch", "parameters": {"type": "object", "properties": {}}},
}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
calls = st.builds(
    lambda name, arguments: [{"function": {"name": name, "arguments": arguments}}],
    texts,
    st.dictionaries(texts, json_values, max_size=2),
)
messages = st.lists(
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["system", "user", "assistant", "tool", "developer"]),
            "content": st.none() | texts,
        },
        optional={
            "tool_calls": st.none() | calls,
            "reasoning": texts,
            "thinking": st.none() | texts,
            "name": texts,
        },
    ),
    max_size=6,
)


def theirs(tokenizer: Any, chat: Any, tools: Any, prompted: bool) -> str | None:
    try:
        text: str = tokenizer.apply_chat_template(
            chat, tools=tools, add_generation_prompt=prompted, tokenize=False
        )
    except Exception:
        return None
    return text


def ours(tokenizer: TemplateTokenizer, chat: Any, tools: Any, prompted: bool) -> str | None:
    try:
        return tokenizer.write_chat(chat, tools=tools, add_generation_prompt=prompted).text
    except Exception:
        return None


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES.keys())
@quick
@given(chat=messages, tools=st.sampled_from([None, [], [TOOL]]), prompted=st.booleans())
def test_chats_are_written_as_transformers_writes_them(
    template: Any, chat: Any, tools: Any, prompted: bool
) -> None:
    tokenizer = tiny.byte_tokenizer(template)
    expected = theirs(tokenizer, chat, tools, prompted)
    assert ours(TemplateTokenizer.of(tokenizer), chat, tools, prompted) == expected


def test_odd_template_does_write_something() -> None:
    # The control for the test above.
    chat = [{"role": "assistant", "content": "Hi.", "reasoning": "hm"}]
    text = ours(TemplateTokenizer.of(tiny.byte_tokenizer(ODD)), chat, [TOOL], True)
    assert text is not None
    assert "assistant: Hi.(hm)" in text
    assert '"büch"' in text


class Role(str, enum.Enum):
    USER = "user"


class Strange:
    pass


def test_what_is_no_plain_data_is_shown_as_transformers_shows_it() -> None:
    tokenizer = tiny.byte_tokenizer(ODD)
    chat = [{"role": Role.USER, "content": "a", "tool_calls": ({"x": Strange(), "n": True},)}]
    expected = theirs(tokenizer, chat, None, False)
    assert expected is not None
    assert ours(TemplateTokenizer.of(tokenizer), chat, None, False) == expected


@pytest.mark.parametrize(
    ("template", "error"),
    [
        ("{{ raise_exception('no ' ~ messages[0].role) }}", TemplateError),
        ("{{ messages.append(1) }}", SecurityError),
        ("{{ messages.__class__.__mro__ }}", SecurityError),
        ("{% set n = namespace(__a=1) %}", SecurityError),
        ("{% set n = namespace() %}{% set n._a = 1 %}", SecurityError),
        ("{{ dict.__init__.__globals__ }}", SecurityError),
        ("{% if %}", TemplateError),
    ],
)
def test_template_can_reach_nothing_but_its_data(template: str, error: type[Exception]) -> None:
    tokenizer = tiny.byte_tokenizer(template)
    chat = [{"role": "user", "content": "Hi."}]
    assert theirs(tokenizer, chat, None, False) is None
    with pytest.raises(error):
        TemplateTokenizer.of(tokenizer).write_chat(chat)


@pytest.mark.parametrize("templates", [None, {"rag": "a", "tool_use": tiny.TOOLS}])
def test_lack_of_a_template_is_told(templates: Any) -> None:
    with pytest.raises(ValueError, match=r"no chat template|\(rag, tool_use\) none is the default"):
        TemplateTokenizer("", templates, {}).write_chat([{"role": "user", "content": "Hi."}])


# Dates


def test_date_is_always_the_same_and_that_is_told() -> None:
    chat = ({"role": "user", "content": "Hi."},)
    tokenizer = tiny.byte_tokenizer(DATED)
    written = TemplateTokenizer.of(tokenizer).write_chat(chat)
    assert written.dated
    assert "Today Date: 01 Jan 2026<" in written.text
    today = f"{datetime.now():%d %b %Y}"
    assert theirs(tokenizer, chat, None, False) == written.text.replace("01 Jan 2026", today)
    rendered = Renderer(TemplateTokenizer.of(tokenizer), "tiny").render(Prompt(messages=chat))
    assert rendered.adaptations == (FIXED_DATE,)
    assert f"{TODAY:%Y-%m-%d}" in FIXED_DATE


@pytest.mark.parametrize(
    "template",
    [tiny.CHATML, f"{{% if strftime_now is defined %}}{tiny.CHATML}{{% endif %}}"],
    ids=["none", "asked whether there is one"],
)
def test_template_that_writes_no_date_is_not_said_to(template: str) -> None:
    renderer = Renderer(TemplateTokenizer.of(tiny.byte_tokenizer(template)), "tiny")
    chat = ({"role": "user", "content": "Hi."},)
    assert renderer.render(Prompt(messages=chat)).adaptations == ()


# Tokens


def marked(tokenizer: Any) -> Any:
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<|im_start|> $A", special_tokens=[("<|im_start|>", tokenizer.bos_token_id)]
    )
    return tokenizer


def padding(tokenizer: Any) -> Any:
    tokenizer.backend_tokenizer.enable_padding(length=50)
    tokenizer.backend_tokenizer.enable_truncation(3)
    return tokenizer


def adding(**settings: Any) -> Any:
    """A tokenizer with further added tokens, some of which overlap."""
    tokenizer = tiny.marking_tokenizer()
    names = ["<|im", "k(1)", "<|im_start|>b", "ook", "l>"]
    tokenizer.add_tokens([AddedToken(name, **settings) for name in names])
    return tokenizer


def splitting(tokenizer: Any) -> Any:
    tokenizer.split_special_tokens = True
    return tokenizer


TOKENIZERS: Mapping[str, Any] = {
    "bytes": tiny.byte_tokenizer(),
    "marker before a lone string": tiny.marking_tokenizer(),
    "GPT-2": tiny.merging_tokenizer(tiny.GPT2_WORDS),
    "Llama 3": tiny.merging_tokenizer(tiny.LLAMA3_WORDS),
    "with a beginning": marked(tiny.byte_tokenizer()),
    "left padding and cutting": padding(tiny.byte_tokenizer()),
    "added tokens": adding(normalized=False),
    "added tokens of normalised text": adding(normalized=True),
    "added tokens that take spaces": adding(normalized=False, lstrip=True, rstrip=True),
    "added tokens that are words": adding(normalized=False, single_word=True),
    "special tokens taken apart": splitting(tiny.byte_tokenizer()),
}
written = st.lists(
    texts | st.sampled_from(["<|im_start|>", "<|im_end|>", "<tool_call>", "book(1)\n", " "])
).map("".join)


@pytest.mark.parametrize("tokenizer", TOKENIZERS.values(), ids=TOKENIZERS.keys())
@quick
@given(written)
def test_texts_are_the_tokens_that_transformers_makes(tokenizer: Any, text: str) -> None:
    own = TemplateTokenizer.of(tokenizer)
    for with_special in (False, True):
        expected = tokenizer(
            text,
            add_special_tokens=with_special,
            return_offsets_mapping=True,
            return_special_tokens_mask=True,
        )
        made = own.encoded(text, marked=with_special)
        assert made.ids == expected["input_ids"]
        assert made.offsets == expected["offset_mapping"]
        assert made.special_tokens_mask == expected["special_tokens_mask"]
    assert own.tokens(text) == tuple(own.encoded(text).ids)
    for skipping in (False, True):
        assert own.decode(made.ids, skip_special_tokens=skipping) == tokenizer.decode(
            made.ids, skip_special_tokens=skipping, clean_up_tokenization_spaces=False
        )


@pytest.mark.parametrize("tokenizer", TOKENIZERS.values(), ids=TOKENIZERS.keys())
def test_vocabulary_and_special_tokens_are_those_of_transformers(tokenizer: Any) -> None:
    own = TemplateTokenizer.of(tokenizer)
    assert own.get_vocab() == tokenizer.get_vocab()
    assert len(own) == len(tokenizer)
    assert (own.bos_token, own.eos_token) == (tokenizer.bos_token, tokenizer.eos_token)
    assert own.eos_token_id == tokenizer.eos_token_id


def test_what_was_written_down_is_the_same_tokenizer() -> None:
    own = TemplateTokenizer.of(tiny.byte_tokenizer(ODD))
    again = TemplateTokenizer(**json.loads(json.dumps(asdict(own))))
    chat = [{"role": "user", "content": "Grüße"}]
    assert again.write_chat(chat) == own.write_chat(chat)
    assert again.encoded("<|im_start|>é").ids == own.encoded("<|im_start|>é").ids


def test_texts_are_not_cleaned_up() -> None:
    with pytest.raises(ValueError, match="leave clean_up_tokenization_spaces out"):
        TemplateTokenizer.of(tiny.byte_tokenizer()).decode([1], clean_up_tokenization_spaces=True)


def test_hash_of_a_template_is_short_and_tells_templates_apart() -> None:
    kinds = [tiny.CHATML, tiny.TOOLS, NAMED, {**NAMED, "rag": ""}, None]
    hashes = [TemplateTokenizer("", kind, {}).template_hash for kind in kinds]
    assert len(set(hashes)) == len(kinds)
    assert hashes[-1] == ""
    assert {len(one) for one in hashes[:-1]} == {16}
    assert hashes[0] == short_hash(tiny.CHATML)


@pytest.mark.model
@quick
@given(chat=messages, text=written)
def test_embedded_models_own_tokenizer_is_matched(
    smollm2_tokenizer: Any, chat: Any, text: str
) -> None:
    own = SMOLLM2.setdefault("", TemplateTokenizer.of(smollm2_tokenizer))
    assert ours(own, chat, None, True) == theirs(smollm2_tokenizer, chat, None, True)
    expected = smollm2_tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    assert own.encoded(text).ids == expected["input_ids"] == list(own.tokens(text))
    assert own.encoded(text).offsets == expected["offset_mapping"]


SMOLLM2: dict[str, TemplateTokenizer] = {}
