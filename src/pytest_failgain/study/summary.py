"""A study's results as one page of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from pytest_failgain.conditions import CONDITIONS
from pytest_failgain.measures import CONTROLS, VARIANTS
from pytest_failgain.progress import duration
from pytest_failgain.report.numbers import change, percent, signed
from pytest_failgain.study.run import Cell, ScalingRow, Study
from pytest_failgain.study.tables import BREAKDOWNS, FEWEST_CASES, EstimateRow, GroupRow

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
    figures: Sequence[Path] = (),
) -> str:
    """The page: every model and set of cases, then each by itself, then what is to be known."""
    estimates = _Estimates(study.estimates)
    parts = [_HEAD, f"{made_with}\n", *_models(study), *_overview(study, estimates)]
    parts += [f"![{_title(path)}](figures/{path.name})\n" for path in figures]
    for cell in study.cells:
        parts.append(f"## {cell.model} on {cell.environment}\n")
        parts += _variants(cell, estimates)
        parts += _controls(cell, estimates)
        parts += _groups(cell, study.groups)
        parts += _notes(cell)
    parts += _scaling(scaling)
    parts += _work(study)
    parts += _failures(study)
    return "\n".join(parts)


class _Estimates:
    """The estimates of a study, by what they are of."""

    def __init__(self, rows: Sequence[EstimateRow]) -> None:
        self._rows = {(row.model, row.environment, row.measure, row.condition): row for row in rows}

    def get(self, cell: Cell, measure: str, condition: str) -> EstimateRow | None:
        return self._rows.get((cell.model, cell.environment, measure, condition))

    def signed(self, cell: Cell, measure: str, condition: str, decimals: int = 2) -> str:
        row = self.get(cell, measure, condition)
        return "-" if row is None else signed(row, decimals)

    def change(self, cell: Cell, measure: str, condition: str) -> str:
        before, after = (self.get(cell, measure, name) for name in ("before", condition))
        return "-" if before is None or after is None else change(before, after)

    def percent(self, cell: Cell, measure: str, condition: str) -> str:
        row = self.get(cell, measure, condition)
        return "-" if row is None else percent(row.value)

    def plain(self, cell: Cell, measure: str, condition: str) -> str:
        row = self.get(cell, measure, condition)
        return "-" if row is None else f"{row.value:.0f}"


def _table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    numbers = ["---:" if place else "---" for place, _ in enumerate(heads)]
    return "".join(f"| {' | '.join(line)} |\n" for line in (heads, numbers, *lines))


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
    return [_table(("model", "source", "parameters", "numbers", "fingerprint"), lines)]


def _overview(study: Study, estimates: _Estimates) -> list[str]:
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
    for cell in study.cells:
        gain = estimates.get(cell, "gain", "failed")
        lines.append(
            (
                f"{cell.model}, {cell.environment}",
                f"{cell.n} ({cell.n_tasks})",
                estimates.signed(cell, "gain_per_token", "failed", 3),
                estimates.signed(cell, "gain", "failed"),
                estimates.percent(cell, "negative", "failed"),
                estimates.change(cell, "repeat_probability", "failed"),
                estimates.change(cell, "greedy_repeat", "failed"),
                "-" if gain is None else f"{gain.p_holm:.4f}",
                "-" if gain is None else f"{gain.d_z:+.2f}",
            )
        )
    return ["## All models\n", _table(heads, lines)]


def _variants(cell: Cell, estimates: _Estimates) -> list[str]:
    heads = (
        "condition",
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
            estimates.signed(cell, "gain_per_token", name, 3),
            estimates.signed(cell, "change_from_failed", name),
            estimates.change(cell, "repeat_probability", name),
            estimates.change(cell, "greedy_repeat", name),
            estimates.signed(cell, "repair", name),
            estimates.plain(cell, "record_tokens", name),
        )
        for name in CONDITIONS
        if (name == "failed" or name in VARIANTS) and estimates.get(cell, "gain", name)
    ]
    return [
        "The failure as it is usually recorded, and written in other ways:\n",
        _table(heads, lines),
    ]


def _controls(cell: Cell, estimates: _Estimates) -> list[str]:
    heads = ("control", "surface, nats [95%]", "semantic, nats [95%]", "tokens off the error's")
    lines = [
        (
            name,
            estimates.signed(cell, "surface", name),
            estimates.signed(cell, "semantic", name),
            estimates.plain(cell, "padding_gap", name),
        )
        for name in CONTROLS
        if estimates.get(cell, "surface", name)
    ]
    if not lines:
        return []
    return [
        "What the action's text does by itself, and what being marked as failed adds:\n",
        _table(heads, lines),
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
            found.append(_table((by.replace("_", " "), "n (tasks)", "gain/token [95%]"), lines))
    if found:
        found.append(f"Groups of fewer than {FEWEST_CASES} cases are left out.\n")
    return found


def _notes(cell: Cell) -> list[str]:
    notes = [f"by construction: {note}" for note in cell.by_construction]
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
            f"{row.slope_per_decade:+.2f} [{row.slope_low:+.2f}, {row.slope_high:+.2f}]",
            f"{row.r_squared:.2f}",
            _billions(row),
        )
        for row in rows
    ]
    notes = [f"- {row.environment}: {row.note}\n" for row in rows if row.note]
    return ["## Gain and size\n", _table(heads, lines), *notes]


def _billions(row: ScalingRow) -> str:
    counts = (row.zero_crossing_parameters, row.zero_crossing_low, row.zero_crossing_high)
    value, low, high = (f"{count / 1e9:.3g}" for count in counts)
    return f"{value} [{low}, {high}]"


def _work(study: Study) -> list[str]:
    heads = ("model, cases", "pairs", "plain tokens", "computed", "avoided", "tokens/s", "time")
    lines = [
        (
            f"{cell.model}, {cell.environment}",
            f"{cell.pairs:,}",
            f"{cell.plain_tokens:,}",
            f"{cell.work.tokens:,}",
            f"{cell.avoided:.1%}",
            f"{cell.work.tokens / cell.work.seconds:.0f}" if cell.work.seconds else "-",
            duration(cell.work.seconds),
        )
        for cell in study.cells
    ]
    text = (
        "Plain tokens are those of one uncached pass for each pair of prompt and action; computed "
        "are those that went through the model, in all runs of this folder.\n"
    )
    return ["## Work\n", _table(heads, lines), text] if study.cells else []


def _failures(study: Study) -> list[str]:
    if not study.failures:
        return []
    lines = [
        f"- {failure.model}{f' on {failure.environment}' if failure.environment else ''}: "
        f"{failure.reason}\n"
        for failure in study.failures
    ]
    return ["## Not measured\n", "".join(lines)]


def _title(path: Path) -> str:
    if path.stem.startswith("breakdowns-"):
        return f"Break-downs of {path.stem.removeprefix('breakdowns-')}"
    return _FIGURE_TITLES.get(path.stem, path.stem)
