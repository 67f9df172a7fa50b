"""What the HTML page shows of a document: in which order, how much of it, and in which colours."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pytest_failgain.report.bars import Axis, Bar
from pytest_failgain.report.document import (
    Document,
    MeasurementGroup,
    ReportedCase,
    ReportedMeasurement,
)
from pytest_failgain.report.measurements import measurement_cells, measurement_heading
from pytest_failgain.report.tokens import Piece, pieces_of

# A token has a stronger shade from each of these changes of its log-probability on (nats).
SHADE_STEPS = (0.1, 0.5, 1.5, 3.0)

# The page stays usable with thousands of cases: a measurement shows so many of them in full, fewer
# where they are long, and lists so many.
FULL_CASES = 200
LISTED_CASES = 2_000
_PAGE_CHARACTERS = 8_000_000
_LEAST_CHARACTERS = 200_000
# Of one text, such as a record.
_TEXT_CHARACTERS = 8_000
# What the markup of a token and of a case takes.
_MARK_CHARACTERS = 70
_CASE_CHARACTERS = 1_000
_MARKED_PLACES = 5


class Mark(NamedTuple):
    """A part of a text: `shade` is its class, "" for none, and `label` says its change in nats."""

    text: str
    shade: str = ""
    label: str = ""


class Cut(NamedTuple):
    """A place where so many characters are left out."""

    left_out: int


@dataclass(frozen=True, slots=True)
class ShownCase:
    """One line of a measurement's cases; `place` counts from 1, the worst case first."""

    place: int
    case: ReportedCase


@dataclass(frozen=True, slots=True)
class FullCase:
    """A case with its texts: the failed action token by token, and the record with it."""

    place: int
    case: ReportedCase
    goal: tuple[Mark | Cut, ...]
    action: tuple[Mark | Cut, ...]
    correct: tuple[Mark | Cut, ...]
    record: tuple[Mark | Cut, ...]

    @property
    def characters(self) -> int:
        """About how long it is on the page."""
        parts = (*self.goal, *self.action, *self.correct, *self.record)
        marks = [one for one in parts if isinstance(one, Mark)]
        coloured = sum(bool(mark.label) for mark in marks)
        texts = sum(len(mark.text) for mark in marks)
        return _CASE_CHARACTERS + texts + coloured * _MARK_CHARACTERS


@dataclass(frozen=True, slots=True)
class ShownMeasurement:
    """A row of a group's table, and its cases: all that are listed, and those shown in full."""

    measurement: ReportedMeasurement
    cells: tuple[str, ...]
    bar: Bar | None
    listed: tuple[ShownCase, ...]
    full: tuple[FullCase, ...]


@dataclass(frozen=True, slots=True)
class ShownGroup:
    """A table with its axis."""

    heading: str
    axis: Axis
    measurements: tuple[ShownMeasurement, ...]


def shown_groups(document: Document) -> list[ShownGroup]:
    """The groups of `document`, as the page shows them."""
    count = max(1, sum(len(group.measurements) for group in document.groups))
    budget = max(_LEAST_CHARACTERS, _PAGE_CHARACTERS // count)
    return [_shown_group(group, budget) for group in document.groups]


def _shown_group(group: MeasurementGroup, budget: int) -> ShownGroup:
    gains = [one.estimates["corrective_gain_per_token"] for one in group.measurements]
    axis = Axis.over(gains)
    return ShownGroup(
        heading=measurement_heading(group.environment, group.n_cases, group.n_tasks, group.model),
        axis=axis,
        measurements=tuple(
            _shown_measurement(one, axis.bar(gain), budget)
            for one, gain in zip(group.measurements, gains, strict=True)
        ),
    )


def _shown_measurement(
    measurement: ReportedMeasurement, bar: Bar | None, budget: int
) -> ShownMeasurement:
    cases = [
        ShownCase(place, case) for place, case in enumerate(worst_first(measurement.cases), start=1)
    ]
    return ShownMeasurement(
        measurement=measurement,
        cells=measurement_cells(measurement.harness, measurement.estimates),
        bar=bar,
        listed=tuple(cases[:LISTED_CASES]),
        full=tuple(_within(map(_full, cases[:FULL_CASES]), budget)),
    )


def worst_first(cases: Iterable[ReportedCase]) -> list[ReportedCase]:
    """`cases` by their gain per token, the most harmful first."""
    return sorted(cases, key=lambda case: case.values["corrective_gain_per_token"])


def _within(cases: Iterable[FullCase], budget: int) -> Iterator[FullCase]:
    """The first of `cases`, while they are no longer than `budget`; one at least."""
    used = 0
    for case in cases:
        used += case.characters
        if used > budget and used > case.characters:
            return
        yield case


def _full(shown: ShownCase) -> FullCase:
    case = shown.case
    pieces = pieces_of(case.action, case.tokens)
    return FullCase(
        place=shown.place,
        case=case,
        goal=tuple(_cut([Mark(case.goal)])),
        action=tuple(_cut([_mark(piece) for piece in pieces])),
        correct=tuple(_cut([Mark(case.correct or "")])),
        record=tuple(_cut(_marked_record(case.record, case.action, pieces))),
    )


def _marked_record(record: str, action: str, pieces: Sequence[Piece]) -> list[Mark]:
    """`record` in marks, coloured where the action's text stands in it as it was scored."""
    # A record may well write the action without the white space around it.
    wanted = action.strip()
    marked = [_mark(piece) for piece in _stripped(action, pieces)]
    marks: list[Mark] = []
    place = 0
    for _ in range(_MARKED_PLACES):
        found = record.find(wanted, place)
        if found < 0:
            break
        marks += [Mark(record[place:found]), *marked]
        place = found + len(wanted)
    return [mark for mark in (*marks, Mark(record[place:])) if mark.text]


def _stripped(action: str, pieces: Sequence[Piece]) -> Iterator[Piece]:
    """The pieces without the white space at both ends of the action."""
    start, end = len(action) - len(action.lstrip()), len(action.rstrip())
    place = 0
    for piece in pieces:
        text = piece.text[max(0, start - place) : max(0, end - place)]
        if text:
            yield Piece(text, piece.change)
        place += len(piece.text)


def _mark(piece: Piece) -> Mark:
    if piece.change is None:
        return Mark(piece.text)
    return Mark(piece.text, shade_of(piece.change), f"{piece.change + 0.0:+.2f}")


def shade_of(change: float) -> str:
    """The class of a change in nats: u1 to u4 for likelier, d1 to d4 for less likely, "" for none.

    Neither for a change of less than the first of `SHADE_STEPS`.
    """
    strength = sum(abs(change) >= step for step in SHADE_STEPS)
    if not strength or math.isnan(change):
        return ""
    return f"{'u' if change > 0 else 'd'}{strength}"


def _cut(marks: Sequence[Mark]) -> list[Mark | Cut]:
    """`marks`, or the beginning and the end of a text that is too long."""
    length = sum(len(mark.text) for mark in marks)
    if length <= _TEXT_CHARACTERS:
        return [*marks]
    half = _TEXT_CHARACTERS // 2
    return [
        *_between(marks, 0, half),
        Cut(length - 2 * half),
        *_between(marks, length - half, length),
    ]


def _between(marks: Sequence[Mark], start: int, end: int) -> Iterator[Mark]:
    place = 0
    for mark in marks:
        text = mark.text[max(0, start - place) : max(0, end - place)]
        if text:
            yield mark._replace(text=text)
        place += len(mark.text)
