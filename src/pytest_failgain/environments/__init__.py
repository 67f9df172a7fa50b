"""Environments make failure cases from an executable world. One sub-package or module each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, overload

from pytest_failgain.environments.program_repair import ProgramRepairEnvironment
from pytest_failgain.environments.protocol import Environment, Episode, RolloutEnvironment
from pytest_failgain.environments.settings import EnvironmentSettings
from pytest_failgain.environments.tool_calls import ToolCallsEnvironment
from pytest_failgain.errors import UsageError
from pytest_failgain.extensions import NO_EXTENSIONS, Extensions
from pytest_failgain.nearest import did_you_mean
from pytest_failgain.replies import ReplyStyle
from pytest_failgain.trajectory import FailureCase


def _tool_calls(settings: EnvironmentSettings) -> RolloutEnvironment:
    form = settings.action_format or "python"
    return ToolCallsEnvironment(settings.seed, form, settings.verbosity)


ENVIRONMENTS: dict[str, Callable[[EnvironmentSettings], RolloutEnvironment]] = {
    "tool_calls": _tool_calls,
    "program_repair": ProgramRepairEnvironment,
}


@dataclass(frozen=True, slots=True)
class _FixedCases:
    """An environment that gives `count` cases whatever number is asked for.

    For the rest it is as it was.
    """

    inner: Environment
    count: int

    @property
    def name(self) -> str:
        return self.inner.name

    def cases(self, count: int | None = None) -> Sequence[FailureCase]:
        return self.inner.cases(self.count)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@dataclass(frozen=True, slots=True)
class _FixedCount(_FixedCases):
    """The same for episodes."""

    inner: RolloutEnvironment

    @property
    def variant(self) -> str:
        return self.inner.variant

    @property
    def replies(self) -> ReplyStyle:
        return self.inner.replies

    @property
    def reply_tokens(self) -> int:
        return self.inner.reply_tokens

    def episodes(
        self, count: int, *, primed: bool = False, demonstrations: int = 8
    ) -> Sequence[Episode]:
        return self.inner.episodes(self.count, primed=primed, demonstrations=demonstrations)


@overload
def build_environment(
    name: str, settings: EnvironmentSettings | None = None, *, count: int | None = None
) -> RolloutEnvironment: ...


@overload
def build_environment(
    name: str,
    settings: EnvironmentSettings | None = None,
    *,
    count: int | None = None,
    extensions: Extensions,
) -> Environment: ...


def build_environment(
    name: str,
    settings: EnvironmentSettings | None = None,
    *,
    count: int | None = None,
    extensions: Extensions = NO_EXTENSIONS,
) -> Environment:
    """The environment called `name`; `count`, if given, overrides the numbers that tests ask for.

    Those of `extensions` are known beside the built-in ones.

    Raises:
        UsageError: when there is none of that name, or a setting is not one that it takes.
        ExtensionError: when an added one can't be made, or is none.
    """
    known = (*ENVIRONMENTS, *extensions.environments)
    if name not in known:
        raise UsageError(
            f"there is no environment {name!r}; there are: {', '.join(known)}"
            f"{did_you_mean(name, known)}"
        )
    settings = settings or EnvironmentSettings()
    if name in ENVIRONMENTS:
        environment: Environment = ENVIRONMENTS[name](settings)
    else:
        environment = extensions.environment(name, settings)
    if count is None:
        return environment
    if isinstance(environment, RolloutEnvironment):
        return _FixedCount(environment, count)
    return _FixedCases(environment, count)
