"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown_table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table whose first column is text and whose others are numbers."""
    rule = ["---:" if place else "---" for place, _ in enumerate(heads)]
    rows = (heads, rule, *([_cell(cell) for cell in line] for line in lines))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _cell(text: str) -> str:
    # Neither may end the cell or the line that it stands in.
    return " ".join(text.split()).replace("|", r"\|")
