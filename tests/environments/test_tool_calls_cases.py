from __future__ import annotations

import ast
import hashlib
import os
import re
import subprocess
import sys
import time
from collections import Counter
from datetime import date

import pytest

from pytest_failgain.conditions import CONDITIONS
from pytest_failgain.environments.protocol import Environment
from pytest_failgain.environments.tool_calls import ToolCallsEnvironment
from pytest_failgain.environments.tool_calls.calls import PYTHON
from pytest_failgain.environments.tool_calls.runtime import attempt
from pytest_failgain.environments.tool_calls.tools import TOOLS
from pytest_failgain.environments.tool_calls.world import World
from pytest_failgain.errors import UsageError
from pytest_failgain.trajectory import Action, FailureCase, Step

OPERATORS = {
    "drop_arg",
    "tool_typo",
    "arg_typo",
    "type_swap",
    "date_format",
    "hallucinated_entity",
    "name_for_email",
    "readonly_target",
}
FAMILIES = {
    "unknown_tool",
    "unexpected_argument",
    "missing_argument",
    "type_error",
    "format_error",
    "permission_error",
    "contact_not_found",
    "file_not_found",
    "team_not_found",
    "event_not_found",
    "attendee_not_found",
    "unsupported_conversion",
}
FORMATS = ("python", "json", "native")

ENVIRONMENT = ToolCallsEnvironment()
CASES = ENVIRONMENT.cases()
WORLDS = {task.task_id: task.world for task in ENVIRONMENT.tasks}


def steps_of(case: FailureCase) -> list[Step]:
    return [step for step in case.trajectory.steps if isinstance(step, Step)]


def world_of(case: FailureCase) -> World:
    """The world at the decision point, by running the prefix as it is written."""
    world = WORLDS[case.task_id]
    for step in steps_of(case):
        outcome = attempt(world, step.action, PYTHON)
        assert outcome.observation() == step.observation
        world = outcome.world
    return world


def prefix_texts(case: FailureCase) -> list[str]:
    texts = [case.trajectory.system, case.trajectory.goal]
    for step in steps_of(case):
        texts += [str(step.action), step.observation or ""]
    return texts


def by_operator(*names: str) -> list[FailureCase]:
    return [case for case in CASES if case.operator in names]


def test_it_is_an_environment() -> None:
    environment: Environment = ToolCallsEnvironment()
    assert environment.name == "tool_calls"


def test_there_are_cases_of_every_operator_and_family() -> None:
    assert len(CASES) >= 500
    assert {case.operator for case in CASES} == OPERATORS
    assert {case.failed.error_family for case in CASES} == FAMILIES
    assert len({case.case_id for case in CASES}) == len(CASES)


def test_failures_happen_at_the_first_step_and_later() -> None:
    depths = Counter(len(case.trajectory.steps) for case in CASES)
    assert set(depths) == {0, 1, 2}
    assert min(depths.values()) > 50


@pytest.mark.parametrize("seed", range(4))
def test_every_first_part_is_balanced_over_the_operators(seed: int) -> None:
    used = dict.fromkeys(OPERATORS, 0)
    for case in ToolCallsEnvironment(seed).cases():
        used[case.operator] += 1
        assert max(used.values()) - min(used.values()) <= 1


@pytest.mark.parametrize("count", [8, 30, 60, 100])
def test_few_cases_are_of_distinct_tasks(count: int) -> None:
    assert len({case.task_id for case in ENVIRONMENT.cases(count)}) == count


@pytest.mark.parametrize("count", [1, 30, 275, len(CASES)])
def test_a_smaller_count_gives_the_first_cases_of_a_larger_one(count: int) -> None:
    assert ENVIRONMENT.cases(count) == CASES[:count]


@pytest.mark.parametrize("count", [0, -1, len(CASES) + 1])
def test_an_impossible_count_is_refused_with_the_number_there_is(count: int) -> None:
    with pytest.raises(UsageError, match=f"{count} cases.*{len(CASES)}"):
        ENVIRONMENT.cases(count)


def test_bad_settings_are_refused_with_the_choices() -> None:
    with pytest.raises(UsageError, match=r"action_format is 'pyhton'.*json.*did you mean 'python'"):
        ToolCallsEnvironment(action_format="pyhton")
    with pytest.raises(UsageError, match=r"verbosity is 'chatty'.*terse, standard, verbose$"):
        ToolCallsEnvironment(verbosity="chatty")


@pytest.mark.parametrize("operator", sorted(OPERATORS))
def test_the_correct_call_works_and_every_other_candidate_fails(operator: str) -> None:
    for case in by_operator(operator):
        world = world_of(case)
        fails = {
            name: attempt(world, action, PYTHON).failure is not None
            for name, action in case.candidates().items()
        }
        assert fails == {"failed": True, "correct": False, "distractor0": True, "distractor1": True}


def test_the_failed_step_is_what_the_runtime_answers() -> None:
    for case in CASES:
        outcome = attempt(world_of(case), case.failed.action, PYTHON)
        failure = outcome.failure
        assert failure is not None
        assert case.failed.tool == outcome.tool
        assert case.failed.error_family == failure.family
        assert case.failed.observation == failure.standard
        assert case.failed.records == {"advised": failure.detail}
        assert case.observations.terse == failure.terse
        assert case.observations.verbose == failure.verbose
        assert case.observations.echoed == failure.echoed(str(case.failed.action))


def test_the_other_failure_is_what_the_runtime_answers_to_the_first_distractor() -> None:
    environment = ToolCallsEnvironment(verbosity="terse")
    for case in environment.cases():
        outcome = environment.execute(world_of(case), case.distractors[0])
        assert outcome.failure is not None
        assert case.other_failed == Step(
            case.distractors[0],
            outcome.failure.terse,
            failed=True,
            error_family=outcome.failure.family,
            tool=outcome.tool,
            records={"advised": outcome.failure.detail},
        )


@pytest.mark.parametrize("form", FORMATS)
def test_no_candidate_stands_in_the_prefix_or_in_an_error(form: str) -> None:
    for case in ToolCallsEnvironment(action_format=form).cases():
        texts = prefix_texts(case)
        texts += [case.failed.observation or "", case.observations.verbose or ""]
        for action in case.candidates().values():
            assert not [text for text in texts if str(action) in text]
            assert str(action) == str(action).strip()


@pytest.mark.parametrize("form", FORMATS)
def test_the_system_prompt_is_a_shared_prefix(form: str) -> None:
    cases = ToolCallsEnvironment(action_format=form).cases()
    assert len({case.trajectory.system for case in cases}) == 1


def test_the_format_changes_how_calls_are_written_and_not_which() -> None:
    environments = [ToolCallsEnvironment(action_format=form) for form in FORMATS]
    for python, json, native in zip(*(one.cases() for one in environments), strict=True):
        assert python.case_id == json.case_id == native.case_id
        assert python.failed.observation == json.failed.observation == native.failed.observation
        assert python.observations.success == native.observations.success
        for environment, case in zip(environments, (python, json, native), strict=True):
            world = world_of(python)
            outcome = environment.execute(world, case.failed.action)
            assert outcome.observation() == case.failed.observation


def test_tools_are_offered_once_in_the_prompt_or_by_schema() -> None:
    for form in ("python", "json"):
        trajectory = ToolCallsEnvironment(action_format=form).cases(1)[0].trajectory
        assert trajectory.tools == ()
        assert all(name in trajectory.system for name in TOOLS)
    trajectory = ToolCallsEnvironment(action_format="native").cases(1)[0].trajectory
    assert [tool.name for tool in trajectory.tools] == list(TOOLS)
    assert not [name for name in TOOLS if name in trajectory.system]
    for tool in trajectory.tools:
        assert tool.parameters["required"] == list(tool.parameters["properties"])


@pytest.mark.parametrize("verbosity", ["terse", "standard", "verbose"])
def test_verbosity_is_that_of_the_failed_step_alone(verbosity: str) -> None:
    for case, standard in zip(
        ToolCallsEnvironment(verbosity=verbosity).cases(), CASES, strict=True
    ):
        texts = {
            "terse": case.observations.terse,
            "standard": standard.failed.observation,
            "verbose": case.observations.verbose,
        }
        assert case.failed.observation == texts[verbosity]
        # A verbose error has told the advice.
        assert ("advised" in case.failed.records) == (verbosity != "verbose")
        assert case.observations == standard.observations
        assert case.trajectory == standard.trajectory


def test_every_condition_can_be_made() -> None:
    for condition in CONDITIONS.values():
        assert all(condition.trajectory(case) is not None for case in CASES)


def test_the_neutral_observation_is_the_same_for_all() -> None:
    assert len({case.observations.neutral for case in CASES}) == 1


def test_success_after_a_slip_of_form_is_the_answer_to_the_correct_call() -> None:
    for case in by_operator(*OPERATORS - {"hallucinated_entity", "readonly_target"}):
        assert case.correct is not None
        correct = attempt(world_of(case), case.correct, PYTHON)
        assert case.observations.success == correct.observation()


def test_success_on_a_protected_document_is_the_usual_answer_for_its_path() -> None:
    for case in by_operator("readonly_target"):
        verb = {"save_document": "Saved", "remove_document": "Removed"}[case.failed.tool or ""]
        assert case.observations.success == f"{verb} {arguments_of(case.failed.action)['path']}."


def arguments_of(action: Action) -> dict[str, object]:
    return PYTHON.read(action).arguments


def hallucinations(family: str) -> list[tuple[World, FailureCase, dict[str, object], str]]:
    return [
        (
            world_of(case),
            case,
            arguments_of(case.failed.action),
            case.observations.success or "",
        )
        for case in by_operator("hallucinated_entity")
        if case.failed.error_family == family
    ]


def test_an_imagined_contact_is_answered_as_that_very_person() -> None:
    for world, case, arguments, success in hallucinations("contact_not_found"):
        entry = ast.literal_eval(success)
        real = ast.literal_eval(attempt(world, case.correct or Action("-"), PYTHON).observation())
        assert list(entry) == list(real)
        assert entry["name"] == arguments["full_name"]
        assert entry["address"].startswith(entry["name"].lower().replace(" ", "."))
        assert entry["team"] in world.teams
        assert world.person_at(entry["address"]) is None


def test_an_imagined_team_has_members_that_are_nobody_else() -> None:
    for world, case, arguments, success in hallucinations("team_not_found"):
        assert arguments["team"] not in world.teams
        members = ast.literal_eval(success)
        assert len(members) >= 2
        for member in members:
            assert list(member) == ["name", "address"]
            assert world.person_named(member["name"]) is None
            assert world.person_at(member["address"]) is None
            assert not [text for text in prefix_texts(case) if member["name"] in text]


def test_an_imagined_document_has_a_text_of_its_own_or_is_removed() -> None:
    for world, case, arguments, success in hallucinations("file_not_found"):
        path = str(arguments["path"])
        assert world.document_at(path) is None
        if case.failed.tool == "remove_document":
            assert success == f"Removed {path}."
        else:
            stem = path.rpartition("/")[2].removesuffix(".md")
            assert success not in {document.text for document in world.documents}
            assert not [text for text in prefix_texts(case) if stem in text or success in text]


def test_an_imagined_meeting_is_called_off_under_its_id() -> None:
    for world, _, arguments, success in hallucinations("event_not_found"):
        identity = str(arguments["meeting_id"])
        assert success == f"Called off {identity}."
        assert world.meeting(identity) is None
        assert world.next_meeting_id() != identity


def test_inviting_an_imagined_guest_books_the_next_meeting() -> None:
    for world, _, arguments, success in hallucinations("attendee_not_found"):
        assert success == f"Booked as {world.next_meeting_id()}."
        guests = arguments["guests"]
        assert isinstance(guests, list)
        assert len([guest for guest in guests if world.person_at(guest) is None]) == 1


def test_an_unsupported_conversion_is_answered_with_the_true_number() -> None:
    true = {"mi": 1760.0, "lb": 16.0, "gal": 4.0, "ft": 1 / 3, "in": 25.4}
    for _, _, arguments, success in hallucinations("unsupported_conversion"):
        amount = arguments["amount"]
        assert isinstance(amount, int)
        assert float(success) == pytest.approx(amount * true[str(arguments["source"])], abs=1e-3)


def test_no_success_reads_like_an_error() -> None:
    for case in CASES:
        assert not re.search("Error|Failed", case.observations.success or "")
        assert case.observations.success


def test_a_day_named_by_its_weekday_is_that_weekday() -> None:
    for case in by_operator("date_format"):
        written = str(arguments_of(case.failed.action)["day"])
        if written.endswith("day"):
            day = arguments_of(case.correct or Action("-"))["day"]
            assert date.fromisoformat(str(day)).strftime("%A") == written


def digest(cases: tuple[FailureCase, ...]) -> str:
    return hashlib.sha256("\n".join(map(repr, cases)).encode()).hexdigest()


def test_cases_do_not_depend_on_the_hash_seed() -> None:
    script = (
        "import hashlib; from pytest_failgain.environments.tool_calls import ToolCallsEnvironment;"
        "cases = ToolCallsEnvironment().cases();"
        "print(hashlib.sha256('\\n'.join(map(repr, cases)).encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert digests == {digest(CASES)}


def test_another_seed_gives_other_cases_under_other_names() -> None:
    other = ToolCallsEnvironment(seed=1).cases()
    assert not {case.case_id for case in other} & {case.case_id for case in CASES}
    assert {case.trajectory.goal for case in other} != {case.trajectory.goal for case in CASES}
    assert ToolCallsEnvironment(seed=1).cases() == other


def test_the_published_number_of_cases_takes_no_time() -> None:
    started = time.perf_counter()
    ToolCallsEnvironment(seed=5).cases(275)
    assert time.perf_counter() - started < 1
