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

# Two are known without being used: `step_index` is the number of prefix actions, and `meta` says
# how the item was made. The last two are not released: they are the texts of the records, which are
# written anew where they are missing.
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


# What the experiment wrote, which its items do not hold: the sentence behind the system prompt in
# its condition `fail_instr`, and the phrases of its abstracted records by kind of error.
_INSTRUCTION = (
    "Important: some of your earlier tool calls failed. Do not repeat a call that has already "
    "failed; change the call before trying again."
)
_KINDS = ("contact", "file", "team", "event", "attendee")
_PHRASES = {
    "unknown_tool": "no such tool",
    "missing_argument": "a required argument was missing",
    "unexpected_argument": "an argument name was not recognised",
    "type_error": "an argument had the wrong type",
    "format_error": "an argument was badly formatted",
    "permission_error": "the target was read-only",
    "unsupported_conversion": "that conversion is not supported",
    "test_failure": "the code did not pass the tests",
    "runtime_error": "the code raised an exception",
    "syntax_error": "the code did not compile",
    **{f"{kind}_not_found": f"no such {kind}" for kind in _KINDS},
}
_OTHER_PHRASE = "the call failed"


def case_from_item(item: Mapping[str, Any]) -> FailureCase:
    """The failure case that a published item describes.

    The texts of the experiment's records go with the failed steps, so that the remedies
    `described`, `described-minimal` and `instructed` write what the experiment wrote.

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
    tool, family = fields.text_or_none("tool"), fields.text_or_none("error_type")
    phrase = _PHRASES.get(family or "", _OTHER_PHRASE)
    described = f"[attempt 1 failed: {tool or 'the tool'} — {phrase}; that call is not repeatable]"
    records = {
        "described": fields.text_or_none("record_abstract") or described,
        "described-minimal": fields.text_or_none("record_abstract_min") or "[attempt 1 failed]",
        "instructed": _INSTRUCTION,
    }
    error = fields.text("obs_fail")
    distractors = tuple(
        text_action(text, f"distractors[{index}]")
        for index, text in enumerate(fields.texts("distractors"))
    )
    other_error = fields.text_or_none("obs_fail_other") or error
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
            error,
            failed=True,
            error_family=family,
            tool=tool,
            records=records,
        ),
        correct=None if gold is None else text_action(gold, "gold_action"),
        distractors=distractors,
        observations=Observations(
            neutral=fields.text("obs_neutral", Observations().neutral),
            success=fields.text_or_none("obs_success"),
            terse=fields.text_or_none("obs_fail_terse"),
            verbose=fields.text_or_none("obs_fail_verbose"),
            echoed=fields.text_or_none("obs_fail_echo"),
            padding="published",
        ),
        environment=fields.text("env", ""),
        operator=fields.text("operator", ""),
        template=fields.text("template", ""),
        other_failed=Step(distractors[0], other_error, failed=True) if distractors else None,
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
