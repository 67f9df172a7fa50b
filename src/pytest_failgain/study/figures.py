"""What the figures of a study show: each a pure function from rows to a matplotlib figure.

The usual record is what the measured harness writes, the condition `failed`. A function gives None
where the rows hold nothing that it could show. Values that are not finite are left out, and so are
intervals without finite bounds. Models and environments come in the order of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_failgain.conditions import CONDITIONS
from pytest_failgain.measures import VARIANTS
from pytest_failgain.study.drawing import (
    AXIS,
    BLACK,
    BLUE,
    GREEN,
    GREY,
    LEGEND_LINE,
    ORANGE,
    SKY,
    TEXT_LINE,
    TITLE,
    VERMILLION,
    Look,
    axis_label,
    background,
    beside,
    counts,
    counts_beside,
    direction,
    legend_shape,
    marks,
    model_looks,
    most_lines,
    points,
    save,
    stacked_bars,
    stacked_panels,
    style,
    titled,
    wrapped,
    zero_line,
)
from pytest_failgain.study.file_names import file_name
from pytest_failgain.study.tables import (
    BREAKDOWNS,
    FEWEST_CASES,
    EstimateRow,
    Estimates,
    GroupRow,
    natural_order,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CHANGE = "change_from_failed_per_token"
# The break-downs whose groups have an order of their own, with their headings; the others have
# their name for a heading, and are ordered by the gain.
_ORDERED = {"depth": "steps before the failure", "action_tokens": "tokens of the action"}
_HEADING = 0.3  # the height of one among the variants, in inches


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
        figures[f"breakdowns-{file_name(environment)}"] = breakdowns(groups, environment)
    folder.mkdir(parents=True, exist_ok=True)
    return [
        save(figure, folder / f"{name}.png")
        for name, figure in figures.items()
        if figure is not None
    ]


@style()
def gain_by_model(estimates: Sequence[EstimateRow]) -> Figure | None:
    """The gain of the usual record, on the whole action and on its arguments."""
    shown = (
        ("gain_per_token", Look("whole action", BLUE)),
        (
            "argument_gain_per_token",
            Look("its arguments alone", SKY, "D", filled=False, size=4.5, line=1.0),
        ),
    )
    table = _finite(estimates)
    figure, panels = stacked_panels(
        table,
        [(measure, "failed") for measure, _ in shown],
        axis_label("corrective gain", "likelier", "less likely"),
    )
    for panel in panels:
        zero_line(panel.axes)
        for lane, (measure, look) in zip((-0.12, 0.2), shown, strict=True):
            points(panel.axes, panel.placed(table, measure, "failed", lane), look)
        counts_beside(panel, table, "gain_per_token", "failed")
    return titled(figure, "Corrective gain of the usual record\n(mean over cases, 95% interval)")


@style()
def surface_and_semantic(estimates: Sequence[EstimateRow]) -> Figure | None:
    """The two parts of the negative gain: bars that add up to it, for each neutral control.

    The interval of a part lies about the end of its bar.
    """
    controls = ("neutral", "neutral-padded")
    parts = (
        ("surface_per_token", Look("surface: the action's text", SKY)),
        ("semantic_per_token", Look("semantic: being marked as failed", ORANGE)),
    )
    whole = Look("-gain, their sum", BLACK, "d", size=5)
    table = _finite(estimates)
    figure, panels = stacked_panels(
        table,
        [(measure, control) for control in controls for measure, _ in parts],
        axis_label("change of the failed action's log-probability", "less likely", "likelier"),
        row_height=0.56,
    )
    for panel in panels:
        zero_line(panel.axes)
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
                stacked_bars(panel.axes, found, place + lane)
                beside(panel.axes, place + lane, f"{control}, n = {found[0][0].n}")
                gain = table.find(model, panel.environment, "gain_per_token", "failed")
                if gain:
                    sums.append((-gain.value, place + lane))
        marks(panel.axes, sums, whole)
    return titled(
        figure,
        "What changes the repeat: -gain = surface + semantic\n(means over cases, 95% intervals)",
        [look.label for look in (*(look for _, look in parts), whole)],
    )


@style()
def repeat_probability(estimates: Sequence[EstimateRow]) -> Figure | None:
    """The share of the failed action before its failure and after two records of it."""
    looks = {
        "before": Look("before the failure", GREY, filled=False, line=1.0),
        "failed": Look("after the usual record", VERMILLION, line=1.0),
        "described": Look("after the described one", GREEN, "D", size=4.5, line=1.0),
    }
    lanes = {"before": -0.12, "failed": -0.12, "described": 0.22}
    table = _finite(estimates)
    figure, panels = stacked_panels(
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
            points(panel.axes, found[condition], look)
        counts_beside(panel, table, "repeat_probability", "failed")
    return titled(
        figure,
        "Repeat probability (mean over cases, 95% interval)\n"
        "Repeating less is not succeeding more.",
    )


@style()
def variants(estimates: Sequence[EstimateRow]) -> Figure | None:
    """What the remedies and the other ways to write the failure change, side by side."""
    from matplotlib.figure import Figure

    table = _finite(
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
    looks = model_looks(table.models)
    columns, lines = legend_shape([look.label for look in looks.values()], width)
    figure = Figure(
        figsize=(width, end + 1.5 * TITLE + lines * LEGEND_LINE + 1.5 * AXIS),
        layout="constrained",
    )
    panels = figure.subplots(1, len(table.environments), sharex=True, sharey=True, squeeze=False)[0]
    ticks = {**headings, **places}
    for axes, environment in zip(panels, table.environments, strict=True):
        cases = counts(row.n for row in table.rows if row.environment == environment)
        axes.set_title(f"{environment} ({cases})", fontweight="bold")
        axes.set_ylim(end, 0)
        background(axes, places.values(), row_height)
        zero_line(axes)
        step = row_height / (len(table.models) + 1)
        for index, (model, look) in enumerate(looks.items()):
            points(
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
            "from the usual record (nats per token)\n" + direction("less likely", "likelier")
        )
    panels[0].set_yticks(list(ticks.values()), list(ticks))
    for label in panels[0].get_yticklabels()[: len(headings)]:
        label.set_fontweight("bold")
    return titled(
        figure,
        "Other records than the usual one (mean over cases, 95% interval)\n"
        "Repeating less is not succeeding more.",
        columns=columns,
    )


@style()
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
    names = {model: wrapped(model, 15 if len(models) > 1 else 60) for model in models}
    title_lines = most_lines(names.values())
    row_height, gap = 0.23, 0.5
    height = sum(len(block) * row_height + gap for block in blocks.values())
    height += TITLE + AXIS + title_lines * TEXT_LINE
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
    look = Look("", BLUE, size=5, line=1.2)
    for row, (by, block) in zip(panels, blocks.items(), strict=True):
        for axes, model in zip(row, models, strict=True):
            axes.set_ylim(len(block) - 0.5, -0.5)
            axes.tick_params(labelbottom=True)
            background(axes, range(len(block)), 1)
            zero_line(axes)
            points(
                axes,
                [
                    (found[by, group, model], place)
                    for place, group in enumerate(block)
                    if (by, group, model) in found
                ],
                look,
            )
        labels = [
            f"{group}  ({counts(found[key].n for key in found if key[:2] == (by, group))})"
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
    figure.supxlabel(axis_label("corrective gain", "likelier", "less likely"), fontsize=9)
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


def _finite(rows: Iterable[EstimateRow]) -> Estimates:
    return Estimates(row for row in rows if math.isfinite(row.value))


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
