"""Sets our scores of the paper's items next to its own scores of the same items.

    python docs/results/same_items.py ITEMS.jsonl OURS.jsonl RELEASED.jsonl

ITEMS is one of the paper's `data/probe_*.jsonl`, OURS a file of the `rows/` of a study of it, and
RELEASED one of the paper's `results/raw/probe/*.jsonl`. Means are over the items that both files
scored, so that they differ by the weights alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from pytest_failgain import load_cases
from pytest_failgain.conditions import CONDITIONS
from pytest_failgain.measures import MEASURES
from pytest_failgain.rows import CaseRows, Row

SHOWN = (
    ("gain", "failed"),
    ("gain_per_token", "failed"),
    ("surface", "neutral"),
    ("semantic", "neutral"),
    ("semantic", "succeeded"),
    ("gain", "described"),
    ("repair", "failed"),
    ("greedy_repeat", "failed"),
)
_NAMES = {condition.paper_name: name for name, condition in CONDITIONS.items()}


def main(items: Path, ours: Path, released: Path) -> None:
    """Print the means as a table."""
    scored = [by_item(read(path)) for path in (ours, released)]
    common = [case for case in load_cases(items) if all(case.case_id in rows for rows in scored)]
    print(f"| {len(common)} items | embedded weights | original weights |\n|---|---|---|")
    for name, condition in SHOWN:
        means = (
            fmean(
                MEASURES[name].of(CaseRows(case, rows[case.case_id]), condition) for case in common
            )
            for rows in scored
        )
        print(f"| {name}, {condition} | {' | '.join(f'{mean:+.2f}' for mean in means)} |")


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def by_item(lines: Iterable[Mapping[str, Any]]) -> dict[str, dict[tuple[str, str], Row]]:
    """The rows of each item, under our names of condition and candidate."""
    items: dict[str, dict[tuple[str, str], Row]] = {}
    for line in lines:
        row = Row(
            case_id=line.get("case_id") or line["item_id"],
            condition=_NAMES.get(line["condition"], line["condition"]),
            candidate=line["candidate"].replace("gold", "correct"),
            logprob=line["logprob"],
            n_tokens=line["n_tokens"],
            context_tokens=line.get("context_tokens") or line["ctx_tokens"],
            argmax_matches=line.get("argmax_matches", line.get("n_argmax_match")),
            # Neither file has these, and none of the measures needs them.
            text="",
            token_logprobs=(),
            token_spans=(),
        )
        items.setdefault(row.case_id, {})[row.condition, row.candidate] = row
    return items


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
