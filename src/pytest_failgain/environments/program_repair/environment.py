"""Program repair as an environment: its cases, and what a rollout needs to act in it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from itertools import islice

from pytest_failgain.environments.demonstrations import Demonstration, with_demonstrations
from pytest_failgain.environments.program_repair import observations
from pytest_failgain.environments.program_repair.cases import (
    Executed,
    execute_all,
    in_order,
    make_case,
    misfit,
)
from pytest_failgain.environments.program_repair.episode import ProgramEpisode
from pytest_failgain.environments.program_repair.formats import PROGRAM_FORMATS, read_program
from pytest_failgain.environments.program_repair.problems import (
    Problem,
    load_problems,
    own_problems,
)
from pytest_failgain.environments.program_repair.replies import PROGRAMS
from pytest_failgain.environments.sandbox import Trial
from pytest_failgain.environments.sandbox.containment import weaknesses
from pytest_failgain.environments.sandbox.trials import TrialRunner
from pytest_failgain.environments.settings import (
    VERBOSITIES,
    EnvironmentSettings,
    check_choice,
)
from pytest_failgain.errors import UsageError
from pytest_failgain.replies import ReplyStyle
from pytest_failgain.trajectory import Action, FailureCase, Step, Trajectory

# So many problems are executed at once, and so many are named in a note.
_AT_ONCE = 4
_NAMED = 3

_RULES = """\
You write small Python functions. The user describes a function and shows the asserts that it has \
to pass. Give the function the name that the asserts use, and add neither tests nor \
explanations."""


class ProgramRepairEnvironment:
    """Programming problems, and programs that nearly solve them, executed in a sandbox.

    The action formats are "python", the bare program, and "fenced". Which cases there are depends
    on the problems and the seed alone.

    Raises:
        UsageError: when the settings name an action format or a verbosity that there is not.
    """

    name = "program_repair"
    # SmolLM2 takes at most 155 tokens for a solution of the project's own.
    reply_tokens = 256

    def __init__(self, settings: EnvironmentSettings | None = None) -> None:
        self._settings = settings or EnvironmentSettings()
        form = self._settings.action_format or "python"
        check_choice("action_format", form, PROGRAM_FORMATS)
        check_choice("verbosity", self._settings.verbosity, VERBOSITIES)
        self._format = PROGRAM_FORMATS[form]
        self._begin()

    def _begin(self) -> None:
        self._executed: list[Executed] = []
        self._made: list[FailureCase] = []
        self._rest = self._in_order()
        self._wanted = 0

    @property
    def variant(self) -> str:
        """The format of programs, the detail of errors and the seed."""
        settings = self._settings
        return f"{self._format.name} programs, {settings.verbosity} errors, seed {settings.seed}"

    @cached_property
    def tasks(self) -> tuple[Problem, ...]:
        """The problems, in the seed's order.

        Raises:
            UsageError, CaseError: when the file of problems can't be used.
        """
        path = self._settings.mbpp
        problems = list(own_problems() if path is None else load_problems(path))
        random.Random(f"program_repair problems {self._settings.seed}").shuffle(problems)
        return tuple(problems)

    @cached_property
    def _runner(self) -> TrialRunner:
        settings = self._settings
        warn = partial(settings.on_note, "verdicts")
        return TrialRunner(settings.kept_in, settings.progress, warn)

    def opening(self, task: Problem) -> Trajectory:
        """The trajectory of `task` before any step."""
        checks = "\n".join(task.checks)
        return Trajectory(
            system=f"{_RULES} {self._format.instruction}",
            goal=f"{task.prompt}\n\nIt has to pass:\n{checks}",
        )

    def execute(self, task: Problem, action: Action) -> Step:
        """Run the program that a model wrote as `action`, and tell what came of it.

        Raises:
            UsageError: unless the settings allow it.
        """
        self._check_allowed()
        program = read_program(action).rstrip()
        trial = Trial(program, task.checks)
        (verdict,) = self._runner.run([trial], f"Running a program for {task.name}")
        if verdict.passed:
            return Step(action, observations.success(verdict.tests))
        told = observations.told(verdict, self._settings.verbosity)
        return Step(action, told, failed=True, error_family=verdict.outcome)

    def _check_allowed(self) -> None:
        if not self._settings.allow_code_execution:
            raise UsageError(
                "a program that a model wrote is not run unless you say so, since nobody knows "
                "what it does and no sandbox is perfect; allow it with "
                "--failgain-allow-code-execution"
            )

    @property
    def replies(self) -> ReplyStyle:
        """How a model's replies are read as programs."""
        return PROGRAMS

    def episodes(
        self, count: int, *, primed: bool = False, demonstrations: int = 8
    ) -> tuple[ProgramEpisode, ...]:
        """The first `count` problems that can be used, in the seed's order.

        Demonstrations are the last ones, from the end, so none of them is a task as well. See
        `protocol.RolloutEnvironment` for `primed`.

        Raises:
            UsageError: unless the settings allow programs of a model; when there are fewer problems
                or cases beside the demonstrations; and as for `cases`.
            CaseError: as for `cases`.
        """
        self._check_allowed()
        usable = [problem for problem in self.tasks if misfit(problem) is None]
        if not 0 <= demonstrations < len(usable):
            raise UsageError(
                f"program_repair cannot give {demonstrations} demonstrations: ask for 0 to "
                f"{len(usable) - 1}, since one problem at least must be left to solve"
            )
        tasks = usable[: len(usable) - demonstrations]
        told = [self._demonstration(task) for task in reversed(usable[len(tasks) :])]
        starts = self._primed(count, tasks) if primed else self._free(count, tasks)
        return tuple(
            ProgramEpisode(task, with_demonstrations(trajectory, told), self.execute)
            for task, trajectory in starts
        )

    def _demonstration(self, task: Problem) -> Demonstration:
        solution = self._format.write(task.solution)
        passed = Step(solution, observations.success(task.asserts))
        return Demonstration(self.opening(task).goal, (passed,))

    def _free(self, count: int, tasks: Sequence[Problem]) -> Iterator[tuple[Problem, Trajectory]]:
        if not 1 <= count <= len(tasks):
            raise UsageError(self._too_few(count, "tasks", len(tasks)))
        for task in tasks[:count]:
            yield task, self.opening(task)

    def _primed(self, count: int, tasks: Sequence[Problem]) -> Iterator[tuple[Problem, Trajectory]]:
        by_name = {task.name: task for task in tasks}
        for number, case in enumerate(self.cases(count)):
            if case.task_id not in by_name:
                raise UsageError(self._too_few(count, "cases", number))
            yield by_name[case.task_id], case.trajectory.then(case.failed)

    def _too_few(self, count: int, what: str, available: int) -> str:
        return (
            f"program_repair cannot give {count} {what} beside the demonstrations: there are "
            f"{available}. Ask for 1 to {available}, for fewer demonstrations, or give more "
            "problems with --failgain-mbpp"
        )

    def cases(self, count: int | None = None) -> tuple[FailureCase, ...]:
        """`count` cases, all of them for None; the first ones are the same for any count.

        The operators take turns as far as the problems allow, and a problem is used again only when
        all have been used.

        Raises:
            UsageError: when `count` is less than one or more than there are, when the file of
                problems can't be read, or when the platform has no sandbox.
            CaseError: when the file is no file of problems.
        """
        if count is not None and count < 1:
            raise UsageError(f"program_repair cannot give {count} cases: ask for 1 or more")
        self._wanted = len(self.tasks) if count is None else count
        missing = None if count is None else max(0, count - len(self._made))
        try:
            self._made.extend(islice(self._rest, missing))
        except BaseException:
            # Broken off, it would end there for good. What was executed is known by the next time.
            self._begin()
            raise
        self._tell()
        if count is not None and len(self._made) < count:
            raise UsageError(
                f"program_repair cannot give {count} cases: these {len(self.tasks)} problems have "
                f"{len(self._made)}. Ask for fewer, or give more problems with --failgain-mbpp"
            )
        return tuple(self._made[:count])

    def _in_order(self) -> Iterator[FailureCase]:
        settings = self._settings
        for executed, failing in in_order(self._usable(), settings.seed):
            opening = self.opening(executed.problem)
            yield make_case(executed, failing, self._format, opening, settings.verbosity)

    def _usable(self) -> Iterator[Executed]:
        """The problems that give cases, executed as they are needed, some ahead."""
        while len(self._executed) < len(self.tasks):
            start = len(self._executed)
            ahead = max(_AT_ONCE, self._wanted - len(self._made))
            self._executed += execute_all(self.tasks[start : start + ahead], self._runner)
            yield from (one for one in self._executed[start:] if one.reason is None)

    def _tell(self) -> None:
        """Note what was left out, and what did not hold the programs."""
        left_out: dict[str, list[Executed]] = {}
        for executed in self._executed:
            if executed.reason is not None:
                left_out.setdefault(executed.reason, []).append(executed)
        for reason, which in sorted(left_out.items()):
            shown = ", ".join(map(_named, which[:_NAMED])) + ", ..." * (len(which) > _NAMED)
            self._settings.on_note(
                f"{self.name} {reason}",
                f"{self.name}: of {len(self._executed)} problems tried, {len(which)} left out "
                f"{reason}: {shown}",
            )
        walls = next((one.solved.walls for one in self._executed if one.solved), None)
        weak = weaknesses(walls) if walls else ()
        if weak:
            self._settings.on_note(
                f"{self.name} sandbox",
                f"{self.name}: programs ran in a weak sandbox, where they can {'; '.join(weak)}",
            )


def _named(executed: Executed) -> str:
    error = executed.solved.error if executed.solved else ""
    return f"{executed.problem.name} ({error})" if error else executed.problem.name
