"""Eight single edits that make a call fail, each one that models make."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date

from pytest_failgain.call_text import Call
from pytest_failgain.environments.tool_calls.imagined import (
    UNKNOWN_CONVERSIONS,
    imagined_document,
    imagined_meeting,
    imagined_people,
    imagined_team,
)
from pytest_failgain.environments.tool_calls.world import World, folder_of

# Names that a model may well take for the tool's.
NEAR_NAMES: Mapping[str, tuple[str, ...]] = {
    "list_folder": ("list_folders", "show_folder"),
    "open_document": ("open_file", "read_document"),
    "save_document": ("save_file", "write_document"),
    "remove_document": ("remove_file", "erase_document"),
    "lookup_contact": ("lookup_person", "get_contact"),
    "list_team": ("list_teams", "show_team"),
    "show_agenda": ("get_agenda", "show_calendar"),
    "book_meeting": ("schedule_meeting", "book_event"),
    "call_off_meeting": ("call_off_event", "cancel_meeting"),
    "email_contact": ("email_person", "mail_contact"),
    "add_reminder": ("add_reminders", "make_reminder"),
    "convert_amount": ("convert_value", "convert"),
}
# For each argument a name that means the same, and that no tool takes.
SYNONYMS: Mapping[str, str] = {
    "folder": "folder_name",
    "path": "filename",
    "text": "contents",
    "full_name": "person",
    "team": "group",
    "day": "on_date",
    "topic": "about",
    "start": "at_time",
    "guests": "invitees",
    "meeting_id": "meeting",
    "address": "email",
    "subject": "headline",
    "message": "content",
    "note": "reminder",
    "amount": "quantity",
    "source": "unit",
    "target": "into",
}
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, slots=True)
class Slip:
    """A call with one edit in it, by which it fails.

    Had the call been valid, the runtime would have answered what `meant` gets in the world `as_if`:
    where the edit is a matter of form, the correct call in the world as it is; where it names
    something that is not there or not allowed, the very call in a world where it is.
    """

    call: Call
    as_if: World
    meant: Call


Operator = Callable[[Call, World, random.Random], Iterator[Slip]]


def drop_arg(call: Call, world: World, rng: random.Random) -> Iterator[Slip]:
    """Leaves one of several arguments out, the last first."""
    if len(call.keywords) > 1:
        for name in reversed(call.arguments):
            yield Slip(call.without(name), world, call)


def tool_typo(call: Call, world: World, rng: random.Random) -> Iterator[Slip]:
    """Calls the tool by a name like its own."""
    for name in NEAR_NAMES[call.tool]:
        yield Slip(call.of_tool(name), world, call)


def arg_typo(call: Call, world: World, rng: random.Random) -> Iterator[Slip]:
    """Calls an argument by another name."""
    for name in call.arguments:
        yield Slip(call.renamed(name, SYNONYMS[name]), world, call)


def type_swap(call: Call, world: World, rng: random.Random) -> Iterator[Slip]:
    """Quotes a number, gives a list's first item for the list, or a list for an address."""
    for name, value in call.keywords:
        if isinstance(value, (int, float)):
            yield Slip(call.with_value(name, str(value)), world, call)
        elif isinstance(value, list):
            yield Slip(call.with_value(name, value[0]), world, call)
        elif name == "address":
            yield Slip(call.with_value(name, [value]), world, call)


def date_format(call: Call, world: World, rng: random.Random) -> Iterator[Slip]:
    """Writes a day the way people do."""
    written = call.arguments.get("day")
    if isinstance(written, str):
        day = date.fromisoformat(written)
        month = MONTHS[day.month - 1]
        for text in (
            f"{month} {day.day}, {day.year}",
            f"{day.day} {month[:3]} {day.year}",
            WEEKDAYS[day.weekday()],
        ):
            yield Slip(call.with_value("day", text), world, call)


def hallucinated_entity(call: Call, world: World, rng: random.Random) -> Iterator[Slip]:
    """Names a person, document, team, meeting or unit that is not there."""
    imagine = _IMAGINE.get(call.tool)
    if imagine is not None:
        edited, as_if = imagine(call, world, rng)
        yield Slip(edited, as_if, edited)


def name_for_email(call: Call, world: World, rng: random.Random) -> Iterator[Slip]:
    """Gives a person's name for the address."""
    match call.arguments:
        case {"address": str(address)}:
            yield Slip(call.with_value("address", _name_at(world, address)), world, call)
        case {"guests": [str(address), *others]}:
            guests = [_name_at(world, address), *others]
            yield Slip(call.with_value("guests", guests), world, call)


def readonly_target(call: Call, world: World, rng: random.Random) -> Iterator[Slip]:
    """Changes a document that may only be read."""
    if call.tool in ("save_document", "remove_document"):
        as_if = replace(world, protected_folders=())
        for document in world.documents:
            if world.is_protected(document.path):
                edited = call.with_value("path", document.path)
                yield Slip(edited, as_if, edited)


OPERATORS: Mapping[str, Operator] = {
    "drop_arg": drop_arg,
    "tool_typo": tool_typo,
    "arg_typo": arg_typo,
    "type_swap": type_swap,
    "date_format": date_format,
    "hallucinated_entity": hallucinated_entity,
    "name_for_email": name_for_email,
    "readonly_target": readonly_target,
}


def _name_at(world: World, address: str) -> str:
    (name,) = (person.name for person in world.people if person.address == address)
    return name


def _imagine_contact(call: Call, world: World, rng: random.Random) -> tuple[Call, World]:
    (person,) = imagined_people(world, rng, 1)
    as_if = replace(world, people=(*world.people, person))
    return call.with_value("full_name", person.name), as_if


def _imagine_guest(call: Call, world: World, rng: random.Random) -> tuple[Call, World]:
    (person,) = imagined_people(world, rng, 1)
    as_if = replace(world, people=(*world.people, person))
    guests = call.arguments["guests"]
    others = guests[1:] if isinstance(guests, list) else []
    return call.with_value("guests", [person.address, *others]), as_if


def _imagine_team(call: Call, world: World, rng: random.Random) -> tuple[Call, World]:
    team = imagined_team(world, rng)
    as_if = replace(world, people=(*world.people, *imagined_people(world, rng, 2, team)))
    return call.with_value("team", team), as_if


def _imagine_document(call: Call, world: World, rng: random.Random) -> tuple[Call, World]:
    document = imagined_document(world, rng, folder_of(str(call.arguments["path"])))
    as_if = replace(world, documents=(*world.documents, document))
    return call.with_value("path", document.path), as_if


def _imagine_meeting(call: Call, world: World, rng: random.Random) -> tuple[Call, World]:
    meeting = imagined_meeting(world, rng)
    as_if = replace(world, meetings=(*world.meetings, meeting))
    return call.with_value("meeting_id", meeting.identity), as_if


def _imagine_conversion(call: Call, world: World, rng: random.Random) -> tuple[Call, World]:
    conversion = UNKNOWN_CONVERSIONS[str(call.arguments["source"])]
    as_if = replace(world, conversions=(*world.conversions, conversion))
    return call.with_value("target", conversion.target), as_if


_IMAGINE: Mapping[str, Callable[[Call, World, random.Random], tuple[Call, World]]] = {
    "lookup_contact": _imagine_contact,
    "list_team": _imagine_team,
    "open_document": _imagine_document,
    "remove_document": _imagine_document,
    "call_off_meeting": _imagine_meeting,
    "book_meeting": _imagine_guest,
    "convert_amount": _imagine_conversion,
}
