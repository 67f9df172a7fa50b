from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_failgain.spans import action_spans
from strategies import json_values, quick, texts

identifiers = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
dotted_names = st.lists(identifiers, min_size=1, max_size=3).map(".".join)
literals = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: (
        st.lists(inner, max_size=2) | st.tuples(inner) | st.dictionaries(texts, inner, max_size=2)
    ),
    max_leaves=5,
)
python_arguments = st.builds(
    lambda values, separator: separator.join(f"{name}={value!r}" for name, value in values.items()),
    st.dictionaries(identifiers, literals, max_size=3),
    st.sampled_from([", ", ",", ",\n    "]),
)
wrappings = st.sampled_from(
    [
        ("", ""),
        ("<tool_call>\n", "\n</tool_call>"),
        ("```json\n", "\n```"),
        ("[TOOL_CALLS] [", "]"),
        ("I will write to Ann (now).\n<tool_call>", "</tool_call>"),
    ]
)
argument_keys = st.sampled_from(["arguments", "parameters", "args"])
pieces = st.one_of(
    texts,
    st.text("(){}[]\"'\\,:= \nab", max_size=8),
    st.sampled_from(
        ["f(", ")", '{"name": "f"', ', "arguments": ', '{"x": 1}', "}", "</tool_call>"]
    ),
)
any_text = st.lists(pieces, max_size=6).map("".join)


def characters(text: str, kind: str) -> str:
    """The characters of the text that are "arguments", "name" or "wrapping"."""
    spans = action_spans(text)
    tokens = [(i, i + 1) for i in range(len(text))]
    kinds = [
        "arguments"
        if spans.in_arguments(token)
        else "wrapping"
        if spans.in_wrapper(token)
        else "name"
        for token in tokens
    ]
    return "".join(character for character, of in zip(text, kinds, strict=True) if of == kind)


def arguments(text: str) -> str:
    return characters(text, "arguments")


def name(text: str) -> str:
    return characters(text, "name")


@pytest.mark.parametrize(
    ("text", "called", "argument_text"),
    [
        ("send(to='Ann')", "send", "to='Ann'"),
        ("finish()", "finish", ""),
        ("f(g(1), (2, 3))", "f", "g(1), (2, 3)"),
        ("f(text='a) and (b', other=\")\")", "f", "text='a) and (b', other=\")\""),
        ("mail.client.send(to='Ann')", "mail.client.send", "to='Ann'"),
        ("  f(x=1)\n", "f", "x=1"),
        ("send(\n    to='Ann',\n    body='''a\nb''',\n)", "send", None),
        ("f(day=12 Oct)", "f", "day=12 Oct"),
        ("f(text='never closed)", "f", "text='never closed"),
        ("_f2(x)", "_f2", "x"),
        ("suche_größe(x=1)", "suche_größe", "x=1"),
    ],
)
def test_a_python_call(text: str, called: str, argument_text: str | None) -> None:
    assert action_spans(text).recognised
    assert name(text) == called
    if argument_text is None:
        argument_text = text[text.index("(") + 1 : text.rindex(")")]
    assert arguments(text) == argument_text


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    return x",
        "def f(x): return (x)",
        "x = f(1)",
        "import os\nos.remove('a')",
        "I can't find Ann.",
        "I ask (again)",
        "Action: f(x=1)",
        "f(x=1",
        "f",
        "(1, 2)",
        "2(x)",
        '{"to": "Ann"}',
        "",
        "()",
    ],
)
def test_what_is_no_call_is_all_arguments_and_has_no_wrapping(text: str) -> None:
    assert not action_spans(text).recognised
    assert arguments(text) == text
    assert not action_spans(text).in_wrapper((0, len(text)))


@pytest.mark.parametrize(
    ("text", "called", "argument_text"),
    [
        ('{"name": "f", "arguments": {"x": 1}}', '"f"', '{"x": 1}'),
        ('{"arguments": {"x": 1}, "name": "f"}', '"f"', '{"x": 1}'),
        ('{"parameters":{"x":1},"id":"1","name":"f"}', '"f"', '{"x":1}'),
        ('{"function": "f", "args": [1, {"y": ")}"}]}', '"f"', '[1, {"y": ")}"}]'),
        ('{"name": "f", "arguments": {}}', '"f"', "{}"),
        ('{"name": "f", "arguments": {"a": {"b": {"c": "}"}}}}', '"f"', '{"a": {"b": {"c": "}"}}}'),
        ('{"name": "f", "arguments": "{\\"x\\": 1}"}', '"f"', '"{\\"x\\": 1}"'),
        ('{"name": "a \\"b\\"", "arguments": {"x": "\\\\"}}', '"a \\"b\\""', '{"x": "\\\\"}'),
        ('<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>', '"f"', '{"x": 1}'),
        ('{ "name" :\n"f", "arguments"\n:\n {"x": 1} }', '"f"', '{"x": 1}'),
        ('{"arguments": {"x": 1}}', "", '{"x": 1}'),
        ('{"function": {"name": "f", "arguments": "{}"}, "type": "function"}', '"f"', '"{}"'),
    ],
)
def test_a_json_call(text: str, called: str, argument_text: str) -> None:
    assert action_spans(text).recognised
    assert name(text) == called
    assert arguments(text) == argument_text


def test_an_argument_called_name_is_not_the_name_of_the_call() -> None:
    text = '{"arguments": {"name": "Ann"}, "name": "find"}'
    assert arguments(text) == '{"name": "Ann"}'
    assert name(text) == '"find"'
    assert name('{"arguments": {"name": "Ann"}}') == ""


@pytest.mark.parametrize("rest", ['{"x": "Ann, who', '{"x": 1', "{'x': 1}", "{x}", '{"x": 1,}'])
def test_arguments_cut_short_or_badly_written_reach_to_the_end(rest: str) -> None:
    text = '{"name": "f", "arguments": ' + rest
    assert name(text) == '"f"'
    assert arguments(text) == rest


@pytest.mark.parametrize(
    "closing", ["\n</tool_call>", "</function_call>", "\n```", "<|tool_call_end|>"]
)
def test_a_closing_tag_is_wrapping_even_behind_badly_written_arguments(closing: str) -> None:
    text = '{"name": "f", "arguments": {"x": 1'
    assert arguments(text + closing) == '{"x": 1'
    assert action_spans(text + closing).in_wrapper((len(text), len(text + closing)))


def test_a_line_break_inside_a_string_does_not_end_the_arguments() -> None:
    text = '<tool_call>{"name": "run", "arguments": {"code": "a\nb\tc"}}</tool_call>'
    assert arguments(text) == '{"code": "a\nb\tc"}'


def test_deep_nesting_is_no_error() -> None:
    text = '{"name": "f", "arguments": ' + "[" * 100_000
    assert arguments(text) == "[" * 100_000


def test_every_call_of_several_has_its_arguments_and_its_name() -> None:
    text = "\n".join(
        f'<tool_call>\n{{"name": "{tool}", "arguments": {{"x": {x}}}}}\n</tool_call>'
        for tool, x in (("first", 1), ("second", 2))
    )
    assert arguments(text) == '{"x": 1}{"x": 2}'
    assert name(text) == '"first""second"'
    between = (text.index("</tool_call>"), text.rindex("<tool_call>"))
    assert action_spans(text).in_wrapper(between)


@pytest.mark.parametrize("token", [(6, 8), (5, 8), (6, 7), (7, 8)])
def test_no_token_is_in_the_arguments_of_a_call_without_any(token: tuple[int, int]) -> None:
    assert not action_spans("finish()").in_arguments(token)


def test_tokens_of_a_python_call() -> None:
    text = "send(to='Ann')"
    spans = action_spans(text)
    kinds = {
        token: (spans.in_wrapper(span), spans.in_arguments(span))
        for token, span in {
            "send": (0, 4),
            "(": (4, 5),
            "(to": (4, 7),
            "Ann": (9, 12),
            "')": (12, 14),
            ")": (13, 14),
        }.items()
    }
    assert kinds == {
        "send": (False, False),
        "(": (True, False),
        "(to": (False, True),
        "Ann": (False, True),
        "')": (False, True),
        ")": (True, False),
    }


def test_an_empty_token_is_in_the_arguments_that_it_stands_inside() -> None:
    # Some tokenizers give no characters to a token that is white space.
    spans = action_spans("f(a, b)")
    assert spans.in_arguments((4, 4))
    assert not spans.in_arguments((1, 1))
    assert not spans.in_arguments((7, 7))


@quick
@given(text=any_text)
def test_nothing_outside_the_text_is_an_argument(text: str) -> None:
    spans = action_spans(text)
    for outside in ((-9, 0), (len(text), len(text) + 9)):
        assert not spans.in_arguments(outside)
        assert spans.in_wrapper(outside) == spans.recognised


@quick
@given(text=any_text.filter(len), data=st.data())
def test_a_token_is_what_its_characters_are_with_arguments_first(
    text: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    spans = action_spans(text)
    inside = [(i, i + 1) for i in range(start, end)]
    assert spans.in_arguments((start, end)) == any(map(spans.in_arguments, inside))
    assert spans.in_wrapper((start, end)) == all(map(spans.in_wrapper, inside))
    assert spans.recognised or all(map(spans.in_arguments, inside))


@quick
@given(called=dotted_names, argument_text=python_arguments, blank=st.sampled_from(["", " ", "\n"]))
def test_the_arguments_of_a_python_call_are_exactly_what_was_put_there(
    called: str, argument_text: str, blank: str
) -> None:
    text = f"{blank}{called}({argument_text}){blank}"
    assert (name(text), arguments(text)) == (called, argument_text)


@quick
@given(
    called=texts,
    values=st.dictionaries(texts, json_values, max_size=3) | texts,
    key=argument_keys,
    extras=st.dictionaries(st.sampled_from(["id", "type", "index"]), st.integers(), max_size=2),
    wrapping=wrappings,
    indent=st.sampled_from([None, 2]),
    ascii_only=st.booleans(),
    data=st.data(),
)
def test_the_arguments_of_a_json_call_are_exactly_what_was_put_there(
    called: str,
    values: Any,
    key: str,
    extras: dict[str, int],
    wrapping: tuple[str, str],
    indent: int | None,
    ascii_only: bool,
    data: st.DataObject,
) -> None:
    def dumped(value: Any) -> str:
        return json.dumps(value, indent=indent, ensure_ascii=ascii_only)

    fields = {"name": dumped(called), key: dumped(values)}
    fields |= {extra: dumped(value) for extra, value in extras.items()}
    order = data.draw(st.permutations(sorted(fields)))
    body = ", ".join(f'"{name}": {fields[name]}' for name in order)
    text = f"{wrapping[0]}{{{body}}}{wrapping[1]}"
    assert (name(text), arguments(text)) == (dumped(called), dumped(values))
    spans = action_spans(text)
    for edge in ((0, len(wrapping[0])), (len(text) - len(wrapping[1]), len(text))):
        assert spans.in_wrapper(edge) or edge[0] == edge[1]


@quick
@given(
    values=st.dictionaries(texts, json_values, min_size=1, max_size=3),
    data=st.data(),
)
def test_arguments_that_are_cut_short_are_all_that_is_left(
    values: dict[str, Any], data: st.DataObject
) -> None:
    whole = json.dumps(values)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    assert arguments('{"name": "f", "arguments": ' + cut) == cut
