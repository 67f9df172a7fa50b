"""Program repair as an environment: its cases, and what a rollout needs to act in it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cached_property, partial
from itertools import islice

from pytest_failgain.environments.program_repair import observations
from pytest_failgain.environments.program_repair.cases import (
    Executed,
    execute_all,
    in_order,
    make_case,
)
from pytest_failgain.environments.program_repair.formats import PROGRAM_FORMATS, read_program
from pytest_failgain.environments.program_repair.problems import (
    Problem,
    load_problems,
    own_problems,
)
from pytest_failgain.environments.sandbox import Trial
from pytest_failgain.environments.sandbox.containment import weaknesses
from pytest_failgain.environments.sandbox.trials import TrialRunner
from pytest_failgain.environments.settings import (
    VERBOSITIES,
    EnvironmentSettings,
    check_choice,
)
from pytest_failgain.errors import UsageError
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
        if not self._settings.allow_code_execution:
            raise UsageError(
                "a program that a model wrote is not run unless you say so, since nobody knows "
                "what it does and no sandbox is perfect; allow it with "
                "--failgain-allow-code-execution"
            )
        program = read_program(action).rstrip()
        trial = Trial(program, task.checks)
        (verdict,) = self._runner.run([trial], f"Running a program for {task.name}")
        if verdict.passed:
            return Step(action, observations.success(verdict))
        told = observations.told(verdict, self._settings.verbosity)
        return Step(action, told, failed=True, error_family=verdict.outcome)

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
