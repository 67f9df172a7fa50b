"""Studies of several models, without any real one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from study_models import SizedScorer, case_set, load, study_case

from progress_recorder import Recorder
from pytest_failgain.conditions import CONDITIONS, DEFAULT_CONDITIONS
from pytest_failgain.scoring.protocol import Pair, Refusal, Score
from pytest_failgain.scoring.work import Work
from pytest_failgain.study.folder import FolderError, StudyFolder
from pytest_failgain.study.plan import CaseSet, StudyPlan
from pytest_failgain.study.results import NotMeasured, Study
from pytest_failgain.study.run import run_study


def studied(folder: Path, *models: str, case_sets: tuple[CaseSet, ...] | None = None) -> Study:
    plan = StudyPlan(models, case_sets or (case_set(),))
    return run_study(plan, StudyFolder(folder), load)


def test_every_model_is_measured_on_every_set_of_cases(tmp_path: Path) -> None:
    study = studied(tmp_path, "small", "large", case_sets=(case_set("mails"), case_set("notes")))
    assert [(cell.model, cell.environment) for cell in study.cells] == [
        ("small", "mails"),
        ("small", "notes"),
        ("large", "mails"),
        ("large", "notes"),
    ]
    assert [model.name for model in study.models] == ["small", "large"]
    assert {row.condition for row in study.estimates} == set(CONDITIONS)
    assert not study.not_measured


def test_rows_are_written_as_json_lines(tmp_path: Path) -> None:
    studied(tmp_path, "org/name")
    lines = (tmp_path / "rows" / "org%2Fname--mails.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) == 6 * len(CONDITIONS) * 4
    assert list(rows[0]) == [
        "model",
        "environment",
        "case_id",
        "condition",
        "candidate",
        "logprob",
        "n_tokens",
        "argmax_matches",
        "greedy",
        "context_tokens",
        "token_logprobs",
    ]
    for row in rows:
        assert row["logprob"] == pytest.approx(sum(row["token_logprobs"]), abs=1e-4)
        assert row["greedy"] == (row["argmax_matches"] == row["n_tokens"])


def test_a_model_that_can_not_be_loaded_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    told: list[NotMeasured] = []
    plan = StudyPlan(("missing", "small"), (case_set(),))
    study = run_study(plan, StudyFolder(tmp_path), load, on_not_measured=told.append)
    assert (
        told == study.not_measured == [NotMeasured("missing", None, "there is no model 'missing'")]
    )
    assert [cell.model for cell in study.cells] == ["small"]


def test_a_set_of_cases_that_can_not_be_scored_is_told_and_the_others_go_on(
    tmp_path: Path,
) -> None:
    study = studied(tmp_path, "broken", "small")
    assert study.not_measured == [NotMeasured("broken", "mails", "the numbers are impossible")]
    assert [cell.model for cell in study.cells] == ["small"]


def test_a_model_under_two_names_is_measured_once(tmp_path: Path) -> None:
    study = studied(tmp_path, "small", "small:2000")
    assert [problem.model for problem in study.not_measured] == ["small:2000"]
    assert "measured already" in study.not_measured[0].reason
    assert len(study.cells) == 1


def test_cases_that_are_all_skipped_are_a_failure(tmp_path: Path) -> None:
    scorer = SizedScorer("small")
    scorer.inner.refusal = lambda prompt, action: "too long"
    plan = StudyPlan(("small",), (case_set(),))
    study = run_study(plan, StudyFolder(tmp_path), lambda *_: scorer)
    assert study.cells == []
    assert "not one of 6 cases" in study.not_measured[0].reason
    assert "too long" in study.not_measured[0].reason


def test_skipped_cases_are_counted_by_their_reason(tmp_path: Path) -> None:
    scorer = SizedScorer("small")
    scorer.inner.refusal = lambda prompt, action: (
        "too long" if "Do c1." in str(prompt.messages) else None
    )
    plan = StudyPlan(("small",), (case_set(),))
    (cell,) = run_study(plan, StudyFolder(tmp_path), lambda *_: scorer).cells
    assert cell.n == 5
    assert [count for _, count in cell.skips] == [1]
    assert "too long" in cell.skips[0][0]


def test_work_is_that_of_all_runs_of_the_folder(tmp_path: Path) -> None:
    (first,) = studied(tmp_path, "small").cells
    pairs = 6 * len(CONDITIONS) * 4
    assert first.pairs == pairs
    assert first.work == Work(pairs, 10 * pairs, pairs, float(pairs))
    # This scorer keeps nothing, so the second run computes all of it again.
    (second,) = studied(tmp_path, "small").cells
    assert second.work == first.work + first.work
    assert second.work.avoided == first.work.avoided == 0.9


def test_what_was_scored_for_other_conditions_does_not_change_what_is_avoided(
    tmp_path: Path,
) -> None:
    studied(tmp_path, "small")
    plan = StudyPlan(("small",), (case_set(),), DEFAULT_CONDITIONS)
    (cell,) = run_study(plan, StudyFolder(tmp_path), load).cells
    assert cell.pairs < cell.work.pairs
    assert cell.work.avoided == 0.9


def test_memory_that_runs_short_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    class Greedy(SizedScorer):
        def score(self, pairs: Sequence[Pair]) -> list[Score | Refusal]:
            if self.name == "large":
                raise MemoryError("out of memory")
            return super().score(pairs)

    plan = StudyPlan(("large", "small"), (case_set(),))
    study = run_study(plan, StudyFolder(tmp_path), lambda spec, *_: Greedy(spec))
    assert study.not_measured == [NotMeasured("large", "mails", "MemoryError: out of memory")]
    assert [cell.model for cell in study.cells] == ["small"]


def test_work_of_another_model_or_set_of_cases_is_kept_apart(tmp_path: Path) -> None:
    studied(tmp_path, "small")
    study = studied(tmp_path, "large", case_sets=(case_set("mails", 4), case_set("notes")))
    assert [cell.work.pairs for cell in study.cells] == [240, 360]


def test_a_job_is_named_after_its_model_cases_and_place(tmp_path: Path) -> None:
    progress = Recorder()
    plan = StudyPlan(("small", "large"), (case_set("mails"), case_set("notes")))
    run_study(plan, StudyFolder(tmp_path), load, progress=progress)
    assert [told for told in progress.told if isinstance(told, tuple)] == [
        ("small on mails (1 of 4)", 6),
        ("small on notes (2 of 4)", 6),
        ("large on mails (3 of 4)", 6),
        ("large on notes (4 of 4)", 6),
    ]


def test_models_of_several_sizes_have_a_line_through_their_gains(tmp_path: Path) -> None:
    study = studied(tmp_path, "a:1000", "b:10000", "c:100000")
    (row,) = study.scaling()
    gains = [
        row.value for row in study.estimates if (row.measure, row.condition) == ("gain", "failed")
    ]
    # One decade apart, so the slope is half of the last less the first.
    assert row.slope_per_decade == pytest.approx((gains[2] - gains[0]) / 2)
    assert row.n_models == 3
    assert row.by_construction == ""


def test_one_size_has_no_line(tmp_path: Path) -> None:
    assert studied(tmp_path, "small", "other").scaling() == []


def test_two_sizes_have_a_line_that_says_it_is_so_by_construction(tmp_path: Path) -> None:
    (row,) = studied(tmp_path, "a:1000", "b:10000").scaling()
    assert "by construction" in row.by_construction


def test_cases_and_conditions_that_lack_something_are_counted(tmp_path: Path) -> None:

    bare = [replace(study_case(f"b{number}"), other_failed=None) for number in range(2)]
    cases = CaseSet("mails", (*case_set().cases, *bare))
    (cell,) = studied(tmp_path, "small", case_sets=(cases,)).cells
    assert cell.left_out == (("other-failed", 2),)


def test_a_folder_that_can_not_be_written_to_ends_the_study(tmp_path: Path) -> None:
    (tmp_path / "rows").touch()
    (tmp_path / "work.json").write_text("{}")
    plan = StudyPlan(("small", "large"), (case_set(),))
    with pytest.raises(FolderError, match="can't be written to"):
        run_study(plan, StudyFolder(tmp_path), load)


def test_skips_that_differ_in_numbers_alone_are_one(tmp_path: Path) -> None:
    scorer = SizedScorer("small")
    lengths = iter(range(10_000))
    scorer.inner.refusal = lambda prompt, action: (
        f"{next(lengths)} tokens" if "Do c1." in str(prompt) or "Do c2." in str(prompt) else None
    )
    plan = StudyPlan(("small",), (case_set(),))
    (cell,) = run_study(plan, StudyFolder(tmp_path), lambda *_: scorer).cells
    ((reason, count),) = cell.skips
    assert count == 2
    assert reason.endswith(" tokens, and the like")
