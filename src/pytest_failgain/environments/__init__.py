"""Environments make failure cases from an executable world. One sub-package or module each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_failgain.environments.program_repair import ProgramRepairEnvironment
from pytest_failgain.environments.protocol import Environment
from pytest_failgain.environments.settings import EnvironmentSettings, did_you_mean
from pytest_failgain.environments.tool_calls import ToolCallsEnvironment
from pytest_failgain.errors import UsageError
from pytest_failgain.trajectory import FailureCase


def _tool_calls(settings: EnvironmentSettings) -> Environment:
    form = settings.action_format or "python"
    return ToolCallsEnvironment(settings.seed, form, settings.verbosity)


ENVIRONMENTS: dict[str, Callable[[EnvironmentSettings], Environment]] = {
    "tool_calls": _tool_calls,
    "program_repair": ProgramRepairEnvironment,
}


@dataclass(frozen=True, slots=True)
class _FixedCount:
    """An environment that gives `count` cases whatever number is asked for, else as it is."""

    inner: Environment
    count: int

    @property
    def name(self) -> str:
        return self.inner.name

    def cases(self, count: int | None = None) -> Sequence[FailureCase]:
        return self.inner.cases(self.count)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def build_environment(
    name: str, settings: EnvironmentSettings | None = None, *, count: int | None = None
) -> Environment:
    """The environment called `name`; `count`, if given, overrides the numbers that tests ask for.

    Raises:
        UsageError: when there is none of that name, or a setting is not one that it takes.
    """
    try:
        build = ENVIRONMENTS[name]
    except KeyError:
        raise UsageError(
            f"there is no environment {name!r}; there are: {', '.join(ENVIRONMENTS)}"
            f"{did_you_mean(name, ENVIRONMENTS)}"
        ) from None
    environment = build(settings or EnvironmentSettings())
    return environment if count is None else _FixedCount(environment, count)
