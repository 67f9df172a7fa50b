from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_failgain.environments.program_repair import ProgramRepairEnvironment
from pytest_failgain.environments.program_repair.episode import ProgramEpisode
from pytest_failgain.environments.program_repair.problems import Problem, own_problems
from pytest_failgain.environments.program_repair.replies import PROGRAMS, writing_of
from pytest_failgain.environments.protocol import WRITINGS, RolloutEnvironment
from pytest_failgain.environments.settings import EnvironmentSettings
from pytest_failgain.errors import UsageError
from pytest_failgain.trajectory import Action, Step, Trajectory, UserTurn
from strategies import quick

ALLOWED = EnvironmentSettings(allow_code_execution=True)
ENVIRONMENT = ProgramRepairEnvironment(ALLOWED)
TASKS = ENVIRONMENT.tasks
HALF = chr(0xD800)  # half of a surrogate pair


def own_steps(episode: ProgramEpisode) -> list[Step | UserTurn]:
    """The steps after the task's own goal, which is the last that the user asks for."""
    steps = list(episode.trajectory.steps)
    goals = [place for place, step in enumerate(steps) if isinstance(step, UserTurn)]
    return steps[goals[-1] + 1 :] if goals else steps


def mbpp_file(folder: Path, *programs: tuple[str, list[str]]) -> Path:
    entries = [
        {"task_id": number, "prompt": "Do it.", "code": code, "test_list": tests}
        for number, (code, tests) in enumerate(programs)
    ]
    path = folder / "problems.json"
    path.write_text(json.dumps(entries))
    return path


def test_models_can_drive_in_it_as_soon_as_they_may() -> None:
    assert isinstance(ProgramRepairEnvironment(), RolloutEnvironment)
    for primed in (False, True):
        with pytest.raises(UsageError, match=r"nobody knows .*--failgain-allow-code-execution"):
            ProgramRepairEnvironment().episodes(1, primed=primed)


def test_tasks_are_the_problems_in_order_and_demonstrations_the_last_ones() -> None:
    episodes = ENVIRONMENT.episodes(len(TASKS) - 8)
    assert [episode.task_id for episode in episodes] == [task.name for task in TASKS[:-8]]
    for episode, task in zip(episodes, TASKS[:-8], strict=True):
        turns = [UserTurn(episode.trajectory.goal), *episode.trajectory.steps]
        goals = [turn.text for turn in turns if isinstance(turn, UserTurn)]
        wanted = [*reversed(TASKS[-8:]), task]
        assert goals == [ENVIRONMENT.opening(one).goal for one in wanted]
        steps = [turn for turn in turns if isinstance(turn, Step)]
        assert [step.action.text for step in steps] == [one.solution for one in wanted[:-1]]


def test_fewer_demonstrations_are_the_first_of_more() -> None:
    three, eight = (
        [*trajectory.steps[: 2 * 3 - 1]]
        for trajectory in (
            ENVIRONMENT.episodes(1, demonstrations=count)[0].trajectory for count in (3, 8)
        )
    )
    assert three == eight


def test_episodes_are_the_same_ones_for_every_call() -> None:
    assert ENVIRONMENT.episodes(20) == ENVIRONMENT.episodes(20)
    assert ENVIRONMENT.episodes(5) == ENVIRONMENT.episodes(20)[:5]
    assert ProgramRepairEnvironment(ALLOWED).episodes(20)[7].trajectory == (
        ENVIRONMENT.episodes(20)[7].trajectory
    )


def test_demonstrations_are_written_in_the_format() -> None:
    fenced = EnvironmentSettings(action_format="fenced", allow_code_execution=True)
    (episode,) = ProgramRepairEnvironment(fenced).episodes(1, demonstrations=1)
    step = episode.trajectory.steps[0]
    assert isinstance(step, Step)
    assert step.action.text == f"```python\n{TASKS[-1].solution}\n```"


@pytest.mark.parametrize("count", [0, -1, 53])
def test_an_impossible_number_of_tasks_is_refused_with_the_number_there_is(count: int) -> None:
    with pytest.raises(UsageError, match=f"cannot give {count} tasks .*there are 52"):
        ENVIRONMENT.episodes(count)


@pytest.mark.parametrize("demonstrations", [-1, 60])
def test_an_impossible_number_of_demonstrations_is_refused(demonstrations: int) -> None:
    with pytest.raises(UsageError, match=f"{demonstrations} demonstrations: ask for 0 to 59"):
        ENVIRONMENT.episodes(1, demonstrations=demonstrations)


def test_problems_that_can_not_be_used_are_neither_tasks_nor_demonstrations(tmp_path: Path) -> None:
    path = mbpp_file(
        tmp_path,
        ("x = 1", ["assert x == 1"]),
        ("x = 2", ["assert x == 2"]),
        ("print 'old'", ["assert x"]),
        ("x = 3", ["assert x =="]),
        ("x = 4", ["x"]),
    )
    settings = EnvironmentSettings(mbpp=path, allow_code_execution=True)
    episodes = [
        episode
        for count in (0, 1)
        for episode in ProgramRepairEnvironment(settings).episodes(2 - count, demonstrations=count)
    ]
    assert {episode.task_id for episode in episodes} == {"mbpp-0000", "mbpp-0001"}
    with pytest.raises(UsageError, match="cannot give 3 tasks"):
        ProgramRepairEnvironment(settings).episodes(3, demonstrations=0)


@pytest.mark.parametrize(
    ("action", "other"),
    [
        ("def f(x):\n    return x", "def f( x ):  # same\n  return (x)"),
        ("```python\nx = 1\n```", "x = 1"),
        ("Here:\n```\nx = 1\n```\nDone.", "x = 1\n"),
    ],
)
def test_programs_that_differ_in_layout_alone_mean_the_same(action: str, other: str) -> None:
    assert PROGRAMS.meaning(action) is not None
    assert PROGRAMS.meaning(action) == PROGRAMS.meaning(other)


def test_other_programs_mean_something_else() -> None:
    assert PROGRAMS.meaning("x = 1") != PROGRAMS.meaning("x = 2")


@pytest.mark.parametrize(
    "action",
    [
        "",
        " \n",
        "def f(",
        "x = 1\0",
        f"x = '{HALF}'",
        "(" * 9000,
        "x = 1" + "+1" * 1800,
        "x = 1" + "+1" * 4900,
        f"x = 0x{'f' * 9000}",
        "I would not.",
    ],
)
def test_what_is_no_program_means_nothing(action: str) -> None:
    assert PROGRAMS.meaning(action) is None


def test_an_odd_escape_is_no_warning() -> None:
    assert PROGRAMS.meaning(r"x = '\d'") is not None
    assert writing_of(Action(r"x = '\d'"), True) == "valid"


def test_a_program_is_all_of_the_reply_and_may_go_on() -> None:
    assert PROGRAMS.action("\nx = 1\ny = 2\n") == "x = 1\ny = 2"
    assert not PROGRAMS.is_over("x = 1\ny = 2\n")
    assert not PROGRAMS.ends_itself("x = 1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f(x):\n    return x", "valid"),
        ("import math", "valid"),
        ("f = len", "valid"),
        ("```python\nclass A: pass\n```", "valid"),
        ("print(1)", "invalid"),
        ("No", "invalid"),
        ("def f(x):\n    return x +* 2", "invalid"),
        ("def f(x):\n    return (x + 2))", "invalid"),
        ("def f(x): return x +* 2\ny", "invalid"),
        ("def f(x)\n    return x", "invalid"),
        ("def f():\nreturn 1", "invalid"),
        ("def f(x):\n    y = 'a\n    return y", "invalid"),
        ("x = 1\0", "invalid"),
        ("def f(x):", "truncated"),
        ("def f(x):\n    return x +", "truncated"),
        ("def f(x):\n    return g(x, [1, 2", "truncated"),
        ("def f(x):\n    return 'ab", "truncated"),
        ('def f(x):\n    """Say\n    more', "truncated"),
        ("x = [1, 2,", "truncated"),
        ("```python\ndef f(x):\n    return x +* 2", "truncated"),
        ("```python\ndef f(x):\n    return x +* 2\n```", "invalid"),
        ("I would rather not.", "prose"),
        ("The function should use a loop (see below", "prose"),
        ("\0", "prose"),
        (HALF, "prose"),
    ],
)
def test_writings_are_told_apart(text: str, expected: str) -> None:
    assert writing_of(Action(text), True) == expected


def test_what_does_not_compile_is_not_valid_though_it_parses() -> None:
    assert writing_of(Action("def f():\n    pass\nreturn 1"), compiles=False) == "invalid"


@quick
@given(
    st.text(st.characters(exclude_categories=()), min_size=1).filter(str.strip)
    | st.text("def f(x): \n\"'[]{}()=+#\\`python1", min_size=1).filter(str.strip),
    st.booleans(),
)
def test_anything_that_a_model_writes_is_read_or_not(text: str, compiles: bool) -> None:
    assert writing_of(Action(text), compiles) in WRITINGS
    hash(PROGRAMS.meaning(text))


@quick
@given(st.sampled_from(own_problems()), st.data())
def test_a_program_that_is_cut_is_never_taken_for_prose(
    problem: Problem, data: st.DataObject
) -> None:
    end = data.draw(st.integers(len("def f"), len(problem.solution)))
    assert writing_of(Action(problem.solution[:end]), True) != "prose"


def test_an_episode_is_solved_once_a_program_passes_and_stays_so() -> None:
    def run(problem: Problem, action: Action) -> Step:
        return Step(action, "", failed=action.text != "x = 1", error_family="runtime_error")

    episode = ProgramEpisode(TASKS[0], Trajectory("", "Set x."), run)
    wrong = episode.act(Action("x = 2"))
    right = wrong.episode.act(Action("x = 1"))
    after = right.episode.act(Action("x = 3"))
    assert [one.episode.solved for one in (wrong, right, after)] == [False, True, True]
    assert after.episode.trajectory.steps == (wrong.step, right.step, after.step)
    assert not episode.solved
    assert not episode.trajectory.steps


@pytest.mark.slow
def test_every_solution_is_answered_as_in_a_demonstration() -> None:
    for episode in ENVIRONMENT.episodes(len(TASKS) - 1, demonstrations=1):
        acted = episode.act(Action(episode.problem.solution))
        assert acted.episode.solved, episode.task_id
        assert acted.writing == "valid"
        assert ENVIRONMENT._demonstration(episode.problem).steps == (acted.step,)


@pytest.mark.slow
def test_a_primed_episode_ends_in_the_failure_of_its_case() -> None:
    cases = ENVIRONMENT.cases(6)
    for episode, case in zip(ENVIRONMENT.episodes(6, primed=True), cases, strict=True):
        assert episode.task_id == case.task_id
        assert own_steps(episode) == [case.failed]
        assert episode.act(case.failed.action).step == case.failed
        assert case.correct is not None
        assert episode.act(case.correct).episode.solved


@pytest.mark.slow
def test_no_case_whose_solution_is_demonstrated_is_given_for_a_primed_episode() -> None:
    names = [case.task_id for case in ENVIRONMENT.cases(20)]
    # The most demonstrations that leave the first 19 cases.
    most = len(TASKS) - 1 - [task.name for task in TASKS].index(names[18])
    assert len(ENVIRONMENT.episodes(19, primed=True, demonstrations=most)) == 19
    with pytest.raises(UsageError, match=r"cannot give 20 cases .*there are 19"):
        ENVIRONMENT.episodes(20, primed=True, demonstrations=most)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "\ufffd",
        "\0",
        HALF,
        f"def f():\n    return '{HALF}'",
        "x" * 10_000,
        "(" * 9000,
        "1" + "+1" * 4900,
        f"x = 0x{'f' * 5000}\nprint(x)",
        "raise SyntaxError(chr(0xD800))",
        "```python\n",
        "import os\nos._exit(1)",
        "I would rather not.",
    ],
)
def test_acting_never_raises_whatever_a_model_writes(text: str) -> None:
    acted = ENVIRONMENT.episodes(1)[0].act(Action(text))
    assert acted.step.failed
    assert acted.writing in WRITINGS
    assert acted.step.observation
    assert acted.step.observation.encode()
    assert not acted.episode.solved
