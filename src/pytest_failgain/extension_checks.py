"""What may be added, and under which names."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_failgain.errors import ExtensionError

_NAME = re.compile(r"\w[\w.-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of thing that can be added.

    `holds` says what a source gives, things by name or a list of those that know their name.
    `problem` says what is wrong with a thing, None if nothing is, and `taken` gives the names that
    mean something already.
    """

    one: str
    a_one: str
    holds: str
    by_name: bool
    problem: Callable[[Any], str | None]
    taken: Callable[[], Iterable[str]]


def named_things(kind: str, things: object, origin: str) -> dict[str, Any]:
    """`things`, which `origin` gives as additions of that kind, by name.

    Raises:
        ExtensionError: when they are anything else, or a name can't be had.
    """
    known = KINDS[kind]
    _check_collection(known, things, origin)
    found: dict[str, Any] = {}
    taken = frozenset(known.taken()) if things else frozenset()
    for name, thing in _pairs(known, things, origin):
        where = f"{origin}: the {known.one} {name!r}"
        if name in taken:
            raise ExtensionError(f"{where} has the name of a built-in one; give it another")
        if name in found:
            raise ExtensionError(f"{where} stands twice; give one of the two another name")
        if known.by_name:
            problem = known.problem(thing)
            if problem:
                raise ExtensionError(f"{where} {problem}")
        found[name] = thing
    return found


def _check_collection(known: Kind, things: object, origin: str) -> None:
    if known.by_name:
        fits = isinstance(things, Mapping)
    else:
        fits = isinstance(things, Collection) and not isinstance(things, str | bytes | Mapping)
    if not fits:
        raise ExtensionError(f"{origin} gives {kind_of(things)}; it must give {known.holds}")


def _pairs(known: Kind, things: Any, origin: str) -> Iterable[tuple[str, Any]]:
    for thing in things.items() if known.by_name else things:
        if known.by_name:
            name, one = thing
        else:
            # Looked at before its name, which it may not even have.
            problem = known.problem(thing)
            if problem:
                raise ExtensionError(f"{origin}: {shown(thing)} {problem}")
            name, one = thing.name, thing
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ExtensionError(
                f"{origin}: {name!r} can't be the name of {known.a_one}: it must be a text of "
                "letters, digits and '_', '.', '-' that begins with none of the last two"
            )
        yield name, one


def _factory_problem(thing: Any, settings: str, hint: str) -> str | None:
    if not callable(thing):
        return f"is {kind_of(thing)}, which can't be called; give {hint}"
    try:
        inspect.signature(thing).bind(settings)
    except TypeError as error:
        return f"can't be called with {settings} alone ({error}); give {hint}"
    except ValueError:  # of some callables that are written in C there is no signature
        return None
    return None


def _environment_problem(thing: Any) -> str | None:
    hint = "a function that makes the environment, such as lambda settings: MyEnvironment()"
    return _factory_problem(thing, "EnvironmentSettings", hint)


def _scorer_problem(thing: Any) -> str | None:
    hint = "a function that makes the scorer, such as lambda settings: MyScorer()"
    return _factory_problem(thing, "ScorerSettings", hint)


def _remedy_problem(thing: Any) -> str | None:
    from pytest_failgain.remedies import FAILED_STEP, Remedy

    if not isinstance(thing, Remedy):
        return "is no Remedy; give Remedy(name, transform), as pytest_failgain has it"
    transform: object = thing.transform
    if not callable(transform):
        return (
            f"has the transform {transform!r}, which can't be called; give a function from "
            "trajectory to trajectory"
        )
    if thing.failed_step not in FAILED_STEP:
        return f"has failed_step {thing.failed_step!r}; it must be one of {', '.join(FAILED_STEP)}"
    return None


def _reader_problem(thing: Any) -> str | None:
    if isinstance(thing, type):
        return f"is a class; give an object of it, {thing.__name__}()"
    missing = [name for name in ("recognises", "read") if not callable(getattr(thing, name, None))]
    if not hasattr(thing, "name"):
        missing.insert(0, "name")
    if missing:
        return (
            f"is no reader of transcripts, since it lacks {', '.join(missing)}; give an object "
            "with name, recognises(document) and read(document)"
        )
    return None


def _environment_names() -> Iterable[str]:
    from pytest_failgain.environments import ENVIRONMENTS

    return ENVIRONMENTS


def _remedy_names() -> Iterable[str]:
    from pytest_failgain.blocking.kinds import BLOCKS
    from pytest_failgain.remedies import REMEDIES

    return ("verbatim", "none", *REMEDIES, *BLOCKS)


def _reader_names() -> Iterable[str]:
    from pytest_failgain.transcripts.read import READERS

    return (reader.name for reader in READERS)


def _model_names() -> Iterable[str]:
    from pytest_failgain.models import KNOWN

    return KNOWN


KINDS: Mapping[str, Kind] = {
    "environments": Kind(
        "environment",
        "an environment",
        "a dict from names to functions that make environments",
        True,
        _environment_problem,
        _environment_names,
    ),
    "remedies": Kind(
        "remedy", "a remedy", "a list of Remedy objects", False, _remedy_problem, _remedy_names
    ),
    "readers": Kind(
        "transcript reader",
        "a transcript reader",
        "a list of transcript readers",
        False,
        _reader_problem,
        _reader_names,
    ),
    "scorers": Kind(
        "scorer",
        "a scorer",
        "a dict from names to functions that make scorers",
        True,
        _scorer_problem,
        _model_names,
    ),
}


def kind_of(value: object) -> str:
    """What `value` is, as in "a list"."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def shown(value: object) -> str:
    """`value`, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


def said(error: BaseException) -> str:
    """The type of an error, and what it says."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
