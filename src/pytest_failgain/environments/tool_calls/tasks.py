"""What users of the office ask for: goals with a solution, and a check that the goal is reached."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from pytest_failgain.call_text import Call
from pytest_failgain.environments.tool_calls.imagined import imagined_document, imagined_topic
from pytest_failgain.environments.tool_calls.world import (
    FOLDERS,
    STARTS,
    Document,
    World,
    folder_of,
    make_world,
    workday,
)

NOTES = (
    "order printer paper", "renew the parking permits", "return the projector",
    "send the quarterly figures", "test the fire alarm", "water the plants in the lobby",
    "check the first aid box", "call the cleaning firm", "collect the lost badges",
)  # fmt: skip

# Four templates mail or invite somebody, so that even the rarest operator, name_for_email, has a
# task of its own for each of its 64 cases.
TASKS_PER_TEMPLATE = 16


@dataclass(frozen=True, slots=True)
class Task:
    """A goal in a world of its own.

    `solution` is a list of calls that reaches the goal; `solved` tells of any later world whether
    the goal is reached there, by whatever calls.
    """

    task_id: str
    template: str
    goal: str
    world: World
    solution: tuple[Call, ...]
    solved: Callable[[World], bool]


@dataclass(frozen=True, slots=True)
class Draft:
    """What a template makes of a world: a task but for its name and the world."""

    goal: str
    solution: tuple[Call, ...]
    solved: Callable[[World], bool]


Template = Callable[[World, random.Random], Draft]


def make_tasks(seed: int) -> Iterator[Task]:
    """The tasks of a seed, the templates taking turns; no two ask for the same."""
    return drawn(TEMPLATES, f"tool_calls task {seed}", f"office-{seed}")


def drawn(templates: Mapping[str, Template], stream: str, prefix: str) -> Iterator[Task]:
    """Tasks of `templates`, which take turns; no two ask for the same.

    `stream` seeds their random generators, and `prefix` begins their names.
    """
    goals: set[str] = set()
    for index in range(TASKS_PER_TEMPLATE * len(templates)):
        template, draft = list(templates.items())[index % len(templates)]
        rng = random.Random(f"{stream} {index}")
        world = make_world(rng)
        drafted = draft(world, rng)
        while drafted.goal in goals:
            world = make_world(rng)
            drafted = draft(world, rng)
        goals.add(drafted.goal)
        yield Task(
            f"{prefix}-{index:03d}",
            template,
            drafted.goal,
            world,
            drafted.solution,
            drafted.solved,
        )


def _mail_document(world: World, rng: random.Random) -> Draft:
    person, document = rng.choice(world.people), changeable_document(world, rng)
    subject = _stem(document)
    return Draft(
        f"Email {person.name} the text of {document.path}, word for word, with the subject "
        f"'{subject}'.",
        (
            Call.of("lookup_contact", full_name=person.name),
            Call.of("open_document", path=document.path),
            Call.of(
                "email_contact", address=person.address, subject=subject, message=document.text
            ),
        ),
        lambda after: any(
            mail.address == person.address and document.text in mail.message for mail in after.mails
        ),
    )


def _call_off(world: World, rng: random.Random) -> Draft:
    meeting = rng.choice(world.meetings)
    return Draft(
        f"The meeting about the {meeting.topic} on {meeting.day} is not needed any more. "
        "Call it off.",
        (
            Call.of("show_agenda", day=meeting.day),
            Call.of("call_off_meeting", meeting_id=meeting.identity),
        ),
        lambda after: is_off(after, meeting.identity),
    )


def _meet_person(world: World, rng: random.Random) -> Draft:
    person, topic = rng.choice(world.people), imagined_topic(world, rng)
    day, start = workday(rng), rng.choice(STARTS)
    return Draft(
        f"Book a meeting with {person.name} on {day} at {start}, with the topic '{topic}'.",
        (
            Call.of("lookup_contact", full_name=person.name),
            Call.of("book_meeting", topic=topic, day=day, start=start, guests=[person.address]),
        ),
        lambda after: takes_place(after, topic, day, start, {person.address}),
    )


def _meet_team(world: World, rng: random.Random) -> Draft:
    team, topic = rng.choice(world.teams), imagined_topic(world, rng)
    day, start = workday(rng), rng.choice(STARTS)
    addresses = [person.address for person in world.members(team)]
    return Draft(
        f"Invite everyone in the {team} team to a meeting on {day} at {start}, with the topic "
        f"'{topic}'.",
        (
            Call.of("list_team", team=team),
            Call.of("book_meeting", topic=topic, day=day, start=start, guests=addresses),
        ),
        lambda after: takes_place(after, topic, day, start, set(addresses)),
    )


def _postpone(world: World, rng: random.Random) -> Draft:
    meeting = rng.choice(world.meetings)
    day = (date.fromisoformat(meeting.day) + timedelta(weeks=rng.randrange(1, 5))).isoformat()
    return Draft(
        f"Call off the meeting about the {meeting.topic} on {meeting.day} and book it again for "
        f"{day}, with the same topic, start and guests.",
        (
            Call.of("show_agenda", day=meeting.day),
            Call.of("call_off_meeting", meeting_id=meeting.identity),
            Call.of(
                "book_meeting",
                topic=meeting.topic,
                day=day,
                start=meeting.start,
                guests=list(meeting.guests),
            ),
        ),
        lambda after: (
            is_off(after, meeting.identity)
            and takes_place(after, meeting.topic, day, meeting.start, set(meeting.guests))
        ),
    )


def _team_sheet(world: World, rng: random.Random) -> Draft:
    team = rng.choice(world.teams)
    path = f"{rng.choice(FOLDERS)}/{team}.md"
    names = [person.name for person in world.members(team)]
    return Draft(
        f"Save the full names of the {team} team as {path}, separated by commas.",
        (
            Call.of("list_team", team=team),
            Call.of("save_document", path=path, text=", ".join(names)),
        ),
        lambda after: all(name in _text(after, path) for name in names),
    )


def _retire_document(world: World, rng: random.Random) -> Draft:
    document, day = changeable_document(world, rng), workday(rng)
    note = f"the {_stem(document)} document is gone"
    return Draft(
        f"Remove {document.path}, then add a reminder for {day} with the note '{note}'.",
        (
            Call.of("remove_document", path=document.path),
            Call.of("add_reminder", note=note, day=day),
        ),
        lambda after: after.document_at(document.path) is None and _is_noted(after, note, day),
    )


def _convert(world: World, rng: random.Random) -> Draft:
    conversion, amount = rng.choice(world.conversions), rng.randrange(6, 95)
    path = f"{rng.choice(FOLDERS)}/answer.md"
    result = str(round(amount * conversion.factor, 4))
    return Draft(
        f"Convert {amount} {conversion.source} to {conversion.target} and save only the resulting "
        f"number as {path}.",
        (
            Call.of(
                "convert_amount",
                amount=amount,
                source=conversion.source,
                target=conversion.target,
            ),
            Call.of("save_document", path=path, text=result),
        ),
        lambda after: _text(after, path).strip() == result,
    )


def _copy_document(world: World, rng: random.Random) -> Draft:
    document = changeable_document(world, rng)
    folder = rng.choice([folder for folder in FOLDERS if folder != folder_of(document.path)])
    path = f"{folder}/{_stem(document)}.md"
    return Draft(
        f"Save a copy of {document.path} as {path}.",
        (
            Call.of("open_document", path=document.path),
            Call.of("save_document", path=path, text=document.text),
        ),
        lambda after: _text(after, path) == document.text,
    )


def _remind(world: World, rng: random.Random) -> Draft:
    note, day = rng.choice(NOTES), workday(rng)
    return Draft(
        f"Add a reminder for {day} with the note '{note}'.",
        (Call.of("add_reminder", note=note, day=day),),
        lambda after: _is_noted(after, note, day),
    )


def _write_document(world: World, rng: random.Random) -> Draft:
    document = imagined_document(world, rng, rng.choice(FOLDERS))
    return Draft(
        f"Save this text as {document.path}: {document.text}",
        (Call.of("save_document", path=document.path, text=document.text),),
        lambda after: _text(after, document.path) == document.text,
    )


TEMPLATES: Mapping[str, Template] = {
    "mail_document": _mail_document,
    "call_off": _call_off,
    "meet_person": _meet_person,
    "team_sheet": _team_sheet,
    "retire_document": _retire_document,
    "convert": _convert,
    "meet_team": _meet_team,
    "copy_document": _copy_document,
    "postpone": _postpone,
    "remind": _remind,
    "write_document": _write_document,
}


def changeable_document(world: World, rng: random.Random) -> Document:
    """A document that may be changed and removed."""
    return rng.choice([one for one in world.documents if not world.is_protected(one.path)])


def _stem(document: Document) -> str:
    return document.path.rpartition("/")[2].removesuffix(".md")


def _text(world: World, path: str) -> str:
    document = world.document_at(path)
    return "" if document is None else document.text


def _is_noted(world: World, note: str, day: str) -> bool:
    return any(one.day == day and note in one.note for one in world.reminders)


def is_off(world: World, identity: str) -> bool:
    """Whether the meeting of that id is called off."""
    meeting = world.meeting(identity)
    return meeting is not None and meeting.called_off


def takes_place(world: World, topic: str, day: str, start: str, guests: set[str]) -> bool:
    """Whether there is such a meeting, with these guests and no others."""
    return any(
        meeting.topic == topic and meeting.start == start and guests == set(meeting.guests)
        for meeting in world.agenda(day)
    )
