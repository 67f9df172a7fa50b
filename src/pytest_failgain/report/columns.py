"""Tables in columns, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence


def aligned(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The headings and one line a row; a column in which every row has "-" is left out."""
    shown = [i for i in range(len(headings)) if any(row[i] != "-" for row in rows)]
    lines = [[line[i] for i in shown] for line in (headings, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [_line(cells, widths) for cells in lines]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = (
        cell.ljust(width) if i == 0 else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join([first, *rest]).rstrip()
