"""What conftests and plugins add through hooks: asked for once, checked and put together."""

from __future__ import annotations

import traceback
from difflib import get_close_matches
from pathlib import Path

import pluggy
import pytest

from pytest_failgain.errors import ExtensionError
from pytest_failgain.extension_checks import said
from pytest_failgain.extensions import NO_EXTENSIONS, Addition, Extensions, merged
from pytest_failgain.fixtures import ENVIRONMENT_NAMES, REMEDY_NAMES
from pytest_failgain.hookspecs import HOOKS, PREFIX
from pytest_failgain.stash import EXTENSIONS


class HookAnswers:
    """What the hooks answered in one run: each implementation is called once."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._answers: dict[pluggy.HookImpl, Addition] = {}
        self._merged: dict[tuple[pluggy.HookImpl, ...], Extensions] = {}

    def everywhere(self) -> Extensions:
        """What all conftests and plugins add that are loaded by now.

        Raises:
            ExtensionError: when one of them fails, or adds what can't be added.
        """
        return self._of(self._config.hook)

    def at(self, node: pytest.Item | pytest.Collector) -> Extensions:
        """What is there for `node`: of conftests, those that lie in its folder or above it.

        Raises:
            ExtensionError: as `everywhere`, and when two of them give one name, wherever they lie.
        """
        found = self._of(node.ihook)
        if found is not NO_EXTENSIONS:
            self.everywhere()
        return found

    def _of(self, hook: pluggy.HookRelay) -> Extensions:
        # As pluggy calls them: last registered, first called.
        implementations = {
            implementation: name
            for name in HOOKS
            for implementation in reversed(getattr(hook, name).get_hookimpls())
        }
        if not implementations:
            return NO_EXTENSIONS
        key = tuple(implementations)
        if key not in self._merged:
            additions = (self._answer(name, one) for one, name in implementations.items())
            self._merged[key] = merged(one for one in additions if one.things is not None)
        return self._merged[key]

    def _answer(self, name: str, implementation: pluggy.HookImpl) -> Addition:
        if implementation not in self._answers:
            self._answers[implementation] = self._asked(name, implementation)
        return self._answers[implementation]

    def _asked(self, name: str, implementation: pluggy.HookImpl) -> Addition:
        where = f"{name} of {_source(implementation.plugin_name, self._config.rootpath)}"
        if implementation.wrapper or implementation.hookwrapper:
            raise ExtensionError(
                f"{where} is a wrapper, but what others add can't be changed; let it return what "
                "it adds itself"
            )
        given = {"config": self._config}
        try:
            things = implementation.function(*(given[one] for one in implementation.argnames))
        except Exception as error:
            *_, raised = traceback.extract_tb(error.__traceback__)
            place = f"{raised.filename}:{raised.lineno}"
            raise ExtensionError(f"{where} raised at {place}: {said(error)}") from error
        return Addition(name.removeprefix(PREFIX), things, where)


def answers_of(config: pytest.Config) -> HookAnswers:
    """What the hooks answered in this run so far."""
    return config.stash.setdefault(EXTENSIONS, HookAnswers(config))


def check_answers(config: pytest.Config) -> None:
    """Ask all hooks that are implemented so far.

    Raises:
        pytest.UsageError: when one fails, or adds what can't be added.
    """
    try:
        answers_of(config).everywhere()
    except ExtensionError as error:
        raise pytest.UsageError(str(error)) from error


def extensions_at(collector: pytest.Item | pytest.Collector) -> Extensions:
    """What is added for `collector`, while tests are collected.

    Raises:
        CollectError: when a hook fails, or adds what can't be added.
    """
    try:
        return answers_of(collector.config).at(collector)
    except ExtensionError as error:
        raise pytest.Collector.CollectError(str(error)) from error


def add_parameters(metafunc: pytest.Metafunc) -> None:
    """Let the parametrised fixtures have what is added for the test as parameters, too.

    Those that a project overrides are left as they are.

    Raises:
        CollectError: when a hook fails, or adds what can't be added.
    """
    extensions = extensions_at(metafunc.definition)
    parameters = {
        "failgain_environment": (*ENVIRONMENT_NAMES, *extensions.environments),
        "failgain_remedy": (*REMEDY_NAMES, *(remedy.name for remedy in extensions.remedies)),
    }
    for fixture, names in parameters.items():
        for definition in metafunc._arg2fixturedefs.get(fixture, ()):
            if definition.func.__module__ == "pytest_failgain.fixtures":
                # pytest reads it for each test anew. Parametrising the test here would leave it to
                # us to find out whether the fixture is overridden, and in which of the many ways.
                definition.params = names  # type: ignore[misc]


def check_implemented(
    manager: pytest.PytestPluginManager, name: str, error: type[Exception]
) -> None:
    """Refuse what implements a hook of this `name`, which there is not.

    One that is marked as optional may be of a later version, unless it is nearly one of this.

    Raises:
        Exception: `error`, naming the plugin and the nearest hook.
    """
    # What all of them begin with would make any two of them near.
    tails = [hook.removeprefix(PREFIX) for hook in HOOKS]
    near = get_close_matches(name.removeprefix(PREFIX), tails, n=1)
    hint = f"did you mean {PREFIX}{near[0]}?" if near else f"there are {', '.join(HOOKS)}"
    for implementation in getattr(manager.hook, name).get_hookimpls():
        if implementation.optionalhook and not near:
            continue
        # Else pluggy would end the run with an error of its own, as an internal one.
        manager.unregister(implementation.plugin)
        raise error(f"{implementation.plugin_name}: there is no hook {name}; {hint}")


def _source(plugin: str, root: Path) -> str:
    """A plugin as users know it: a conftest by its path."""
    path = Path(plugin)
    if path.is_absolute() and path.is_relative_to(root):
        return str(path.relative_to(root))
    return f"the plugin {plugin!r}" if not path.is_absolute() else plugin
