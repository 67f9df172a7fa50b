"""Failure cases: a task solved up to some step, and there one slip."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pytest_failgain.call_text import Call
from pytest_failgain.environments.tool_calls.calls import ActionFormat
from pytest_failgain.environments.tool_calls.failures import Failure
from pytest_failgain.environments.tool_calls.operators import OPERATORS, Slip
from pytest_failgain.environments.tool_calls.runtime import Outcome, execute
from pytest_failgain.environments.tool_calls.tasks import Task
from pytest_failgain.environments.tool_calls.world import World
from pytest_failgain.trajectory import FailureCase, Observations, Step, Trajectory

# What the rarest operator has to give, with any seed: see TASKS_PER_TEMPLATE.
CASES_PER_OPERATOR = 64


@dataclass(frozen=True, slots=True)
class DecisionPoint:
    """The place in a task where `correct` is the next call: what came before, and the world now."""

    task: Task
    past: tuple[tuple[Call, Outcome], ...]
    world: World
    correct: Call

    @property
    def name(self) -> str:
        return f"{self.task.task_id}-s{len(self.past)}"


@dataclass(frozen=True, slots=True)
class Variant:
    """Number `number` of the ways in which `operator` makes the call at `point` fail."""

    point: DecisionPoint
    operator: str
    number: int
    slip: Slip

    @property
    def name(self) -> str:
        return f"{self.point.name}-{self.operator}-{self.number}"


def decision_points(task: Task) -> Iterator[DecisionPoint]:
    """One for each call of the task's solution."""
    world = task.world
    past: tuple[tuple[Call, Outcome], ...] = ()
    for call in task.solution:
        yield DecisionPoint(task, past, world, call)
        outcome = execute(world, call)
        world, past = outcome.world, (*past, (call, outcome))


def variants(point: DecisionPoint) -> tuple[Variant, ...]:
    """Every failing variant of the call at `point`, by operator."""
    rng = random.Random(f"tool_calls slips {point.name}")
    return tuple(
        Variant(point, operator, number, slip)
        for operator, edit in OPERATORS.items()
        for number, slip in enumerate(edit(point.correct, point.world, rng))
    )


def in_order(options: Iterable[Variant], seed: int) -> Iterator[Variant]:
    """The variants that become cases, so that every first part of them is well mixed.

    The operators take turns. Each takes a variant of the task that was used least so far, and
    among those one of the tool on which it was used least.
    """
    shuffled = list(options)
    random.Random(f"tool_calls order {seed}").shuffle(shuffled)
    waiting = {name: [one for one in shuffled if one.operator == name] for name in OPERATORS}
    of_task: Counter[str] = Counter()
    of_tool: Counter[tuple[str, str]] = Counter()
    for _ in range(CASES_PER_OPERATOR):
        for operator, queue in waiting.items():
            uses = [
                (of_task[one.point.task.task_id], of_tool[operator, one.point.correct.tool])
                for one in queue
            ]
            chosen = queue.pop(uses.index(min(uses)))
            of_task[chosen.point.task.task_id] += 1
            of_tool[operator, chosen.point.correct.tool] += 1
            yield chosen


def make_case(
    variant: Variant, form: ActionFormat, opening: Trajectory, verbosity: str
) -> FailureCase:
    """The case in which `variant` fails, after `opening` and the steps that led to it."""
    point, slip = variant.point, variant.slip
    failed, failure = _failed_step(point, slip.call, form, verbosity)
    distractors = _distractors(variant)
    return FailureCase(
        case_id=variant.name,
        task_id=point.task.task_id,
        trajectory=opening.then(*(before.step(form.write(call)) for call, before in point.past)),
        failed=failed,
        correct=form.write(point.correct),
        distractors=tuple(form.write(call) for call in distractors),
        observations=Observations(
            success=execute(slip.as_if, slip.meant).observation(),
            terse=failure.terse,
            verbose=failure.verbose,
            echoed=failure.echoed(str(failed.action)),
        ),
        environment="tool_calls",
        operator=variant.operator,
        template=point.task.template,
        other_failed=_failed_step(point, distractors[0], form, verbosity)[0],
    )


def _failed_step(
    point: DecisionPoint, call: Call, form: ActionFormat, verbosity: str
) -> tuple[Step, Failure]:
    outcome = execute(point.world, call)
    failure = outcome.failure
    assert failure is not None, f"{call} was meant to fail at {point.name}"
    return outcome.step(form.write(call), verbosity), failure


def _distractors(variant: Variant) -> tuple[Call, Call]:
    # From two other operators, so that the candidates are wrong in different ways. Every call of
    # a solution can go wrong in at least three.
    options: dict[str, list[Call]] = {}
    for other in variants(variant.point):
        options.setdefault(other.operator, []).append(other.slip.call)
    del options[variant.operator]
    rng = random.Random(f"tool_calls distractors {variant.name}")
    first, second = rng.sample(list(options), 2)
    return rng.choice(options[first]), rng.choice(options[second])
