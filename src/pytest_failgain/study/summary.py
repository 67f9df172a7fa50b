"""A study's results as one page of Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from pytest_failgain.conditions import CONDITIONS
from pytest_failgain.measures import CONTROLS, VARIANTS
from pytest_failgain.progress import duration
from pytest_failgain.report.markdown import markdown_table
from pytest_failgain.report.numbers import change, percent, signed
from pytest_failgain.statistics import Estimate
from pytest_failgain.study.results import Cell, ScalingRow, Study
from pytest_failgain.study.tables import (
    BREAKDOWNS,
    FEWEST_CASES,
    EstimateRow,
    Estimates,
    GroupRow,
)

_HEAD = """\
# How a failed call's record changes what comes next

Gain is the log-probability of the failed action before its failure minus that after, in nats:
negative means that the record makes the failed action likelier to come again. Intervals are 95%,
from a bootstrap that resamples tasks. All measures are in `tables/`, the scores that they come from
in `rows/`.

Repeating less is not succeeding more: check success too.
"""

_FIGURE_TITLES = {
    "gain-by-model": "Gain by model",
    "surface-and-semantic": "What the call's text does, and what its failure adds",
    "repeat-probability": "Repeat probability before and after the record",
    "variants": "Other ways to write the failure",
}


def study_page(
    study: Study,
    made_with: str,
    scaling: Sequence[ScalingRow] = (),
    pictures: Sequence[Path] = (),
) -> str:
    """The page: every model and set of cases, then each by itself, then what is to be known."""
    estimates = Estimates(study.estimates)
    cells = [_Figures(cell, estimates) for cell in study.cells]
    parts = [_HEAD, f"{made_with}\n", *_models(study), *_overview(cells)]
    parts += [f"![{_title(path)}](figures/{quote(path.name)})\n" for path in pictures]
    for figures in cells:
        cell = figures.cell
        parts.append(f"## {cell.model} on {cell.environment}\n")
        parts += _variants(figures)
        parts += _controls(figures)
        parts += _groups(cell, study.groups)
        parts += _notes(cell)
    parts += _scaling(scaling)
    parts += _work(study)
    parts += _not_measured(study)
    return "\n".join(parts)


@dataclass(frozen=True, slots=True)
class _Figures:
    """The estimates of one cell, as the cells of tables."""

    cell: Cell
    estimates: Estimates

    def find(self, measure: str, condition: str) -> EstimateRow | None:
        return self.estimates.find(self.cell.model, self.cell.environment, measure, condition)

    def signed(self, measure: str, condition: str, decimals: int = 2) -> str:
        row = self.find(measure, condition)
        return "-" if row is None else signed(row, decimals)

    def change(self, measure: str, condition: str) -> str:
        """The value before and under `condition`, over the cases that have both."""
        after, shift = self.find(measure, condition), self.find(f"{measure}_shift", condition)
        return "-" if after is None or shift is None else change(after.value - shift.value, after)

    def percent(self, measure: str, condition: str) -> str:
        row = self.find(measure, condition)
        return "-" if row is None else percent(row.value)

    def plain(self, measure: str, condition: str) -> str:
        row = self.find(measure, condition)
        # A rounded zero has no sign.
        return "-" if row is None else f"{round(row.value) + 0:d}"

    def count(self, measure: str, condition: str) -> str:
        row = self.find(measure, condition)
        return "-" if row is None else str(row.n)


def _models(study: Study) -> list[str]:
    lines = [
        (
            model.name,
            model.identity.source,
            f"{model.parameters / 1e6:,.1f} M",
            model.identity.dtype,
            model.identity.fingerprint[:16],
        )
        for model in study.models
    ]
    return [markdown_table(("model", "source", "parameters", "numbers", "fingerprint"), lines)]


def _overview(cells: Sequence[_Figures]) -> list[str]:
    heads = (
        "model, cases",
        "n (tasks)",
        "gain/token [95%]",
        "gain [95%]",
        "negative",
        "repeat p",
        "greedy",
        "p (Holm)",
        "d_z",
    )
    lines = []
    for figures in cells:
        cell, gain = figures.cell, figures.find("gain", "failed")
        lines.append(
            (
                f"{cell.model}, {cell.environment}",
                f"{cell.n} ({cell.n_tasks})",
                figures.signed("gain_per_token", "failed", 3),
                figures.signed("gain", "failed"),
                figures.percent("negative", "failed"),
                figures.change("repeat_probability", "failed"),
                figures.change("greedy_repeat", "failed"),
                "-" if gain is None or math.isnan(gain.p_holm) else f"{gain.p_holm:.4f}",
                "-" if gain is None or math.isnan(gain.d_z) else f"{gain.d_z:+.2f}",
            )
        )
    return ["## All models\n", markdown_table(heads, lines)]


def _variants(figures: _Figures) -> list[str]:
    heads = (
        "condition",
        "n",
        "gain/token [95%]",
        "change from failed, nats [95%]",
        "repeat p",
        "greedy",
        "correct action, nats [95%]",
        "tokens",
    )
    lines = [
        (
            name,
            figures.count("gain", name),
            figures.signed("gain_per_token", name, 3),
            figures.signed("change_from_failed", name),
            figures.change("repeat_probability", name),
            figures.change("greedy_repeat", name),
            figures.signed("repair", name),
            figures.plain("record_tokens", name),
        )
        for name in CONDITIONS
        if (name == "failed" or name in VARIANTS) and figures.find("gain", name)
    ]
    if not lines:
        return []
    return [
        "The failure as it is usually recorded, and written in other ways:\n",
        markdown_table(heads, lines),
    ]


def _controls(figures: _Figures) -> list[str]:
    heads = (
        "control",
        "n",
        "surface, nats [95%]",
        "semantic, nats [95%]",
        "tokens off the error's",
    )
    lines = [
        (
            name,
            figures.count("surface", name),
            figures.signed("surface", name),
            figures.signed("semantic", name),
            figures.plain("padding_gap", name),
        )
        for name in CONTROLS
        if figures.find("surface", name)
    ]
    if not lines:
        return []
    return [
        "What the action's text does by itself, and what being marked as failed adds:\n",
        markdown_table(heads, lines),
    ]


def _groups(cell: Cell, groups: Sequence[GroupRow]) -> list[str]:
    found = []
    for by in BREAKDOWNS:
        rows = [
            row
            for row in groups
            if (row.model, row.environment, row.by) == (cell.model, cell.environment, by)
            and (row.measure, row.condition) == ("gain_per_token", "failed")
        ]
        # One group is the whole.
        if len(rows) > 1:
            lines = [(row.group, f"{row.n} ({row.n_tasks})", signed(row)) for row in rows]
            found.append(
                markdown_table((by.replace("_", " "), "n (tasks)", "gain/token [95%]"), lines)
            )
    if found:
        found.append(f"Groups of fewer than {FEWEST_CASES} cases are left out.\n")
    return found


def _notes(cell: Cell) -> list[str]:
    notes = [f"by construction: {note}" for note in cell.by_construction]
    if cell.n < FEWEST_CASES:
        notes.append(f"no means, since {cell.n} cases were measured and {FEWEST_CASES} are needed")
    notes += [f"warning: {warning}" for warning in cell.warnings]
    notes += [f"skipped {count} cases: {reason}" for reason, count in cell.skips]
    notes += [
        f"condition {name} left out for {count} of {cell.n} cases, which lack what it needs"
        for name, count in cell.left_out
    ]
    notes += [f"adapted in {count} of {cell.n} cases: {text}" for text, count in cell.adaptations]
    return ["".join(f"- {note}\n" for note in notes)] if notes else []


def _scaling(rows: Sequence[ScalingRow]) -> list[str]:
    if not rows:
        return []
    heads = (
        "cases",
        "models",
        "nats per tenfold parameters [95%]",
        "R2",
        "gain is 0 at, in billions [95%]",
    )
    lines = [
        (
            row.environment,
            str(row.n_models),
            signed(row.slope, 2),
            "-" if row.by_construction else f"{row.r_squared:.2f}",
            _billions(row.zero_crossing),
        )
        for row in rows
    ]
    notes = [f"- {row.environment}: {row.by_construction}\n" for row in rows if row.by_construction]
    return ["## Gain and size\n", markdown_table(heads, lines), *notes]


def _billions(parameters: Estimate) -> str:
    value, low, high = (
        f"{count / 1e9:.3g}" for count in (parameters.value, parameters.low, parameters.high)
    )
    if math.isnan(parameters.value):
        return "-"
    return f"{value} [unknown]" if math.isnan(parameters.low) else f"{value} [{low}, {high}]"


def _work(study: Study) -> list[str]:
    heads = (
        "model, cases",
        "pairs scored",
        "pairs computed",
        "plain tokens",
        "computed",
        "avoided",
        "tokens/s",
        "time",
    )
    lines = [
        (
            f"{cell.model}, {cell.environment}",
            f"{cell.pairs:,}",
            f"{cell.work.pairs:,}",
            f"{cell.work.plain_tokens:,}",
            f"{cell.work.tokens:,}",
            "-" if math.isnan(cell.work.avoided) else f"{cell.work.avoided:.1%}",
            f"{cell.work.tokens / cell.work.seconds:.0f}" if cell.work.seconds else "-",
            duration(cell.work.seconds),
        )
        for cell in study.cells
    ]
    text = (
        "Computed is what went through the model, in all runs of this folder; equal pairs are "
        "computed once. Plain tokens are those of one uncached pass for each pair computed.\n"
    )
    return ["## Work\n", markdown_table(heads, lines), text] if study.cells else []


def _not_measured(study: Study) -> list[str]:
    if not study.not_measured:
        return []
    lines = [f"- {problem.place}: {problem.reason}\n" for problem in study.not_measured]
    return ["## Not measured\n", "".join(lines)]


def _title(path: Path) -> str:
    if path.stem.startswith("breakdowns-"):
        return f"Break-downs of {unquote(path.stem.removeprefix('breakdowns-'))}"
    return _FIGURE_TITLES.get(path.stem, path.stem)
