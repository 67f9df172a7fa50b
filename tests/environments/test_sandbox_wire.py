from __future__ import annotations

import contextlib
import datetime
import json
import math
import socket
import struct
import threading
from collections import deque
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_failgain.environments.sandbox.inside import wire

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**53) - 1, -(2**53) + 1)
    | st.integers(2**53 - 1, 2**53 + 1)
    | st.floats()
    | st.complex_numbers(allow_infinity=False, allow_nan=False)
    | st.text()
    | st.characters()  # half ones, too
    | st.binary()
)
scarce = (
    st.complex_numbers()
    | st.dates()
    | st.datetimes()
    | st.times()
    | st.timedeltas()
    | st.decimals()
    | st.fractions()
    | st.builds(range, st.integers(), st.integers(), st.integers(1))
    | st.binary().map(bytearray)
)
hashable = st.recursive(
    scalars.filter(lambda value: value == value),  # no NaN, which no set finds again
    lambda inner: st.lists(inner, max_size=4).map(tuple) | st.frozensets(inner, max_size=4),
    max_leaves=6,
)


def _collections(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.lists(inner, max_size=4)
    return lists | lists.map(tuple) | st.dictionaries(hashable, inner, max_size=4)


# Those whose `repr` is Python that makes them again.
plain_values = st.recursive(
    scalars | st.sets(hashable, max_size=4) | hashable, _collections, max_leaves=12
)
all_values = st.recursive(
    scalars | scarce | st.sets(hashable, max_size=4) | st.lists(scarce, max_size=4).map(deque),
    _collections,
    max_leaves=12,
)
TAGS = ["int", "float", "dict", "iterator", "name", "opaque"]
TAGS += [*wire._COLLECTIONS, *wire._VIEWS, *wire._SCALARS]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        | st.dictionaries(st.sampled_from(TAGS), inner, min_size=1, max_size=1)
    ),
    max_leaves=12,
)


def same(one: Any, other: Any) -> bool:
    """Of the same type and value, all the way down; NaN is NaN, and -0.0 is not 0.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float | complex | Decimal):
        return repr(one) == repr(other)
    if isinstance(one, list | tuple | deque):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return same(list(one.items()), list(other.items()))
    return bool(one == other)


def nameless(_: Any) -> None:
    return None


def named(name: str) -> Any:
    return ("function", name)


def there_and_back(value: Any) -> Any:
    return wire.decode(json.loads(json.dumps(wire.encode(value, nameless))), named)


@given(all_values)
def test_plain_values_arrive_as_they_were(value: Any) -> None:
    assert same(there_and_back(value), value)


@given(all_values)
def test_what_is_sent_is_json_without_characters_that_no_encoding_has(value: Any) -> None:
    json.dumps(wire.encode(value, nameless)).encode("ascii")


@pytest.mark.parametrize("value", [{}, {1: 2, "a": [3]}, {(1, 2): 3}])
def test_views_of_a_dictionary_arrive_as_views(value: dict[Any, Any]) -> None:
    assert same(there_and_back(value.keys()), value.keys()) or not value.keys() ^ there_and_back(
        value.keys()
    )
    assert list(there_and_back(value.values())) == list(value.values())
    assert list(there_and_back(value.items())) == list(value.items())
    assert [
        type(there_and_back(view)) for view in (value.keys(), value.values(), value.items())
    ] == [
        type({}.keys()),
        type({}.values()),
        type({}.items()),
    ]


def test_iterators_arrive_as_iterators() -> None:
    arrived = there_and_back(iter([1, (2, 3)]))
    assert isinstance(arrived, Iterator)
    assert list(arrived) == [1, (2, 3)]


def test_a_subclass_arrives_as_what_it_compares_as() -> None:
    class Number(int):
        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 0

        def __int__(self) -> int:
            return 7

    class Text(str):
        __slots__ = ()

        def __str__(self) -> str:
            return "other"

    class Real(float):
        def hex(self) -> str:
            return "0x1p+0"

    for value, plain in (
        (Number(3), 3),
        (Number(2**60), 2**60),
        (Text("a"), "a"),
        (Real(2.5), 2.5),
    ):
        assert same(there_and_back(value), plain)


def test_functions_that_both_sides_know_go_by_their_names() -> None:
    sent = wire.encode([len, 1], lambda value: "len" if value is len else None)
    assert wire.decode(sent, named) == [("function", "len"), 1]


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def _endless() -> Iterator[int]:
    while True:
        yield 1


def _holding_itself() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    "value",
    [
        object(),
        [object()],
        int,
        len,
        _nested(10_000),
        _endless(),
        _holding_itself(),
        {1: {2: print}},
    ],
    ids=["object", "inside", "type", "function", "nested", "endless", "loop", "in a dictionary"],
)
def test_what_is_not_plain_is_refused(value: Any) -> None:
    with pytest.raises(wire.NotPlainError):
        wire.encode(value, nameless)


@given(json_values)
@settings(max_examples=300)
def test_any_json_is_either_understood_or_a_broken_frame(data: Any) -> None:
    with contextlib.suppress(wire.BrokenFrameError):
        wire.decode(data, named)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"int": "1", "float": "1"},
        {"unknown": 1},
        {"int": 5},
        {"int": "zz"},
        {"float": "x"},
        {"float": None},
        {"dict": 5},
        {"dict": [[1]]},
        {"dict": [[[], 1]]},
        {"set": [[]]},
        {"set": 1},
        {"iterator": 1},
        {"dict_keys": [[]]},
        {"dict_items": [1]},
        {"name": 5},
        {"name": ["f"]},
        {"builtins.range": [1, 2, 0]},
        {"builtins.range": ["a"]},
        {"builtins.bytes": ["xyz"]},
        {"builtins.complex": ["1"]},
        {"datetime.date": ["today"]},
        {"datetime.date": [5]},
        {"datetime.timedelta": [1e300, 0, 0]},
        {"decimal.Decimal": ["x"]},
        {"fractions.Fraction": ["1", "0"]},
        {"os.system": ["true"]},
        {"builtins.eval": ["1"]},
    ],
    ids=json.dumps,
)
def test_malformed_values_are_broken_frames(data: Any) -> None:
    with pytest.raises(wire.BrokenFrameError):
        wire.decode(data, named)


def test_deep_values_are_broken_frames() -> None:
    with pytest.raises(wire.BrokenFrameError):
        wire.decode(_nested(100_000), named)


def test_an_opaque_value_equals_nothing_but_itself() -> None:
    opaque = wire.decode({"opaque": "x" * 1000}, named)
    assert opaque == opaque
    assert opaque != wire.decode({"opaque": "x" * 1000}, named)
    assert len(repr(opaque)) < 100


def _received(data: bytes) -> Any:
    """What is received when the other side sends `data`, and then nothing more."""
    one, other = socket.socketpair()
    with one, other:
        sender = threading.Thread(target=_send_all, args=(other, data))
        sender.start()
        try:
            return wire.receive(one)
        finally:
            one.close()
            sender.join()


def _send_all(link: socket.socket, data: bytes) -> None:
    with contextlib.suppress(OSError):
        link.sendall(data)
        link.shutdown(socket.SHUT_WR)


def _frame(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


@pytest.mark.parametrize("message", [None, [], {"a": ["\ud800", 1.5]}, "x" * 3_000_000])
def test_messages_arrive_whole(message: Any) -> None:
    one, other = socket.socketpair()
    with one, other:
        sender = threading.Thread(target=wire.send, args=(other, message))
        sender.start()
        assert wire.receive(one) == message
        sender.join()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\0",
        b"\0\0\0\5abc",
        b"\xff\xff\xff\xff",
        struct.pack(">I", wire.MOST_BYTES + 1) + b"1",
        _frame(b""),
        _frame(b"{"),
        _frame(b"\xff\xfe"),
        _frame(b"[1] 2"),
        _frame(b"[" * 1_000_000),
        _frame(b'{"a":' * 100_000),
        b'{"value": 2}',
    ],
    ids=range(12),
)
def test_broken_messages_are_refused(data: bytes) -> None:
    with pytest.raises(wire.BrokenFrameError):
        _received(data)


def test_a_message_that_is_too_long_is_not_sent() -> None:
    one, other = socket.socketpair()
    with one, other, pytest.raises(wire.NotPlainError):
        wire.send(one, "x" * wire.MOST_BYTES)


def test_a_message_to_nobody_is_an_error_of_the_link() -> None:
    one, other = socket.socketpair()
    with one:
        other.close()
        with pytest.raises(BrokenPipeError):
            wire.send(one, "x" * 1_000_000)


def test_fractions_and_infinities_keep_their_kind() -> None:
    for value in (
        Fraction(1, 3),
        Decimal("1.10"),
        Decimal("NaN"),
        math.inf,
        -0.0,
        datetime.date.max,
    ):
        assert same(there_and_back(value), value)
