"""What a study is to measure."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pytest_failgain.case_files import case_line, load_cases
from pytest_failgain.conditions import CONDITIONS, Condition, condition_named
from pytest_failgain.environments import build_environment
from pytest_failgain.environments.settings import EnvironmentSettings
from pytest_failgain.errors import UsageError
from pytest_failgain.trajectory import FailureCase

# As many as the published experiment scored with every model.
DEFAULT_COUNTS = {"tool_calls": 100, "program_repair": 60}


@dataclass(frozen=True, slots=True)
class CaseSet:
    """The cases of one environment or one file, under the name that tables give them.

    `origin` tells how to get them again.
    """

    name: str
    cases: tuple[FailureCase, ...]
    origin: str = ""

    @property
    def digest(self) -> str:
        """SHA-256 of the cases as a file has them, to tell whether two studies had the same."""
        lines = "".join(map(case_line, self.cases))
        return hashlib.sha256(lines.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How every model of a study is loaded; see `scoring.loading.load_scorer`."""

    dtype: str = "float32"
    device: str = "cpu"
    threads: int | None = None
    cache_dir: Path | None = None
    offline: bool = False
    fold_system: bool = False
    prompt_format: str = "auto"


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """Models by what `--failgain-model` takes, and what each of them is to score."""

    models: tuple[str, ...]
    case_sets: tuple[CaseSet, ...]
    conditions: tuple[Condition, ...] = tuple(CONDITIONS.values())
    settings: ModelSettings = field(default_factory=ModelSettings)


def cases_of_environment(request: str, settings: EnvironmentSettings) -> CaseSet:
    """The cases that `request`, "NAME" or "NAME=COUNT", asks for.

    Raises:
        UsageError: when there is no such environment, or it can't give so many.
        CaseError: when a file of problems is none.
    """
    name, given, count = request.partition("=")
    environment = build_environment(name, settings)
    if given and not count.isdecimal():
        raise UsageError(
            f"--environment {request}: {count!r} is no number of cases; write {name}=100"
        )
    wanted = int(count) if given else DEFAULT_COUNTS[name]
    return CaseSet(name, tuple(environment.cases(wanted)), f"{name}={wanted} seed={settings.seed}")


def cases_of_file(path: Path) -> CaseSet:
    """The cases of a file, under its name without the ending.

    Raises:
        CaseError: when the file can't be read or holds anything else.
    """
    # What is no UTF-8 in a file's name can't be written to tables.
    stem, name = (os.fsencode(text).decode("utf-8", "replace") for text in (path.stem, path.name))
    return CaseSet(stem, tuple(load_cases(path)), name)


def conditions_named(names: Sequence[str]) -> tuple[Condition, ...]:
    """The conditions of these names in the order of `CONDITIONS`, with the two that all need.

    Raises:
        UsageError: when there is none of a name.
    """
    wanted = {condition_named(name).name for name in names} | {"before", "failed"}
    return tuple(condition for name, condition in CONDITIONS.items() if name in wanted)


def check_names(case_sets: Sequence[CaseSet]) -> None:
    """Refuse two sets of one name, which tables could not tell apart.

    Raises:
        UsageError: naming it.
    """
    for name, times in Counter(case_set.name for case_set in case_sets).items():
        if times > 1:
            raise UsageError(
                f"{times} sets of cases are called {name!r}; give each environment once, and "
                "case files with different names"
            )
