"""The items of the published experiment, as the failure cases that they describe.

An item is one line of its probe files: what the agent saw, what failed, and every text that the
published conditions put after it. Read here, it goes through the same conditions and harnesses as
any other case, and comes out as the published contexts, token for token.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_failgain.errors import CaseError
from pytest_failgain.json_fields import Fields
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
