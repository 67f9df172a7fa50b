"""Failure cases: a problem, and a program that nearly solves it."""

from __future__ import annotations

import ast
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from pytest_failgain.environments.program_repair import observations
from pytest_failgain.environments.program_repair.formats import ProgramFormat
from pytest_failgain.environments.program_repair.mutations import Mutant, mutants
from pytest_failgain.environments.program_repair.problems import Problem
from pytest_failgain.environments.program_repair.source import parsed
from pytest_failgain.environments.sandbox import Limits, Trial, Verdict
from pytest_failgain.environments.sandbox.trials import TrialRunner
from pytest_failgain.trajectory import FailureCase, Observations, Step, Trajectory

LIMITS = Limits(cpu_seconds=1, wall_seconds=20.0, memory_bytes=256 * 1024 * 1024)

# Of its candidates one fails, one is right, and two more fail: as many for every case, since the
# repeat probability is a share among them.
DISTRACTORS = 2

# The order of a set of texts differs with the seed, and between Python 3.10 and 3.11.
_HASH_SEEDS = (0, 1)
_UNSTEADY_NAMES = {"set", "frozenset", "hash", "id"}
_UNSTEADY_MODULES = {"datetime", "random", "secrets", "time", "uuid"}

# Above these a program may come out otherwise on another machine.
_SLOW_SECONDS = 0.5 * LIMITS.cpu_seconds
_MUCH_MEMORY = LIMITS.memory_bytes // 2


@dataclass(frozen=True, slots=True)
class Failing:
    """A mutant, and how its execution failed."""

    mutant: Mutant
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Executed:
    """A problem whose programs were executed: `reason` says why it is of no use, None if it is."""

    problem: Problem
    solved: Verdict | None
    failing: tuple[Failing, ...]
    reason: str | None = None


def execute_all(problems: Sequence[Problem], runner: TrialRunner) -> list[Executed]:
    """Execute the solution and every mutant of each problem."""
    plans = [_plan(problem) for problem in problems]
    trials = [trial for plan in plans for _, trials in plan.programs for trial in trials]
    verdicts = iter(runner.run(trials, "Running programs"))
    return [_judged(plan, verdicts) for plan in plans]


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be executed for a problem: the solution, under None, and its mutants."""

    problem: Problem
    programs: tuple[tuple[Mutant | None, tuple[Trial, ...]], ...] = ()
    reason: str | None = None


def misfit(problem: Problem) -> str | None:
    """Why a problem is of no use, as far as that shows before anything is executed."""
    try:
        parsed(problem.solution)
    except SyntaxError:
        return "whose solution is not Python"
    try:
        return None if problem.asserts else "without an assert"
    except SyntaxError:
        return "whose tests are not Python"


def _plan(problem: Problem) -> _Plan:
    reason = misfit(problem)
    if reason is not None:
        return _Plan(problem, reason=reason)
    solution = (None, trials_of(problem, problem.solution))
    return _Plan(
        problem,
        (
            solution,
            *((mutant, trials_of(problem, mutant.program)) for mutant in mutants(problem.solution)),
        ),
    )


def trials_of(problem: Problem, program: str) -> tuple[Trial, ...]:
    """The trials that tell how `program` fares, whatever order its sets have."""
    seeds = _HASH_SEEDS if _is_unsteady(program, problem) else _HASH_SEEDS[:1]
    return tuple(Trial(program, problem.checks, LIMITS, seed) for seed in seeds)


def _is_unsteady(program: str, problem: Problem) -> bool:
    """Whether the outcome may depend on the order of a set, on chance or on the clock."""
    try:
        nodes = list(ast.walk(parsed("\n".join((program, *problem.checks)))))
    except SyntaxError:
        return False
    for node in nodes:
        match node:
            case ast.Set() | ast.SetComp():
                return True
            case ast.Name() if node.id in _UNSTEADY_NAMES:
                return True
            # The keys of two dicts together are a set.
            case ast.BinOp(op=ast.BitAnd() | ast.BitOr() | ast.BitXor() | ast.Sub()):
                if {"keys", "items"} & {_called(node.left), _called(node.right)}:
                    return True
            case ast.Import() if _UNSTEADY_MODULES & {alias.name for alias in node.names}:
                return True
            case ast.ImportFrom() if node.module in _UNSTEADY_MODULES:
                return True
    return False


def _called(expression: ast.expr) -> str | None:
    """The name of the method that an expression calls."""
    match expression:
        case ast.Call(func=ast.Attribute(attr=name)):
            return name
    return None


def _judged(plan: _Plan, verdicts: Iterator[Verdict]) -> Executed:
    failing = []
    solved = None
    reason = plan.reason
    for mutant, trials in plan.programs:
        found = list(islice(verdicts, len(trials)))
        if mutant is None:
            solved = found[0]
            if not all(verdict.passed for verdict in found):
                reason = "whose solution does not pass its tests"
        elif not found[0].passed and _is_steady(found):
            failing.append(Failing(mutant, found[0]))
    if reason is None and len(failing) <= DISTRACTORS:
        reason = "with too few ways to go wrong"
    return Executed(plan.problem, solved, tuple(failing), reason)


def _is_steady(verdicts: Sequence[Verdict]) -> bool:
    """Whether the program fails in the same way on every machine, as far as can be known."""
    one = verdicts[0]
    if len({(each.outcome, each.error, each.frames) for each in verdicts}) > 1:
        return False
    cpu, memory = one.cpu_seconds, one.memory_bytes
    if cpu is None or memory is None or memory > _MUCH_MEMORY:
        return False
    # How a process ended that was killed, or ended itself, is no traceback of Python's.
    ended_well = bool(one.frames) or one.outcome == "timeout"
    return ended_well and (one.outcome == "timeout" or cpu < _SLOW_SECONDS)


def in_order(problems: Iterable[Executed], seed: int) -> Iterator[tuple[Executed, Failing]]:
    """The failures that become cases, so that every first part of them is well mixed.

    Each problem gives one before any gives a second: of the operator that was used least so far.
    """
    used: Counter[str] = Counter()
    waiting: list[tuple[Executed, list[Failing]]] = []

    def choose(executed: Executed, options: list[Failing]) -> Failing:
        chosen = min(options, key=lambda failing: used[failing.mutant.operator])
        options.remove(chosen)
        used[chosen.mutant.operator] += 1
        return chosen

    for executed in problems:
        options = list(executed.failing)
        random.Random(f"program_repair mutants {seed} {executed.problem.name}").shuffle(options)
        yield executed, choose(executed, options)
        waiting.append((executed, options))
    while waiting:
        waiting = [(executed, options) for executed, options in waiting if options]
        for executed, options in waiting:
            yield executed, choose(executed, options)


def make_case(
    executed: Executed, failing: Failing, form: ProgramFormat, opening: Trajectory, verbosity: str
) -> FailureCase:
    """The case in which `failing` answers the problem, after `opening`."""
    problem, mutant, verdict = executed.problem, failing.mutant, failing.verdict
    assert executed.solved is not None, f"{problem.name} was not executed"
    distractors = _distractors(executed, failing)
    failed = _failed_step(failing, form, verbosity)
    return FailureCase(
        case_id=f"{problem.name}-{mutant.operator}-{mutant.number}",
        task_id=problem.name,
        trajectory=opening,
        failed=failed,
        correct=form.write(problem.solution),
        distractors=tuple(form.write(other.mutant.program) for other in distractors),
        observations=Observations(
            neutral=observations.RECEIVED,
            success=observations.success(executed.solved.tests),
            terse=observations.told(verdict, "terse"),
            verbose=observations.told(verdict, "verbose"),
            echoed=observations.echoed(verdict, str(failed.action)),
        ),
        environment="program_repair",
        operator=mutant.operator,
        template=problem.name.partition("-")[0],
        other_failed=_failed_step(distractors[0], form, verbosity),
    )


def _failed_step(failing: Failing, form: ProgramFormat, verbosity: str) -> Step:
    verdict = failing.verdict
    return Step(
        form.write(failing.mutant.program),
        observations.told(verdict, verbosity),
        failed=True,
        error_family=verdict.outcome,
    )


def _distractors(executed: Executed, failing: Failing) -> list[Failing]:
    # Wrong in other ways where there are such.
    others = [other for other in executed.failing if other is not failing]
    random.Random(f"program_repair distractors {failing.mutant.program}").shuffle(others)
    others.sort(key=lambda other: other.mutant.operator == failing.mutant.operator)
    return others[:DISTRACTORS]
