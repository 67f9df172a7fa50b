from __future__ import annotations

import json
import random
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_failgain.call_text import Call, bare, read_json, read_python, write_json, write_python
from strategies import quick

names = st.sampled_from(["a", "b", "room", "day", "to"])
leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.floats(-1e9, 1e9)
values: st.SearchStrategy[Any] = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
arguments = st.dictionaries(names, values, max_size=4)


def respelled(value: object, luck: random.Random) -> str:
    """A Python literal of `value` that hardly looks like its repr."""
    gap = luck.choice(["", " ", "\t", "  "])
    if isinstance(value, str):
        quoted = "".join(luck.choice([char, f"\\U{ord(char):08x}"]) for char in value)
        plain = not any(char in quoted for char in "\"\n\r\0'") and "\\" not in value
        text = luck.choice([f"'{quoted}'", f'"{quoted}"']) if plain else ascii(value)
    elif isinstance(value, dict):
        pairs = [f"{respelled(k, luck)}:{gap}{respelled(v, luck)}" for k, v in value.items()]
        luck.shuffle(pairs)
        text = f"{{{gap}{', '.join(pairs)}{',' if pairs else ''}}}"
    elif isinstance(value, list):
        text = f"[{gap}{','.join(respelled(inner, luck) for inner in value)}{gap}]"
    else:
        text = repr(value)
    return luck.choice([text, f"({gap}{text})"])


def shuffled(call: Call, luck: random.Random) -> Call:
    return Call(call.tool, tuple(luck.sample(call.keywords, len(call.keywords))))


@given(arguments, st.integers(0, 99))
@quick
def test_spelling_does_not_change_what_a_call_means(given: dict[str, Any], seed: int) -> None:
    luck, call = random.Random(seed), Call.of("book", **given)
    keywords = [
        f"{name} ={respelled(value, luck)}" for name, value in shuffled(call, luck).keywords
    ]
    written = f"book( {' , '.join(keywords)})"
    assert read_python(written).canonical == call.canonical, written
    assert read_json(write_json(shuffled(call, luck))).canonical == call.canonical


@given(arguments)
@quick
def test_what_is_written_is_read_as_the_same_call(given: dict[str, Any]) -> None:
    call = Call.of("book", **given)
    assert read_python(write_python(call)) == call
    assert read_json(write_json(call)) == call


@given(arguments, names, values, values)
@quick
def test_another_value_is_another_call(
    given: dict[str, Any], name: str, one: object, other: object
) -> None:
    assume(json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True))
    call = Call.of("book", **{**given, name: one})
    assert call.canonical != call.with_value(name, other).canonical
    assert call.canonical != call.without(name).canonical
    assert call.canonical != call.of_tool("cancel").canonical


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(("1", "1.0"), ("1", "True"), ("'1'", "1"), ("[1]", "(1,)"), ("{}", "set()")),
        *(("'x'", "b'x'"), ("{'a': 1}", "{'a': True}"), ("[1, 2]", "[2, 1]"), ("0.0", "-0.0")),
        ("{1}", "[1]"),
    ],
)
def test_values_of_another_type_or_order_differ(one: str, other: str) -> None:
    assert read_python(f"f(a={one})").canonical != read_python(f"f(a={other})").canonical


def test_the_order_of_a_sets_members_does_not_count() -> None:
    # 0 and 8 fall into the same place of a small set, so they are listed as they were put in.
    assert read_python("f(a={0, 8})").canonical == read_python("f(a={8, 0})").canonical


def test_the_last_of_two_arguments_of_a_name_counts() -> None:
    assert read_python("f(a=1, a=2)").canonical == read_python("f(a=2)").canonical
    doubled = read_json('{"name": "f", "arguments": {"a": 1, "a": 2}}')
    assert doubled.canonical == read_python("f(a=2)").canonical
    assert len(doubled.keywords) == 2


@pytest.mark.parametrize(
    "text",
    ["f", "f(x)", "f(**{})", "f(*[1])", "f() + 1", "a.f()", "f(a=1", "f()\ng()", "f(a=1+'')"],
)
def test_what_is_no_call_with_plain_values_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_python(text)


@pytest.mark.parametrize(
    "text",
    [
        *("[]", "{}", '{"name": "f"}', '{"name": 1, "arguments": {}}', "f()"),
        *('{"name": "f", "arguments": []}', '{"name": "f", "arguments": "[]"}'),
        '{"name": "f", "arguments": {}, "id": 1}',
    ],
)
def test_what_is_no_call_in_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_json(text)


@given(st.text(alphabet="`Action: call\n```python f(a='x')", max_size=40))
@quick
def test_a_bare_text_stays_as_it_is(text: str) -> None:
    assert bare(bare(text)) == bare(text)


@given(st.text(max_size=40))
@quick
def test_reading_reads_or_refuses_and_nothing_else(text: str) -> None:
    with suppress(ValueError):
        read_python(text)
    with suppress(ValueError):
        read_json(text)
