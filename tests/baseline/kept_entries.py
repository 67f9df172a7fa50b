"""Entries of a baseline that were never measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from pytest_failgain.baseline.entry import Entry, KeptCase, Model
from strategies import texts

MODEL = Model("tiny", "a folder", None, "0f3c", "91ab", "float32")


def kept(
    gain: float = 0.0,
    share: float | None = 0.25,
    greedy: bool = False,
    *,
    task: str = "task",
    decision: str = "5be0",
    record: str = "It failed.",
) -> KeptCase:
    """A case with these values."""
    return KeptCase(task, decision, gain, share, greedy, record)


def entry(
    cases: Mapping[str, KeptCase],
    *,
    harness: str = "mine",
    environment: str = "own cases",
    **changed: Any,
) -> Entry:
    """An entry of these cases; `changed` are settings."""
    return Entry(harness, environment, MODEL, changed, cases)


def spread(count: int, **values: Any) -> dict[str, KeptCase]:
    """Cases of one task each, all with the same values."""
    return {f"case{i}": kept(**values, task=f"task{i}") for i in range(count)}


numbers = st.floats(-5, 5).map(lambda number: round(number, 4))
shares = st.none() | st.floats(0, 1).map(lambda number: round(number, 4))
kept_cases = st.builds(KeptCase, texts, texts, numbers, shares, st.booleans(), texts)
models = st.builds(Model, texts, texts, st.none() | texts, texts, texts, texts)
settings = st.dictionaries(texts, st.none() | st.booleans() | st.integers() | texts, max_size=3)
entries = st.builds(
    Entry,
    texts,
    texts,
    models,
    settings,
    st.dictionaries(texts, kept_cases, max_size=4).map(lambda cases: dict(sorted(cases.items()))),
)
