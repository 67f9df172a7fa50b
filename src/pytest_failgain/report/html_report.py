"""The HTML report: one file that needs nothing else, and that runs nothing."""

from __future__ import annotations

import base64
from hashlib import sha256
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from pytest_failgain.baseline.comparison import GAIN, level
from pytest_failgain.baseline.worst import RECORD_UNCHANGED
from pytest_failgain.report.characters import shortened, visible
from pytest_failgain.report.comparisons import verdict_words
from pytest_failgain.report.document import Document
from pytest_failgain.report.measurements import CAUTION, HEADINGS, LEGEND, effect_line
from pytest_failgain.report.numbers import share, signed
from pytest_failgain.report.page import SHADE_STEPS, Cut, shown_groups
from pytest_failgain.report.regressions import by_urgency, regressions
from pytest_failgain.report.rollouts import HEADINGS as ROLLOUT_HEADINGS
from pytest_failgain.report.rollouts import LEGEND as ROLLOUT_LEGEND
from pytest_failgain.report.rollouts import rollout_cells, rollout_heading, rollout_notes

# Longer than any text but an agent's own, whose cuts `page` makes.
_LONGEST = 10_000

# The page stays usable with very many comparisons, and with very many cases in them.
_REGRESSIONS_SHOWN = 20
_WORST_SHOWN = 10
_DIFFS_SHOWN = 3


def html_report(document: Document) -> str:
    """`document` as a page. It has no script, and its policy lets the browser fetch nothing."""
    environment = Environment(
        loader=PackageLoader("pytest_failgain.report"),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests["cut"] = lambda part: isinstance(part, Cut)
    environment.filters["brief"] = lambda text: shortened(text, 200)
    style = environment.get_template("style.css.jinja").render()
    digest = base64.b64encode(sha256(style.encode()).digest()).decode()
    return environment.get_template("report.html.jinja").render(
        document=document,
        groups=shown_groups(document),
        comparisons=by_urgency(document.comparisons),
        regressions=regressions(document.comparisons, _WORST_SHOWN, _DIFFS_SHOWN),
        most_regressions=_REGRESSIONS_SHOWN,
        RECORD_UNCHANGED=RECORD_UNCHANGED,
        GAIN=GAIN,
        style=style,
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; "
        "form-action 'none'",
        caution=CAUTION,
        legend=LEGEND.splitlines(),
        rollout_legend=ROLLOUT_LEGEND.splitlines(),
        headings=HEADINGS,
        rollout_headings=ROLLOUT_HEADINGS,
        shade_steps=SHADE_STEPS,
        effect_line=effect_line,
        verdict_words=verdict_words,
        level=level,
        rollout_cells=rollout_cells,
        rollout_heading=rollout_heading,
        rollout_notes=rollout_notes,
        share=share,
        signed=signed,
    )


def _shown(value: Any) -> Any:
    """What stands on the page for `value`; what knows its own HTML is the templates'."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return visible(shortened(value, _LONGEST))
    return value
