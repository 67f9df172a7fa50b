"""The published items and their published log-probabilities, through our own pipeline.

The embedded weights are quantised, so log-probabilities are compared by correlation; token and
context counts have to be equal.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_failgain.case_files import load_cases
from pytest_failgain.conditions import CONDITIONS
from pytest_failgain.harnesses import VERBATIM
from pytest_failgain.measurement import Measurement, Row, measure
from pytest_failgain.prompt import Prompt
from pytest_failgain.scoring.local import LocalScorer, score_plainly

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def published(oracle: Path) -> list[dict[str, Any]]:
    """Both files: tool calls and program repair."""
    names = ("toolshed.json", "coderepair.json")
    return [json.loads((oracle / name).read_text("utf-8")) for name in names]


@pytest.fixture(scope="module")
def measured(
    published: list[dict[str, Any]],
    smollm2: LocalScorer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Measurement:
    path = tmp_path_factory.mktemp("published") / "items.jsonl"
    lines = [
        {**item, "system_prompt": file["system_prompt"]}
        for file in published
        for item in file["items"]
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    return measure(smollm2, VERBATIM, load_cases(path), conditions=tuple(CONDITIONS.values()))


@dataclass(frozen=True)
class Published:
    """One released row, under our names of condition and candidate."""

    case_id: str
    condition: str
    candidate: str
    logprob: float
    n_tokens: int
    context_tokens: int

    def ours(self, measured: Measurement) -> Row:
        return measured.by_key[self.case_id, self.condition, self.candidate]


@pytest.fixture(scope="module")
def rows(published: list[dict[str, Any]]) -> list[Published]:
    """The released rows of the conditions that we have."""
    found = []
    for file in published:
        for case_id, released in file["rows"].items():
            for values in released:
                row = dict(zip(file["row_fields"], values, strict=True))
                condition = file["conditions"][row["condition"]]
                if condition in CONDITIONS:
                    candidate = row["candidate"].replace("gold", "correct")
                    counts = row["n_tokens"], row["ctx_tokens"]
                    found.append(Published(case_id, condition, candidate, row["logprob"], *counts))
    return found


def test_counts_of_every_row_are_the_published_ones(
    rows: list[Published], measured: Measurement
) -> None:
    assert len(rows) == 260
    assert {row.condition for row in rows} == set(CONDITIONS)
    ours = [row.ours(measured) for row in rows]
    assert [(row.n_tokens, row.context_tokens) for row in ours] == [
        (row.n_tokens, row.context_tokens) for row in rows
    ]


def test_sign_of_the_gain_is_the_published_one_on_every_item(
    rows: list[Published], measured: Measurement
) -> None:
    failed = {
        (row.case_id, row.condition): row.logprob for row in rows if row.candidate == "failed"
    }
    theirs = [failed[item, "before"] - failed[item, "failed"] for item in measured.values.case_ids]
    assert len(theirs) == 19
    assert np.sign(measured.values.corrective_gain).tolist() == np.sign(theirs).tolist()


def test_log_probabilities_follow_the_published_ones(
    rows: list[Published], measured: Measurement
) -> None:
    correlation = np.corrcoef(
        [row.logprob for row in rows], [row.ours(measured).logprob for row in rows]
    )[0, 1]
    assert correlation >= 0.97


def test_tree_gives_what_plain_passes_give_on_real_prompts(
    measured: Measurement, smollm2: LocalScorer
) -> None:
    for case in measured.cases[::8]:
        for condition in CONDITIONS.values():
            trajectory = condition.trajectory(case)
            assert trajectory is not None
            if condition.remedy is not None:
                trajectory = condition.remedy.transform(trajectory)
            messages = VERBATIM(trajectory)
            assert not isinstance(messages, str)
            prompt = Prompt(messages=tuple(messages))
            rendered = smollm2.renderer.render(prompt)
            emitted = smollm2.renderer.emit(prompt, rendered, case.failed.action)
            plain, matches = score_plainly(smollm2.model, rendered.tokens, emitted.tokens)
            row = measured.by_key[case.case_id, condition.name, "failed"]
            assert row.logprob == pytest.approx(plain.sum(), abs=1e-3)
            assert row.greedy == matches.all()
