"""Findings of every kind, for reports to tell of, and a page's text as a browser finds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser

from fake_scorer import measured, rolled, rolled_out, solved_by, turn
from pytest_failgain.baseline.comparison import Comparison, compare
from pytest_failgain.baseline.entry import entry_of
from pytest_failgain.measurement import Measurement
from pytest_failgain.options import Settings
from pytest_failgain.report.document import Document, document_of
from pytest_failgain.rollout.results import NotStarted, Rollouts
from pytest_failgain.stash import Findings

GAINS = {f"case{i}": -1.0 + i / 8 for i in range(10)}
SHARES = dict.fromkeys(GAINS, 0.75)
SETTINGS = Settings(
    model="fake", seed=3, sources={"model": "--failgain-model", "seed": "FAILGAIN_SEED"}
)


def with_records(measurement: Measurement, records: Mapping[str, str] | None = None) -> Measurement:
    """A measurement whose records are those, or each case's action and an error."""
    made = {
        case.case_id: f"assistant\n{case.failed.action}\nError: no\n" for case in measurement.cases
    }
    return replace(measurement, records=made if records is None else records)


VERBATIM = with_records(measured(GAINS, repeat=SHARES, greedy=["case0", "case1"]))
DESCRIBED = measured(
    {case_id: gain / 2 + 0.4 for case_id, gain in GAINS.items()},
    harness="described",
    repeat=dict.fromkeys(GAINS, 0.4),
)

_TASKS = [f"task{i}" for i in range(10)]
_STUCK = [
    rolled("send(to='Ann')", "send( to='Ann' )", turn("Well.", writing="prose"), task=task)
    for task in _TASKS
]
_SOLVED = [solved_by(task=task) for task in _TASKS]
_LATE = [NotStarted("late", "too long")]
DRIVEN: Sequence[Rollouts] = (
    rolled_out(*_SOLVED[:4], *_STUCK[4:], not_started=_LATE),
    rolled_out(*_SOLVED[:7], *_STUCK[7:], not_started=_LATE, harness="described"),
)


def comparisons() -> list[Comparison]:
    """A regression, no regression, nothing to compare with, and what can't be compared."""
    now = entry_of(VERBATIM)
    better = entry_of(
        with_records(
            measured(
                {case_id: gain + 0.5 for case_id, gain in GAINS.items()},
                repeat=dict.fromkeys(GAINS, 0.4),
            ),
            # That of case1 is as it is now.
            dict.fromkeys(GAINS, "assistant\nIt failed.\nError: no\n")
            | {"case1": VERBATIM.records["case1"]},
        )
    )
    other = replace(now, model=replace(now.model, weights="other"))
    fewer = replace(now, cases={key: now.cases[key] for key in list(now.cases)[:8]})
    missing = replace(compare(now, None), reason="there is no file kept.json")
    return [compare(now, better), compare(now, fewer), missing, compare(now, other)]


def hostile_regression(text: str) -> Comparison:
    """A regression of a case whose id, and whose record now, are `text`, as is the harness."""
    before, now = (
        entry_of(with_records(measured({text: gain}, harness=text), {text: record}))
        for gain, record in ((1.0, ""), (-1.0, text))
    )
    return compare(now, before)


def findings(*measurements: Measurement) -> Findings:
    """Findings of these measurements and of nothing else."""
    return Findings([*measurements], [], [], {})


def everything() -> Findings:
    """At least one thing of each kind that a report can hold."""
    return Findings(
        [VERBATIM, DESCRIBED, measured({}, harness="none")],
        [*DRIVEN],
        comparisons(),
        {"cache": "nothing was kept"},
    )


def document(*measurements: Measurement) -> Document:
    return document_of(findings(*measurements), Settings())


@dataclass
class Element:
    """An element of a page, with all of its text."""

    tag: str
    attributes: dict[str, str]
    parts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.parts)


@dataclass
class Read(HTMLParser):
    """The elements of a page in their order, each with the text in it."""

    elements: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[Element] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.elements.append(element)
        if tag not in ("meta", "wbr", "line", "circle", "br"):
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        if self._open and tag not in ("line", "circle"):
            assert self._open.pop().tag == tag
        if tag in ("th", "td"):  # they don't run into each other
            self.handle_data(" ")

    def handle_data(self, data: str) -> None:
        # Figures under tokens are no part of the text that they are under.
        under = any(element.tag == "rt" for element in self._open)
        for element in self._open:
            if not under or element.tag == "rt":
                element.parts.append(data)

    def all(self, tag: str, **attributes: str) -> list[Element]:
        wanted = {name.rstrip("_"): value for name, value in attributes.items()}
        return [
            one
            for one in self.elements
            if one.tag == tag and wanted.items() <= one.attributes.items()
        ]


def read(page: str) -> Read:
    """The page's elements; each that was opened has to be closed, in its place."""
    reader = Read()
    reader.feed(page)
    reader.close()
    assert not reader._open, [element.tag for element in reader._open]
    return reader
