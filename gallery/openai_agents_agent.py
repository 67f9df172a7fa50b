"""The OpenAI Agents SDK, which talks the Responses API and keeps a tool's error from the model."""

from __future__ import annotations

from agents import Agent, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

from gallery.calendar_tools import INSTRUCTIONS, Calendar


async def run_agent(base_url: str, task: str, observation: str | None = None) -> str:
    """Let the model at `base_url` work on `task`, and give its last words."""
    set_tracing_disabled(True)
    calendar = Calendar(observation)
    client = AsyncOpenAI(base_url=base_url, api_key="unused")
    agent = Agent(
        name="Calendar",
        instructions=INSTRUCTIONS,
        model=OpenAIResponsesModel("any", client),
        tools=[function_tool(calendar.create_event), function_tool(calendar.list_events)],
    )
    result = await Runner.run(agent, task)
    return str(result.final_output)
