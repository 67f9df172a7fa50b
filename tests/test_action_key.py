"""Which actions are the same, however they are written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_failgain.action_key import action_key
from pytest_failgain.trajectory import Action, ToolCall


def made(arguments: str, name: str = "add") -> Action:
    return Action(calls=(ToolCall(name, arguments),))


ONE = made('{"title": "Lunch", "n": 1, "tags": ["a", "b"]}')


@pytest.mark.parametrize(
    "other",
    [
        made('{"tags":["a","b"],"n":1,"title":"Lunch"}'),
        made('\n{"title": "\\u004cunch", "n": 1.0, "tags": ["a", "b"]} '),
        made(json.dumps('{"title": "Lunch", "n": 1, "tags": ["a", "b"]}')),
        Action('{"name": "add", "arguments": {"n": 1, "title": "Lunch", "tags": ["a", "b"]}}'),
        Action("add(title='Lunch', n=1, tags=['a', 'b'])"),
        Action(text="I add it.", calls=ONE.calls),
    ],
)
def test_actions_that_mean_the_same_have_one_key(other: Action) -> None:
    assert action_key(other) == action_key(ONE)
    assert hash(action_key(other)) == hash(action_key(ONE))


@pytest.mark.parametrize(
    "other",
    [
        made('{"title": "Lunch", "n": 2, "tags": ["a", "b"]}'),
        made('{"title": "lunch", "n": 1, "tags": ["a", "b"]}'),
        made('{"title": "Lunch", "n": "1", "tags": ["a", "b"]}'),
        made('{"title": "Lunch", "n": true, "tags": ["a", "b"]}'),
        made('{"title": "Lunch", "n": 1, "tags": ["b", "a"]}'),
        made('{"title": "Lunch", "n": 1}'),
        made('{"title": "Lunch", "n": 1, "tags": ["a", "b"]}', name="remove"),
        made('{"title": "Lunch", "n": 1, "tags": ["a", "b"]'),
        Action(calls=(*ONE.calls, *ONE.calls)),
        Action("add(title='Lunch')"),
    ],
)
def test_actions_that_mean_something_else_have_another(other: Action) -> None:
    assert action_key(other) != action_key(ONE)


def test_texts_are_the_same_but_for_white_space_at_their_ends() -> None:
    assert action_key(Action("  ls -l\n")) == action_key(Action("ls -l"))
    assert action_key(Action("ls  -l")) != action_key(Action("ls -l"))
    assert action_key(Action("LS -l")) != action_key(Action("ls -l"))


def test_calls_in_json_of_another_dialect_are_compared_as_values() -> None:
    one = Action('{"tool": "add", "input": {"n": 1, "m": [2]}}')
    assert action_key(Action('{"input":{"m":[2],"n":1.0},"tool":"add"}')) == action_key(one)
    assert action_key(Action('{"tool": "add", "input": {"n": 1, "m": [3]}}')) != action_key(one)
    assert action_key(Action("[1, 2]")) != action_key(Action("[1,2]"))


def test_no_arguments_are_the_same_as_empty_ones() -> None:
    keys = {action_key(made(text)) for text in ("", " ", "{}", "null", '"{}"')}
    assert len(keys) == 1


def test_broken_arguments_are_compared_as_they_are() -> None:
    assert action_key(made('{"a": ')) == action_key(made(' {"a":'))
    assert action_key(made('{"a": ')) != action_key(made('{"b": '))


def test_arguments_nested_without_measure_have_a_key() -> None:
    deep = made('{"a": ' + "[" * 5000 + "]" * 5000 + "}")
    assert action_key(deep) == action_key(deep)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=80)
@given(st.dictionaries(st.text(max_size=4), values, max_size=4), st.randoms())
def test_order_and_spelling_do_not_matter(arguments: dict[str, Any], random: Any) -> None:
    items = list(arguments.items())
    random.shuffle(items)
    written = json.dumps(dict(items), indent=2, ensure_ascii=False)
    key = action_key(made(json.dumps(arguments)))
    assert action_key(made(written)) == key
    assert hash(key) == hash(action_key(made(written)))
    assert action_key(made(json.dumps({**arguments, "another": 1}))) != key
