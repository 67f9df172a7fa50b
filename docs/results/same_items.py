"""Sets our scores of the paper's items next to its own scores of the same items.

    python docs/results/same_items.py OURS.jsonl RELEASED.jsonl

OURS is a file of a study's `rows/`, RELEASED one of the paper's `results/raw/probe/*.jsonl`. Means
are over the items that both files scored, so that they differ by the weights alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from pytest_failgain.conditions import CONDITIONS

NAMES = {condition.paper_name: name for name, condition in CONDITIONS.items()}
Row = Mapping[str, Any]
Item = Mapping[tuple[str, str], Row]


def f(item: Item, condition: str, candidate: str = "failed") -> float:
    logprob: float = item[condition, candidate]["logprob"]
    return logprob


MEASURES: dict[str, Callable[[Item], float]] = {
    "gain": lambda item: f(item, "before") - f(item, "failed"),
    "gain per token": lambda item: (
        (f(item, "before") - f(item, "failed")) / item["failed", "failed"]["n_tokens"]
    ),
    "surface, neutral": lambda item: f(item, "neutral") - f(item, "before"),
    "semantic, neutral": lambda item: f(item, "failed") - f(item, "neutral"),
    "semantic, succeeded": lambda item: f(item, "failed") - f(item, "succeeded"),
    "gain, described": lambda item: f(item, "before") - f(item, "described"),
    "repair": lambda item: f(item, "failed", "correct") - f(item, "before", "correct"),
    "greedy repeat": lambda item: item["failed", "failed"]["is_greedy"],
}


def main(ours: Path, released: Path) -> None:
    """Print the means as a table."""
    mine, theirs = by_item(ours), by_item(released)
    common = [name for name in mine if name in theirs]
    print(f"| {len(common)} items | embedded weights | original weights |\n|---|---|---|")
    for name, measure in MEASURES.items():
        values = (fmean(measure(scored[item]) for item in common) for scored in (mine, theirs))
        print(f"| {name} | {' | '.join(f'{value:+.2f}' for value in values)} |")


def by_item(path: Path) -> dict[str, dict[tuple[str, str], Row]]:
    """The rows of each item, by our names of condition and candidate."""
    items: dict[str, dict[tuple[str, str], Row]] = {}
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        condition = NAMES.get(row["condition"], row["condition"])
        candidate = row["candidate"].replace("gold", "correct")
        row.setdefault("is_greedy", row.get("greedy"))
        name = row.get("item_id", row.get("case_id"))
        items.setdefault(name, {})[condition, candidate] = row
    return items


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
