"""Rollouts as tables: success beside repetition, always."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_failgain.report.columns import aligned
from pytest_failgain.report.markdown import markdown_table
from pytest_failgain.report.numbers import number, percent, percents, signed
from pytest_failgain.rollout.results import Rollouts, rollout_difference
from pytest_failgain.statistics import Effect

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

# Reasons name lengths, so every rollout may have its own.
_REASONS_SHOWN = 5

FURTHER_HEADINGS = (
    "harness",
    "solved [95%]",
    "in a row",
    "and more",
    "stuck on failures",
    "cut short",
    "prose",
    "empty",
    "read",
)

LEGEND = """\
solved: share of rollouts; same text, same call: failed actions that repeat an earlier failed one
next: the first action repeats the given failure; stuck: steps used up, with 2 or more repeats
valid: calls that a tool takes, programs that compile; effective: that succeeded; written: tokens
Repeating less is not succeeding more. What a block forbids is 0 by construction."""


# A line each, since each becomes an item of a list.
_FURTHER_LEGEND = """
in a row: failed actions that repeat the failed one before; and more: that hold a whole failed one
stuck on failures: steps used up, with 2 or more repeats of failed actions
cut short: calls whose brackets are left open; prose, empty: replies without a call
read: tokens of the prompts, summed over the steps of a rollout"""


@dataclass(frozen=True, slots=True)
class RolloutEffect:
    """What a harness changes over the one called `over`, in the same tasks.

    Both are differences of shares: of rollouts that solve the task, and of failed actions that
    repeat an earlier one, where both harnesses had failures.
    """

    over: str
    solved: Effect
    repeats: Effect


def rollout_groups(results: Iterable[Rollouts]) -> list[list[Rollouts]]:
    """Rollouts of the same tasks in the same way together, what was run again once."""
    groups: dict[object, list[Rollouts]] = {}
    for result in results:
        group = groups.setdefault(result.setting, [])
        if result not in group:
            group.append(result)
    return list(groups.values())


def rollout_heading(result: Rollouts) -> str:
    """What the rollouts of a group have in common."""
    setting = result.setting
    start = "primed" if setting.primed else "free"
    drawn = (
        f"temperature {setting.temperature:g}, {_counted(setting.samples, 'sample')} a task"
        if setting.temperature
        else "greedy"
    )
    model = setting.model
    return (
        f"{setting.environment}: {start} rollouts of "
        f"{_counted(len(setting.tasks), 'task')}, {_counted(setting.max_steps, 'step')} at most, "
        f"{drawn}, {_counted(setting.demonstrations, 'demonstration')}, {setting.variant}, "
        f"{model.name} ({model.source}, {model.dtype})"
    )


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def rollout_cells(result: Rollouts, *, intervals: bool = False) -> tuple[str, ...]:
    """The figures of one harness, in the order of `HEADINGS`.

    Success always has its interval, the other shares have theirs with `intervals`.
    """
    estimates = result.estimates

    def share(measure: str) -> str:
        estimate = estimates[measure]
        return percents(estimate) if intervals else percent(estimate.value)

    return (
        result.harness,
        str(len(result.rollouts)),
        percents(estimates["success"]),
        share("exact_repeat_rate"),
        share("canonical_repeat_rate"),
        share("next_action_repeat"),
        share("stuck"),
        share("valid_call_rate"),
        share("effective_call_rate"),
        number(estimates["steps"], 1),
        number(estimates["generated_tokens"], 0),
        "/".join(map(str, result.outcomes.values())),
    )


def further_cells(result: Rollouts) -> tuple[str, ...]:
    """What the first table has no room for, in the order of `FURTHER_HEADINGS`."""
    estimates = result.estimates
    shares = (
        "consecutive_repeat_rate",
        "extended_repeat_rate",
        "stuck_on_failures",
        "truncated_rate",
        "prose_rate",
        "empty_rate",
    )
    return (
        result.harness,
        percents(estimates["success"]),
        *(percents(estimates[measure]) for measure in shares),
        number(estimates["prompt_tokens"], 0),
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
    reasons = Counter(one.reason for one in result.not_started).most_common()
    notes += [
        f"{count} of {result.n_wanted} rollouts not started: {reason}"
        for reason, count in reasons[:_REASONS_SHOWN]
    ]
    further = sum(count for _, count in reasons[_REASONS_SHOWN:])
    if further:
        notes.append(f"{further} of {result.n_wanted} rollouts not started for other reasons")
    return [f"{result.harness}: {note}" for note in notes]


def rollouts_text(results: Iterable[Rollouts]) -> str:
    """All of it for a terminal: a table and its notes for each setting, then the legend."""
    lines: list[str] = []
    for group in rollout_groups(results):
        lines.append(rollout_heading(group[0]))
        lines += aligned(HEADINGS, [rollout_cells(result) for result in group])
        lines += [note for result in group for note in rollout_notes(result, group)]
    return "\n".join([*lines, LEGEND])


def rollouts_page(results: Iterable[Rollouts], made_with: str) -> str:
    """The same as a page in Markdown; `made_with` says with what."""
    parts = ["# Rollouts\n", f"{made_with}\n"]
    for group in rollout_groups(results):
        notes = [note for result in group for note in rollout_notes(result, group)]
        parts.append(f"## {rollout_heading(group[0])}\n")
        cells = [rollout_cells(result, intervals=True) for result in group]
        parts.append(markdown_table(HEADINGS, cells))
        parts.append(markdown_table(FURTHER_HEADINGS, [further_cells(one) for one in group]))
        parts.append("\n".join(f"- {note}" for note in notes) + "\n")
    legend = "\n".join(f"- {line}" for line in (LEGEND + _FURTHER_LEGEND).splitlines())
    return "\n".join([*parts, "## How to read it\n", f"{legend}\n"])


def rollout_effects(result: Rollouts, group: Sequence[Rollouts]) -> list[RolloutEffect]:
    """What is other than with the harness without its remedies, and than with verbatim."""
    base = result.harness.partition("+")[0]
    named = {other.harness: other for other in group if other.harness != result.harness}
    return [
        RolloutEffect(
            over=reference.harness,
            solved=rollout_difference("success", result, reference),
            repeats=rollout_difference("canonical_repeat_rate", result, reference),
        )
        for reference in filter(None, map(named.get, dict.fromkeys((base, "verbatim"))))
    ]


def _compared(result: Rollouts, group: Sequence[Rollouts]) -> Iterable[str]:
    for effect in rollout_effects(result, group):
        solved, repeats = effect.solved, effect.repeats
        if solved.n:
            difference = f"solved {signed(solved, 2)} over {effect.over}"
            if repeats.n:
                difference += f", same call {signed(repeats, 2)} where both failed"
            yield f"{difference} (n = {repeats.n or solved.n})"
