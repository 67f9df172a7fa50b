"""The plain-text format: what it writes, when it is taken, and the tokens that come of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers.processors import TemplateProcessing

import tiny_language_models as tiny
from pytest_failgain.errors import ScoringError, UsageError
from pytest_failgain.prompt import Message, Prompt
from pytest_failgain.scoring.folding import (
    FOLDED_CALLS,
    FOLDED_RESULTS,
    FOLDED_SYSTEM,
    FOLDED_TOOLS,
    PLACEHOLDERS,
)
from pytest_failgain.scoring.protocol import Pair, Score
from pytest_failgain.scoring.rendering import (
    PLAIN_AS_ASKED,
    PLAIN_FOR_LACK,
    PLAIN_FOR_SYSTEM,
    TEXT_CALLS,
    Renderer,
)
from pytest_failgain.scoring.template_tokenizer import TemplateTokenizer
from pytest_failgain.scoring.tree_engine import score_plainly
from pytest_failgain.trajectory import Action, Tool, ToolCall
from strategies import quick

SYSTEM: Message = {"role": "system", "content": "You book rooms."}
USER: Message = {"role": "user", "content": "Book room 1."}
SAID: Message = {"role": "assistant", "content": "book(room='1')"}
CALLED: Message = {
    "role": "assistant",
    "content": "Booking.",
    "tool_calls": [{"function": {"name": "book", "arguments": '{"room": 1}'}}],
}
RESULT: Message = {"role": "tool", "name": "book", "content": "no such room"}
BOOK = Tool("book", "Books a room.", {"type": "object", "properties": {"room": {}}})
CALL = Action(calls=(ToolCall("book", '{"room": 2}'),))


def renderer(
    template: str | None = None,
    prompt_format: str = "plain",
    *,
    tokenizer: Any = None,
    fold_system: bool = False,
) -> Renderer:
    chosen = tiny.byte_tokenizer(template) if tokenizer is None else tokenizer
    tokens = TemplateTokenizer.of(chosen)
    return Renderer(tokens, "tiny", fold_system, prompt_format)


def prompt(*messages: Message, tools: tuple[Tool, ...] = ()) -> Prompt:
    return Prompt(messages=messages, tools=tools)


# What is written


def test_messages_become_headed_turns() -> None:
    rendered = renderer().render(prompt(SYSTEM, USER, SAID, USER))
    assert rendered.text == (
        "### System\nYou book rooms. \n\n"
        "### User\nBook room 1. \n\n"
        "### Assistant\nbook(room='1') \n\n"
        "### User\nBook room 1. \n\n"
        "### Assistant\n"
    )
    assert rendered.adaptations == (PLAIN_AS_ASKED,)


@pytest.mark.parametrize(
    ("message", "turn"),
    [
        ({"role": "developer", "content": "Be brief."}, "### Developer\nBe brief. \n\n"),
        ({"role": "assistant", "content": None}, "### Assistant\n \n\n"),
        ({"role": "assistant", "content": ""}, "### Assistant\n \n\n"),
        ({"role": "user", "content": " {{ a }}\n<é>&\n"}, "### User\n {{ a }}\n<é>&\n \n\n"),
    ],
)
def test_any_role_and_text_stands_as_it_is(message: Message, turn: str) -> None:
    rendered = renderer().render(prompt(USER, message))
    assert rendered.text == f"### User\nBook room 1. \n\n{turn}### Assistant\n"


@pytest.mark.parametrize("template", [None, tiny.TOOLS], ids=["no template", "tools"])
def test_calls_and_results_become_text_and_are_named(template: str | None) -> None:
    rendered = renderer(template).render(prompt(USER, CALLED, RESULT))
    assert rendered.text == (
        "### User\nBook room 1. \n\n"
        '### Assistant\nBooking.\n{"name": "book", "arguments": {"room": 1}} \n\n'
        "### User\nResult of book: no such room \n\n"
        "### Assistant\n"
    )
    assert rendered.adaptations == (PLAIN_AS_ASKED, FOLDED_CALLS, FOLDED_RESULTS)


def test_tools_are_described_in_the_system_turn() -> None:
    rendered = renderer().render(prompt(USER, tools=(BOOK,)))
    schema = json.dumps(BOOK.as_function()["function"])
    assert rendered.text.startswith("### System\nTo use a tool, answer with one JSON object ")
    assert rendered.text.endswith(
        f"The tools:\n{schema} \n\n### User\nBook room 1. \n\n### Assistant\n"
    )
    assert rendered.adaptations == (PLAIN_AS_ASKED, FOLDED_TOOLS)


def test_parts_that_are_no_text_leave_their_kind() -> None:
    parts = [{"type": "text", "text": "Book room 1."}, {"type": "image", "url": "a.png"}]
    rendered = renderer().render(prompt({"role": "user", "content": parts}))
    assert rendered.text == "### User\nBook room 1.[image] \n\n### Assistant\n"
    assert rendered.adaptations == (PLAIN_AS_ASKED, PLACEHOLDERS)


def test_call_is_scored_as_the_json_that_the_prompt_would_show() -> None:
    subject = renderer(tiny.TOOLS)
    before = prompt(USER)
    found = subject.emit(before, subject.render(before), CALL)
    assert found.text == '{"name": "book", "arguments": {"room": 2}}'
    assert found.adaptations == (PLAIN_AS_ASKED, FOLDED_CALLS)


def test_conversation_without_messages_is_refused_without_talk_of_a_template() -> None:
    with pytest.raises(ScoringError, match=r"^the plain-text format refuses the messages \(\): "):
        renderer().render(prompt())


@pytest.mark.parametrize("prompt_format", ["template", "plain", "auto"])
@pytest.mark.parametrize("template", [None, tiny.NO_SYSTEM], ids=["no template", "no system"])
def test_text_of_a_harness_is_what_it_was(template: str | None, prompt_format: str) -> None:
    subject = renderer(template, prompt_format)
    text = Prompt(text="Call: ")
    rendered = subject.render(text)
    assert rendered == renderer(tiny.CHATML, "template").render(text)
    assert (rendered.text, rendered.adaptations) == ("Call: ", ())
    assert subject.emit(text, rendered, Action("go()")).adaptations == ()
    assert subject.emit(text, rendered, CALL).adaptations == (TEXT_CALLS,)


# When it is taken


@pytest.mark.parametrize(
    ("template", "prompt_format", "fold_system", "note"),
    [
        (None, "plain", False, PLAIN_AS_ASKED),
        (tiny.CHATML, "plain", False, PLAIN_AS_ASKED),
        (tiny.NO_SYSTEM, "plain", True, PLAIN_AS_ASKED),
        (None, "auto", False, PLAIN_FOR_LACK),
        (None, "auto", True, PLAIN_FOR_LACK),
        ("", "auto", False, PLAIN_FOR_LACK),
        (tiny.NO_SYSTEM, "auto", False, PLAIN_FOR_SYSTEM),
    ],
)
@pytest.mark.parametrize("messages", [(SYSTEM, USER), (USER,)], ids=["system", "no system"])
def test_plain_format_is_taken_and_named_with_the_reason(
    template: str | None,
    prompt_format: str,
    fold_system: bool,
    note: str,
    messages: tuple[Message, ...],
) -> None:
    # With a system message or without: a remedy may add one, and nothing else is to change then.
    subject = renderer(template, prompt_format, fold_system=fold_system)
    rendered = subject.render(prompt(*messages))
    assert rendered.text == renderer().render(prompt(*messages)).text
    assert rendered.adaptations == (note,)


@pytest.mark.parametrize("template", [tiny.CHATML, tiny.TOOLS], ids=["ChatML", "tools"])
@pytest.mark.parametrize("fold_system", [False, True])
def test_template_with_a_system_role_is_preferred_by_auto(template: str, fold_system: bool) -> None:
    subject = renderer(template, "auto", fold_system=fold_system)
    for messages in (prompt(SYSTEM, USER), prompt(USER, CALLED, RESULT, tools=(BOOK,))):
        assert subject.render(messages) == renderer(template, "template").render(messages)


def test_template_is_kept_by_auto_where_the_system_prompt_may_be_folded() -> None:
    subject = renderer(tiny.NO_SYSTEM, "auto", fold_system=True)
    rendered = subject.render(prompt(SYSTEM, USER))
    assert rendered.text == (
        "<|im_start|><start>user\nYou book rooms.\n\nBook room 1.<|im_end|>\n<start>model\n"
    )
    assert rendered.adaptations == (FOLDED_SYSTEM,)


def test_template_that_drops_the_system_prompt_has_no_system_role() -> None:
    dropping = tiny.CHATML.replace(
        "{% for message in messages %}",
        "{% for message in messages if message['role'] != 'system' %}",
    )
    assert renderer(dropping, "auto").render(prompt(SYSTEM, USER)).adaptations == (
        PLAIN_FOR_SYSTEM,
    )


def test_template_is_not_given_up_unless_that_was_asked_for() -> None:
    for template in (None, tiny.NO_SYSTEM):
        with pytest.raises(ScoringError, match="or pass --failgain-prompt-format plain for headed"):
            renderer(template, "template").render(prompt(SYSTEM, USER))
    tokens = TemplateTokenizer.of(tiny.byte_tokenizer())
    assert Renderer(tokens, "tiny").prompt_format == "template"


def test_prompt_format_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(
        UsageError, match=r"^there is no prompt format 'plane'; take one of template, plain, auto$"
    ):
        renderer(None, "plane")


@pytest.mark.parametrize("prompt_format", ["plain", "auto"])
def test_tokenizer_is_left_as_it_was(prompt_format: str) -> None:
    for template in (None, tiny.NO_SYSTEM):
        subject = renderer(template, prompt_format)
        subject.render(prompt(SYSTEM, USER))
        assert subject.tokenizer.chat_template == template


# Tokens


def marked(template: str) -> Any:
    """A byte tokenizer that puts special tokens around a text ("$A") as `template` says."""
    tokenizer = tiny.byte_tokenizer(None)
    vocabulary = tokenizer.get_vocab()
    special = [(name, vocabulary[name]) for name in ("<|im_start|>", "<|im_end|>")]
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=template, special_tokens=special
    )
    return tokenizer


@pytest.mark.parametrize(
    ("template", "begun"),
    [
        ("$A", False),
        ("<|im_start|> $A", True),
        ("$A <|im_end|>", False),
        ("<|im_start|> $A <|im_end|>", True),
    ],
)
def test_beginning_is_marked_where_the_tokenizer_marks_one(template: str, begun: bool) -> None:
    subject = renderer(tokenizer=marked(template))
    rendered = subject.render(prompt(USER))
    text = "### User\nBook room 1. \n\n### Assistant\n"
    assert rendered.text == text
    assert tiny.names(subject.tokenizer, rendered.tokens[:2]) == (
        ["<|im_start|>", "#"] if begun else ["#", "#"]
    )
    assert len(tiny.special(subject.tokenizer, rendered.tokens)) == begun
    found = subject.emit(prompt(USER), rendered, Action("go()"))
    assert tiny.names(subject.tokenizer, found.tokens) == ["g", "o", "(", ")"]


def test_beginning_of_a_templates_text_is_not_marked_again() -> None:
    tokenizer = marked("<|im_start|> $A")
    tokenizer.chat_template = tiny.NO_SYSTEM
    rendered = renderer(None, "auto", tokenizer=tokenizer, fold_system=True).render(prompt(USER))
    assert rendered.tokens.count(tokenizer.bos_token_id) == 1


TOKENIZERS = {
    "bytes": tiny.byte_tokenizer(None),
    "marker before a lone string": tiny.marking_tokenizer(None),
    "GPT-2": tiny.merging_tokenizer(tiny.GPT2_WORDS),
    "Llama 3": tiny.merging_tokenizer(tiny.LLAMA3_WORDS),
    "with a beginning": marked("<|im_start|> $A"),
}
actions = st.one_of(
    st.sampled_from(["book(room='1')", '{"a": "b"}', "I can't.", "```python\nreturn 1\n```", "#"]),
    st.text(
        st.sampled_from([*(chr(code) for code in range(32, 127)), "\n", "'", ")", " "]), min_size=1
    ).map(str.strip),
).filter(bool)


@pytest.mark.parametrize("tokenizer", TOKENIZERS.values(), ids=TOKENIZERS.keys())
@quick
@given(actions)
def test_action_that_stands_in_the_context_is_the_tokens_that_it_is_scored_as(
    tokenizer: Any, text: str
) -> None:
    subject = renderer(tokenizer=tokenizer)
    before = prompt(SYSTEM, USER)
    rendered = subject.render(before)
    found = subject.emit(before, rendered, Action(text))
    after = subject.render(prompt(SYSTEM, USER, {"role": "assistant", "content": text}, USER))
    emitted = (*rendered.tokens, *found.tokens)
    assert after.tokens[: len(emitted)] == emitted
    assert found.spans[-1][1] == len(text)


def test_space_at_the_end_of_a_turn_is_needed() -> None:
    # The control for the test above.
    ends = ["book(room='1')", '{"a": "b"}']
    tokenizer = TOKENIZERS["Llama 3"]
    for text in ends:
        tokens = tokenizer(text).input_ids
        assert tokenizer(f"{text}\n\n### User").input_ids[: len(tokens)] != tokens
        assert tokenizer(f"{text} \n\n### User").input_ids[: len(tokens)] == tokens


# Scores


@pytest.mark.parametrize(
    ("template", "prompt_format", "note"),
    [
        (None, "plain", PLAIN_AS_ASKED),
        (None, "auto", PLAIN_FOR_LACK),
        (tiny.NO_SYSTEM, "auto", PLAIN_FOR_SYSTEM),
    ],
)
def test_base_model_is_scored_after_the_format_token_by_token(
    template: str | None, prompt_format: str, note: str
) -> None:
    scorer = tiny.tiny_scorer(template=template, prompt_format=prompt_format)
    head = "### System\nYou book rooms. \n\n### User\nBook room 1. \n\n"
    tried = "### Assistant\nbook(room='1') \n\n### User\nno \n\n"
    failed = prompt(SYSTEM, USER, SAID, {"role": "user", "content": "no"})
    expected = [
        (prompt(SYSTEM, USER), f"{head}### Assistant\n"),
        (failed, f"{head}{tried}### Assistant\n"),
    ]
    action = "book(room='1')"
    scores = scorer.score([Pair(messages, Action(action)) for messages, _ in expected])
    for score, (_, context) in zip(scores, expected, strict=True):
        assert isinstance(score, Score)
        encode = scorer.tokenizer
        plain, matches = score_plainly(
            scorer.model, tuple(encode(context).input_ids), tuple(encode(action).input_ids)
        )
        assert score.token_logprobs == pytest.approx(plain.tolist(), abs=1e-4)
        assert score.argmax == tuple(matches.tolist())
        assert score.context_tokens == len(context)
        assert score.adaptations == (note,)
