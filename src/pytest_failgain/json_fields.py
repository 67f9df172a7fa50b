"""Reading the fields of JSON objects that people wrote, with errors that say which and why."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from pytest_failgain.errors import CaseError
from pytest_failgain.nearest import nearest_or_all


class Fields:
    """The fields of one JSON object, each read with its type checked.

    `at` is where the object stands in its line, "" for the line itself; errors name the fields
    from there, as in "steps[2].action".

    Raises:
        CaseError: when `value` is no object or has a key that is not in `known`; every method
            raises it when a field is missing or has the wrong type.
    """

    def __init__(self, value: object, known: Collection[str], at: str = "") -> None:
        self._at = at
        if not isinstance(value, Mapping):
            raise CaseError(
                f"expected an object {f'as {at!r}' if at else 'on the line'}, got {_shown(value)}"
            )
        for key in value:
            if key not in known:
                raise CaseError(
                    f"there is no field {self.path(str(key))!r}{nearest_or_all(str(key), known)}"
                )
        self._values = value

    def path(self, key: str) -> str:
        """Where the field `key` stands in the line."""
        return f"{self._at}.{key}" if self._at else key

    def text(self, key: str, default: str | None = None) -> str:
        """A string; required unless there is a default."""
        if key not in self._values:
            if default is None:
                raise CaseError(f"the field {self.path(key)!r} is missing; it must be a string")
            return default
        return self._text(self.path(key), self._values[key], "a string")

    def text_or_none(self, key: str) -> str | None:
        """A string, or None where the field is null or left out."""
        value = self._values.get(key)
        return None if value is None else self._text(self.path(key), value, "a string or null")

    def texts(self, key: str) -> list[str]:
        """A list of strings, empty where it is left out."""
        return [self._text(at, value, "a string") for at, value in self.entries(key)]

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self._values.get(key, default)
        if not isinstance(value, bool):
            raise CaseError(_mistyped(self.path(key), "true or false", value))
        return value

    def number(self, key: str) -> float:
        """A finite number, required."""
        value = self.required(key, "a number")
        try:
            number = math.nan if isinstance(value, bool | str) else float(value)
        except (TypeError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            raise CaseError(_mistyped(self.path(key), "a finite number", value))
        return number

    def entries(self, key: str) -> list[tuple[str, Any]]:
        """The entries of a list, each with where it stands; none where it is left out."""
        value = self._values.get(key, [])
        if not isinstance(value, list | tuple):
            raise CaseError(_mistyped(self.path(key), "a list", value))
        return [(f"{self.path(key)}[{index}]", entry) for index, entry in enumerate(value)]

    def required(self, key: str, expected: str) -> Any:
        """The value as it is; `expected` says in the error what it should be."""
        if key not in self._values:
            raise CaseError(f"the field {self.path(key)!r} is missing; it must be {expected}")
        return self._values[key]

    def value(self, key: str) -> Any:
        """The value as it is, None where it is left out."""
        return self._values.get(key)

    def mapping(self, key: str) -> dict[str, Any]:
        """An object with any keys, empty where it is left out."""
        value = self._values.get(key, {})
        if not isinstance(value, Mapping):
            raise CaseError(_mistyped(self.path(key), "an object", value))
        return dict(value)

    def texts_by_name(self, key: str) -> dict[str, str]:
        """An object of strings with any keys, empty where it is left out."""
        return {
            name: self._text(f"{self.path(key)}.{name}", value, "a string")
            for name, value in self.mapping(key).items()
        }

    @staticmethod
    def _text(at: str, value: object, expected: str) -> str:
        if not isinstance(value, str):
            raise CaseError(_mistyped(at, expected, value))
        return value


def _mistyped(at: str, expected: str, value: object) -> str:
    return f"the field {at!r} must be {expected}, got {_shown(value)}"


def _shown(value: object) -> str:
    """A JSON value in the words of JSON, short enough for an error."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the string {value[:40]!r}"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, int | float):
        return f"the number {value!r:.40}"
    return f"a {type(value).__name__}"
