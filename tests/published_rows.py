"""The published items and rows, as released and as a measurement of ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fake_scorer import IDENTITY
from pytest_failgain.measurement import Measurement
from pytest_failgain.published import case_from_item
from pytest_failgain.rows import Row
from pytest_failgain.trajectory import FailureCase

FILES = ("toolshed", "coderepair")


class PublishedFile:
    """One file of the oracle: its items with all their fields, and their released rows."""

    def __init__(self, oracle: Path, name: str) -> None:
        content: dict[str, Any] = json.loads((oracle / f"{name}.json").read_text("utf-8"))
        self.instruction: str = content["instruction"]
        self.our_names: dict[str, str] = content["conditions"]
        self.items: list[dict[str, Any]] = [
            {**item, "system_prompt": content["system_prompt"]} for item in content["items"]
        ]
        self.rows: dict[str, list[dict[str, Any]]] = {
            item: [dict(zip(content["row_fields"], row, strict=True)) for row in rows]
            for item, rows in content["rows"].items()
        }

    def cases(self) -> list[FailureCase]:
        return [case_from_item(item) for item in self.items]

    def lines(self) -> str:
        """The items as they were released: one a line."""
        return "".join(f"{json.dumps(item, ensure_ascii=False)}\n" for item in self.items)

    def measurement(self) -> Measurement:
        """The released rows, as if they had been measured here."""
        cases = self.cases()
        rows = [self._row(case, row) for case in cases for row in self.rows[case.case_id]]
        return Measurement("verbatim", "published", IDENTITY, tuple(cases), tuple(rows))

    def _row(self, case: FailureCase, row: dict[str, Any]) -> Row:
        candidate = our_candidate(row["candidate"])
        return Row(
            case_id=case.case_id,
            condition=self.our_names[row["condition"]],
            candidate=candidate,
            logprob=row["logprob"],
            n_tokens=row["n_tokens"],
            context_tokens=row["ctx_tokens"],
            argmax_matches=row["n_argmax_match"],
            text=case.candidates()[candidate].text,
            # Not published.
            token_logprobs=(),
            token_spans=(),
        )


def our_candidate(name: str) -> str:
    return "correct" if name == "gold" else name
