"""The tools of every agent in the gallery: a calendar that takes dates in one form only."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

INSTRUCTIONS = "You keep the user's calendar. Use the tools for everything that concerns it."

CREATE_EVENT: dict[str, Any] = {
    "name": "create_event",
    "description": "Put an event into the calendar.",
    "parameters": {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "date": {"type": "string", "description": "YYYY-MM-DD"},
            "time": {"type": "string", "description": "HH:MM"},
        },
        "required": ["title", "date", "time"],
    },
}
LIST_EVENTS: dict[str, Any] = {
    "name": "list_events",
    "description": "List the events of a day.",
    "parameters": {
        "type": "object",
        "properties": {"date": {"type": "string", "description": "YYYY-MM-DD"}},
        "required": ["date"],
    },
}


@dataclass
class Calendar:
    """A calendar, and what an agent can do with it.

    With an `observation`, each tool answers that text and does nothing: so an agent can be shown
    what its prompt would be if the tool had said something else.
    """

    observation: str | None = None
    events: list[tuple[str, str, str]] = field(default_factory=list)

    def create_event(self, title: str, date: str, time: str) -> str:
        """Put an event into the calendar."""
        if self.observation is not None:
            return self.observation
        self.events.append((_checked_date(date), time, title))
        return f"Created {title!r} on {date} at {time}."

    def list_events(self, date: str) -> str:
        """List the events of a day."""
        if self.observation is not None:
            return self.observation
        found = [
            f"{time} {title}" for day, time, title in self.events if day == _checked_date(date)
        ]
        return "\n".join(sorted(found)) or "No events."

    def tool(self, name: str) -> Callable[..., str]:
        """The tool called `name`."""
        tools: dict[str, Callable[..., str]] = {
            "create_event": self.create_event,
            "list_events": self.list_events,
        }
        return tools[name]


def _checked_date(date: str) -> str:
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", date):
        raise ValueError(f"'date' must be YYYY-MM-DD, got {date!r}")
    return date
