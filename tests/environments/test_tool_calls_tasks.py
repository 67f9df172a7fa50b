from __future__ import annotations

from collections import Counter

import pytest

from pytest_failgain.environments.tool_calls import ToolCallsEnvironment
from pytest_failgain.environments.tool_calls.cases import decision_points
from pytest_failgain.environments.tool_calls.operators import NEAR_NAMES, SYNONYMS
from pytest_failgain.environments.tool_calls.runtime import execute
from pytest_failgain.environments.tool_calls.tasks import TEMPLATES, Task
from pytest_failgain.environments.tool_calls.tools import TOOLS

TASKS = [*ToolCallsEnvironment(seed=0).tasks, *ToolCallsEnvironment(seed=1).tasks]


def tasks_of(template: str) -> list[Task]:
    return [task for task in TASKS if task.template == template]


def test_there_are_twelve_tools_and_no_tool_to_stop() -> None:
    assert len(TOOLS) == 12
    assert not [name for name in TOOLS if "finish" in name]


def test_every_template_has_as_many_tasks() -> None:
    assert len(TEMPLATES) >= 6
    assert len(set(Counter(task.template for task in TASKS).values())) == 1
    assert {task.template for task in TASKS} == set(TEMPLATES)


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_solution_solves_the_task_and_only_at_its_end(template: str) -> None:
    for task in tasks_of(template):
        world = task.world
        for call in task.solution:
            assert not task.solved(world), task.task_id
            outcome = execute(world, call)
            assert outcome.failure is None, task.task_id
            world = outcome.world
        assert task.solved(world), task.task_id


@pytest.mark.parametrize("template", TEMPLATES)
def test_everything_a_solution_uses_was_told_or_shown_before(template: str) -> None:
    # Else no agent could find the solution, and the correct action would be a guess.
    for task in tasks_of(template):
        for point in decision_points(task):
            seen = " ".join([task.goal, *(outcome.answer for _, outcome in point.past)])
            for value in point.correct.arguments.values():
                for item in value if isinstance(value, list) else str(value).split(", "):
                    assert str(item) in seen, task.task_id


@pytest.mark.parametrize("seed", range(5))
def test_the_same_request_is_not_made_twice(seed: int) -> None:
    tasks = ToolCallsEnvironment(seed).tasks
    assert len({task.goal for task in tasks}) == len(tasks)


def test_near_names_and_synonyms_are_wrong_wherever_they_are_used() -> None:
    parameters = {parameter.name for tool in TOOLS.values() for parameter in tool.parameters}
    assert set(NEAR_NAMES) == set(TOOLS)
    assert set(SYNONYMS) == parameters
    assert not set(TOOLS) & {name for names in NEAR_NAMES.values() for name in names}
    assert not parameters & set(SYNONYMS.values())
