"""Which tokens could complete one of some calls, told without trying every token.

An unfinished call is read up to where it stands: which brackets are open, and which string. Few
tokens close all of that, and they are known for each such place. Whether they could make one of the
calls is told by closing everything at once and looking at the call that this gives. Where the text
is too odd to be sure, every token with a closing bracket in it stays a candidate: what is ruled out
here must never complete one of the calls, what is left is tried by whoever asks.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

from pytest_failgain.blocking.token_texts import TokenTexts, count_closers, squeezed
from pytest_failgain.call_text import LABELS, LONGEST_CALL, Call, bare
from pytest_failgain.replies import FENCE_ALONE, read_call

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_OUTSIDE = re.compile(r"[()\[\]{}'\"\\#]")
_INSIDE = {quote: re.compile(rf"[\\{quote}]") for quote in "'\""}
# Outside strings these are in no call with literal arguments.
_NEVER = frozenset("!$%&*/;<>?@^`|~\\")
_NAME = re.compile(r"\w*", re.ASCII)
_DRESSING = (*LABELS, "json", "python")
# Stands for whatever a token adds to an open string. Both Python and JSON take it, bytes too.
_MARK = "\x7f"


class OddTextError(Exception):
    """The text is written in a way that this module does not follow."""


class HalfWrittenError(OddTextError):
    """Only what follows the text's last line break or escape could make a whole call of it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a text stands: its open brackets, its open string, and an empty string at its end.

    `empty` is the quote, or the two quotes, that would be three with those of a token.
    """

    brackets: str = ""
    quote: str = ""
    empty: str = ""

    @property
    def closing(self) -> str:
        """What closes everything."""
        return self.quote + "".join(_CLOSING[bracket] for bracket in reversed(self.brackets))


@dataclass(frozen=True, slots=True)
class Stretch:
    """How a text goes on from a place: where it ends, and where all brackets were closed.

    `closed` is -1 where they were not. `plain` tells that it closed what was open, and added
    nothing else but to the string that was open.
    """

    place: Place
    closed: int
    plain: bool


def follow(text: str, place: Place) -> Stretch | None:
    """Read `text` from `place` on, up to where all brackets are closed; None if they can't be.

    Raises:
        OddTextError: for strings in three quotes.
        HalfWrittenError: for comments, joined lines, and a backslash at the end of a string.
    """
    if place.empty and (place.empty + text).startswith(3 * place.empty[0]):
        raise OddTextError
    brackets, quote, at, plain = place.brackets, place.quote, 0, True
    empty = place.empty if not text else ""
    while at < len(text):
        mark = (_INSIDE[quote] if quote else _OUTSIDE).search(text, at)
        between = text[at : mark.start() if mark else None]
        plain = plain and bool(quote or not between.strip(" \t"))
        if mark is None:
            break
        char, start, at = mark.group(), mark.start(), mark.end()
        if quote:
            if char == quote:
                quote, empty = "", ""
            elif at == len(text):
                raise HalfWrittenError
            else:
                at += 1
            continue
        if char in "'\"":
            plain = False
            if text.startswith(3 * char, start):
                raise OddTextError
            if text.startswith(2 * char, start):
                at += 1
                empty = 2 * char if at == len(text) else ""
            else:
                quote, empty = char, char if at == len(text) else ""
        elif char in _CLOSING:
            plain, brackets = False, brackets + char
        elif char in "\\#":
            raise HalfWrittenError
        elif not brackets or _CLOSING[brackets[-1]] != char:
            return None
        else:
            brackets = brackets[:-1]
            if not brackets:
                return Stretch(Place(), at, plain)
    return Stretch(Place(brackets, quote, empty), -1, plain)


@dataclass(frozen=True, slots=True)
class Endings:
    """The tokens that may close everything that is open at a place.

    `plain` ones add to an open string at most, `others` also write something anew, `odd` ones can't
    be followed. All but the last have at most `longest` characters.
    """

    plain: tuple[int, ...] = ()
    others: tuple[int, ...] = ()
    odd: tuple[int, ...] = ()
    longest: int = 0


# Kept as long as the tokens are, for all who block actions in their replies.
_ENDINGS: WeakKeyDictionary[TokenTexts, dict[Place, Endings]] = WeakKeyDictionary()


def endings(texts: TokenTexts, place: Place) -> Endings:
    """Sort the tokens that can close a bracket by what they do at `place`."""
    kept = _ENDINGS.setdefault(texts, {})
    if len(place.brackets) > texts.most_closers:
        return Endings()
    if place not in kept:
        kept[place] = _sorted_endings(texts, place)
    return kept[place]


def _sorted_endings(texts: TokenTexts, place: Place) -> Endings:
    kinds: dict[str, list[int]] = defaultdict(list)
    for token in texts.closers:
        kinds[_kind(texts.texts[token].partition("\n")[0], place)].append(token)
    followed = kinds["plain"] + kinds["others"]
    longest = max((len(texts.texts[token]) for token in followed), default=0)
    return Endings(tuple(kinds["plain"]), tuple(kinds["others"]), tuple(kinds["odd"]), longest)


def _kind(text: str, place: Place) -> str:
    if count_closers(text) < len(place.brackets):
        return "never"
    if "\r" in text:
        return "odd"
    try:
        stretch = follow(text, place)
    except HalfWrittenError:
        return "never"
    except OddTextError:
        return "odd"
    if stretch is None or stretch.closed < 0:
        return "never"
    behind = squeezed(text[stretch.closed :]).strip("`")
    if behind and not behind.startswith("#"):
        # Only white space, backticks and a comment leave a call what it is behind its bracket.
        return "never"
    if "\\" in text:
        return "odd"
    if stretch.plain:
        return "plain"
    outside = _outside_strings(text[: stretch.closed], place)
    strange = {char for char in outside if not char.isascii()}
    if _NEVER & set(outside) or not all(f"a{char}".isidentifier() for char in strange):
        return "never"
    # Python shortens a name's odd letters: its length is not known.
    return "odd" if strange else "others"


def _outside_strings(text: str, place: Place) -> str:
    """A text that `follow` takes, without its strings."""
    whole = place.quote + text
    return re.sub(r"'[^']*'|\"[^\"]*\"", "", whole)


class CallEnds:
    """The tokens that could complete one of `calls`, in any spelling, behind a reply's line."""

    def __init__(self, calls: Sequence[Call], texts: TokenTexts) -> None:
        self._calls = calls
        self._texts = texts
        self._tools = frozenset(call.tool for call in calls)
        self._meanings = frozenset(call.canonical for call in calls)
        self._parts = [(tuple(_names(call)), tuple(_strings(call))) for call in calls]

    @cached_property
    def _naming(self) -> tuple[int, ...]:
        """The tokens that can complete a tool's name and the call at once."""
        # The last letter of a name must be in them, unless JSON's escapes write it.
        last = {tool[-1] for tool in self._tools if tool}
        return tuple(
            token
            for token in self._texts.closers
            if last.intersection(unicodedata.normalize("NFKD", self._texts.texts[token]))
            or "\\" in self._texts.texts[token]
        )

    def candidates(self, reply: str) -> Sequence[int]:
        """The tokens behind which `reply` might be one of the calls, when it is none yet.

        The reply's action is not over. Every token that is left out completes none of the calls.
        """
        if not self._calls:
            return ()
        if not all(tool.isascii() for tool in self._tools):
            return self._texts.closers
        # Python takes full-width letters and the like for plain ones.
        folded = reply if reply.isascii() else unicodedata.normalize("NFKD", reply)
        if "\\" not in reply and not any(tool in folded for tool in self._tools):
            return self._naming_after(reply)
        try:
            return self._in_line(reply.rpartition("\n")[2])
        except OddTextError:
            return self._texts.closers

    def _naming_after(self, reply: str) -> Sequence[int]:
        if "{" in reply:
            return self._naming
        texts = self._texts.texts
        return [i for i in self._naming if "\\" not in texts[i] or "{" in texts[i]]

    def _in_line(self, line: str) -> Sequence[int]:
        body = undressed(line)
        if is_opening(line) or "\r" in body or _MARK in body or len(body) > LONGEST_CALL // 2:
            raise OddTextError
        if body.startswith("{"):
            return self._behind(body, follow(body, Place()))
        if not body[0].isascii() or body[0] in "(#\\":
            raise OddTextError
        name = _NAME.match(body)
        end = name.end() if name else 0
        if not body[end : end + 1].isascii():
            raise OddTextError
        rest = body[end:].lstrip(" \t")
        if not rest:
            return self._others(body, Place())
        if rest[0] in "#\\":
            raise OddTextError
        if rest[0] != "(" or body[:end] not in self._tools:
            return ()
        return self._behind(body, follow(rest, Place()), len(body) - len(rest))

    def _behind(self, body: str, stretch: Stretch | None, start: int = 0) -> Sequence[int]:
        if stretch is None:
            return ()
        if stretch.closed >= 0:
            # What is written behind a whole call makes no other call of it. Behind one of ours,
            # dressing may have hidden it: then nothing is certain.
            call = read_call(body[: start + stretch.closed])
            ours = call is not None and call.canonical in self._meanings
            return range(len(self._texts.texts)) if ours else ()
        return [*self._plain(body, stretch.place), *self._others(body, stretch.place)]

    def _plain(self, body: str, place: Place) -> Sequence[int]:
        found = endings(self._texts, place)
        return found.plain if found.plain and self._nearly(body, place, found.longest) else ()

    def _nearly(self, body: str, place: Place, length: int) -> bool:
        """Whether closing all, with up to `length` more in an open string, may give a call."""
        if place.quote and (
            # What an escape stands for may depend on what follows it; and the arguments may be
            # JSON in a string of the outer object.
            "\\" in body[body.rfind(place.quote) + 1 :]
            or (body.startswith("{") and place.brackets == "{")
        ):
            return True
        call = read_call(body + (_MARK if place.quote else "") + place.closing)
        return call is not None and any(_may_become(call, own, length) for own in self._calls)

    def _others(self, body: str, place: Place) -> Sequence[int]:
        found = endings(self._texts, place)
        if found.others and self._within_reach(body, found.longest):
            return (*found.others, *found.odd)
        return found.odd

    def _within_reach(self, body: str, length: int) -> bool:
        """Whether `length` more characters may do to write all that is in one of the calls."""
        # Each character of a name or of a string takes one at least, in their order, and where
        # there is no escape that one itself.
        if "\\" in body:
            return True
        return any(
            all(_in_order(text, body, length) for text in strings)
            and (not body.isascii() or all(_in_order(name, body, length) for name in names))
            for names, strings in self._parts
        )


def undressed(line: str) -> str:
    """The line from where the dressing before a call ends, with all that stands at its end."""
    # The call is read out of the line's action, which takes dressing off twice. Something that is
    # no dressing keeps the line's end as it is.
    return bare(bare(line + _MARK))[:-1]


def undressed_once(line: str) -> str:
    """The line from where its action begins."""
    return bare(line + _MARK)[:-1]


def is_opening(line: str) -> bool:
    """Whether more text may still show all of the line to be dressing."""
    body = undressed(line).strip()
    if not body or FENCE_ALONE.fullmatch(line):
        return True
    # Labels are read without regard to case, and so some odd letters pass for plain ones.
    odd = not body.isascii() and body.isalpha()
    return odd or any(word.startswith(body.lower()) for word in _DRESSING)


def _names(call: Call) -> Iterator[str]:
    yield call.tool
    yield from call.arguments


def _strings(call: Call) -> Iterator[str]:
    yield from _strings_in((*call.positional, *call.arguments.values()))


def _strings_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _strings_in((*value, *value.values()))
    elif isinstance(value, Iterable) and not isinstance(value, bytes):
        for inner in value:
            yield from _strings_in(inner)


def _in_order(text: str, body: str, missing: int) -> bool:
    """Whether the characters of `text` but for its last `missing` are in `body`, in order."""
    at = 0
    for char in text[: max(0, len(text) - missing)]:
        at = body.find(char, at) + 1
        if not at:
            return False
    return True


def _may_become(call: Call, other: Call, length: int) -> bool:
    """Whether up to `length` characters in place of the mark can make `call` the other."""
    return (
        call.tool == other.tool
        and call.arguments.keys() == other.arguments.keys()
        and _value_may_become(call.arguments, other.arguments, length)
        and _value_may_become(call.positional, other.positional, length)
    )


def _value_may_become(value: object, other: object, length: int) -> bool:
    if type(value) is not type(other):
        return False
    if isinstance(value, str) and isinstance(other, str):
        known, mark, _ = value.partition(_MARK)
        missing = len(other) - len(known)
        return other.startswith(known) and missing <= length if mark else value == other
    if isinstance(value, dict) and isinstance(other, dict):
        if not all(isinstance(key, str) and _MARK not in key for key in value):
            return True
        return value.keys() == other.keys() and all(
            _value_may_become(inner, other[key], length) for key, inner in value.items()
        )
    if isinstance(value, list | tuple) and isinstance(other, list | tuple):
        pairs = zip(value, other, strict=False)
        return len(value) == len(other) and all(_value_may_become(*pair, length) for pair in pairs)
    # Numbers that are told apart elsewhere may pass here.
    return isinstance(value, bytes | set) or value == other or value != value
