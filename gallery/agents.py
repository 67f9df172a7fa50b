"""The agents of the gallery, each with the library that it shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from typing import Any

from gallery.failing_calls import FAILING_CALLS, as_code
from pytest_failgain import FailingCall


@dataclass(frozen=True, slots=True)
class GalleryAgent:
    """An agent: the `function` of a `module` here, made with `library`.

    `setting` says how the library is used. Agents that write programs are given programs.
    """

    name: str
    library: str
    setting: str
    module: str
    function: str = "run_agent"
    writes_code: bool = False

    @property
    def run_agent(self) -> Callable[..., Any]:
        """What `measure_agent` takes; its library is imported for it."""
        found: Callable[..., Any] = getattr(import_module(f"gallery.{self.module}"), self.function)
        return found

    @property
    def experiment(self) -> tuple[Callable[..., Any], tuple[FailingCall, ...]]:
        """What `measure_agent` takes."""
        return self.run_agent, self.failing_calls

    @property
    def version(self) -> str:
        """The version of the library that is installed."""
        return version(self.library)

    @property
    def failing_calls(self) -> tuple[FailingCall, ...]:
        """The calls that it is made to fail with."""
        return tuple(map(as_code, FAILING_CALLS)) if self.writes_code else FAILING_CALLS


_LANGGRAPH, _PYDANTIC_AI = "langgraph_agent", "pydantic_ai_agent"

AGENTS = (
    GalleryAgent("httpx", "httpx", "a loop that answers errors as JSON", "httpx_loop"),
    GalleryAgent("openai", "openai", "a loop that answers `Error: …`", "openai_loop"),
    GalleryAgent("langgraph", "langgraph", "as it comes", _LANGGRAPH, "run_by_default"),
    GalleryAgent(
        "langgraph-handled",
        "langgraph",
        "a middleware answers `Tool error: …`",
        _LANGGRAPH,
        "run_handling_errors",
    ),
    GalleryAgent("pydantic-ai", "pydantic-ai-slim", "as it comes", _PYDANTIC_AI, "run_by_default"),
    GalleryAgent(
        "pydantic-ai-retry",
        "pydantic-ai-slim",
        "tools raise `ModelRetry`",
        _PYDANTIC_AI,
        "run_with_model_retry",
    ),
    GalleryAgent("openai-agents", "openai-agents", "as it comes", "openai_agents_agent"),
    GalleryAgent(
        "smolagents", "smolagents", "`ToolCallingAgent`", "smolagents_agent", "run_tool_agent"
    ),
    GalleryAgent(
        "smolagents-code",
        "smolagents",
        "`CodeAgent`",
        "smolagents_agent",
        "run_code_agent",
        writes_code=True,
    ),
)
