"""Plain data over a socket: frames of JSON, with tags for what JSON does not have.

The reader trusts nothing. It builds values of built-in types only, so that their `==` is Python's
own, whatever the sender is.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import islice
from typing import Any

MOST_BYTES = 16 * 1024 * 1024
MOST_ITEMS = 100_000  # of an iterator, which may have no end

_JSON_INTEGER = 2**53
_LENGTH = struct.Struct(">I")


class NotPlainError(Exception):
    """A value that is not plain data, and so can't be sent."""


class BrokenFrameError(Exception):
    """The other side sent something that is no message, or nothing more."""


class Opaque:
    """Stands for a value that can't be sent: equal to nothing but itself."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __repr__(self) -> str:
        return f"<{self._kind} object>"


def send(link: socket.socket, message: Any) -> None:
    """Send one message of JSON types.

    Raises:
        NotPlainError: when it is too long.
        OSError: when nobody reads.
    """
    data = json.dumps(message).encode()
    if len(data) > MOST_BYTES:
        raise NotPlainError("the value is too large")
    link.sendall(_LENGTH.pack(len(data)) + data)


def receive(link: socket.socket) -> Any:
    """The next message.

    Raises:
        BrokenFrameError: at the end of the stream, and for anything that is no message.
        TimeoutError: when none came in the socket's time.
    """
    (length,) = _LENGTH.unpack(_exactly(link, _LENGTH.size))
    if length > MOST_BYTES:
        raise BrokenFrameError(f"a message of {length} bytes")
    try:
        return json.loads(_exactly(link, length))
    except (ValueError, RecursionError) as error:
        raise BrokenFrameError(str(error)) from None


def _exactly(link: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        try:
            part = link.recv(min(size - len(parts), 1 << 20))
        except ConnectionError as error:
            raise BrokenFrameError(str(error)) from None
        if not part:
            raise BrokenFrameError("the stream ended")
        parts += part
    return bytes(parts)


def encode(value: Any, name_of: Callable[[Any], str | None]) -> Any:
    """`value` in JSON types. `name_of` gives the name of a function that both sides know.

    A subclass of a built-in type is sent as that type, which is what it compares as unless it says
    otherwise; an ordered dict, which does, as itself. An iterator is used up, and arrives as one.

    Raises:
        NotPlainError: when it is, or holds, something else, or is nested too deeply.
    """
    try:
        return _encoded(value, name_of)
    except RecursionError:
        raise NotPlainError(type(value).__qualname__) from None


def _encoded(value: Any, name_of: Callable[[Any], str | None]) -> Any:
    def many(values: Any) -> list[Any]:
        return [_encoded(each, name_of) for each in values]

    if value is None or isinstance(value, bool):
        return value
    # By the base's own methods: an enumeration's are about its names.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        number = int.__int__(value)
        return number if abs(number) < _JSON_INTEGER else {"int": hex(number)}
    if isinstance(value, float):
        return {"float": float.hex(value)}
    if isinstance(value, list):
        return many(value)
    for tag, kind in _COLLECTIONS.items():
        if isinstance(value, kind):
            return {tag: many(value)}
    if isinstance(value, dict):
        tag = "ordered_dict" if isinstance(value, OrderedDict) else "dict"
        return {tag: [many(pair) for pair in value.items()]}
    for tag, (parts, _) in _SCALARS.items():
        kind = _kind(tag, sys.modules.get)
        if kind is not None and isinstance(value, kind):
            return {tag: parts(value)}
    for tag, view in _VIEWS.items():
        if isinstance(value, view):
            return {tag: many(value)}
    if isinstance(value, Iterator):
        items = list(islice(value, MOST_ITEMS + 1))
        if len(items) > MOST_ITEMS:
            raise NotPlainError("the iterator does not end")
        return {"iterator": many(items)}
    name = name_of(value)
    if name is not None:
        return {"name": name}
    raise NotPlainError(type(value).__qualname__)


def decode(data: Any, named: Callable[[str], Any]) -> Any:
    """The value that `data` stands for; `named` finds a function by its name.

    Raises:
        BrokenFrameError: when it stands for nothing.
    """
    try:
        return _decoded(data, named)
    except (ValueError, TypeError, KeyError, ArithmeticError, RecursionError) as error:
        raise BrokenFrameError(f"{type(error).__name__}: {error}") from None


def _decoded(data: Any, named: Callable[[str], Any]) -> Any:
    if isinstance(data, list):
        return [_decoded(each, named) for each in data]
    if not isinstance(data, dict):
        return data
    ((tag, content),) = data.items()
    if tag in _COLLECTIONS:
        return _COLLECTIONS[tag](_decoded(content, named))
    if tag in _SCALARS:
        return _SCALARS[tag][1](_kind(tag, import_module), *content)
    if tag == "int":
        return int(content, 16)
    if tag == "float":
        return float.fromhex(content)
    if tag in ("dict", "ordered_dict"):
        pairs = ((_decoded(key, named), _decoded(value, named)) for key, value in content)
        return dict(pairs) if tag == "dict" else OrderedDict(pairs)
    if tag == "iterator":
        return iter(_decoded(content, named))
    if tag == "dict_items":
        return dict(_decoded(content, named)).items()
    if tag == "dict_keys":
        return dict.fromkeys(_decoded(content, named)).keys()
    if tag == "dict_values":
        return dict(enumerate(_decoded(content, named))).values()
    if tag == "name" and isinstance(content, str):
        return named(content)
    if tag in ("opaque", "module"):
        return Opaque(f"{'module ' * (tag == 'module')}{content}"[:80])
    raise ValueError(f"an unknown tag {tag!r}")


_COLLECTIONS: dict[str, type] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "deque": deque,
}
_VIEWS: dict[str, type] = {
    "dict_keys": type({}.keys()),
    "dict_values": type({}.values()),
    "dict_items": type({}.items()),
}


def _kind(tag: str, module: Callable[[str], Any]) -> Any:
    """The type that a tag of _SCALARS names; its module costs time, and is often not needed."""
    home, _, name = tag.rpartition(".")
    return getattr(module(home), name, None)


def _without_zone(time: Any) -> list[Any]:
    if time.tzinfo is not None:
        raise NotPlainError(f"{type(time).__qualname__} with a time zone")
    return [time.isoformat()]


# How each is taken apart, and put together again. A datetime is a date, so it comes first.
_SCALARS: dict[str, tuple[Callable[[Any], list[Any]], Callable[..., Any]]] = {
    "builtins.range": (lambda r: [r.start, r.stop, r.step], lambda kind, *parts: kind(*parts)),
    "builtins.complex": (
        lambda c: [c.real.hex(), c.imag.hex()],
        lambda kind, real, imag: kind(float.fromhex(real), float.fromhex(imag)),
    ),
    "builtins.bytes": (lambda b: [b.hex()], lambda kind, text: kind.fromhex(text)),
    "builtins.bytearray": (lambda b: [b.hex()], lambda kind, text: kind.fromhex(text)),
    "datetime.datetime": (_without_zone, lambda kind, text: kind.fromisoformat(text)),
    "datetime.date": (lambda d: [d.isoformat()], lambda kind, text: kind.fromisoformat(text)),
    "datetime.time": (_without_zone, lambda kind, text: kind.fromisoformat(text)),
    "datetime.timedelta": (
        lambda d: [d.days, d.seconds, d.microseconds],
        lambda kind, *parts: kind(*parts),
    ),
    "decimal.Decimal": (lambda d: [str(d)], lambda kind, text: kind(text)),
    "fractions.Fraction": (
        lambda f: [hex(f.numerator), hex(f.denominator)],
        lambda kind, numerator, denominator: kind(int(numerator, 16), int(denominator, 16)),
    ),
}
