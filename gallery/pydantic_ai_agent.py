"""pydantic-ai.

A `ValueError` of a tool ends the run by itself; `ModelRetry` is the way to tell the model.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from pydantic_ai import Agent, ModelRetry, Tool
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from gallery.calendar_tools import INSTRUCTIONS, Calendar


def run_by_default(base_url: str, task: str, observation: str | None = None) -> str:
    """Tools that raise what they raise."""
    calendar = Calendar(observation)
    return _run(base_url, task, calendar.create_event, calendar.list_events)


def run_with_model_retry(base_url: str, task: str, observation: str | None = None) -> str:
    """Tools that turn their errors into `ModelRetry`, as the documentation has it."""
    calendar = Calendar(observation)
    return _run(base_url, task, _retried(calendar.create_event), _retried(calendar.list_events))


def _run(base_url: str, task: str, *functions: Callable[..., str]) -> str:
    model = OpenAIChatModel("any", provider=OpenAIProvider(base_url=base_url, api_key="unused"))
    tools = [Tool(function, takes_ctx=False, max_retries=3) for function in functions]
    agent = Agent(model, instructions=INSTRUCTIONS, tools=tools)
    return str(agent.run_sync(task).output)


def _retried(function: Callable[..., str]) -> Callable[..., str]:
    @wraps(function)
    def retried(*args: str, **kwargs: str) -> str:
        try:
            return function(*args, **kwargs)
        except ValueError as error:
            raise ModelRetry(str(error)) from error

    return retried
