"""smolagents: an agent that makes JSON calls, and one that writes Python."""

from __future__ import annotations

from typing import Any

from smolagents import CodeAgent, OpenAIServerModel, Tool, ToolCallingAgent

from gallery.calendar_tools import INSTRUCTIONS, Calendar

_TEXT = {"type": "string"}


class CreateEvent(Tool):  # type: ignore[misc]
    """The calendar's tool as smolagents wants it."""

    name = "create_event"
    description = "Put an event into the calendar."
    inputs: dict[str, Any] = {  # noqa: RUF012
        "title": {"type": "string", "description": "the title"},
        "date": {"type": "string", "description": "YYYY-MM-DD"},
        "time": {"type": "string", "description": "HH:MM"},
    }
    output_type = "string"

    def __init__(self, calendar: Calendar) -> None:
        super().__init__()
        self.calendar = calendar

    def forward(self, title: str, date: str, time: str) -> str:
        return self.calendar.create_event(title, date, time)


class ListEvents(Tool):  # type: ignore[misc]
    """The calendar's tool as smolagents wants it."""

    name = "list_events"
    description = "List the events of a day."
    inputs: dict[str, Any] = {  # noqa: RUF012
        "date": {"type": "string", "description": "YYYY-MM-DD"}
    }
    output_type = "string"

    def __init__(self, calendar: Calendar) -> None:
        super().__init__()
        self.calendar = calendar

    def forward(self, date: str) -> str:
        return self.calendar.list_events(date)


def run_tool_agent(base_url: str, task: str, observation: str | None = None) -> str:
    """The agent that makes calls."""
    return _run(ToolCallingAgent, base_url, task, observation)


def run_code_agent(base_url: str, task: str, observation: str | None = None) -> str:
    """The agent whose actions are programs."""
    return _run(CodeAgent, base_url, task, observation)


def _run(kind: Any, base_url: str, task: str, observation: str | None) -> str:
    calendar = Calendar(observation)
    agent = kind(
        tools=[CreateEvent(calendar), ListEvents(calendar)],
        model=OpenAIServerModel(model_id="any", api_base=base_url, api_key="unused"),
        instructions=INSTRUCTIONS,
        max_steps=4,
        verbosity_level=-1,
    )
    return str(agent.run(task))
