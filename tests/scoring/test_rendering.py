"""From prompts and actions to tokens, over templates and tokenizers of each kind."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import pre_tokenizers
from tokenizers.processors import TemplateProcessing

import tiny_language_models as tiny
from pytest_failgain.errors import ScoringError
from pytest_failgain.prompt import Message, Prompt
from pytest_failgain.scoring.folding import (
    FOLDED_CALLS,
    FOLDED_RESULTS,
    FOLDED_SYSTEM,
    FOLDED_TOOLS,
    JOINED_TURNS,
    PLACEHOLDERS,
)
from pytest_failgain.scoring.rendering import (
    CUT_ACTION,
    LEAD_ELSEWHERE,
    LONGEST_ACTION,
    OPENED_ANSWER,
    TEXT_CALLS,
    Emitted,
    Renderer,
)
from pytest_failgain.scoring.template_tokenizer import TemplateTokenizer
from pytest_failgain.trajectory import Action, Tool, ToolCall
from strategies import quick, words

SYSTEM: Message = {"role": "system", "content": "You book rooms."}
USER: Message = {"role": "user", "content": "Book room 1."}
SAID: Message = {"role": "assistant", "content": "Which day?"}
CALLED: Message = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {
            "id": "call00000",
            "type": "function",
            "function": {"name": "book", "arguments": '{"room": 1, "day": "é"}'},
        }
    ],
}
RESULT: Message = {
    "role": "tool",
    "tool_call_id": "call00000",
    "name": "book",
    "content": "no such room",
}
BOOK = Tool("book", "Books a room.", {"type": "object", "properties": {"room": {}}})
CALL = Action(calls=(ToolCall("book", '{"room": 2}'),))

TEMPLATES = {"ChatML": tiny.CHATML, "tools": tiny.TOOLS, "no system": tiny.NO_SYSTEM}


def renderer(
    template: str | None = tiny.CHATML,
    tokenizer: Callable[[str | None], Any] = tiny.byte_tokenizer,
    *,
    fold_system: bool = False,
) -> Renderer:
    return over(tokenizer(template), fold_system)


def over(tokenizer: Any, fold_system: bool = False) -> Renderer:
    return Renderer(TemplateTokenizer.of(tokenizer), "tiny", fold_system)


def prompt(*messages: Message, tools: tuple[Tool, ...] = ()) -> Prompt:
    return Prompt(messages=messages, tools=tools)


def turn(role: str, content: str) -> str:
    return f"<|im_start|>{role}\n{content}<|im_end|>\n"


def emitted(renderer: Renderer, prompt: Prompt, action: Action) -> Emitted:
    return renderer.emit(prompt, renderer.render(prompt), action)


ANSWER = "<|im_start|>assistant\n"


# Prompts


@pytest.mark.parametrize("template", [tiny.CHATML, tiny.TOOLS], ids=["ChatML", "tools"])
def test_messages_that_the_template_knows_stand_as_they_are(template: str) -> None:
    rendered = renderer(template).render(prompt(SYSTEM, USER, SAID, USER))
    assert rendered.text == (
        turn("system", "You book rooms.")
        + turn("user", "Book room 1.")
        + turn("assistant", "Which day?")
        + turn("user", "Book room 1.")
        + ANSWER
    )
    assert rendered.adaptations == ()


def test_prompt_is_tokenised_with_the_templates_special_tokens_and_no_others() -> None:
    subject = renderer()
    rendered = subject.render(prompt(USER))
    assert subject.tokenizer.decode(rendered.tokens) == rendered.text
    assert tiny.special(subject.tokenizer, rendered.tokens) == [
        "<|im_start|>",
        "<|im_end|>",
        "<|im_start|>",
    ]


def test_model_without_a_chat_template_takes_no_messages() -> None:
    subject = renderer(None)
    with pytest.raises(
        ScoringError,
        match=r"^tiny has no chat template, .* harness .* text, or pass --failgain-prompt-format",
    ):
        subject.render(prompt(USER))
    assert subject.render(Prompt(text="Book room 1: ")).text == "Book room 1: "


def test_messages_that_a_template_refuses_are_named_by_their_roles() -> None:
    with pytest.raises(ScoringError) as caught:
        renderer(tiny.TOOLS).render(prompt(USER, SAID, {"role": "narrator", "content": "Later."}))
    message = str(caught.value)
    assert message.startswith(
        "the chat template of tiny refuses the messages (user, assistant, narrator): "
        "TemplateError: unknown role"
    )
    assert message.endswith(
        "let the harness keep to the roles and the order that this model's template takes, "
        "or pass --failgain-prompt-format plain for headed turns in place of a template"
    )
    assert "\n" not in message


def test_template_that_breaks_is_an_error_of_ours() -> None:
    broken = tiny.CHATML.replace("message['content']", "message['content'] + 1")
    with pytest.raises(ScoringError, match=r"refuses the messages \(user\): TypeError: "):
        renderer(broken).render(prompt(USER))


def test_system_prompt_without_a_system_role_is_refused_with_all_ways_out() -> None:
    with pytest.raises(
        ScoringError,
        match=r"tiny has no system role: let the harness .* or pass --failgain-fold-system .*"
        r" or pass --failgain-prompt-format plain",
    ):
        renderer(tiny.NO_SYSTEM).render(prompt(SYSTEM, USER))


def test_system_prompt_goes_into_the_first_user_turn_where_that_is_wanted() -> None:
    subject = renderer(tiny.NO_SYSTEM, fold_system=True)
    rendered = subject.render(prompt(SYSTEM, USER, SAID, USER))
    folded = subject.render(
        prompt({"role": "user", "content": "You book rooms.\n\nBook room 1."}, SAID, USER)
    )
    assert (rendered.text, rendered.tokens) == (folded.text, folded.tokens)
    assert (rendered.adaptations, folded.adaptations) == ((FOLDED_SYSTEM,), ())


@pytest.mark.parametrize("template", [tiny.CHATML, tiny.TOOLS], ids=["ChatML", "tools"])
def test_system_prompt_is_left_alone_where_there_is_a_role_for_it(template: str) -> None:
    messages = prompt(SYSTEM, USER)
    folding = renderer(template, fold_system=True)
    assert folding.render(messages) == renderer(template).render(messages)


def test_system_prompt_goes_into_a_user_turn_even_where_the_assistant_begins() -> None:
    refusing = tiny.CHATML.replace(
        "{% for message in messages %}",
        "{% for message in messages %}{% if message['role'] == 'system' %}"
        "{{ raise_exception('no system') }}{% endif %}",
    )
    rendered = renderer(refusing, fold_system=True).render(prompt(SYSTEM, SAID, USER))
    assert rendered.text == (
        turn("assistant", "Which day?") + turn("user", "You book rooms.\n\nBook room 1.") + ANSWER
    )


def test_system_prompt_alone_becomes_a_user_turn() -> None:
    rendered = renderer(tiny.NO_SYSTEM, fold_system=True).render(prompt(SYSTEM))
    assert "<start>user\nYou book rooms.<|im_end|>" in rendered.text


def test_tools_are_offered_by_a_template_that_has_them() -> None:
    rendered = renderer(tiny.TOOLS).render(prompt(SYSTEM, USER, tools=(BOOK,)))
    assert rendered.text == (
        f"<|im_start|>system\nYou book rooms.\n{json.dumps(BOOK.as_function())}\n<|im_end|>\n"
        + turn("user", "Book room 1.")
        + ANSWER
    )
    assert rendered.adaptations == ()


@pytest.mark.parametrize("messages", [(SYSTEM, USER), (USER,)], ids=["beside others", "alone"])
def test_tools_are_described_in_the_system_prompt_otherwise(messages: tuple[Message, ...]) -> None:
    rendered = renderer().render(prompt(*messages, tools=(BOOK, Tool("leave"))))
    system, _, rest = rendered.text.partition("<|im_end|>\n")
    own, told, schemas = system.partition("To use a tool, ")
    assert own == "<|im_start|>system\n" + ("You book rooms.\n\n" if len(messages) == 2 else "")
    assert told
    described = [json.loads(line) for line in schemas.splitlines()[1:]]
    assert described == [BOOK.as_function()["function"], Tool("leave").as_function()["function"]]
    assert rest == turn("user", "Book room 1.") + ANSWER
    assert rendered.adaptations == (FOLDED_TOOLS,)


def test_calls_and_results_stand_as_such_where_the_template_has_them() -> None:
    rendered = renderer(tiny.TOOLS).render(prompt(USER, CALLED, RESULT))
    call = '<tool_call>\n{"name": "book", "arguments": {"room": 1, "day": "é"}}\n</tool_call>'
    assert rendered.text == (
        turn("user", "Book room 1.")
        + turn("assistant", call)
        + turn("user", "<tool_response>\nno such room\n</tool_response>")
        + ANSWER
    )
    assert rendered.adaptations == ()


def test_calls_and_results_become_text_otherwise() -> None:
    rendered = renderer().render(prompt(USER, CALLED, RESULT))
    assert rendered.text == (
        turn("user", "Book room 1.")
        + turn("assistant", '{"name": "book", "arguments": {"room": 1, "day": "é"}}')
        + turn("user", "Result of book: no such room")
        + ANSWER
    )
    assert rendered.adaptations == (FOLDED_CALLS, FOLDED_RESULTS)


def test_text_beside_a_call_is_kept_when_it_becomes_text() -> None:
    rendered = renderer().render(prompt(USER, {**CALLED, "content": "Booking."}))
    assert '<|im_start|>assistant\nBooking.\n{"name": "book"' in rendered.text
    assert rendered.adaptations == (FOLDED_CALLS,)


def test_result_without_a_name_is_told_to_be_one() -> None:
    nameless = {key: value for key, value in RESULT.items() if key != "name"}
    rendered = renderer().render(prompt(USER, nameless))
    assert turn("user", "Tool result: no such room") in rendered.text
    assert rendered.adaptations == (FOLDED_RESULTS,)


def test_role_that_a_template_would_write_as_it_comes_is_no_tool_role() -> None:
    # ChatML would write "<|im_start|>tool", which its model never saw.
    assert "<|im_start|>tool" not in renderer().render(prompt(USER, RESULT)).text


def test_result_goes_into_a_user_turn_where_the_template_refuses_the_tool_role() -> None:
    strict = tiny.CHATML.replace(
        "{% for message in messages %}",
        "{% for message in messages %}{% if message['role'] == 'tool' %}"
        "{{ raise_exception('no tools') }}{% endif %}",
    )
    rendered = renderer(strict).render(prompt(USER, RESULT))
    assert rendered.adaptations == (FOLDED_RESULTS,)


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES.keys())
def test_nothing_is_adapted_where_there_is_nothing_to_adapt(template: str) -> None:
    subject = renderer(template, fold_system=True)
    messages = prompt(USER, SAID, USER)
    assert subject.render(messages).adaptations == ()
    assert emitted(subject, messages, Action("book(1)")).adaptations == ()


def test_arguments_may_be_an_object_already() -> None:
    call = CALLED["tool_calls"][0]
    function = {"name": "book", "arguments": {"room": 1, "day": "é"}}
    parsed = {**CALLED, "tool_calls": [{**call, "function": function}]}
    subject = renderer(tiny.TOOLS)
    assert subject.render(prompt(USER, parsed)) == subject.render(prompt(USER, CALLED))
    folded = renderer().render(prompt(USER, parsed)).text
    assert json.loads(folded.split("assistant\n")[1].split("<|im_end|>")[0]) == function


@pytest.mark.parametrize("template", [tiny.TOOLS, tiny.CHATML])
@pytest.mark.parametrize("arguments", ['{"room": 1', "room 1", "[1]"])
def test_arguments_that_are_no_object_stand_letter_for_letter(
    arguments: str, template: str
) -> None:
    call = {"function": {"name": "book", "arguments": arguments}}
    messages = prompt(USER, {"role": "assistant", "content": "", "tool_calls": [call]})
    assert f'"arguments": {arguments}}}' in renderer(template).render(messages).text
    action = Action(calls=(ToolCall("book", arguments),))
    assert emitted(renderer(template), messages, action).text == (
        f'{{"name": "book", "arguments": {arguments}}}'
    )


def test_empty_arguments_are_none() -> None:
    call = {"function": {"name": "book", "arguments": ""}}
    messages = prompt(USER, {"role": "assistant", "content": "", "tool_calls": [call]})
    assert '"arguments": {}}' in renderer(tiny.TOOLS).render(messages).text


def test_messages_of_the_harness_are_not_changed() -> None:
    messages = (SYSTEM, USER, CALLED, RESULT)
    before = json.dumps(messages)
    for template in TEMPLATES.values():
        subject = renderer(template, fold_system=True)
        subject.render(prompt(*messages[:2], tools=(BOOK,)))
        emitted(subject, prompt(*messages[1:3]), CALL)
    assert json.dumps(messages) == before


def test_text_prompt_stands_as_it_is() -> None:
    subject = renderer()
    rendered = subject.render(Prompt(text="<|im_start|>Room é"))
    assert subject.tokenizer.decode(rendered.tokens) == rendered.text == "<|im_start|>Room é"
    assert rendered.adaptations == ()


def test_beginning_of_a_text_prompt_is_marked_once() -> None:
    tokenizer = tiny.byte_tokenizer()
    begin = tokenizer.bos_token_id
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<|im_start|> $A", special_tokens=[("<|im_start|>", begin)]
    )
    subject = over(tokenizer)
    bare, marked = (
        subject.render(Prompt(text=text)).tokens for text in ("Room", "<|im_start|>Room")
    )
    assert bare == marked
    assert bare.count(begin) == 1
    # Neither the action nor a chat template's text is a beginning.
    assert begin not in emitted(subject, Prompt(text="Room"), Action("go()")).tokens
    assert subject.render(prompt(USER)).tokens[:2] == (begin, *tokenizer("u").input_ids[1:])


def test_mark_of_the_end_is_no_part_of_a_text_prompt() -> None:
    plain = renderer().render(Prompt(text="Room")).tokens
    tokenizer = tiny.byte_tokenizer()
    end = tokenizer.eos_token_id
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="$A <|im_end|>", special_tokens=[("<|im_end|>", end)]
    )
    assert tokenizer("Room").input_ids == [*plain, end]
    assert over(tokenizer).render(Prompt(text="Room")).tokens == plain


def test_prompt_without_tokens_is_refused() -> None:
    with pytest.raises(ScoringError, match=r"the prompt '' has no tokens for tiny: .* context"):
        renderer().render(Prompt(text=""))


def test_conversation_without_messages_is_refused() -> None:
    with pytest.raises(ScoringError, match=r"refuses the messages \(\): "):
        renderer().render(prompt())


def test_user_turns_are_joined_where_roles_must_alternate() -> None:
    subject = renderer(tiny.NO_SYSTEM)
    rendered = subject.render(prompt(USER, USER, SAID, USER))
    once = {"role": "user", "content": "Book room 1.\n\nBook room 1."}
    assert rendered.text == subject.render(prompt(once, SAID, USER)).text
    assert rendered.adaptations == (JOINED_TURNS,)
    assert renderer().render(prompt(USER, USER)).adaptations == ()


def test_tools_need_no_system_role() -> None:
    rendered = renderer(tiny.NO_SYSTEM).render(prompt(USER, tools=(BOOK,)))
    assert rendered.text.startswith("<|im_start|><start>user\nTo use a tool, ")
    assert rendered.adaptations == (FOLDED_TOOLS, FOLDED_SYSTEM)


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES.keys())
def test_parts_of_a_message_are_its_text(template: str) -> None:
    parts = [{"type": "text", "text": "Book "}, {"type": "text", "text": "room 1."}]
    subject = renderer(template)
    plain = subject.render(prompt(USER))
    assert subject.render(prompt({"role": "user", "content": parts})) == plain
    pictured = subject.render(
        prompt({"role": "user", "content": [*parts, {"type": "image", "url": "a.png"}]})
    )
    assert pictured.text == plain.text.replace("room 1.", "room 1.[image]")
    assert pictured.adaptations == (PLACEHOLDERS,)


# Actions


CALLS = {
    "one": CALL,
    "two": Action(calls=(ToolCall("book", '{"room": 2}'), ToolCall("leave", "{}"))),
    "text and call": Action("Booking now. ", (ToolCall("book", '{"room": 2}'),)),
    "order of keys": Action(calls=(ToolCall("book", '{"z": 1, "a": [null, true], "m": {}}'),)),
    "beyond ASCII": Action(calls=(ToolCall("büch", '{"raum": "日本 🦊"}'),)),
    "words of the template": Action(calls=(ToolCall("book", '{"room": "assistant\\n zq"}'),)),
    "white space": Action(calls=(ToolCall("book", '{"room": " 2\\n"}'),)),
}


@pytest.mark.parametrize("action", CALLS.values(), ids=CALLS.keys())
@pytest.mark.parametrize("messages", [(USER,), (SYSTEM, USER, CALLED, RESULT)], ids=["", "later"])
def test_call_is_what_stands_in_the_rendered_conversation(
    messages: tuple[Message, ...], action: Action
) -> None:
    subject = renderer(tiny.TOOLS)
    before = prompt(*messages, tools=(BOOK,))
    found = emitted(subject, before, action)
    calls = [
        {"function": {"name": call.name, "arguments": json.loads(call.arguments)}}
        for call in action.calls
    ]
    answer = {"role": "assistant", "content": action.text, "tool_calls": calls}
    after = subject.render(prompt(*messages, answer, tools=(BOOK,))).text
    assert after == f"{subject.render(before).text}{found.text}<|im_end|>\n{ANSWER}"
    assert found.text.startswith(f"{action.text}<tool_call>\n")
    assert found.adaptations == ()


def test_call_whose_turn_ends_in_its_own_way_loses_the_end_of_turn_token() -> None:
    template = tiny.TOOLS.replace(
        "</tool_call>{% endfor %}<|im_end|>\n",
        "</tool_call>{% endfor %}<|im_end|>{{ '' if message.tool_calls else '\n' }}",
    )
    assert template != tiny.TOOLS
    assert emitted(renderer(template), prompt(USER), CALL).text.endswith("\n</tool_call>")


@pytest.mark.parametrize("template", [tiny.CHATML, tiny.NO_SYSTEM], ids=["ChatML", "no system"])
@pytest.mark.parametrize("action", CALLS.values(), ids=CALLS.keys())
def test_call_is_json_where_the_template_has_none(template: str, action: Action) -> None:
    found = emitted(renderer(template), prompt(USER), action)
    lines = found.text.splitlines()
    assert lines[: bool(action.text)] == [action.text] * bool(action.text)
    assert [json.loads(line) for line in lines[bool(action.text) :]] == [
        {"name": call.name, "arguments": json.loads(call.arguments)} for call in action.calls
    ]
    assert found.adaptations == (FOLDED_CALLS,)


def test_call_that_is_json_text_keeps_the_arguments_letter_for_letter() -> None:
    arguments = '{ "room":2,"day" : "\\u00e9" '
    found = emitted(renderer(), prompt(USER), Action(calls=(ToolCall("book", arguments),)))
    assert found.text == f'{{"name": "book", "arguments": {arguments}}}'


@pytest.mark.parametrize("template", [tiny.TOOLS, None], ids=["tools", "no template"])
def test_call_after_a_text_prompt_is_json(template: str | None) -> None:
    found = emitted(renderer(template), Prompt(text="Call: "), CALL)
    assert found.text == '{"name": "book", "arguments": {"room": 2}}'
    assert found.adaptations == (TEXT_CALLS,)


def test_text_after_a_text_prompt_needs_no_change() -> None:
    found = emitted(renderer(), Prompt(text="Call: "), Action("book(2)"))
    assert (found.text, found.adaptations) == ("book(2)", ())


def test_folds_of_prompt_and_action_are_each_named_once() -> None:
    found = emitted(renderer(), prompt(USER, CALLED, RESULT, tools=(BOOK,)), CALL)
    assert found.adaptations == (FOLDED_TOOLS, FOLDED_CALLS, FOLDED_RESULTS)


def test_call_is_whole_where_the_generation_prompt_opens_an_answer() -> None:
    # As the templates of reasoning models do; "<think>" and "<tool_call>" begin alike.
    template = tiny.TOOLS.replace("assistant\n{% endif %}", "assistant\n<think>\n{% endif %}")
    found = emitted(renderer(template), prompt(USER), CALL)
    assert found.text == emitted(renderer(tiny.TOOLS), prompt(USER), CALL).text
    assert found.adaptations == (OPENED_ANSWER,)


def test_call_that_a_template_leaves_out_is_refused() -> None:
    template = tiny.TOOLS.replace(
        "message.tool_calls or []",
        "(message.tool_calls or []) | selectattr('function.name', 'ne', 'book')",
    )
    with pytest.raises(
        ScoringError, match=r"tiny writes nothing for the call 'book\(.*\)'; use the python or json"
    ):
        emitted(renderer(template), prompt(USER), CALL)


def test_markup_of_a_call_is_the_models_own_tokens() -> None:
    subject = renderer(tiny.TOOLS)
    found = emitted(subject, prompt(USER), CALL)
    names = tiny.names(subject.tokenizer, found.tokens)
    assert (names[0], names[-1]) == ("<tool_call>", "</tool_call>")
    assert (found.spans[0], found.spans[-1][1]) == ((0, len("<tool_call>")), len(found.text))
    assert subject.tokenizer.decode(found.tokens) == found.text


def test_no_end_of_turn_is_scored() -> None:
    for template in TEMPLATES.values():
        subject = renderer(template)
        for action in (CALL, Action("book(2)")):
            assert (
                subject.tokenizer.eos_token_id not in emitted(subject, prompt(USER), action).tokens
            )


# Tokens


def covers_in_order(spans: tuple[tuple[int, int], ...], text: str) -> bool:
    """Whether the spans go through all of `text`; the bytes of one letter have the same span."""
    reached = 0
    previous = (0, 0)
    for span in spans:
        if span != previous and span[0] != reached:
            return False
        previous, reached = span, span[1]
    return reached == len(text)


@quick
@given(words)
def test_tokens_of_a_text_are_that_text_and_nothing_else(text: str) -> None:
    found = emitted(BYTES, prompt(USER), Action(text))
    assert found.text == text
    assert BYTES.tokenizer.decode(found.tokens) == text
    assert covers_in_order(found.spans, text)
    assert len(found.tokens) == len(text.encode()) == len(found.spans)


@quick
@given(words, st.booleans())
def test_tokens_of_prompt_and_action_are_those_of_the_conversation(text: str, native: bool) -> None:
    subject = BYTES_WITH_TOOLS if native else BYTES
    action = Action(calls=(ToolCall("f", json.dumps({"x": text})),)) if native else Action(text)
    before = prompt(SYSTEM, USER)
    rendered = subject.render(before)
    found = subject.emit(before, rendered, action)
    whole = f"{rendered.text}{found.text}<|im_end|>\n"
    together = subject.tokenizer.encoded(whole).ids
    apart = [*rendered.tokens, *found.tokens]
    assert together[: len(apart)] == apart
    assert len(together) == len(apart) + 2


ascii_texts = st.text(
    st.sampled_from([*(chr(code) for code in range(32, 127)), "\n", "a", " "]), min_size=1
).filter(str.strip)


@quick
@given(ascii_texts)
def test_marker_of_a_lone_string_is_not_among_the_tokens(text: str) -> None:
    rendered = MARKING.render(prompt(USER))
    found = MARKING.emit(prompt(USER), rendered, Action(text))
    together = MARKING.tokenizer.encoded(rendered.text + text).ids
    assert [*rendered.tokens, *found.tokens] == together
    assert covers_in_order(found.spans, text)


@pytest.mark.parametrize(
    ("text", "tokens", "spans"),
    [
        ("ab", ["a", "b"], ((0, 1), (1, 2))),
        (" ab", ["\u2581a", "b"], ((0, 2), (2, 3))),
        ("a b", ["a", "\u2581", "b"], ((0, 1), (1, 2), (2, 3))),
        ("\nab", ["\n", "a", "b"], ((0, 1), (1, 2), (2, 3))),
        ("<tool_call>a", ["<tool_call>", "a"], ((0, 11), (11, 12))),
    ],
)
def test_action_under_a_marking_tokenizer_is_what_follows_a_prompt(
    text: str, tokens: list[str], spans: tuple[tuple[int, int], ...]
) -> None:
    found = emitted(MARKING, prompt(USER), Action(text))
    assert tiny.names(MARKING.tokenizer, found.tokens) == tokens
    assert found.spans == spans


def test_prefix_space_of_a_byte_tokenizer_is_not_among_the_tokens() -> None:
    tokenizer = tiny.byte_tokenizer()
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    assert tokenizer.tokenize("ab") == ["\u0120", "a", "b"]
    subject = over(tokenizer)
    found = emitted(subject, prompt(USER), Action("ab"))
    assert tiny.names(subject.tokenizer, found.tokens) == ["a", "b"]
    assert found.spans == ((0, 1), (1, 2))


def test_lone_string_does_get_a_marker() -> None:
    # The control for the tests above.
    assert MARKING.tokenizer.encoded("ab").tokens == ["\u2581a", "b"]


BYTES = renderer()
BYTES_WITH_TOOLS = renderer(tiny.TOOLS)
MARKING = renderer(tokenizer=tiny.marking_tokenizer)


def behind(lead: str, action: Action, template: str, *, text: bool = False) -> tuple[str, Emitted]:
    """The prompt as text, and the action after it."""
    made = renderer(template)
    given = Prompt(text="Go on.", lead=lead) if text else Prompt((SYSTEM, USER), lead=lead)
    rendered = made.render(given)
    assert made.tokenizer.tokens(rendered.text) == rendered.tokens
    return rendered.text, made.emit(given, rendered, action)


@pytest.mark.parametrize("template", [tiny.CHATML, tiny.TOOLS])
def test_the_beginning_of_a_reply_stands_behind_the_generation_prompt(template: str) -> None:
    plain = renderer(template).render(Prompt((SYSTEM, USER))).text
    text, emitted = behind("I look.\n", Action("ls"), template)
    assert text == f"{plain}I look.\n"
    assert emitted.text == "ls"
    assert behind("I look.\n", Action("ls"), template, text=True)[0] == "Go on.I look.\n"


def test_a_call_stands_behind_what_was_said_before_it_as_the_template_has_it() -> None:
    alone = behind("", CALL, tiny.TOOLS)[1]
    text, emitted = behind("I book.", CALL, tiny.TOOLS)
    assert text.endswith("assistant\nI book.")
    assert emitted.text.strip() == alone.text.strip()
    assert LEAD_ELSEWHERE not in emitted.adaptations


def test_a_call_written_as_text_begins_a_line_behind_what_was_said() -> None:
    text, emitted = behind("I book.", CALL, tiny.CHATML)
    assert text.endswith("assistant\nI book.")
    assert emitted.text == '\n{"name": "book", "arguments": {"room": 2}}'
    assert behind("I book.\n", CALL, tiny.CHATML)[1].text.startswith("{")


def test_a_template_that_writes_no_text_beside_calls_is_told_of() -> None:
    written = "{{ message['content'] or '' }}"
    silent = tiny.TOOLS.replace(
        written, "{% if not message.tool_calls %}" + written + "{% endif %}"
    )
    assert silent != tiny.TOOLS
    text, emitted = behind("I book.", CALL, silent)
    assert text.endswith("assistant\nI book.")
    assert "I book." not in emitted.text
    assert LEAD_ELSEWHERE in emitted.adaptations


def test_what_was_adapted_before_is_told_first() -> None:
    made = renderer(tiny.CHATML)
    given = Prompt((USER, CALLED, RESULT), adaptations=("told otherwise",))
    assert made.render(given).adaptations == ("told otherwise", FOLDED_CALLS, FOLDED_RESULTS)
    assert made.render(Prompt(text="x", adaptations=("told",))).adaptations == ("told",)


def test_of_a_very_long_action_the_beginning_is_scored_and_that_is_told() -> None:
    made = renderer()
    given = Prompt((USER,))
    rendered = made.render(given)
    long = made.emit(given, rendered, Action("x" * LONGEST_ACTION + "yz"))
    assert (long.text, len(long.tokens)) == ("x" * LONGEST_ACTION, LONGEST_ACTION)
    assert len(long.spans) == LONGEST_ACTION
    assert long.adaptations == (CUT_ACTION,)
    whole = made.emit(given, rendered, Action("x" * LONGEST_ACTION))
    assert (whole.text, whole.adaptations) == ("x" * LONGEST_ACTION, ())
