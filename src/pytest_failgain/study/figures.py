"""The figures of a study: each a pure function from rows of its tables to a matplotlib figure.

The usual record is what the measured harness writes, the condition `failed`. A function gives None
where the rows hold nothing that it could show. Values that are not finite are left out, and so are
intervals without finite bounds. Models and environments come in the order of the rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pytest_failgain.conditions import CONDITIONS
from pytest_failgain.errors import UsageError
from pytest_failgain.measures import VARIANTS
from pytest_failgain.study.tables import (
    BREAKDOWNS,
    FEWEST_CASES,
    EstimateRow,
    GroupRow,
    natural_order,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DPI = 150
# Okabe and Ito's palette, which the common kinds of colour blindness keep apart.
_BLUE, _VERMILLION, _GREEN, _ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
_PURPLE, _SKY, _BLACK = "#CC79A7", "#56B4E9", "#000000"
_GREY, _PALE = "#666666", "#F2F2F2"
_COLOURS = (_BLUE, _VERMILLION, _GREEN, _PURPLE, _ORANGE, _SKY, _BLACK)
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
_TITLE, _LEGEND_LINE, _AXIS, _HEADING, _TEXT_LINE = 0.4, 0.22, 0.45, 0.3, 0.14
_CHARACTER = 0.075  # the width of one, in inches, at the size of the labels
_LABEL_CHARACTERS = 26

_CHANGE = "change_from_failed_per_token"
# The break-downs whose groups have an order of their own, with their headings; the others have
# their name for a heading, and are ordered by the gain.
_ORDERED = {"depth": "steps before the failure", "action_tokens": "tokens of the action"}

_Row = EstimateRow | GroupRow


@dataclass(frozen=True, slots=True)
class _Look:
    """How one series of points is drawn, and what the legend calls it."""

    label: str
    colour: str
    marker: str = "o"
    filled: bool = True
    size: float = 6
    line: float = 1.6


class _Estimates:
    """Estimates by what they are of; those without a finite value are not there."""

    def __init__(self, rows: Iterable[EstimateRow]) -> None:
        self._rows = {
            (row.model, row.environment, row.measure, row.condition): row
            for row in rows
            if math.isfinite(row.value)
        }
        self.models = _unique(row.model for row in self.rows)
        self.environments = _unique(row.environment for row in self.rows)

    @property
    def rows(self) -> Iterable[EstimateRow]:
        return self._rows.values()

    def find(
        self, model: str, environment: str, measure: str, condition: str
    ) -> EstimateRow | None:
        return self._rows.get((model, environment, measure, condition))


def draw_figures(
    estimates: Sequence[EstimateRow], groups: Sequence[GroupRow], folder: Path
) -> list[Path]:
    """Write every figure that has something to show as a PNG file to `folder`, and tell which.

    Equal rows give equal files, byte for byte, with one version of matplotlib.

    Raises:
        UsageError: when matplotlib is missing.
    """
    figures = {
        "gain-by-model": gain_by_model(estimates),
        "surface-and-semantic": surface_and_semantic(estimates),
        "repeat-probability": repeat_probability(estimates),
        "variants": variants(estimates),
    }
    for environment in _unique(row.environment for row in groups):
        # Quoted, since an agent project names its environments as it likes.
        figures[f"breakdowns-{quote(environment, safe='')}"] = breakdowns(groups, environment)
    folder.mkdir(parents=True, exist_ok=True)
    return [
        _written(figure, folder / f"{name}.png")
        for name, figure in figures.items()
        if figure is not None
    ]


@contextmanager
def _style() -> Iterator[None]:
    """Matplotlib's own defaults and `_RC`, whatever the user's settings are."""
    try:
        from matplotlib import style
    except ImportError:
        raise UsageError(
            "the figures of a study need matplotlib; pip install 'pytest-failgain[study]'"
        ) from None
    with style.context(["default", _RC]):
        yield


@_style()
def _written(figure: Figure, path: Path) -> Path:
    # Without the program's version, which would change the file and not the picture.
    figure.savefig(path, dpi=_DPI, metadata={"Software": None})
    return path


@_style()
def gain_by_model(estimates: Sequence[EstimateRow]) -> Figure | None:
    """The gain of the usual record, on the whole action and on its arguments."""
    shown = (
        ("gain_per_token", _Look("whole action", _BLUE)),
        (
            "argument_gain_per_token",
            _Look("its arguments alone", _SKY, "D", filled=False, size=4.5, line=1.0),
        ),
    )
    table = _Estimates(estimates)
    figure, panels = _stacked(
        table,
        [(measure, "failed") for measure, _ in shown],
        _axis_label("corrective gain", "likelier", "less likely"),
    )
    for panel in panels:
        _zero_line(panel.axes)
        for lane, (measure, look) in zip((-0.12, 0.2), shown, strict=True):
            _points(panel.axes, panel.placed(table, measure, "failed", lane), look)
        _counts_beside(panel, table, "gain_per_token", "failed")
    return _titled(figure, "Corrective gain of the usual record\n(mean over cases, 95% interval)")


@_style()
def surface_and_semantic(estimates: Sequence[EstimateRow]) -> Figure | None:
    """The two parts of the negative gain: bars that add up to it, for each neutral control.

    The interval of a part lies about the end of its bar.
    """
    controls = ("neutral", "neutral-padded")
    parts = (
        ("surface_per_token", _Look("surface: the action's text", _SKY)),
        ("semantic_per_token", _Look("semantic: being marked as failed", _ORANGE)),
    )
    whole = _Look("-gain, their sum", _BLACK, "d", size=5)
    table = _Estimates(estimates)
    figure, panels = _stacked(
        table,
        [(measure, control) for control in controls for measure, _ in parts],
        _axis_label("change of the failed action's log-probability", "less likely", "likelier"),
        row_height=0.56,
    )
    for panel in panels:
        _zero_line(panel.axes)
        # Bars would put 0 on the very edge.
        panel.axes.use_sticky_edges = False
        sums = []
        for place, model in enumerate(panel.models):
            for lane, control in zip((-0.22, 0.22), controls, strict=True):
                rows = [
                    (table.find(model, panel.environment, measure, control), look)
                    for measure, look in parts
                ]
                found = [(row, look) for row, look in rows if row]
                if not found:
                    continue
                _stack(panel.axes, found, place + lane)
                _beside(panel.axes, place + lane, f"{control}, n = {found[0][0].n}")
                gain = table.find(model, panel.environment, "gain_per_token", "failed")
                if gain:
                    sums.append((-gain.value, place + lane))
        _marks(panel.axes, sums, whole)
    return _titled(
        figure,
        "What changes the repeat: -gain = surface + semantic\n(means over cases, 95% intervals)",
        [look.label for look in (*(look for _, look in parts), whole)],
    )


def _stack(axes: Axes, parts: Sequence[tuple[EstimateRow, _Look]], y: float) -> None:
    """Bars end to end, those above 0 to its right and those below to its left."""
    ends = {True: 0.0, False: 0.0}
    # Whiskers of bars that lie side by side must not lie on each other.
    for lane, (row, look) in zip((-0.08, 0.08), parts, strict=False):
        start = ends[row.value > 0]
        ends[row.value > 0] += row.value
        axes.barh(y, row.value, 0.38, start, color=look.colour, label=look.label, zorder=2)
        _whiskers(axes, [(row, y + lane)], _BLACK, 0.8, shift=start)


@_style()
def repeat_probability(estimates: Sequence[EstimateRow]) -> Figure | None:
    """The share of the failed action before its failure and after two records of it."""
    looks = {
        "before": _Look("before the failure", _GREY, filled=False, line=1.0),
        "failed": _Look("after the usual record", _VERMILLION, line=1.0),
        "described": _Look("after the described one", _GREEN, "D", size=4.5, line=1.0),
    }
    lanes = {"before": -0.12, "failed": -0.12, "described": 0.22}
    table = _Estimates(estimates)
    figure, panels = _stacked(
        table,
        [("repeat_probability", condition) for condition in looks],
        "share of the failed action among the case's candidates (probability)\n"
        "← repeat less likely     likelier →",
    )
    for panel in panels:
        panel.axes.set_xlim(-0.02, 1.02)
        found = {
            condition: panel.placed(table, "repeat_probability", condition, lanes[condition])
            for condition in looks
        }
        starts = {y: row.value for row, y in found["before"]}
        both = [(row, y) for row, y in found["failed"] if y in starts]
        panel.axes.hlines(
            [y for _, y in both],
            [starts[y] for _, y in both],
            [row.value for row, _ in both],
            color="#CCCCCC",
            linewidth=5,
            zorder=1.5,
        )
        for condition, look in looks.items():
            _points(panel.axes, found[condition], look)
        _counts_beside(panel, table, "repeat_probability", "failed")
    return _titled(
        figure,
        "Repeat probability (mean over cases, 95% interval)\n"
        "Repeating less is not succeeding more.",
    )


@_style()
def variants(estimates: Sequence[EstimateRow]) -> Figure | None:
    """What the remedies and the other ways to write the failure change, side by side."""
    from matplotlib.figure import Figure

    table = _Estimates(
        row for row in estimates if row.measure == _CHANGE and row.condition in VARIANTS
    )
    names = [name for name in VARIANTS if any(row.condition == name for row in table.rows)]
    if not names:
        return None
    row_height = max(0.26, 0.11 * len(table.models) + 0.1)
    # The places of the rows are in inches from the top, since headings are lower than rows.
    places: dict[str, float] = {}
    headings: dict[str, float] = {}
    end = 0.0
    for heading, remedies in (("remedies", True), ("other manipulations", False)):
        block = [name for name in names if (CONDITIONS[name].remedy is not None) == remedies]
        if block:
            headings[heading] = end + _HEADING / 2
            end += _HEADING
        for name in block:
            places[name] = end + row_height / 2
            end += row_height
    panel_width = 4.4 if len(table.environments) == 1 else 3.4
    width = 1.5 + panel_width * len(table.environments)
    looks = _model_looks(table.models)
    columns, lines = _legend_shape([look.label for look in looks.values()], width)
    figure = Figure(
        figsize=(width, end + 1.5 * _TITLE + lines * _LEGEND_LINE + 1.5 * _AXIS),
        layout="constrained",
    )
    panels = figure.subplots(1, len(table.environments), sharex=True, sharey=True, squeeze=False)[0]
    ticks = {**headings, **places}
    for axes, environment in zip(panels, table.environments, strict=True):
        cases = _counts(row.n for row in table.rows if row.environment == environment)
        axes.set_title(f"{environment} ({cases})", fontweight="bold")
        axes.set_ylim(end, 0)
        _background(axes, places.values(), row_height)
        _zero_line(axes)
        step = row_height / (len(table.models) + 1)
        for index, (model, look) in enumerate(looks.items()):
            _points(
                axes,
                [
                    (row, place - row_height / 2 + (index + 1) * step)
                    for name, place in places.items()
                    if (row := table.find(model, environment, _CHANGE, name))
                ],
                look,
            )
        axes.set_xlabel(
            "change of the failed action's log-probability\n"
            "from the usual record (nats per token)\n" + _direction("less likely", "likelier")
        )
    panels[0].set_yticks(list(ticks.values()), list(ticks))
    for label in panels[0].get_yticklabels()[: len(headings)]:
        label.set_fontweight("bold")
    return _titled(
        figure,
        "Other records than the usual one (mean over cases, 95% interval)\n"
        "Repeating less is not succeeding more.",
        columns=columns,
    )


@_style()
def breakdowns(groups: Sequence[GroupRow], environment: str) -> Figure | None:
    """The gain of the usual record within groups of one environment's cases, a column a model."""
    from matplotlib.figure import Figure

    found = {
        (row.by, row.group, row.model): row
        for row in groups
        if row.environment == environment
        and (row.measure, row.condition) == ("gain_per_token", "failed")
        and row.n >= FEWEST_CASES
        and math.isfinite(row.value)
    }
    models = _unique(row.model for row in found.values())
    # A single group is the whole, which other figures show.
    blocks = {by: block for by in BREAKDOWNS if len(block := _in_order(found, by)) > 1}
    if not blocks:
        return None
    names = {model: _wrapped(model, 15 if len(models) > 1 else 60) for model in models}
    title_lines = _most_lines(names.values())
    row_height, gap = 0.23, 0.5
    height = sum(len(block) * row_height + gap for block in blocks.values())
    height += _TITLE + _AXIS + title_lines * _TEXT_LINE
    width = 2.6 + (4.4 if len(models) == 1 else max(1.2 * len(models), 3.4))
    figure = Figure(figsize=(width, height), layout="constrained")
    panels = figure.subplots(
        len(blocks),
        len(models),
        sharex=True,
        sharey="row",
        squeeze=False,
        height_ratios=[len(block) for block in blocks.values()],
    )
    look = _Look("", _BLUE, size=5, line=1.2)
    for row, (by, block) in zip(panels, blocks.items(), strict=True):
        for axes, model in zip(row, models, strict=True):
            axes.set_ylim(len(block) - 0.5, -0.5)
            axes.tick_params(labelbottom=True)
            _background(axes, range(len(block)), 1)
            _zero_line(axes)
            _points(
                axes,
                [
                    (found[by, group, model], place)
                    for place, group in enumerate(block)
                    if (by, group, model) in found
                ],
                look,
            )
        labels = [
            f"{group}  ({_counts(found[key].n for key in found if key[:2] == (by, group))})"
            for group in block
        ]
        row[0].set_yticks(range(len(block)), labels)
        # Over the labels of the groups, where no model's name is.
        row[0].annotate(
            _ORDERED.get(by, by.replace("_", " ")),
            (0, 1),
            (-4, 4),
            "axes fraction",
            "offset points",
            ha="right",
            va="bottom",
            fontweight="bold",
        )
    for axes, model in zip(panels[0], models, strict=True):
        axes.set_title(names[model], fontsize=8)
    figure.suptitle(
        f"{environment}: corrective gain of the usual record\n(mean over cases, 95% interval)"
    )
    figure.supxlabel(_axis_label("corrective gain", "likelier", "less likely"), fontsize=9)
    return figure


def _in_order(rows: Mapping[tuple[str, str, str], GroupRow], by: str) -> list[str]:
    """The groups of one kind, by their numbers or else from the lowest gain to the highest."""
    gains: dict[str, list[float]] = {}
    for (kind, group, _), row in rows.items():
        if kind == by:
            gains.setdefault(group, []).append(row.value)
    if by in _ORDERED:
        return sorted(gains, key=natural_order)
    return sorted(gains, key=lambda group: (math.fsum(gains[group]) / len(gains[group]), group))


@dataclass(frozen=True, slots=True)
class _Panel:
    """The axes of one environment, with a model at every whole number of its y axis."""

    axes: Axes
    environment: str
    models: Sequence[str]

    def placed(
        self, table: _Estimates, measure: str, condition: str, lane: float
    ) -> list[tuple[EstimateRow, float]]:
        """The estimates of all models that have one, with their places on the y axis."""
        return [
            (row, place + lane)
            for place, model in enumerate(self.models)
            if (row := table.find(model, self.environment, measure, condition))
        ]


def _stacked(
    table: _Estimates,
    shown: Sequence[tuple[str, str]],
    label: str,
    row_height: float = 0.42,
) -> tuple[Figure, list[_Panel]]:
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
    names = {model: _wrapped(model, _LABEL_CHARACTERS) for model in table.models}
    row_height = max(row_height, 0.1 + _TEXT_LINE * _most_lines(names.values()))
    height = sum(rows) * row_height + 0.5 * len(rows) + _TITLE + _LEGEND_LINE + _AXIS
    figure = Figure(figsize=(7.5, height), layout="constrained")
    column = figure.subplots(len(rows), 1, sharex=True, squeeze=False, height_ratios=rows)[:, 0]
    for axes, (environment, there) in zip(column, models.items(), strict=True):
        axes.set_title(environment, fontweight="bold")
        axes.set_ylim(len(there) - 0.5, -0.5)
        axes.set_yticks(range(len(there)), [names[model] for model in there])
        axes.tick_params(labelbottom=True)
        _background(axes, range(len(there)), 1)
    column[-1].set_xlabel(label)
    return figure, [
        _Panel(axes, environment, there)
        for axes, (environment, there) in zip(column, models.items(), strict=True)
    ]


def _points(axes: Axes, rows: Sequence[tuple[_Row, float]], look: _Look) -> None:
    """A marker at the value of each row, at its y, and a whisker along its interval."""
    _whiskers(axes, rows, look.colour, look.line)
    _marks(axes, [(row.value, y) for row, y in rows], look)


def _marks(axes: Axes, points: Sequence[tuple[float, float]], look: _Look) -> None:
    if points:
        axes.plot(
            [x for x, _ in points],
            [y for _, y in points],
            linestyle="none",
            marker=look.marker,
            markersize=look.size,
            color=look.colour,
            markerfacecolor=look.colour if look.filled else "white",
            label=look.label,
            zorder=4,
        )


def _whiskers(
    axes: Axes, rows: Sequence[tuple[_Row, float]], colour: str, width: float, shift: float = 0
) -> None:
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


def _background(axes: Axes, places: Iterable[float], height: float) -> None:
    """A grid for the x axis, and a pale band behind every other row."""
    axes.grid(axis="x")
    for place in list(places)[1::2]:
        axes.axhspan(place - height / 2, place + height / 2, color=_PALE, zorder=0)


def _zero_line(axes: Axes) -> None:
    axes.axvline(0, color=_GREY, linewidth=0.8, zorder=1)


def _counts_beside(panel: _Panel, table: _Estimates, measure: str, condition: str) -> None:
    for row, y in panel.placed(table, measure, condition, 0):
        _beside(panel.axes, y, f"n = {row.n}")


def _beside(axes: Axes, y: float, text: str) -> None:
    """`text` at the right of the row at `y`."""
    axes.text(
        1.01, y, text, transform=axes.get_yaxis_transform(), va="center", fontsize=8, color=_GREY
    )


def _titled(
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


def _legend_shape(labels: Sequence[str], width: float) -> tuple[int, int]:
    """How many columns of the legend fit into `width` inches, and how many lines that makes."""
    column = max(len(line) for label in labels for line in label.split("\n")) * _CHARACTER + 0.5
    columns = max(1, min(len(labels), int(width / column)))
    return columns, math.ceil(len(labels) / columns) * _most_lines(labels)


def _model_looks(models: Sequence[str]) -> dict[str, _Look]:
    return {
        model: _Look(
            _wrapped(model, 60),
            _COLOURS[index % len(_COLOURS)],
            _MARKERS[index % len(_MARKERS)],
            size=4.5,
            line=1.2,
        )
        for index, model in enumerate(models)
    }


def _axis_label(quantity: str, left: str, right: str) -> str:
    return f"{quantity} (nats per token)\n{_direction(left, right)}"


def _direction(left: str, right: str) -> str:
    return f"← repeat {left}     {right} →"


def _counts(counts: Iterable[int]) -> str:
    """The number of cases in a group, which models may differ in."""
    least, *_, most = sorted([*counts] * 2)
    return f"n = {least}" if least == most else f"n = {least} to {most}"


def _wrapped(name: str, characters: int) -> str:
    """`name` in lines of at most so many characters, broken after a separator where one is."""
    lines = [""]
    for part in re.findall(rf"[^-/_]{{1,{characters - 1}}}[-/_]?|[-/_]", name):
        if len(lines[-1]) + len(part) > characters:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _most_lines(texts: Iterable[str]) -> int:
    return max(text.count("\n") + 1 for text in texts)


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
