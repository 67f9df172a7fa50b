"""The office: people, documents, meetings, mail and reminders, as one immutable value.

A tool that changes something returns a new world, so that a call which fails can't leave a trace
in the old one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

FIRST_NAMES = (
    "Amara", "Bastian", "Celeste", "Dmitri", "Esther", "Farid", "Greta", "Hiroshi", "Ilse",
    "Joaquin", "Kavya", "Leopold", "Marisol", "Nadia", "Oskar", "Petra", "Rufus", "Solveig",
)  # fmt: skip
LAST_NAMES = (
    "Abernathy", "Brandt", "Castellano", "Dufour", "Eriksen", "Fontaine", "Gupta", "Halloran",
    "Ishikawa", "Jansen", "Kowalski", "Lombardi", "Mbeki", "Novak", "Oyelaran", "Pereira",
)  # fmt: skip
TEAMS = ("archive", "editorial", "facilities", "finance", "logistics", "outreach", "training")
TOPICS = (
    "annual audit", "badge system", "budget draft", "coffee contract", "fire drill",
    "hiring round", "lease renewal", "open day", "print run", "summer schedule",
)  # fmt: skip
STARTS = ("08:30", "09:15", "10:45", "11:30", "13:15", "14:45", "16:00")

# The stem of each document that an office may hold, and what stands in it.
DOCUMENT_TEXTS = {
    "badges": "Lost badges cost {n} euros and are replaced within a week.",
    "catering": "Lunch for {n} people was ordered from the corner bakery.",
    "gate": "The north gate stays closed for {n} days while the hinges are replaced.",
    "inventory": "We counted {n} boxes in the store room and ordered more.",
    "kickoff": "The kickoff is in room {n}, so please bring a printed schedule.",
    "newsletter": "The newsletter now goes to {n} readers on the first Friday.",
    "parking": "Only {n} parking spaces are free until the roof is repaired.",
    "printer": "The printer warranty covers another {n} months.",
    "shuttle": "The shuttle to the station leaves every {n} minutes.",
    "storage": "Storage unit {n} has been emptied and the key returned.",
    "visitors": "We expect {n} visitors, who sign in at the front desk.",
    "workshop": "The workshop has {n} places left and starts after lunch.",
}
FOLDERS = ("guides", "minutes", "plans")
PROTECTED_FOLDER = "policies"
POLICIES = {
    "security": "Visitors are met at the door and are never left alone in the building.",
    "travel": "Trips are approved by the head of the team before anything is booked.",
}

DOMAIN = "harborline.example"
FIRST_MONDAY = date(2027, 1, 4)


@dataclass(frozen=True, slots=True)
class Person:
    """Someone in the contact list."""

    name: str
    address: str
    team: str


@dataclass(frozen=True, slots=True)
class Document:
    """A text under a path of the form folder/stem.md."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Meeting:
    """An entry of the calendar; `guests` are addresses."""

    identity: str
    topic: str
    day: str
    start: str
    guests: tuple[str, ...]
    called_off: bool = False


@dataclass(frozen=True, slots=True)
class Mail:
    """A message that was sent."""

    address: str
    subject: str
    message: str


@dataclass(frozen=True, slots=True)
class Reminder:
    """A note that comes up on a day."""

    note: str
    day: str


@dataclass(frozen=True, slots=True)
class Conversion:
    """How many of the unit `target` make one `source`."""

    source: str
    target: str
    factor: float


@dataclass(frozen=True, slots=True)
class World:
    """Everything that the tools can see or change."""

    people: tuple[Person, ...]
    folders: tuple[str, ...]
    protected_folders: tuple[str, ...]
    documents: tuple[Document, ...]
    meetings: tuple[Meeting, ...]
    conversions: tuple[Conversion, ...]
    mails: tuple[Mail, ...] = ()
    reminders: tuple[Reminder, ...] = ()

    @property
    def teams(self) -> tuple[str, ...]:
        """The teams that have members, in alphabetical order."""
        return tuple(sorted({person.team for person in self.people}))

    def person_named(self, name: str) -> Person | None:
        """The contact of exactly that full name."""
        return next((person for person in self.people if person.name == name), None)

    def person_at(self, address: str) -> Person | None:
        """The contact with that address."""
        return next((person for person in self.people if person.address == address), None)

    def members(self, team: str) -> tuple[Person, ...]:
        """The people of a team; empty where there is no such team."""
        return tuple(person for person in self.people if person.team == team)

    def document_at(self, path: str) -> Document | None:
        """The document under that path."""
        return next((document for document in self.documents if document.path == path), None)

    def meeting(self, identity: str) -> Meeting | None:
        """The meeting of that id, called off or not."""
        return next((one for one in self.meetings if one.identity == identity), None)

    def agenda(self, day: str) -> tuple[Meeting, ...]:
        """The meetings of a day that still take place, earliest first."""
        held = (one for one in self.meetings if one.day == day and not one.called_off)
        return tuple(sorted(held, key=lambda meeting: meeting.start))

    def is_protected(self, path: str) -> bool:
        """Whether the document under that path may be read but not changed."""
        return folder_of(path) in self.protected_folders

    def next_meeting_id(self) -> str:
        """The id that the calendar gives to the next meeting."""
        return meeting_id(1 + max((meeting_number(one) for one in self.meetings), default=0))


def folder_of(path: str) -> str:
    """The part of a path before its last slash."""
    return path.rpartition("/")[0]


def address_of(name: str) -> str:
    """The address that the office gives to someone of that full name."""
    return f"{name.lower().replace(' ', '.')}@{DOMAIN}"


def meeting_id(number: int) -> str:
    """The calendar's id number `number`."""
    return f"mtg-{number}"


def meeting_number(meeting: Meeting) -> int:
    """The number in a meeting's id."""
    return int(meeting.identity.rpartition("-")[2])


def document_text(stem: str, rng: random.Random) -> str:
    """What a document of that stem says, with a number drawn from `rng`."""
    return DOCUMENT_TEXTS[stem].format(n=rng.randrange(3, 60))


def workday(rng: random.Random) -> str:
    """A day from Monday to Friday, written YYYY-MM-DD."""
    week, weekday = rng.randrange(48), rng.randrange(5)
    return (FIRST_MONDAY + timedelta(weeks=week, days=weekday)).isoformat()


def make_world(rng: random.Random) -> World:
    """An office drawn from `rng`, the same one for a generator in the same state."""
    people = tuple(_people(rng))
    return World(
        people=people,
        folders=(*FOLDERS, PROTECTED_FOLDER),
        protected_folders=(PROTECTED_FOLDER,),
        documents=tuple(_documents(rng)),
        meetings=tuple(_meetings(rng, people)),
        conversions=(
            Conversion("mi", "km", 1.609344),
            Conversion("lb", "kg", 0.453592),
            Conversion("gal", "l", 3.785412),
            Conversion("ft", "m", 0.3048),
            Conversion("in", "cm", 2.54),
        ),
    )


def _people(rng: random.Random) -> Iterator[Person]:
    # Nine people in four teams: each team has two members or three. No two share a first or a
    # last name, so that a closest match is a real guess.
    firsts, lasts = rng.sample(FIRST_NAMES, 9), rng.sample(LAST_NAMES, 9)
    teams = rng.sample(TEAMS, 4)
    for first, last, team in zip(firsts, lasts, [*teams, *teams, teams[0]], strict=True):
        name = f"{first} {last}"
        yield Person(name, address_of(name), team)


def _documents(rng: random.Random) -> Iterator[Document]:
    stems = rng.sample(tuple(DOCUMENT_TEXTS), 2 * len(FOLDERS))
    for folder, stem in zip([*FOLDERS, *FOLDERS], stems, strict=True):
        yield Document(f"{folder}/{stem}.md", document_text(stem, rng))
    for stem, text in POLICIES.items():
        yield Document(f"{PROTECTED_FOLDER}/{stem}.md", text)


def _meetings(rng: random.Random, people: tuple[Person, ...]) -> Iterator[Meeting]:
    # Two of the three days have two meetings, so that an id must be picked and not just copied.
    week = FIRST_MONDAY + timedelta(weeks=rng.randrange(48))
    first, second, third = (
        (week + timedelta(days=weekday)).isoformat() for weekday in sorted(rng.sample(range(5), 3))
    )
    topics, starts = rng.sample(TOPICS, 5), rng.sample(STARTS, 5)
    number = rng.randrange(20, 70)
    for day, topic, start in zip((first, first, second, third, third), topics, starts, strict=True):
        guests = rng.sample(people, rng.choice((1, 2)))
        addresses = tuple(person.address for person in guests)
        yield Meeting(meeting_id(number), topic, day, start, addresses)
        number += 1
