"""LangGraph's ReAct agent, by way of LangChain's `create_agent`.

By itself it lets a tool's exception escape, so that the run ends and the model never hears of it.
`handling` makes it write the error into the prompt, which is what most people do next.
"""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import ToolCallRequest, wrap_tool_call
from langchain_core.messages import ToolMessage
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from gallery.calendar_tools import INSTRUCTIONS, Calendar


@wrap_tool_call
def handle_errors(request: ToolCallRequest, handler: Any) -> Any:
    """The error as the tool's message, as in LangChain's guide to tools."""
    try:
        return handler(request)
    except Exception as error:
        return ToolMessage(
            content=f"Tool error: {error}",
            tool_call_id=request.tool_call["id"],
            status="error",
        )


def run_by_default(base_url: str, task: str, observation: str | None = None) -> str:
    """The agent as it comes."""
    return _run(base_url, task, observation, ())


def run_handling_errors(base_url: str, task: str, observation: str | None = None) -> str:
    """The agent with the middleware that its guide shows for tools that fail."""
    return _run(base_url, task, observation, (handle_errors,))


def _run(base_url: str, task: str, observation: str | None, middleware: Any) -> str:
    calendar = Calendar(observation)
    agent = create_agent(
        ChatOpenAI(model="any", base_url=base_url, api_key=SecretStr("unused")),
        [
            StructuredTool.from_function(calendar.create_event),
            StructuredTool.from_function(calendar.list_events),
        ],
        system_prompt=INSTRUCTIONS,
        middleware=middleware,
    )
    state = agent.invoke({"messages": [{"role": "user", "content": task}]})
    return str(state["messages"][-1].content)
