"""The agents of the gallery, run with their real libraries against the capture endpoint."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

from conftest import SHARED
from gallery.agents import AGENTS, GalleryAgent
from gallery.page import row
from pytest_failgain import Capture, Failgain, capture_agent
from pytest_failgain.capture.comparison import compare, request_conversation

ERROR = "'date' must be YYYY-MM-DD, got '12 Oct'"
PAGE = Path(__file__).parents[2] / "docs" / "results" / "frameworks.md"
CAPTURES = SHARED / "captures"

NUMBER = re.compile(r"[+-]?\d+\.\d\d\b")

NEEDED = ("httpx", "langchain", "langgraph", "openai", "agents", "pydantic_ai", "smolagents")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]

# What the libraries themselves warn of is no concern of this project.
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
    pytest.mark.filterwarnings("default"),
]

RECORDS = {
    "httpx": ("native", f'"message": "{ERROR}"'),
    "openai": ("native", f"Error: {ERROR}"),
    "langgraph-handled": ("native", f"Tool error: {ERROR}"),
    "pydantic-ai-retry": ("native", f'{{"error":"{ERROR}"}}'),
    "openai-agents": ("native", "An error occurred while running the tool. Please try again."),
    "smolagents": ("merged into an earlier message", "take care not to repeat previous errors!"),
    "smolagents-code": ("text", f"due to: ValueError: {ERROR}"),
}
NO_RECORDS = ("langgraph", "pydantic-ai")


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_AGENTS_DISABLE_TRACING", "LANGSMITH_TRACING"):
        monkeypatch.setenv(name, "1" if "DISABLE" in name else "false")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")


def captured(name: str) -> Capture:
    agent = agent_named(name)
    (capture,) = capture_agent(agent.run_agent, agent.failing_calls[:1])
    return capture


def agent_named(name: str) -> GalleryAgent:
    return next(agent for agent in AGENTS if agent.name == name)


def test_every_agent_is_looked_at_here() -> None:
    assert {*RECORDS, *NO_RECORDS} == {agent.name for agent in AGENTS}


@pytest.mark.parametrize("name", RECORDS)
def test_the_record_of_a_library_is_told_by_its_kind_and_holds_what_it_writes(name: str) -> None:
    kind, text = RECORDS[name]
    capture = captured(name)
    assert capture.outcome.kind == kind
    assert text in added(*[exchange.body for exchange in capture.exchanges[:2]])


@pytest.mark.parametrize("name", NO_RECORDS)
def test_a_library_that_lets_the_exception_escape_leaves_no_record(name: str) -> None:
    capture = captured(name)
    assert capture.outcome.kind == "exception escaped"
    assert ERROR in capture.outcome.reason
    assert not capture.outcome.has_record


def test_a_hidden_error_and_a_call_that_is_not_echoed_are_told_beside_the_form() -> None:
    assert "error hidden" in captured("openai-agents").outcome.flags
    assert "call not echoed" in captured("smolagents").outcome.flags


def added(before: dict[str, Any], after: dict[str, Any]) -> str:
    return compare(request_conversation(before), request_conversation(after)).text


@pytest.mark.skipif(not CAPTURES.is_dir(), reason=f"no recorded requests in {CAPTURES}")
@pytest.mark.parametrize(
    ("name", "recorded"),
    [
        ("openai", "openai_chat"),
        ("langgraph-handled", "langchain_create-handled"),
        ("pydantic-ai-retry", "pydantic_chat-modelretry-retries"),
        ("openai-agents", "agents_default"),
        ("smolagents", "smol_tool"),
    ],
)
def test_a_library_writes_what_it_wrote_when_it_was_recorded(name: str, recorded: str) -> None:
    before, after = (
        json.loads((CAPTURES / f"{recorded}_{which}.json").read_text("utf-8"))
        for which in ("before", "after")
    )
    exchanges = captured(name).exchanges
    assert added(exchanges[0].body, exchanges[1].body) == added(before, after)


@pytest.mark.model
@pytest.mark.parametrize("name", RECORDS)
def test_each_record_is_measured_and_its_figures_are_those_of_the_page(name: str) -> None:
    agent = agent_named(name)
    result = Failgain("smollm2-135m-q4_1").measure_agent(*agent.experiment)
    assert result.summary()["n"] == len(agent.failing_calls)
    assert all(RECORDS[name][1].partition(ERROR)[0] in text for text in result.records.values())
    (written,) = (
        line for line in PAGE.read_text("utf-8").splitlines() if line.startswith(f"| {name} |")
    )
    made = row(agent, result)
    assert NUMBER.sub("", made) == NUMBER.sub("", written)
    # Another processor's last digit may round the other way.
    assert numbers(made) == pytest.approx(numbers(written), abs=0.011)


def numbers(line: str) -> list[float]:
    return [float(number) for number in NUMBER.findall(line)]
