"""Rollouts as tables: success beside repetition, always."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from pytest_failgain.errors import UsageError
from pytest_failgain.report.numbers import number, percent, percents, signed
from pytest_failgain.rollout.results import Rollouts, rollout_difference

HEADINGS = (
    "harness",
    "n",
    "solved [95%]",
    "same text",
    "same call",
    "next",
    "stuck",
    "valid",
    "effective",
    "steps",
    "written",
    "solved/quit/limit/full",
)

LEGEND = """\
solved: share of the tasks; same text, same call: failed actions that repeat an earlier failed one
next: the first action repeats the given failure; stuck: steps used up, 2 or more actions repeated
valid: replies that are calls of a known tool; effective: that succeeded; written: tokens, a rollout
Repeating less is not succeeding more, and a block's repeats are 0 by construction."""


def rollout_groups(results: Iterable[Rollouts]) -> list[list[Rollouts]]:
    """Rollouts of the same tasks in the same way together, each harness once."""
    groups: dict[object, dict[str, Rollouts]] = {}
    for result in results:
        groups.setdefault(result.setting, {}).setdefault(result.harness, result)
    return [list(group.values()) for group in groups.values()]


def rollout_heading(result: Rollouts) -> str:
    """What the rollouts of a group have in common."""
    setting = result.setting
    tasks = len(setting.tasks)
    start = "primed" if setting.primed else "free"
    drawn = (
        f"temperature {setting.temperature:g}, {setting.samples} samples a task"
        if setting.temperature
        else "greedy"
    )
    model = setting.model
    return (
        f"{setting.environment}: {start} rollouts of {tasks} task{'s' * (tasks != 1)}, "
        f"{setting.max_steps} step{'s' * (setting.max_steps != 1)} at most, {drawn}, "
        f"{setting.demonstrations} demonstrations, {model.name} ({model.source}, {model.dtype})"
    )


def rollout_cells(result: Rollouts) -> tuple[str, ...]:
    """The figures of one harness, in the order of `HEADINGS`."""
    estimates = result.estimates
    return (
        result.harness,
        str(len(result.rollouts)),
        percents(estimates["success"]),
        percent(estimates["exact_repeat_rate"].value),
        percent(estimates["canonical_repeat_rate"].value),
        percent(estimates["next_action_repeat"].value),
        percent(estimates["stuck"].value),
        percent(estimates["valid_call_rate"].value),
        percent(estimates["effective_call_rate"].value),
        number(estimates["steps"], 1),
        number(estimates["generated_tokens"], 0),
        "/".join(map(str, result.outcomes.values())),
    )


def rollout_notes(result: Rollouts, group: Sequence[Rollouts]) -> list[str]:
    """What has to be said about a harness beside its figures."""
    notes = [*_compared(result, group)]
    if result.by_construction:
        notes.append(f"by construction, {result.by_construction}")
    undefined = result.undefined("canonical_repeat_rate")
    if result.rollouts and undefined:
        notes.append(f"{undefined} of {len(result.rollouts)} rollouts had no failure to repeat")
    notes += [f"warning: {warning}" for warning in result.warnings]
    notes += [
        f"adapted in {count} of {len(result.rollouts)} rollouts: {adaptation}"
        for adaptation, count in result.adaptations
    ]
    for reason, count in Counter(one.reason for one in result.not_started).items():
        notes.append(f"{count} of {len(result.setting.tasks)} tasks not started: {reason}")
    return [f"{result.harness}: {note}" for note in notes]


def _compared(result: Rollouts, group: Sequence[Rollouts]) -> Iterable[str]:
    base = result.harness.partition("+")[0]
    named = {other.harness: other for other in group}
    reference = next(
        (named[name] for name in (base, "verbatim") if name in named and name != result.harness),
        None,
    )
    if reference is None:
        return
    try:
        solved = rollout_difference("success", result, reference)
        repeats = rollout_difference("canonical_repeat_rate", result, reference)
    except UsageError:
        return
    yield (
        f"solved {signed(solved, 2)} over {reference.harness}, same call {signed(repeats, 2)} "
        f"where both failed (n = {repeats.n})"
    )
