"""What is added to the environments, remedies, transcript readers and scorers that there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from pytest_failgain.errors import ExtensionError, FailgainError
from pytest_failgain.extension_checks import KINDS, kind_of, named_things, said
from pytest_failgain.nearest import did_you_mean

if TYPE_CHECKING:
    from pytest_failgain.environments.protocol import Environment
    from pytest_failgain.environments.settings import EnvironmentSettings
    from pytest_failgain.remedies import Remedy
    from pytest_failgain.scoring.protocol import Scorer
    from pytest_failgain.scoring.settings import ScorerSettings
    from pytest_failgain.transcripts.reader import TranscriptReader

_Settings = TypeVar("_Settings")
_Made = TypeVar("_Made")

EnvironmentFactory: TypeAlias = "Callable[[EnvironmentSettings], Environment]"
ScorerFactory: TypeAlias = "Callable[[ScorerSettings], Scorer]"


@dataclass(frozen=True, slots=True)
class Extensions:
    """Environments, remedies, transcript readers and scorers beside the built-in ones.

    Environments and scorers are functions by name, which make them when they are needed. `origins`
    says for errors where each came from, by kind ("environments", …) and name.

        Failgain("smollm2-135m", extensions=Extensions(remedies=[SHORTENED]))

    Raises:
        ExtensionError: when one of them is not what it should be, or its name is taken.
    """

    environments: Mapping[str, EnvironmentFactory] = field(default_factory=dict)
    remedies: Sequence[Remedy] = ()
    readers: Sequence[TranscriptReader] = ()
    scorers: Mapping[str, ScorerFactory] = field(default_factory=dict)
    origins: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for kind in KINDS:
            given = getattr(self, kind)
            named_things(kind, given, f"Extensions({kind}=…)")
            # Not what may still be changed by whom it came from.
            copied = dict(given) if isinstance(given, Mapping) else tuple(given)
            object.__setattr__(self, kind, copied)

    def environment(self, name: str, settings: EnvironmentSettings) -> Environment:
        """The added environment of that name, made with `settings`.

        Raises:
            KeyError: when there is none of that name.
            ExtensionError: when it can't be made, or what is made is no environment of that name.
        """
        where = self._where("environments", name)
        environment = _made(self.environments[name], settings, where)
        if not callable(getattr(environment, "cases", None)):
            raise ExtensionError(
                f"{where} came out as {kind_of(environment)}, which has no cases(): return an "
                "object with a name and a method cases(count=None) that gives failure cases"
            )
        called = getattr(environment, "name", None)
        if called != name:
            raise ExtensionError(
                f"{where} came out with the name {called!r}, under which reports would show it: "
                f"let the attribute name of {kind_of(environment)} be {name!r}"
            )
        return environment

    def scorer(self, model: str, settings: Callable[[str], ScorerSettings]) -> Scorer | None:
        """The added scorer that `model` names, as "name" or "name:rest"; None where it names none.

        `settings` are asked for with the rest.

        Raises:
            ExtensionError: when it can't be made, when what is made is no scorer, or when there is
                none of that name but one of nearly that name.
        """
        name, colon, rest = model.partition(":")
        if name not in self.scorers:
            hint = did_you_mean(name, self.scorers) if colon else ""
            if hint:
                raise ExtensionError(f"there is no scorer {name!r} for the model {model!r}{hint}")
            return None
        from pytest_failgain.scoring.protocol import ModelIdentity

        where = self._where("scorers", name)
        scorer = _made(self.scorers[name], settings(rest), where)
        if not callable(getattr(scorer, "score", None)):
            raise ExtensionError(
                f"{where} came out as {kind_of(scorer)}, which has no score(): return an object "
                "with an identity and a method score(pairs) (see pytest_failgain.scoring.protocol)"
            )
        identity = getattr(scorer, "identity", None)
        if not isinstance(identity, ModelIdentity):
            raise ExtensionError(
                f"{where} has the identity {identity!r}: let the attribute identity of "
                f"{kind_of(scorer)} be a ModelIdentity (see pytest_failgain.scoring.protocol)"
            )
        return scorer

    def _where(self, kind: str, name: str) -> str:
        origin = self.origins.get((kind, name))
        what = f"the {KINDS[kind].one} {name!r}"
        return f"{origin}: {what}" if origin else what


NO_EXTENSIONS = Extensions()


class Addition(NamedTuple):
    """What one source adds of one kind; `origin` says in errors who that is."""

    kind: str
    things: object
    origin: str


def merged(additions: Iterable[Addition]) -> Extensions:
    """All that is added, in the order given.

    Raises:
        ExtensionError: naming its origin, when something is not what it should be, or when its name
            is taken, whether by a built-in thing or by another addition.
    """
    found: dict[str, dict[str, object]] = {kind: {} for kind in KINDS}
    origins: dict[tuple[str, str], str] = {}
    for kind, things, origin in additions:
        for name, thing in named_things(kind, things, origin).items():
            if name in found[kind]:
                raise ExtensionError(
                    f"{origin}: the name {name!r} is taken by {KINDS[kind].a_one} of "
                    f"{origins[kind, name]}; give one of the two another name"
                )
            found[kind][name] = thing
            origins[kind, name] = origin
    given = {
        kind: named if KINDS[kind].by_name else tuple(named.values())
        for kind, named in found.items()
    }
    return Extensions(**given, origins=origins)  # type: ignore[arg-type]


def _made(make: Callable[[_Settings], _Made], settings: _Settings, where: str) -> _Made:
    try:
        return make(settings)
    except FailgainError:
        raise
    except Exception as error:
        raise ExtensionError(f"{where} can't be made: {said(error)}") from error
