"""Sets a study's estimates next to the paper's figures: `python docs/results/compare.py`.

`paper.csv` holds the published figures for SmolLM2-135M-Instruct with its original weights, from
`results/processed/probe_summary.csv`, `probe_by_depth.csv` and `paper/tables/probe_by_error.tex` of
github.com/Esmail-ibraheem/feedback-that-backfires (MIT), under the paper's names.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
ENVIRONMENTS = {"tool_calls": "toolshed", "program_repair": "coderepair"}
Row = dict[str, str]
# By environment, break-down, group and measure.
Paper = dict[tuple[str, str, str, str], Row]


def main(tables: Path) -> None:
    """Print the page's tables from the study in `tables`."""
    paper: Paper = {
        (row["environment"], row["by"], row["group"], row["measure"]): row
        for row in read(HERE / "paper.csv")
    }
    for ours, theirs in ENVIRONMENTS.items():
        print(f"### {ours}, and the paper's {theirs}\n")
        heads = ("the paper's name", "ours", "unit", "ours [95%]", "n", "paper [95%]", "n")
        print_table(heads, compared(read(tables / "estimates.csv"), paper, ours, theirs))
    for by in ("error_family", "depth"):
        print(f"### Gain in nats by {by.replace('_', ' ')}: tool_calls, and the paper's toolshed\n")
        rows = [
            row
            for row in read(tables / "breakdowns.csv")
            if (row["environment"], row["by"], row["measure"]) == ("tool_calls", by, "gain")
        ]
        lines = (
            (row["group"], interval(row), row["n"], *published(paper, by, row["group"]))
            for row in rows
        )
        print_table((by.replace("_", " "), "ours [95%]", "n", "paper [95%]", "n"), lines)


def compared(
    estimates: list[Row], paper: Paper, ours: str, theirs: str
) -> Iterator[tuple[str, ...]]:
    for row in estimates:
        key = (theirs, "", "", row["paper"])
        if row["environment"] == ours and key in paper:
            name = f"{row['measure']}, {row['condition']}"
            unit = row["unit"]
            found = paper[key]
            yield row["paper"], name, unit, interval(row), row["n"], interval(found), found["n"]


def published(paper: Paper, by: str, group: str) -> tuple[str, str]:
    row = paper.get(("toolshed", by, group, "G"))
    return ("-", "-") if row is None else (interval(row), row["n"])


def interval(row: Row) -> str:
    value, low, high = (f"{float(row[name]):.2f}" for name in ("value", "low", "high"))
    return f"{value} [{low}, {high}]"


def read(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def print_table(heads: tuple[str, ...], lines: Iterator[tuple[str, ...]]) -> None:
    for line in (heads, ["---"] * len(heads), *lines):
        print(f"| {' | '.join(line)} |")
    print()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "smollm2-135m" / "tables")
