"""Things that a model might make up: of the kind that this office has, and absent from it."""

from __future__ import annotations

import random

from pytest_failgain.environments.tool_calls.world import (
    DOCUMENT_TEXTS,
    FIRST_NAMES,
    LAST_NAMES,
    STARTS,
    TEAMS,
    TOPICS,
    Conversion,
    Document,
    Meeting,
    Person,
    World,
    address_of,
    document_text,
    meeting_id,
    meeting_number,
    workday,
)

# Real units with their real factors, which the office's converter happens to lack: had it known
# them, this is what it would have answered.
UNKNOWN_CONVERSIONS = {
    "mi": Conversion("mi", "yd", 1760.0),
    "lb": Conversion("lb", "oz", 16.0),
    "gal": Conversion("gal", "qt", 4.0),
    "ft": Conversion("ft", "yd", 0.333333),
    "in": Conversion("in", "mm", 25.4),
}


def imagined_people(
    world: World, rng: random.Random, count: int, team: str | None = None
) -> tuple[Person, ...]:
    """People who share no name with anyone here, all in `team` or each in one of our teams."""
    taken = {part for person in world.people for part in person.name.split()}
    firsts = rng.sample([name for name in FIRST_NAMES if name not in taken], count)
    lasts = rng.sample([name for name in LAST_NAMES if name not in taken], count)
    names = (f"{first} {last}" for first, last in zip(firsts, lasts, strict=True))
    return tuple(Person(name, address_of(name), team or rng.choice(world.teams)) for name in names)


def imagined_team(world: World, rng: random.Random) -> str:
    """A team that nobody here belongs to."""
    return rng.choice([team for team in TEAMS if team not in world.teams])


def imagined_document(world: World, rng: random.Random, folder: str) -> Document:
    """A document in `folder` whose stem no folder here holds."""
    held = {document.path.rpartition("/")[2] for document in world.documents}
    stem = rng.choice([stem for stem in DOCUMENT_TEXTS if f"{stem}.md" not in held])
    return Document(f"{folder}/{stem}.md", document_text(stem, rng))


def imagined_topic(world: World, rng: random.Random) -> str:
    """A topic that no meeting here is about."""
    taken = {meeting.topic for meeting in world.meetings}
    return rng.choice([topic for topic in TOPICS if topic not in taken])


def imagined_meeting(world: World, rng: random.Random) -> Meeting:
    """A meeting whose id the calendar has neither given nor is about to give."""
    number = max(meeting_number(meeting) for meeting in world.meetings) + rng.randrange(4, 30)
    guest = rng.choice(world.people).address
    return Meeting(
        meeting_id(number),
        imagined_topic(world, rng),
        workday(rng),
        rng.choice(STARTS),
        (guest,),
    )
