from __future__ import annotations

import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import pytest_failgain
from pytest_failgain.conditions import CONDITIONS
from pytest_failgain.environments import build_environment
from pytest_failgain.environments.program_repair import ProgramRepairEnvironment, observations
from pytest_failgain.environments.program_repair.cases import LIMITS, trials_of
from pytest_failgain.environments.program_repair.formats import read_program
from pytest_failgain.environments.program_repair.mutations import OPERATORS
from pytest_failgain.environments.program_repair.problems import Problem, own_problems
from pytest_failgain.environments.protocol import Environment
from pytest_failgain.environments.sandbox import Trial, Verdict
from pytest_failgain.environments.sandbox.trials import TrialRunner
from pytest_failgain.environments.settings import VERBOSITIES, EnvironmentSettings
from pytest_failgain.errors import UsageError
from pytest_failgain.harnesses import remedied
from pytest_failgain.measurement import inversion_removed, measure
from pytest_failgain.scoring.local import LocalScorer
from pytest_failgain.trajectory import Action, FailureCase, Step

pytestmark = pytest.mark.slow

COUNT = 16
SOURCES = Path(pytest_failgain.__file__).parents[1]


@pytest.fixture(scope="module")
def kept_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("verdicts")


@pytest.fixture(scope="module")
def cases(kept_in: Path) -> tuple[FailureCase, ...]:
    return ProgramRepairEnvironment(EnvironmentSettings(kept_in=kept_in)).cases(COUNT)


@cache
def verdict_of(task_id: str, program: str) -> Verdict:
    (problem,) = (problem for problem in own_problems() if problem.name == task_id)
    trial = Trial(program, problem.checks, LIMITS)
    return TrialRunner().run([trial], "Running")[0]


def digest(cases: tuple[FailureCase, ...]) -> str:
    return hashlib.sha256(repr(cases).encode()).hexdigest()


def test_it_is_an_environment() -> None:
    environment: Environment = ProgramRepairEnvironment()
    assert environment.name == "program_repair"


def test_few_cases_are_of_distinct_problems(cases: tuple[FailureCase, ...]) -> None:
    assert len({case.case_id for case in cases}) == COUNT
    assert len({case.task_id for case in cases}) == COUNT


def test_operators_take_turns(cases: tuple[FailureCase, ...]) -> None:
    counts = Counter(case.operator for case in cases)
    assert set(counts) <= set(OPERATORS)
    assert len(counts) >= 12
    assert max(counts.values()) <= 3


def test_failures_are_of_several_kinds(cases: tuple[FailureCase, ...]) -> None:
    families = {case.failed.error_family for case in cases}
    assert {"test_failure", "runtime_error", "syntax_error"} <= families


def test_the_correct_program_passes_and_every_other_candidate_fails(
    cases: tuple[FailureCase, ...],
) -> None:
    for case in cases[:6]:
        passed = {
            name: verdict_of(case.task_id, action.text).passed
            for name, action in case.candidates().items()
        }
        assert passed == {
            "failed": False,
            "correct": True,
            "distractor0": False,
            "distractor1": False,
        }


def test_the_other_failure_is_that_of_the_first_distractor(cases: tuple[FailureCase, ...]) -> None:
    for case in cases:
        program = case.distractors[0]
        verdict = verdict_of(case.task_id, str(program))
        error = observations.told(verdict, "standard")
        assert case.other_failed == Step(program, error, failed=True, error_family=verdict.outcome)


def test_candidates_differ_in_one_place_and_not_in_trailing_white_space(
    cases: tuple[FailureCase, ...],
) -> None:
    for case in cases:
        texts = [action.text for action in case.candidates().values()]
        assert len(set(texts)) == 4
        assert all(text == text.rstrip() for text in texts)


def test_only_the_failed_program_need_not_be_python(cases: tuple[FailureCase, ...]) -> None:
    for case in cases:
        assert case.correct is not None
        ast.parse(case.correct.text)


def test_the_goal_has_the_problem_and_its_tests(cases: tuple[FailureCase, ...]) -> None:
    problems = {problem.name: problem for problem in own_problems()}
    for case in cases:
        problem = problems[case.task_id]
        assert case.trajectory.goal.startswith(problem.prompt)
        assert case.trajectory.goal.endswith("\n".join(problem.tests))
        assert not case.trajectory.steps


def test_nothing_of_the_failure_is_in_the_context_before_it(
    cases: tuple[FailureCase, ...],
) -> None:
    for case in cases:
        before = f"{case.trajectory.system}\n{case.trajectory.goal}"
        assert case.failed.action.text not in before
        assert (case.failed.observation or "") not in before


def test_every_condition_can_be_made(cases: tuple[FailureCase, ...]) -> None:
    for case in cases:
        for condition in CONDITIONS.values():
            condition.trajectory(case)


def test_observations_grow_with_the_verbosity(
    kept_in: Path, cases: tuple[FailureCase, ...]
) -> None:
    told = {
        verbosity: ProgramRepairEnvironment(
            EnvironmentSettings(kept_in=kept_in, verbosity=verbosity)
        ).cases(COUNT)
        for verbosity in VERBOSITIES
    }
    for terse, standard, verbose in zip(*(told[name] for name in VERBOSITIES), strict=True):
        assert terse.case_id == standard.case_id == verbose.case_id
        texts = [case.failed.observation or "" for case in (terse, standard, verbose)]
        assert len(texts[0]) < len(texts[1]) < len(texts[2])
        assert standard.observations.terse == texts[0]
        assert standard.observations.verbose == texts[2]
        assert texts[1] in (standard.observations.echoed or "")
        assert standard.failed.action.text in (standard.observations.echoed or "")
    assert told["standard"] == cases


def test_observations_name_no_place_of_this_machine(cases: tuple[FailureCase, ...]) -> None:
    for case in cases:
        for text in (case.failed.observation, case.observations.verbose):
            assert text is not None
            for place in (sys.prefix, sys.base_prefix, tempfile.gettempdir(), "failgain"):
                assert place not in text


def test_counterfactual_observations_do_not_tell_of_a_failure(
    cases: tuple[FailureCase, ...],
) -> None:
    for case in cases:
        n = case.trajectory.goal.count("\nassert ")
        assert case.observations.success == f"{n} of {n} tests passed."
        assert case.observations.neutral == "The program was received."


@pytest.mark.parametrize("count", [1, 7])
def test_a_smaller_count_gives_the_first_cases_of_a_larger_one(
    kept_in: Path, cases: tuple[FailureCase, ...], count: int
) -> None:
    environment = ProgramRepairEnvironment(EnvironmentSettings(kept_in=kept_in))
    assert environment.cases(count) == cases[:count]
    assert environment.cases(COUNT) == cases
    assert environment.cases(count) == cases[:count]


def test_another_seed_gives_other_cases(kept_in: Path, cases: tuple[FailureCase, ...]) -> None:
    other = ProgramRepairEnvironment(EnvironmentSettings(seed=1, kept_in=kept_in)).cases(4)
    assert [case.case_id for case in other] != [case.case_id for case in cases[:4]]


@pytest.mark.parametrize("count", [0, -1])
def test_a_count_below_one_is_refused(count: int) -> None:
    with pytest.raises(UsageError, match=f"cannot give {count} cases: ask for 1 or more"):
        ProgramRepairEnvironment().cases(count)


def test_bad_settings_are_refused_with_the_choices() -> None:
    with pytest.raises(UsageError, match="action_format is 'native', it must be one of python, f"):
        ProgramRepairEnvironment(EnvironmentSettings(action_format="native"))
    with pytest.raises(UsageError, match="verbosity is 'loud'"):
        ProgramRepairEnvironment(EnvironmentSettings(verbosity="loud"))


def test_fenced_programs_are_the_same_programs_between_fences(
    kept_in: Path, cases: tuple[FailureCase, ...]
) -> None:
    settings = EnvironmentSettings(kept_in=kept_in, action_format="fenced")
    for fenced, bare in zip(ProgramRepairEnvironment(settings).cases(COUNT), cases, strict=True):
        assert fenced.failed.action.text == f"```python\n{bare.failed.action.text}\n```"
        assert read_program(fenced.failed.action) == bare.failed.action.text
        assert fenced.trajectory.system != bare.trajectory.system


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("x = 1", "x = 1"),
        ("```python\nx = 1\n```", "x = 1"),
        ("Sure, here it is:\n```py\nx = 1\ny = 2\n```\nIt works.", "x = 1\ny = 2"),
        ("```python\nx = 1", "x = 1"),
        ('def f():\n    """Call it so:\n\n```\nf()\n```\n    """', None),
        ('Well:\n```\ndef f():\n    """As ```f()```."""\n```', 'def f():\n    """As ```f()```."""'),
        ("# See `f`.\nx = 1", None),
    ],
)
def test_the_program_is_found_in_what_a_model_writes(text: str, program: str | None) -> None:
    assert read_program(Action(text)) == (text if program is None else program)


def test_the_second_time_nothing_is_executed(
    kept_in: Path, cases: tuple[FailureCase, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "pytest_failgain.environments.sandbox.trials.run_program",
        lambda trial: pytest.fail("a program was executed"),
    )
    assert ProgramRepairEnvironment(EnvironmentSettings(kept_in=kept_in)).cases(COUNT) == cases


PRINT_DIGEST = """
import hashlib
from pytest_failgain.environments.program_repair import ProgramRepairEnvironment, observations
cases = ProgramRepairEnvironment().cases(3)
print(hashlib.sha256(repr(cases).encode()).hexdigest())
"""


def digest_in(python: str, **environ: str) -> str:
    """The digest of the first three cases, executed anew by another interpreter."""
    environ = {**os.environ, "PYTHONPATH": str(SOURCES), **environ}
    return subprocess.check_output([python, "-c", PRINT_DIGEST], env=environ, text=True).strip()


def other_pythons() -> Iterator[str]:
    """Interpreters of other supported versions, on the path or where pyenv keeps them."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for minor in range(10, 15):
        if minor != sys.version_info.minor:
            found = sorted(map(str, pyenv.glob(f"3.{minor}.*/bin/python3")))
            yield from found[-1:] or filter(None, [shutil.which(f"python3.{minor}")])


def test_cases_do_not_depend_on_the_hash_seed(cases: tuple[FailureCase, ...]) -> None:
    for seed in ("1", "2"):
        assert digest_in(sys.executable, PYTHONHASHSEED=seed) == digest(cases[:3])


def test_cases_are_the_same_on_every_python(cases: tuple[FailureCase, ...]) -> None:
    pythons = list(other_pythons())
    if not pythons:
        pytest.skip("no other supported Python is installed here")
    assert {python: digest_in(python) for python in pythons} == dict.fromkeys(
        pythons, digest(cases[:3])
    )


def test_cases_can_be_asked_for_again_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(trial: Trial) -> Verdict:
        raise UsageError("no sandbox")

    environment = ProgramRepairEnvironment()
    monkeypatch.setattr("pytest_failgain.environments.sandbox.trials.run_program", refuse)
    for _ in range(2):
        with pytest.raises(UsageError, match="no sandbox"):
            environment.cases(1)
    monkeypatch.undo()
    assert len(environment.cases(1)) == 1


@pytest.mark.parametrize(
    ("program", "unsteady"),
    [
        ("x = {1, 2}", True),
        ("x = {n for n in y}", True),
        ("x = set(y)", True),
        ("x = a.keys() & b.keys()", True),
        ("x = c | d.items()", True),
        ("import random", True),
        ("from random import choice", True),
        ("from datetime import date", True),
        ("import math\nx = {1: 2}\ny = a & b", False),
    ],
)
def test_what_may_come_out_otherwise_is_tried_with_two_seeds(program: str, unsteady: bool) -> None:
    trials = trials_of(Problem("p", "", program, ("assert True",)), program)
    assert len(trials) == (2 if unsteady else 1)


def test_weak_containment_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    weak = Verdict("passed", 3, 3, walls=frozenset({"RLIMIT_AS"}))
    monkeypatch.setattr(
        "pytest_failgain.environments.sandbox.trials.run_program", lambda trial: weak
    )
    notes: dict[str, str] = {}
    environment = ProgramRepairEnvironment(EnvironmentSettings(on_note=notes.__setitem__))
    with pytest.raises(UsageError, match="cannot give 1 cases"):
        environment.cases(1)
    assert notes["program_repair sandbox"].startswith(
        "program_repair: programs ran in a weak sandbox, where they can reach the network; "
    )


def test_a_fixed_number_of_cases_leaves_the_rest_as_it_is() -> None:
    environment: Any = build_environment("program_repair", count=2)
    assert environment.tasks == ProgramRepairEnvironment().tasks


def test_model_written_programs_are_not_run_unless_allowed() -> None:
    environment = ProgramRepairEnvironment()
    with pytest.raises(UsageError, match=r"nobody knows .*--failgain-allow-code-execution"):
        environment.execute(environment.tasks[0], Action("print(1)"))


def test_an_allowed_program_is_run_and_answered() -> None:
    environment = ProgramRepairEnvironment(EnvironmentSettings(allow_code_execution=True))
    task = environment.tasks[0]
    right = environment.execute(task, Action(f"Here:\n```python\n{task.solution}\n```"))
    assert not right.failed
    assert right.observation == f"{len(task.tests)} of {len(task.tests)} tests passed."
    wrong = environment.execute(task, Action("I would rather not."))
    assert wrong.failed
    assert wrong.error_family == "syntax_error"
    assert "SyntaxError" in (wrong.observation or "")


def mbpp_problem(number: int, code: str, tests: list[str]) -> dict[str, object]:
    return {"task_id": number, "prompt": "Do it.", "code": code, "test_list": tests}


def test_problems_of_no_use_are_left_out_and_named(tmp_path: Path) -> None:
    good = (
        "def total(items):\n    n = 0\n    for item in items:\n        n = n + item\n    return n"
    )
    tests = ["assert total([1, 2]) == 3", "assert total([]) == 0", "assert total([5]) == 5"]
    path = tmp_path / "mine.json"
    path.write_text(
        json.dumps(
            [
                mbpp_problem(1, good, tests),
                mbpp_problem(2, good, ["assert total([1]) == 2"]),
                mbpp_problem(3, "print 'old'", tests),
                mbpp_problem(4, good, ["total([1])"]),
                mbpp_problem(5, "x = 1", ["assert x == 1"]),
            ]
        )
    )
    notes: dict[str, str] = {}
    settings = EnvironmentSettings(mbpp=path, on_note=notes.__setitem__)
    environment = ProgramRepairEnvironment(settings)
    found = environment.cases()
    assert {case.task_id for case in found} == {"mbpp-0001"}
    tried = "program_repair: of 5 problems tried, 1 left out"
    assert [note for note in notes.values() if "sandbox" not in note] == [
        f"{tried} whose solution does not pass its tests: mbpp-0002 (AssertionError)",
        f"{tried} whose solution is not Python: mbpp-0003",
        f"{tried} with too few ways to go wrong: mbpp-0005",
        f"{tried} without an assert: mbpp-0004",
    ]
    refusal = f"cannot give 99 cases: these 5 problems have {len(found)}"
    with pytest.raises(UsageError, match=refusal):
        environment.cases(99)


def test_the_real_file_gives_many_cases_of_every_operator(mbpp: Path, tmp_path: Path) -> None:
    settings = EnvironmentSettings(mbpp=mbpp, kept_in=tmp_path)
    found = ProgramRepairEnvironment(settings).cases()
    assert len(found) >= 260
    assert len({case.task_id for case in found}) >= 130
    assert {case.operator for case in found} == set(OPERATORS)
    again = ProgramRepairEnvironment(settings)
    assert again.cases() == found
    assert again._runner.executed == 0


@pytest.mark.model
def test_a_verbatim_record_backfires_and_a_description_does_not(
    smollm2: LocalScorer, kept_in: Path
) -> None:
    cases = ProgramRepairEnvironment(EnvironmentSettings(kept_in=kept_in)).cases(30)
    verbatim = measure(smollm2, remedied("verbatim"), cases)
    gain = verbatim.estimates["corrective_gain_per_token"]
    assert gain.n == 30
    assert gain.value < -0.5
    assert gain.high < 0
    described = measure(smollm2, remedied("described"), cases)
    assert inversion_removed(described, verbatim).value >= 0.8
