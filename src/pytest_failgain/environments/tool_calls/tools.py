"""The twelve tools of the office: what each declares, and what it does to a world."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import date
from typing import Any

from pytest_failgain.environments.tool_calls.failures import (
    EXAMPLE_DAY,
    CallError,
    called_off_already,
    file_not_found,
    format_error,
    not_found,
    permission_error,
    unsupported_conversion,
)
from pytest_failgain.environments.tool_calls.world import (
    Document,
    Mail,
    Meeting,
    Reminder,
    World,
    folder_of,
)
from pytest_failgain.trajectory import Tool

LARGEST_AMOUNT = 1e12


@dataclass(frozen=True, slots=True)
class Kind:
    """A type that a parameter may have, in Python, in words and in JSON Schema."""

    annotation: str
    words: str
    schema: Mapping[str, Any]
    accepts: Callable[[object], bool]


TEXT = Kind("str", "a string", {"type": "string"}, lambda value: isinstance(value, str))
NUMBER = Kind(
    "float",
    "a number",
    {"type": "number"},
    # bool is an int to Python, and not a number to anyone else.
    lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
)
TEXT_LIST = Kind(
    "list[str]",
    "a list of strings",
    {"type": "array", "items": {"type": "string"}},
    lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A required argument of a tool."""

    name: str
    description: str
    kind: Kind = TEXT

    def __str__(self) -> str:
        return f"{self.name}: {self.kind.annotation}"


Result = tuple[World, object]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool: its declaration, and `run`, from a world and arguments to a new world and a result.

    `run` raises CallError when the arguments, though of the right types, do not fit the world.
    """

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    returns: str
    run: Callable[..., Result]

    @property
    def usage(self) -> str:
        """The call with its parameters and their types."""
        return f"{self.name}({', '.join(str(parameter) for parameter in self.parameters)})"

    def schema(self) -> Tool:
        """The declaration as chat templates take it."""
        properties = {
            parameter.name: {**parameter.kind.schema, "description": parameter.description}
            for parameter in self.parameters
        }
        return Tool(
            self.name,
            self.description,
            {"type": "object", "properties": properties, "required": list(properties)},
        )


def _list_folder(world: World, folder: str) -> Result:
    if folder not in world.folders:
        raise CallError(not_found("folder_not_found", "folder", folder, world.folders))
    paths = (document.path for document in world.documents)
    return world, sorted(path for path in paths if folder_of(path) == folder)


def _open_document(world: World, path: str) -> Result:
    return world, _document(world, path).text


def _save_document(world: World, path: str, text: str) -> Result:
    folder = folder_of(path)
    if folder not in world.folders:
        raise CallError(not_found("folder_not_found", "folder", folder, world.folders))
    if not path.endswith(".md"):
        form = "a path of the form folder/name.md"
        raise CallError(format_error("save_document", "path", form, path, "Name the document too."))
    _refuse_if_protected(world, path)
    others = tuple(document for document in world.documents if document.path != path)
    return replace(world, documents=(*others, Document(path, text))), f"Saved {path}."


def _remove_document(world: World, path: str) -> Result:
    document = _document(world, path)
    _refuse_if_protected(world, path)
    kept = tuple(other for other in world.documents if other is not document)
    return replace(world, documents=kept), f"Removed {path}."


def _lookup_contact(world: World, full_name: str) -> Result:
    person = world.person_named(full_name)
    if person is None:
        names = (person.name for person in world.people)
        raise CallError(not_found("contact_not_found", "contact", full_name, names))
    return world, asdict(person)


def _list_team(world: World, team: str) -> Result:
    members = world.members(team)
    if not members:
        raise CallError(not_found("team_not_found", "team", team, world.teams))
    return world, [{"name": person.name, "address": person.address} for person in members]


def _show_agenda(world: World, day: str) -> Result:
    _check_day("show_agenda", day)
    return world, [
        {
            "id": meeting.identity,
            "topic": meeting.topic,
            "start": meeting.start,
            "guests": list(meeting.guests),
        }
        for meeting in world.agenda(day)
    ]


def _book_meeting(world: World, topic: str, day: str, start: str, guests: list[str]) -> Result:
    _check_day("book_meeting", day)
    if not re.fullmatch(r"([01][0-9]|2[0-3]):[0-5][0-9]", start):
        advice = "Two in the afternoon is written '14:00'."
        raise CallError(format_error("book_meeting", "start", "an HH:MM time", start, advice))
    for guest in guests:
        _check_address(world, "book_meeting", "guests", guest, "attendee_not_found", "guest")
    meeting = Meeting(world.next_meeting_id(), topic, day, start, tuple(guests))
    return replace(world, meetings=(*world.meetings, meeting)), f"Booked as {meeting.identity}."


def _call_off_meeting(world: World, meeting_id: str) -> Result:
    meeting = world.meeting(meeting_id)
    if meeting is None:
        identities = (one.identity for one in world.meetings)
        raise CallError(not_found("event_not_found", "meeting", meeting_id, identities))
    if meeting.called_off:
        raise CallError(called_off_already(meeting_id))
    meetings = tuple(
        replace(one, called_off=True) if one is meeting else one for one in world.meetings
    )
    return replace(world, meetings=meetings), f"Called off {meeting_id}."


def _email_contact(world: World, address: str, subject: str, message: str) -> Result:
    _check_address(world, "email_contact", "address", address, "recipient_not_found", "recipient")
    mail = Mail(address, subject, message)
    return replace(world, mails=(*world.mails, mail)), f"Mail to {address} is on its way."


def _add_reminder(world: World, note: str, day: str) -> Result:
    _check_day("add_reminder", day)
    reminders = (*world.reminders, Reminder(note, day))
    return replace(world, reminders=reminders), f"Reminder added for {day}."


def _convert_amount(world: World, amount: float, source: str, target: str) -> Result:
    if not -LARGEST_AMOUNT <= amount <= LARGEST_AMOUNT:
        # Also infinity, not-a-number, and integers that no float can hold.
        form = "a number up to a trillion"
        raise CallError(
            format_error("convert_amount", "amount", form, amount, "Use a larger unit.")
        )
    for conversion in world.conversions:
        if (conversion.source, conversion.target) == (source, target):
            return world, round(amount * conversion.factor, 4)
    known = (f"{conversion.source} to {conversion.target}" for conversion in world.conversions)
    raise CallError(unsupported_conversion(source, target, known))


def _document(world: World, path: str) -> Document:
    document = world.document_at(path)
    if document is None:
        raise CallError(file_not_found(path, (document.path for document in world.documents)))
    return document


def _refuse_if_protected(world: World, path: str) -> None:
    if world.is_protected(path):
        raise CallError(permission_error(path, folder_of(path)))


def _check_day(tool: str, day: str) -> None:
    # The pattern comes first: newer Pythons read other ISO forms as well.
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", day):
        try:
            date.fromisoformat(day)
            return
        except ValueError:
            pass
    advice = f"The third of February 2025 is written {EXAMPLE_DAY!r}."
    raise CallError(format_error(tool, "day", "a YYYY-MM-DD date", day, advice))


def _check_address(
    world: World, tool: str, parameter: str, address: str, family: str, kind: str
) -> None:
    if "@" not in address:
        advice = "lookup_contact() tells the address of a contact."
        raise CallError(format_error(tool, parameter, "an email address", address, advice))
    if world.person_at(address) is None:
        addresses = sorted(person.address for person in world.people)
        raise CallError(not_found(family, kind, address, addresses))


_PATH = Parameter("path", "the path, such as folder/name.md")
_DAY = Parameter("day", "the day as YYYY-MM-DD")

_ALL = (
    ToolSpec(
        "list_folder",
        "Paths of the documents in a folder.",
        (Parameter("folder", "the name of a folder, such as minutes"),),
        "list[str]",
        _list_folder,
    ),
    ToolSpec("open_document", "The text of a document.", (_PATH,), "str", _open_document),
    ToolSpec(
        "save_document",
        "Write a document, new or old.",
        (_PATH, Parameter("text", "the whole text of the document")),
        "str",
        _save_document,
    ),
    ToolSpec("remove_document", "Delete a document.", (_PATH,), "str", _remove_document),
    ToolSpec(
        "lookup_contact",
        "Address and team of a person.",
        (Parameter("full_name", "first and last name"),),
        "dict",
        _lookup_contact,
    ),
    ToolSpec(
        "list_team",
        "Names and addresses of a team.",
        (Parameter("team", "the name of the team"),),
        "list[dict]",
        _list_team,
    ),
    ToolSpec("show_agenda", "The meetings of a day.", (_DAY,), "list[dict]", _show_agenda),
    ToolSpec(
        "book_meeting",
        "Put a meeting into the calendar.",
        (
            Parameter("topic", "what it is about"),
            _DAY,
            Parameter("start", "the time as HH:MM"),
            Parameter("guests", "the addresses of those invited", TEXT_LIST),
        ),
        "str",
        _book_meeting,
    ),
    ToolSpec(
        "call_off_meeting",
        "Cancel a meeting by its id.",
        (Parameter("meeting_id", "the id that the agenda shows"),),
        "str",
        _call_off_meeting,
    ),
    ToolSpec(
        "email_contact",
        "Send a mail to one address.",
        (
            Parameter("address", "the email address"),
            Parameter("subject", "the subject line"),
            Parameter("message", "the text of the mail"),
        ),
        "str",
        _email_contact,
    ),
    ToolSpec(
        "add_reminder",
        "Keep a note for a day.",
        (Parameter("note", "what to be reminded of"), _DAY),
        "str",
        _add_reminder,
    ),
    ToolSpec(
        "convert_amount",
        "Convert between units of measure.",
        (
            Parameter("amount", "how many of the source unit", NUMBER),
            Parameter("source", "the unit that it is in"),
            Parameter("target", "the unit wanted"),
        ),
        "float",
        _convert_amount,
    ),
)

TOOLS: Mapping[str, ToolSpec] = {tool.name: tool for tool in _ALL}
