"""What the gallery's agents record, and what it does, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gallery.agents import GalleryAgent
from pytest_failgain import AgentMeasurement

_HEAD = (
    "| agent | version | how | record | tokens | gain/token | arguments | repeat p | greedy |\n"
    "|---|---|---|---|---|---|---|---|---|"
)


def page(measured: Mapping[GalleryAgent, AgentMeasurement]) -> str:
    """A table with a row an agent, and below it each record as the model was given it."""
    rows = "\n".join(row(agent, result) for agent, result in measured.items())
    records = "\n\n".join(
        text for agent, result in measured.items() for text in _record(agent, result)
    )
    return f"{_HEAD}\n{rows}\n\n{records}"


def row(agent: GalleryAgent, result: AgentMeasurement) -> str:
    """One agent's row of the table."""
    kinds = dict.fromkeys(" + ".join(capture.outcome.kinds) for capture in result.captures)
    cells = [agent.name, f"{agent.library} {agent.version}", agent.setting, "; ".join(kinds)]
    return f"| {' | '.join([*cells, *_figures(result)])} |"


def _figures(result: AgentMeasurement) -> list[str]:
    summary = result.summary()
    if not summary["n"]:
        return ["-"] * 5
    low, high = summary["corrective_gain_per_token_ci"]
    return [
        f"{summary['record_tokens']:.0f}",
        f"{summary['corrective_gain_per_token']:+.2f} [{low:+.2f}, {high:+.2f}]",
        f"{summary['argument_gain_per_token']:+.2f}",
        f"{summary['repeat_probability_before']:.2f} -> {summary['repeat_probability_after']:.2f}",
        f"{summary['greedy_repeat_before']:.2f} -> {summary['greedy_repeat_after']:.2f}",
    ]


def _record(agent: GalleryAgent, result: AgentMeasurement) -> Iterator[str]:
    first = next(iter(result.records.values()), None)
    if first is not None:
        yield f"**{agent.name}**\n\n```text\n{first.strip()}\n```"
