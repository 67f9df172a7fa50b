"""Whether a prompt shows a failed action: as it was written, or in any dress that it may have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

from pytest_failgain.prompt import Prompt
from pytest_failgain.record_checks.parts import Part, parts, surplus, written_call
from pytest_failgain.record_checks.shared_runs import Run, SharedRuns
from pytest_failgain.record_checks.tokens import (
    BY_WORDS,
    Comparison,
    Plain,
    contains,
)
from pytest_failgain.replies import read_call
from pytest_failgain.spans import action_spans
from pytest_failgain.trajectory import Action

# Half of an action may be shown, but never so many tokens, and always so many.
MOST_SHARED = 16
ALWAYS_SHARED = 8

# A shorter action may stand inside of any word.
_SHORTEST_GLUED = 8

# More than any call has; beyond it only the order counts in which the arguments were written.
_MOST_ARGUMENTS = 64
_DEEPEST = 20

# What stands between a tool's name and its arguments where a call is told of.
_BETWEEN = (
    r"(?:[\W_]{0,40}(?:with|and|its|the)(?![^\W_]))?"
    r"[\W_]{0,40}(?:action[\W_]{1,3}input|arguments|args|kwargs|parameters|params|input)(?![^\W_])"
)
_EMPTY = r"[^\w(){}]{0,60}(?:\(\s*(?:\{\s*\}|null)?\s*\)|\{\s*\})"
_NO_ARGUMENTS = ("", "{}", "null", '""')
_IN_FRONT = r"(?:tool[\W_]?name|name|tool|function)[\W_]{0,40}"


@dataclass(frozen=True, slots=True)
class Showing:
    """A run of an action's tokens in one part of a prompt.

    `form` says as what it stands there: "verbatim", "JSON-escaped", "in part", …
    """

    part: Part
    tokens: int
    form: str
    in_error: bool
    excerpt: str


@dataclass(frozen=True, slots=True)
class Shown:
    """What a prompt shows of an action beyond what the prompt before it shows.

    `longest` is the longest run of the action's `of` tokens; `allowed` were let pass. `showings`
    are the longer ones, at most one for each part of the prompt.
    """

    longest: int
    of: int
    allowed: int
    showings: tuple[Showing, ...]

    @property
    def excess(self) -> int:
        """By how many tokens more is shown than may be."""
        return self.longest - self.allowed


def shown(
    action: Action, error: str, before: Prompt, after: Prompt, max_tokens: int | None = None
) -> Shown:
    """What `after` shows of `action`, which failed with `error`, that `before` does not show.

    Of several calls in one action the one is told of which most is shown of.
    """
    earlier, later = parts(before), parts(after)
    gone, added = surplus(earlier, later), surplus(later, earlier)
    found = [_Search(written, error, max_tokens).shown(gone, added) for written in _written(action)]
    return max(found, key=lambda one: (one.excess, one.longest))


@dataclass(frozen=True, slots=True)
class _Written:
    """A call, or a text without one, as it was written.

    `literal` is what would have to be shown to show it letter for letter. `values` are the
    arguments, where they can be read.
    """

    name: str
    arguments: str
    literal: str
    whole: str
    values: Mapping[str, Any] = field(default_factory=dict)


def _written(action: Action) -> list[_Written]:
    if action.calls:
        return [
            _Written(
                call.name,
                call.arguments,
                call.arguments,
                written_call(call.name, call.arguments),
                _read(call.arguments),
            )
            for call in action.calls
        ]
    text = action.text.strip()
    spans = action_spans(text)
    names = [text[start:end].strip('"') for start, end in spans.names]
    arguments = [text[start:end] for start, end in spans.arguments]
    if len(names) != len(arguments):
        return [_Written("", "\n".join(arguments), text, text)]
    return [
        _Written(
            name,
            of_name,
            literal=text if len(names) == 1 else of_name,
            whole=text,
            values=_read(of_name) or _read_call(text),
        )
        for name, of_name in zip(names, arguments, strict=True)
    ]


def _read(arguments: str) -> Mapping[str, Any]:
    try:
        value = json.loads(arguments)
        if isinstance(value, str):
            value = json.loads(value)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _read_call(text: str) -> Mapping[str, Any]:
    call = read_call(text)
    return {} if call is None or call.positional else call.arguments


@dataclass(frozen=True, slots=True)
class _Search:
    """The search for one call, or one text, in the parts of two prompts."""

    written: _Written
    error: str
    max_tokens: int | None

    def shown(self, gone: Sequence[Part], added: Sequence[Part]) -> Shown:
        by, name, tokens = self._wanted()
        earlier = [self._tokens(part, by) for part in gone]
        later = [self._tokens(part, by) for part in added]
        others = self._other_orders(name, later) if by is BY_WORDS else ()
        runs = SharedRuns([tokens, *others]).longest_surplus(later, earlier)
        allowed = self._allowed(by, len(name), len(tokens))
        showings = tuple(
            self._showing(part, of_part, run, by, len(tokens))
            for part, of_part, run in zip(added, later, runs, strict=True)
            if run.length > allowed
        )
        longest = max((run.length for run in runs), default=0)
        return Shown(longest, len(tokens), allowed, showings)

    def _wanted(self) -> tuple[Comparison, list[str], list[str]]:
        """How to compare, and the tokens of the tool's name and of the whole."""
        written = self.written
        name, arguments = map(_words, (written.name, written.arguments))
        if arguments:
            return BY_WORDS, name, name + arguments
        # A call without arguments is named whenever its tool is, so its brackets have to be there.
        called = bool(written.name) and written.arguments.strip() in _NO_ARGUMENTS
        pattern = re.escape(written.name) + _EMPTY if called else re.escape(written.whole)
        by = Comparison(re.compile(pattern), escaped=not called, alike=True)
        return by, [], [pattern]

    def _allowed(self, by: Comparison, of_name: int, of_all: int) -> int:
        if by is not BY_WORDS:
            return 0
        if self.max_tokens is not None:
            return self.max_tokens
        half = min(MOST_SHARED, max(ALWAYS_SHARED, of_all // 2))
        return max(of_name, min(half, of_all - 1))

    def _tokens(self, part: Part, by: Comparison) -> list[str]:
        text, borders = self._cut(by.plain(part.text).text, by)
        return [token for start, end in pairwise(borders) for token in by.tokens(text[start:end])]

    def _spans(self, text: str, by: Comparison) -> list[tuple[int, int]]:
        """Where each of the same tokens stands in a plain text."""
        text, borders = self._cut(text, by)
        return [
            (start + first, start + last)
            for start, end in pairwise(borders)
            for first, last in by.spans(text[start:end])
        ]

    def _cut(self, text: str, by: Comparison) -> tuple[str, list[int]]:
        """A plain text as it is compared, and where it is cut in pieces before that.

        It is cut around what stands there letter for letter, which may be glued to other words.
        What stands between a name and its arguments is blank.
        """
        whole, name = Plain.of(self.written.whole).text, self.written.name
        borders = [0, *(_borders(whole, text) if by is BY_WORDS else ()), len(text)]
        if name and name in text and not by.escaped:
            for pattern, kept in _around(name):
                text = pattern.sub(partial(_blanked, kept), text)
        return text, borders

    def _other_orders(self, name: list[str], later: Sequence[Sequence[str]]) -> Iterator[list[str]]:
        """The call with its arguments in front, and in the orders in which they are found."""
        values = self.written.values
        if not name:
            return
        arguments = _words(self.written.arguments)
        yield arguments + name
        if not 1 < _size(values) <= _MOST_ARGUMENTS:
            return
        known = [arguments]
        for tokens in later:
            ordered = _arranged(values, f" {' '.join(tokens)} ")
            if ordered not in known:
                known.append(ordered)
                yield name + ordered
                yield ordered + name

    def _showing(
        self, part: Part, tokens: Sequence[str], run: Run, by: Comparison, of_all: int
    ) -> Showing:
        start = run.end - run.length
        plain = by.plain(part.text)
        spans = self._spans(plain.text, by)[start : run.end]
        raw = part.text[plain.origin(spans[0][0]) : plain.origin(spans[-1][1] - 1) + 1]
        error = by.tokens(by.plain(self.error).text)
        place = contains(tokens, error)
        in_error = 0 <= place <= start and run.end <= place + len(error)
        form = self._form(part, run.length == of_all)
        return Showing(part, run.length, form, in_error, _shortened(raw))

    def _form(self, part: Part, whole: bool) -> str:
        if not whole:
            return "in part"
        written: Sequence[str] = (self.written.literal,)
        for form in ("verbatim", "JSON-escaped", "JSON-escaped twice"):
            if any(text in part.text for text in written):
                return "as a call" if part.is_call and form == "verbatim" else form
            written = [
                json.dumps(text, ensure_ascii=ascii)[1:-1]
                for text in written
                for ascii in (False, True)
            ]
        return "written otherwise"


def _borders(whole: str, text: str) -> Iterator[int]:
    """Where `whole` begins and ends in `text`, if it is long enough to be no part of a word."""
    if len(whole) < _SHORTEST_GLUED:
        return
    start = text.find(whole)
    while start >= 0:
        yield start
        yield start + len(whole)
        start = text.find(whole, start + len(whole))


def _around(name: str) -> tuple[tuple[re.Pattern[str], int], ...]:
    """Patterns for what surrounds `name`, and which end of what they find is to be kept."""
    escaped = re.escape(name)
    return (
        (re.compile(rf"(?<![^\W_]){escaped}{_BETWEEN}", re.IGNORECASE), len(name)),
        (re.compile(rf"(?<![^\W_]){_IN_FRONT}(?={escaped}(?![^\W_]))", re.IGNORECASE), 0),
    )


def _words(text: str) -> list[str]:
    return BY_WORDS.tokens(Plain.of(text).text)


def _blanked(kept: int, found: re.Match[str]) -> str:
    text = found.group()
    return text[:kept] + " " * (len(text) - kept)


def _size(value: Any, depth: int = 0) -> int:
    """How many members there are in objects, at any depth; too many where they nest too deeply."""
    if depth > _DEEPEST:
        return _MOST_ARGUMENTS + 1
    if isinstance(value, dict):
        return len(value) + sum(_size(inner, depth + 1) for inner in value.values())
    if isinstance(value, list | tuple):
        return sum(_size(inner, depth + 1) for inner in value)
    return 0


def _arranged(value: Any, text: str) -> list[str]:
    """The tokens of `value`, each object's members in the order in which `text` has them."""
    if isinstance(value, dict):
        members = [_words(str(key)) + _arranged(inner, text) for key, inner in value.items()]
        places = [text.find(f" {' '.join(member)} ") for member in members]
        order = sorted(range(len(members)), key=places.__getitem__)
        return [token for index in order for token in members[index]]
    if isinstance(value, list | tuple):
        return [token for inner in value for token in _arranged(inner, text)]
    written = value if isinstance(value, str) else json.dumps(value, default=repr)
    return _words(written)


def _shortened(text: str, limit: int = 80) -> str:
    """The text in one line, its middle left out where it is long."""
    line = " ".join(text.split())
    half = limit // 2 - 1
    return line if len(line) <= limit else f"{line[:half]}…{line[-half:]}"
