"""What `study.json` says: everything that a study was made of and came to."""

from __future__ import annotations

import datetime
import math
from dataclasses import asdict
from typing import Any

from pytest_failgain import __version__
from pytest_failgain.machine import describe
from pytest_failgain.statistics import DRAWS, SEED
from pytest_failgain.study.plan import CaseSet, StudyPlan
from pytest_failgain.study.results import Cell, Study

RECORD_FORMAT = 1


def study_record(
    plan: StudyPlan,
    study: Study,
    started: datetime.datetime,
    finished: datetime.datetime | None = None,
) -> dict[str, Any]:
    """The record as JSON has it: no value in it is NaN. `finished` is null while it goes on."""
    settings = asdict(plan.settings)
    # Where models are kept on this machine is nobody's business.
    del settings["cache_dir"], settings["offline"]
    return {
        "failgain_study": RECORD_FORMAT,
        "version": __version__,
        "started": started.isoformat(timespec="seconds"),
        "finished": finished and finished.isoformat(timespec="seconds"),
        "machine": describe(),
        "conditions": [condition.name for condition in plan.conditions],
        "settings": settings,
        "bootstrap": {"draws": DRAWS, "seed": SEED},
        "case_sets": [_case_set(case_set) for case_set in plan.case_sets],
        "models": [
            {**asdict(model.identity), "name": model.name, "parameters": model.parameters}
            for model in study.models
        ],
        "cells": [_cell(cell) for cell in study.cells],
        "not_measured": [asdict(problem) for problem in study.not_measured],
    }


def _case_set(case_set: CaseSet) -> dict[str, Any]:
    return {
        "name": case_set.name,
        "origin": case_set.origin,
        "cases": len(case_set.cases),
        "tasks": len({case.task_id for case in case_set.cases}),
        "sha256": case_set.digest,
    }


def _cell(cell: Cell) -> dict[str, Any]:
    avoided = cell.work.avoided
    return {**asdict(cell), "avoided": None if math.isnan(avoided) else round(avoided, 4)}
