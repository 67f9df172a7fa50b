"""The summary of a step of GitHub Actions: Markdown, verdicts first, kept far below its limit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_failgain.baseline.comparison import Comparison, Verdict, change_line
from pytest_failgain.baseline.worst import RECORD_UNCHANGED, CasePair
from pytest_failgain.report.characters import shortened, visible
from pytest_failgain.report.comparisons import comparison_line, verdict_words
from pytest_failgain.report.document import Document, MeasurementGroup, ReportedMeasurement
from pytest_failgain.report.markdown import markdown_table
from pytest_failgain.report.measurements import (
    CAUTION,
    HEADINGS,
    LEGEND,
    effect_line,
    measurement_cells,
    measurement_heading,
)
from pytest_failgain.report.numbers import share
from pytest_failgain.report.page import worst_first
from pytest_failgain.report.regressions import (
    RecordDiff,
    Regression,
    by_urgency,
    regressions,
)
from pytest_failgain.report.rollouts import HEADINGS as ROLLOUT_HEADINGS
from pytest_failgain.report.rollouts import LEGEND as ROLLOUT_LEGEND
from pytest_failgain.report.rollouts import rollout_cells, rollout_heading, rollout_notes

# GitHub takes 1,024 KiB from all that a step writes, or nothing: several runs have to fit.
MOST_BYTES = 200_000

_WORST_SHOWN = 5
_DIFFS_SHOWN = 2
_LINE = 300
_RECORD = 1_500

# All but letters, digits, and what is harmless where it stands, as in figures and between words.
_MARKUP = re.compile(r"[^\w ,%/.+-]|_|(?<!\d)\.|\.(?!\d)|[+-](?!\w)|^ ")

_WORDS = {"harmful": "🔴 harmful", "fine": "🟢 fine", "unknown": "⚪ unknown"}
# White is for what concludes nothing.
_MARKS: Mapping[Verdict, str] = {"regression": "🔴", "no regression": "🟢"}


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the summary that is left out as a whole where there is no room."""

    name: str
    text: str


def step_summary(document: Document, most_bytes: int = MOST_BYTES) -> str:
    """`document` as Markdown of at most about `most_bytes` bytes; what is left out is named.

    What matters most comes first, so that it stays: verdicts, tables, then the worst cases.
    """
    shown: list[str] = []
    left_out: list[str] = []
    used = 0
    for part in _parts(document):
        size = len(part.text.encode())
        if used + size > most_bytes:
            left_out.append(part.name)
            continue
        shown.append(part.text)
        used += size
    if left_out:
        names = shortened(", ".join(dict.fromkeys(left_out)), _LINE)
        shown.append(f"Left out, for want of room: {_safe(names)}. The other reports have it.\n")
    return "\n".join(shown)


def _parts(document: Document) -> Iterator[_Part]:
    yield _Part("verdicts", _head(document))
    if document.comparisons:
        compared = [*map(_comparison, by_urgency(document.comparisons))]
        yield _Part("baseline", "### Compared with the baseline\n\n" + _list(compared))
    for regression in regressions(document.comparisons, _WORST_SHOWN, _DIFFS_SHOWN):
        name = f"what got worse in {regression.comparison.label}"
        yield _Part(name, _worse(name, regression))
    if document.notes:
        yield _Part("notes", _list([_safe(note) for note in document.notes]))
    for group in document.groups:
        yield _Part(group.environment, _group(group))
    for rollouts in document.rollouts:
        results = [one.rollouts for one in rollouts]
        cells = [[_safe(cell) for cell in rollout_cells(one)] for one in results]
        notes = [_safe(note) for one in results for note in rollout_notes(one, results)]
        yield _Part(
            f"rollouts in {results[0].environment}",
            f"### {_safe(rollout_heading(results[0]))}\n\n"
            f"{markdown_table(ROLLOUT_HEADINGS, cells)}\n{_list(notes)}",
        )
    for group in document.groups:
        for measurement in group.measurements:
            if measurement.cases and measurement.verdict == "harmful":
                name = f"worst cases of {measurement.harness} on {group.environment}"
                yield _Part(name, _worst(name, measurement))
    legends = [LEGEND] * bool(document.groups) + [ROLLOUT_LEGEND] * bool(document.rollouts)
    lines = [_safe(line) for legend in legends for line in legend.splitlines()]
    yield _Part("legend", _folded("How to read it", _list(lines)))


def _head(document: Document) -> str:
    counts = [
        f"{document.verdicts[verdict]} {verdict}"
        for verdict in ("harmful", "fine", "unknown")
        if document.verdicts[verdict] or (verdict != "unknown" and document.groups)
    ]
    if document.comparisons:
        counts += document.failure_lines
    if document.rollouts:
        counts.append(f"{sum(map(len, document.rollouts))} rolled out")
    return f"## failgain: {', '.join(counts)}\n\n{CAUTION}\n"


def _comparison(comparison: Comparison) -> str:
    """An item of a list, with a list of its own of what regressed."""
    mark = _MARKS.get(comparison.verdict, "⚪")
    regressed = [change_line(one) for one in comparison.changes if one.regressed]
    if not regressed:
        return f"{mark} {_safe(comparison_line(comparison))}"
    lines = (*regressed, *comparison.notes)
    head = f"{mark} {_safe(f'{comparison.label}: {verdict_words(comparison)}')}"
    return "\n  - ".join([head, *map(_safe, lines)])


def _worse(name: str, regression: Regression) -> str:
    cells = [_pair(pair) for pair in regression.worst]
    heads = ("case", "gain/token before", "now", "repeat p before", "now", "greedy before", "now")
    diffs = "\n".join(map(_diff, regression.diffs))
    return _folded(_safe(name), f"{markdown_table(heads, cells)}\n{diffs}")


def _pair(pair: CasePair) -> list[str]:
    both = pair.before, pair.now
    return [
        _safe(pair.case_id),
        *(f"{one.gain_per_token:+.3f}" for one in both),
        *(share(one.repeat_probability) for one in both),
        *("repeat" if one.greedy_repeat else "-" for one in both),
    ]


def _diff(diff: RecordDiff) -> str:
    case = _safe(diff.case_id)
    if not diff.lines:
        return f"{case}: {_safe(RECORD_UNCHANGED)}\n"
    lines = _safe("\n".join(diff.lines), _RECORD)
    return f"The record of {case}, - in the baseline, + now:\n\n<pre>{lines}</pre>\n"


def _group(group: MeasurementGroup) -> str:
    heading = measurement_heading(group.environment, group.n_cases, group.n_tasks, group.model)
    cells = []
    notes = []
    for one in group.measurements:
        harness, *figures = map(_safe, measurement_cells(one.harness, one.estimates))
        cells.append([harness, _WORDS[one.verdict], *figures])
        said = [note.text for note in one.notes]
        if one.effect is not None:
            said.insert(0, effect_line(one.effect))
        notes += [f"{harness}: {_safe(text)}" for text in said]
    headings = [HEADINGS[0], "verdict", *HEADINGS[1:]]
    return f"### {_safe(heading)}\n\n{markdown_table(headings, cells)}\n{_list(notes)}"


def _worst(name: str, measurement: ReportedMeasurement) -> str:
    worst = worst_first(measurement.cases)[:_WORST_SHOWN]
    cells = [
        [
            _safe(case.case_id),
            f"{case.values['corrective_gain_per_token']:+.3f}",
            share(case.values["repeat_probability_before"]),
            share(case.values["repeat_probability_after"]),
            f"<code>{_safe(case.action)}</code>",
        ]
        for case in worst
    ]
    heads = ("case", "gain/token", "repeat p before", "after", "failed action")
    record = (
        f"The record of {_safe(worst[0].case_id)}, as the model saw it:\n\n"
        f"<pre>{_safe(worst[0].record, _RECORD)}</pre>\n"
    )
    return _folded(_safe(name), f"{markdown_table(heads, cells)}\n{record}")


def _folded(title: str, content: str) -> str:
    # The empty line ends the HTML, so that Markdown is read again.
    return f"<details><summary>{title}</summary>\n\n{content}\n</details>\n"


def _list(lines: Sequence[str]) -> str:
    return "".join(f"- {line}\n" for line in lines)


def _safe(text: str, limit: int = _LINE) -> str:
    """`text` so that neither Markdown nor HTML finds anything in it, in one line of the source.

    References to characters are text to both, also those of line breaks in preformatted text.
    """
    return _MARKUP.sub(lambda match: f"&#{ord(match[0])};", visible(shortened(text, limit)))
