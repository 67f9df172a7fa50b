"""What an environment is built with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pytest_failgain.errors import UsageError
from pytest_failgain.nearest import did_you_mean
from pytest_failgain.progress import NoProgress, Progress

VERBOSITIES = ("terse", "standard", "verbose")


def ignore_note(subject: str, note: str) -> None:
    """Takes notes where nobody wants them."""


@dataclass(frozen=True, slots=True)
class EnvironmentSettings:
    """Settings of all environments; each uses those that concern it.

    `action_format` is how an agent writes what it does, the environment's own first choice where it
    is None. `mbpp` is a file of programming problems. `allow_code_execution` permits programs that
    a model wrote. `kept_in` is the folder for results that need not be found twice, None to keep
    none. `on_note` is told what the user should know, as a subject and a text; what comes later on
    a subject replaces what came before.
    """

    seed: int = 0
    action_format: str | None = None
    verbosity: str = "standard"
    mbpp: Path | None = None
    allow_code_execution: bool = False
    kept_in: Path | None = None
    progress: Progress = field(default_factory=NoProgress)
    on_note: Callable[[str, str], None] = ignore_note


def check_choice(option: str, value: str, choices: Iterable[str]) -> None:
    """Refuse a value that is none of `choices`.

    Raises:
        UsageError: naming the option, the value and the choices.
    """
    names = tuple(choices)
    if value not in names:
        hint = did_you_mean(str(value), names, cutoff=0.5)
        raise UsageError(f"{option} is {value!r}, it must be one of {', '.join(names)}{hint}")
