"""Chat messages as agents send them, to try readers of transcripts on."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from pytest_failgain.harnesses import render_verbatim
from pytest_failgain.strategies.texts import JSON_VALUES, TEXTS
from pytest_failgain.strategies.trajectories import trajectories
from pytest_failgain.trajectory import Trajectory

_TRAJECTORIES = trajectories()
_IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


def chat_messages() -> st.SearchStrategy[list[dict[str, Any]]]:
    """A conversation's messages for chat completions, with failed calls and without.

    They vary in what clients do in their own ways: content that is null or in parts, images,
    arguments that are objects, results without an id, other names of roles, and further keys.
    """
    return _TRAJECTORIES.flatmap(_messages)


@st.composite
def chat_requests(draw: st.DrawFn) -> dict[str, Any]:
    """The same as bodies of requests, with tools where there are any."""
    trajectory = draw(_TRAJECTORIES)
    body: dict[str, Any] = {"model": "m", "messages": draw(_messages(trajectory))}
    if trajectory.tools:
        body["tools"] = [tool.as_function() for tool in trajectory.tools]
    return body


@st.composite
def _messages(draw: st.DrawFn, trajectory: Trajectory) -> list[dict[str, Any]]:
    return [draw(_varied(dict(message))) for message in render_verbatim(trajectory)]


@st.composite
def _varied(draw: st.DrawFn, message: dict[str, Any]) -> dict[str, Any]:
    return {**message, **draw(st.sampled_from(_variations(message))), **draw(_FURTHER)}


def _variations(message: dict[str, Any]) -> list[dict[str, Any]]:
    """What another client would have written in a message, the message as it is first."""
    text, role = message["content"], message["role"]
    parts = [{"type": "text", "text": text}]
    found: list[dict[str, Any]] = [{}, {"content": parts}]
    if role == "system":
        found.append({"role": "developer"})
    if role == "user":
        found.append({"content": [*parts, _IMAGE]})
    if role == "tool":
        found += [{"tool_call_id": None}, {"role": "function"}]
    if "tool_calls" in message:
        found += [{"content": None}, {"content": ""}, {"tool_calls": _with_objects(message)}]
    return found


def _with_objects(message: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {**call, "function": {**call["function"], "arguments": {"as": "an object"}}}
        for call in message["tool_calls"]
    ]


_FURTHER: st.SearchStrategy[dict[str, Any]] = st.just({}) | st.dictionaries(
    st.sampled_from(("name", "refusal", "reasoning_content", "annotations")),
    TEXTS | JSON_VALUES,
    max_size=2,
)
