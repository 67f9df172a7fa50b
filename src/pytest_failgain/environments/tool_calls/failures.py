"""Why a call failed, in the words of the runtime: every error text of the environment is here."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# A day that lies outside the calendar of every office, so that no hint gives an answer away.
EXAMPLE_DAY = "2025-02-03"
LISTED = 6


@dataclass(frozen=True, slots=True)
class Failure:
    """One error at each level of detail; `verbose` says `standard` and more."""

    family: str
    terse: str
    standard: str
    detail: str

    @property
    def verbose(self) -> str:
        return f"{self.standard} {self.detail}"

    def told(self, verbosity: str) -> str:
        """The text at `verbosity`, one of `settings.VERBOSITIES`."""
        return {"terse": self.terse, "standard": self.standard, "verbose": self.verbose}[verbosity]

    def echoed(self, call: str) -> str:
        """The standard text with the call as it was written, the way some runtimes quote it."""
        return f"{self.standard}\nRaised by: {call}"


class CallError(Exception):
    """Raised by the checks inside the runtime, which turns it into an outcome."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.standard)
        self.failure = failure


def parse_error(expected: str) -> Failure:
    """The reply is not one call in the action format."""
    return Failure(
        "parse_error",
        "Failed: no call found.",
        "SyntaxError: the reply is not a single tool call.",
        f"A call is written {expected}, with nothing before or after it.",
    )


def unknown_tool(name: str, known: Sequence[str]) -> Failure:
    """There is no tool called `name`."""
    return Failure(
        "unknown_tool",
        f"Failed: no tool {shown(name)}.",
        f"AttributeError: the workspace has no tool {shown(name)}{_nearest(name, known)}.",
        f"It has {', '.join(known)}.",
    )


def too_many_arguments(tool: str, taken: int, given: int, usage: str) -> Failure:
    """More positional arguments than the tool has parameters."""
    return Failure(
        "arity_error",
        "Failed: too many arguments.",
        f"TypeError: {tool}() takes {_counted(taken, 'argument')} but {given} were given.",
        f"Usage: {usage}.",
    )


def repeated_argument(tool: str, name: str, usage: str) -> Failure:
    """Two values for one parameter."""
    return Failure(
        "arity_error",
        f"Failed: {shown(name)} is given twice.",
        f"TypeError: {tool}() got more than one value for {shown(name)}.",
        f"Usage: {usage}.",
    )


def unexpected_argument(tool: str, name: str, taken: Sequence[str], usage: str) -> Failure:
    """A keyword that the tool does not take."""
    return Failure(
        "unexpected_argument",
        f"Failed: no argument {shown(name)}.",
        f"TypeError: {tool}() has no argument {shown(name)}; it takes {', '.join(taken)}.",
        f"Usage: {usage}.",
    )


def missing_argument(tool: str, name: str, description: str, usage: str) -> Failure:
    """A parameter that got no value."""
    return Failure(
        "missing_argument",
        f"Failed: {name} is missing.",
        f"TypeError: {tool}() was called without its argument {name!r}.",
        f"Usage: {usage}, where {name} is {description}.",
    )


def type_error(tool: str, name: str, wanted: str, value: object, usage: str) -> Failure:
    """A value of the wrong Python type."""
    return Failure(
        "type_error",
        f"Failed: {name} is not {wanted}.",
        f"TypeError: {tool}() wants {wanted} for {name}, not {type(value).__name__}.",
        f"The value was {shown(value)}. Usage: {usage}.",
    )


def format_error(tool: str, name: str, form: str, value: object, advice: str) -> Failure:
    """A value of the right type that is not written as the tool needs it."""
    return Failure(
        "format_error",
        f"Failed: {shown(value)} is not {form}.",
        f"ValueError: {tool}() cannot use {shown(value)} for {name}; it is not {form}.",
        advice,
    )


def permission_error(path: str, folder: str) -> Failure:
    """The document may not be changed."""
    return Failure(
        "permission_error",
        "Failed: permission denied.",
        f"PermissionError: [Errno 13] Permission denied: {shown(path)}.",
        f"The folder {folder}/ is open for reading only.",
    )


def file_not_found(path: str, known: Iterable[str]) -> Failure:
    """There is no document under `path`."""
    paths = sorted(known)
    missing = f"{shown(path)}{_nearest(path, paths)}"
    return Failure(
        "file_not_found",
        "Failed: no such file.",
        f"FileNotFoundError: [Errno 2] No such file or directory: {missing}.",
        f"Files here: {_listed(paths)}.",
    )


def not_found(family: str, kind: str, value: str, known: Iterable[str]) -> Failure:
    """The contact, team, meeting, guest, folder or recipient `value` is not among `known`."""
    names = list(known)
    return Failure(
        family,
        f"Failed: no such {kind}.",
        f"LookupError: there is no {kind} {shown(value)}{_nearest(value, names)}.",
        f"On record: {_listed(names)}.",
    )


def unsupported_conversion(source: str, target: str, known: Iterable[str]) -> Failure:
    """The converter has no factor for the two units."""
    return Failure(
        "unsupported_conversion",
        "Failed: conversion not supported.",
        f"ValueError: convert_amount() has no rule from {shown(source)} to {shown(target)}.",
        f"It has rules for {', '.join(known)}.",
    )


def called_off_already(identity: str) -> Failure:
    """The meeting does not take place any more."""
    return Failure(
        "state_error",
        "Failed: already called off.",
        f"RuntimeError: {identity} was called off before.",
        "A meeting can be called off once.",
    )


def shown(value: object) -> str:
    """The value's repr, shortened: an error must not grow with what the model wrote."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        # An integer of thousands of digits, or brackets nested too deeply to print.
        return f"<{type(value).__name__}>"
    return text if len(text) <= 80 else f"{text[:77]}..."


def _nearest(value: str, options: Sequence[str]) -> str:
    nearest = difflib.get_close_matches(value, options, n=1)
    return f" (nearest: {nearest[0]!r})" if nearest else ""


def _listed(options: Sequence[str]) -> str:
    more = f" and {len(options) - LISTED} more" if len(options) > LISTED else ""
    return ", ".join(options[:LISTED]) + more


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
