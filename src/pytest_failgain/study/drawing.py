"""How the figures of a study are drawn: their style, panels, marks, legends and texts."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_failgain.atomic import write_atomically
from pytest_failgain.errors import UsageError
from pytest_failgain.study.tables import EstimateRow, Estimates, GroupRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DPI = 150
# Okabe and Ito's palette, which the common kinds of colour blindness keep apart.
BLUE, VERMILLION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
_PURPLE, SKY, BLACK = "#CC79A7", "#56B4E9", "#000000"
GREY, _PALE = "#666666", "#F2F2F2"
_COLOURS = (BLUE, VERMILLION, GREEN, _PURPLE, ORANGE, SKY, BLACK)
# More shapes than colours, so that the two together repeat late.
_MARKERS = "osD^vPXp"
_RC = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "figure.titlesize": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "ytick.major.size": 0,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    # A model's name may hold a $.
    "text.parse_math": False,
}
# Heights in inches.
TITLE, LEGEND_LINE, AXIS, TEXT_LINE = 0.4, 0.22, 0.45, 0.14
_CHARACTER = 0.075  # the width of one, in inches, at the size of the labels
_LABEL_CHARACTERS = 26

_Row = EstimateRow | GroupRow


@dataclass(frozen=True, slots=True)
class Look:
    """How one series of points is drawn, and what the legend calls it."""

    label: str
    colour: str
    marker: str = "o"
    filled: bool = True
    size: float = 6
    line: float = 1.6


@dataclass(frozen=True, slots=True)
class Panel:
    """The axes of one environment, with a model at every whole number of its y axis."""

    axes: Axes
    environment: str
    models: Sequence[str]

    def placed(
        self, table: Estimates, measure: str, condition: str, lane: float
    ) -> list[tuple[EstimateRow, float]]:
        """The estimates of all models that have one, with their places on the y axis."""
        return [
            (row, place + lane)
            for place, model in enumerate(self.models)
            if (row := table.find(model, self.environment, measure, condition))
        ]


@contextmanager
def style() -> Iterator[None]:
    """Matplotlib's own defaults and `_RC`, whatever the user's settings are."""
    try:
        from matplotlib.style import context
    except ImportError:
        raise UsageError(
            "the figures of a study need matplotlib; pip install 'pytest-failgain[study]'"
        ) from None
    with context(["default", _RC]):
        yield


@style()
def save(figure: Figure, path: Path) -> Path:
    """Write `figure` as a PNG file, whole or not at all, and tell where."""
    content = io.BytesIO()
    # Without the program's version, which would change the file and not the picture.
    figure.savefig(content, format="png", dpi=_DPI, metadata={"Software": None})
    write_atomically(path, content.getvalue())
    return path


def stacked_panels(
    table: Estimates,
    shown: Sequence[tuple[str, str]],
    label: str,
    row_height: float = 0.42,
) -> tuple[Figure, list[Panel]]:
    """Panels above each other, of the environments and models that have any measure `shown`."""
    from matplotlib.figure import Figure

    models = {
        environment: there
        for environment in table.environments
        if (
            there := [
                model
                for model in table.models
                if any(table.find(model, environment, *what) for what in shown)
            ]
        )
    }
    if not models:
        return Figure(), []
    rows = [len(there) for there in models.values()]
    names = {model: wrapped(model, _LABEL_CHARACTERS) for model in table.models}
    row_height = max(row_height, 0.1 + TEXT_LINE * most_lines(names.values()))
    height = sum(rows) * row_height + 0.5 * len(rows) + TITLE + LEGEND_LINE + AXIS
    figure = Figure(figsize=(7.5, height), layout="constrained")
    column = figure.subplots(len(rows), 1, sharex=True, squeeze=False, height_ratios=rows)[:, 0]
    for axes, (environment, there) in zip(column, models.items(), strict=True):
        axes.set_title(environment, fontweight="bold")
        axes.set_ylim(len(there) - 0.5, -0.5)
        axes.set_yticks(range(len(there)), [names[model] for model in there])
        axes.tick_params(labelbottom=True)
        background(axes, range(len(there)), 1)
    column[-1].set_xlabel(label)
    return figure, [
        Panel(axes, environment, there)
        for axes, (environment, there) in zip(column, models.items(), strict=True)
    ]


def background(axes: Axes, places: Iterable[float], height: float) -> None:
    """A grid for the x axis, and a pale band behind every other row."""
    axes.grid(axis="x")
    for place in list(places)[1::2]:
        axes.axhspan(place - height / 2, place + height / 2, color=_PALE, zorder=0)


def zero_line(axes: Axes) -> None:
    """A thin line at 0 of the x axis."""
    axes.axvline(0, color=GREY, linewidth=0.8, zorder=1)


def points(axes: Axes, rows: Sequence[tuple[_Row, float]], look: Look) -> None:
    """A marker at the value of each row, at its y, and a whisker along its interval."""
    whiskers(axes, rows, look.colour, look.line)
    marks(axes, [(row.value, y) for row, y in rows], look)


def marks(axes: Axes, places: Sequence[tuple[float, float]], look: Look) -> None:
    """A marker at each x and y."""
    if places:
        axes.plot(
            [x for x, _ in places],
            [y for _, y in places],
            linestyle="none",
            marker=look.marker,
            markersize=look.size,
            color=look.colour,
            markerfacecolor=look.colour if look.filled else "white",
            label=look.label,
            zorder=4,
        )


def whiskers(
    axes: Axes, rows: Sequence[tuple[_Row, float]], colour: str, width: float, shift: float = 0
) -> None:
    """Lines along the intervals that have finite bounds, `shift` further right."""
    known = [(row, y) for row, y in rows if math.isfinite(row.low) and math.isfinite(row.high)]
    if known:
        axes.hlines(
            [y for _, y in known],
            [row.low + shift for row, _ in known],
            [row.high + shift for row, _ in known],
            color=colour,
            linewidth=width,
            zorder=3,
        )


def stacked_bars(axes: Axes, parts: Sequence[tuple[EstimateRow, Look]], y: float) -> None:
    """Bars end to end, those above 0 to its right and those below to its left."""
    ends = {True: 0.0, False: 0.0}
    # Whiskers of bars that lie side by side must not lie on each other.
    for lane, (row, look) in zip((-0.08, 0.08), parts, strict=False):
        start = ends[row.value > 0]
        ends[row.value > 0] += row.value
        axes.barh(y, row.value, 0.38, start, color=look.colour, label=look.label, zorder=2)
        whiskers(axes, [(row, y + lane)], BLACK, 0.8, shift=start)


def counts_beside(panel: Panel, table: Estimates, measure: str, condition: str) -> None:
    """The number of cases of each estimate, at the right of its row."""
    for row, y in panel.placed(table, measure, condition, 0):
        beside(panel.axes, y, f"n = {row.n}")


def beside(axes: Axes, y: float, text: str) -> None:
    """`text` at the right of the row at `y`."""
    axes.text(
        1.01, y, text, transform=axes.get_yaxis_transform(), va="center", fontsize=8, color=GREY
    )


def titled(
    figure: Figure, title: str, order: Sequence[str] = (), columns: int = 3
) -> Figure | None:
    """`figure` with a title and a legend of all its panels; None where it shows nothing.

    The labels in `order` come first in the legend.
    """
    entries: dict[str, Any] = dict.fromkeys(order)
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries[label] = entries.get(label) or handle
    entries = {label: handle for label, handle in entries.items() if handle}
    if not entries:
        return None
    # The layout keeps no room between a legend over the panels and a title of the figure, so the
    # title is the legend's.
    legend = figure.legend(
        list(entries.values()),
        list(entries),
        title=title,
        title_fontsize=10.5,
        loc="outside upper center",
        ncols=columns,
        frameon=False,
    )
    legend.get_title().set_multialignment("center")
    return figure


def legend_shape(labels: Sequence[str], width: float) -> tuple[int, int]:
    """How many columns of the legend fit into `width` inches, and how many lines that makes."""
    column = max(len(line) for label in labels for line in label.split("\n")) * _CHARACTER + 0.5
    columns = max(1, min(len(labels), int(width / column)))
    return columns, math.ceil(len(labels) / columns) * most_lines(labels)


def model_looks(models: Sequence[str]) -> dict[str, Look]:
    """A look for each model; colour and shape together repeat after 56."""
    return {
        model: Look(
            wrapped(model, 60),
            _COLOURS[index % len(_COLOURS)],
            _MARKERS[index % len(_MARKERS)],
            size=4.5,
            line=1.2,
        )
        for index, model in enumerate(models)
    }


def axis_label(quantity: str, left: str, right: str) -> str:
    """The label of an axis in nats per token, with what its two directions mean."""
    return f"{quantity} (nats per token)\n{direction(left, right)}"


def direction(left: str, right: str) -> str:
    """What the two directions of an axis mean for the repeat."""
    return f"← repeat {left}     {right} →"


def counts(numbers: Iterable[int]) -> str:
    """The number of cases in a group, which models may differ in."""
    least, *_, most = sorted([*numbers] * 2)
    return f"n = {least}" if least == most else f"n = {least} to {most}"


def wrapped(name: str, characters: int) -> str:
    """`name` in lines of at most so many characters, broken after a separator where one is."""
    lines = [""]
    for part in re.findall(rf"[^-/_]{{1,{characters - 1}}}[-/_]?|[-/_]", name):
        if len(lines[-1]) + len(part) > characters:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def most_lines(texts: Iterable[str]) -> int:
    """How many lines the text with the most of them has."""
    return max(text.count("\n") + 1 for text in texts)
