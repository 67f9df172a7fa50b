"""The items of the published experiment, as the failure cases that they describe.

An item is one line of its probe files: what the agent saw, what failed, and every text that the
published conditions put after it. Read here, it goes through the same conditions and harnesses as
any other case, and comes out as the published contexts, token for token.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import Any

from pytest_failgain.errors import CaseError
from pytest_failgain.trajectory import Action, FailureCase, Observations, Step, Trajectory

# Some are known without being used: `obs_fail_other` is the error of the first distractor,
# `step_index` is the number of prefix actions, and `meta` says how the item was made.
_ITEM_KEYS = (
    "item_id",
    "env",
    "task_id",
    "template",
    "step_index",
    "operator",
    "error_type",
    "system_prompt",
    "goal",
    "prefix_actions",
    "prefix_observations",
    "failed_action",
    "gold_action",
    "obs_fail",
    "obs_fail_terse",
    "obs_fail_verbose",
    "obs_fail_echo",
    "obs_success",
    "obs_neutral",
    "obs_fail_other",
    "distractors",
    "tool",
    "meta",
    "record_abstract",
    "record_abstract_min",
)


def case_from_item(item: Mapping[str, Any]) -> FailureCase:
    """The failure case that a published item describes.

    The texts of its records, where it has them, go with the failed step, so that the remedies
    `described` and `described-minimal` write what the experiment wrote; without them the remedies
    use their own words.

    Raises:
        CaseError: when a field is unknown, missing or of the wrong type, or the actions and
            observations before the failure do not pair up.
    """
    fields = Fields(item, _ITEM_KEYS)
    actions = fields.texts("prefix_actions")
    observations = fields.texts("prefix_observations")
    if len(actions) != len(observations):
        raise CaseError(
            f"the fields 'prefix_actions' and 'prefix_observations' must pair up, but there are "
            f"{len(actions)} and {len(observations)}"
        )
    records = {
        "described": fields.text_or_none("record_abstract"),
        "described-minimal": fields.text_or_none("record_abstract_min"),
    }
    gold = fields.text_or_none("gold_action")
    return FailureCase(
        case_id=fields.text("item_id"),
        task_id=fields.text("task_id"),
        trajectory=Trajectory(
            system=fields.text("system_prompt"),
            goal=fields.text("goal"),
            steps=tuple(
                Step(text_action(action, f"prefix_actions[{index}]"), observation)
                for index, (action, observation) in enumerate(
                    zip(actions, observations, strict=True)
                )
            ),
        ),
        failed=Step(
            text_action(fields.text("failed_action"), "failed_action"),
            fields.text("obs_fail"),
            failed=True,
            error_family=fields.text_or_none("error_type"),
            tool=fields.text_or_none("tool"),
            records={name: text for name, text in records.items() if text is not None},
        ),
        correct=None if gold is None else text_action(gold, "gold_action"),
        distractors=tuple(
            text_action(text, f"distractors[{index}]")
            for index, text in enumerate(fields.texts("distractors"))
        ),
        observations=Observations(
            neutral=fields.text("obs_neutral", Observations().neutral),
            success=fields.text_or_none("obs_success"),
            terse=fields.text_or_none("obs_fail_terse"),
            verbose=fields.text_or_none("obs_fail_verbose"),
            echoed=fields.text_or_none("obs_fail_echo"),
        ),
        environment=fields.text("env", ""),
        operator=fields.text("operator", ""),
        template=fields.text("template", ""),
    )


def text_action(text: str, at: str) -> Action:
    """The action with exactly this text.

    Raises:
        CaseError: naming the field `at`, when the text is empty.
    """
    try:
        return Action(text)
    except CaseError as error:
        raise CaseError(f"the field {at!r}: {error}") from None


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
                near = difflib.get_close_matches(str(key), known, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(known)}"
                raise CaseError(f"there is no field {self.path(str(key))!r}; {hint}")
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
        return f"the number {value!r}"
    return f"a {type(value).__name__}"
