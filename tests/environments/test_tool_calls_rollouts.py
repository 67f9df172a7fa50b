from __future__ import annotations

import dataclasses
import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_failgain.call_text import Call
from pytest_failgain.environments.protocol import WRITINGS
from pytest_failgain.environments.tool_calls import ToolCallsEnvironment, rollout_tasks, world
from pytest_failgain.environments.tool_calls.calls import ACTION_FORMATS, JSON, PYTHON, ActionFormat
from pytest_failgain.environments.tool_calls.demonstrations import WORLD, demonstrations
from pytest_failgain.environments.tool_calls.episode import OfficeEpisode
from pytest_failgain.environments.tool_calls.imagined import UNKNOWN_CONVERSIONS
from pytest_failgain.environments.tool_calls.runtime import attempt, execute
from pytest_failgain.environments.tool_calls.tasks import NOTES, TEMPLATES
from pytest_failgain.environments.tool_calls.tools import TOOLS
from pytest_failgain.errors import UsageError
from pytest_failgain.trajectory import Action, Step, ToolCall, UserTurn
from strategies import quick

TEXT_FORMATS = ("python", "json")
AVAILABLE = 192

ENVIRONMENT = ToolCallsEnvironment()
EPISODES = ENVIRONMENT.episodes(AVAILABLE)
STARTS = {
    form: ToolCallsEnvironment(action_format=form).episodes(1, demonstrations=0)[0]
    for form in TEXT_FORMATS
}
EPISODE = STARTS["python"]
NESTED = '{"name": "list_team", "arguments": ' + '{"team": ' * 900 + "1" + "}" * 901
HALF = chr(0xD800)  # half of a surrogate pair


def own_steps(episode: OfficeEpisode) -> list[Step | UserTurn]:
    """The steps after the task's own goal, which is the last that the user asks for."""
    steps = list(episode.trajectory.steps)
    goals = [place for place, step in enumerate(steps) if isinstance(step, UserTurn)]
    return steps[goals[-1] + 1 :] if goals else steps


def writing(text: str, form: str = "python") -> str:
    return STARTS[form].act(Action(text)).writing


def test_one_call_tasks_and_longer_ones_take_turns() -> None:
    lengths = [len(episode.task.solution) for episode in EPISODES]
    assert set(lengths[0::2]) == {1}
    assert set(lengths[1::2]) == {2, 3}


def test_every_template_comes_early_and_as_often_as_the_others_of_its_kind() -> None:
    every = {*TEMPLATES, *rollout_tasks.TEMPLATES}
    assert {episode.task.template for episode in EPISODES[:18]} == every
    short = Counter(one.task.template for one in EPISODES if len(one.task.solution) == 1)
    assert set(short) == {"remind", "write_document", *rollout_tasks.TEMPLATES}
    assert set(short.values()) == {16}


@pytest.mark.parametrize("seed", range(3))
def test_no_two_tasks_are_the_same(seed: int) -> None:
    episodes = ToolCallsEnvironment(seed).episodes(AVAILABLE, demonstrations=0)
    assert len({episode.task_id for episode in episodes}) == AVAILABLE
    assert len({episode.trajectory.goal for episode in episodes}) == AVAILABLE


@pytest.mark.parametrize("form", TEXT_FORMATS)
@pytest.mark.parametrize("seed", range(2))
def test_acting_out_the_solution_solves_the_task_at_its_end(seed: int, form: str) -> None:
    for start in ToolCallsEnvironment(seed, form).episodes(AVAILABLE, demonstrations=2):
        episode: Any = start
        for call in start.task.solution:
            assert not episode.solved, episode.task_id
            acted = episode.act(ACTION_FORMATS[form].write(call))
            assert (acted.step.failed, acted.writing) == (False, "valid")
            episode = acted.episode
        assert episode.solved, episode.task_id
        assert len(own_steps(episode)) == len(start.task.solution)


def test_everything_a_solution_uses_is_told_in_the_goal_of_a_one_call_task() -> None:
    for episode in EPISODES[0::2]:
        (call,) = episode.task.solution
        for value in call.arguments.values():
            for item in value if isinstance(value, list) else [value]:
                assert str(item) in episode.task.goal, episode.task_id


def test_only_the_thing_asked_for_solves_a_task() -> None:
    # Each value of the solution matters, but for a document's text in a mail's subject.
    for episode in EPISODES[0::2]:
        (call,) = episode.task.solution
        for name, value in call.keywords:
            for other in EPISODES[0::2]:
                wrong = other.task.solution[0].arguments.get(name, value)
                if wrong != value and str(value) not in str(wrong):
                    after = execute(episode.world, call.with_value(name, wrong)).world
                    assert not episode.task.solved(after), (episode.task.goal, name, wrong)


def test_episodes_are_the_same_ones_for_every_call_and_environment() -> None:
    assert ENVIRONMENT.episodes(AVAILABLE) == EPISODES
    assert ENVIRONMENT.episodes(7) == EPISODES[:7]
    again = ToolCallsEnvironment().episodes(AVAILABLE)
    seen = [(one.task_id, one.trajectory, one.world) for one in EPISODES]
    assert [(one.task_id, one.trajectory, one.world) for one in again] == seen


def test_the_tasks_do_not_depend_on_format_and_verbosity() -> None:
    other = ToolCallsEnvironment(action_format="json", verbosity="terse").episodes(24)
    assert [(one.task_id, one.task.goal, one.world) for one in other] == [
        (one.task_id, one.task.goal, one.world) for one in EPISODES[:24]
    ]


def test_to_act_leaves_the_episode_as_it_was() -> None:
    before = dataclasses.replace(EPISODE)
    acted = EPISODE.act(PYTHON.write(EPISODE.task.solution[0]))
    assert before == EPISODE
    assert not EPISODE.solved
    assert acted.episode.solved
    assert acted.episode.trajectory == EPISODE.trajectory.then(acted.step)


@pytest.mark.parametrize("form", TEXT_FORMATS)
@pytest.mark.parametrize("verbosity", ["terse", "standard", "verbose"])
def test_a_primed_episode_ends_in_the_failure_of_its_case(form: str, verbosity: str) -> None:
    environment = ToolCallsEnvironment(1, form, verbosity)
    cases = environment.cases(200)
    for episode, case in zip(environment.episodes(200, primed=True), cases, strict=True):
        assert episode.task_id == case.task_id
        *before, failed = own_steps(episode)
        assert tuple(before) == case.trajectory.steps
        assert failed == case.failed
        assert not episode.solved


def test_a_primed_episode_goes_on_where_its_case_stands() -> None:
    # The failed action fails again, and the correct one is as good as it is in the case.
    for episode, case in zip(
        ENVIRONMENT.episodes(200, primed=True), ENVIRONMENT.cases(200), strict=True
    ):
        assert episode.act(case.failed.action).step == case.failed
        assert case.correct is not None
        acted = episode.act(case.correct)
        assert not acted.step.failed
        done = len(case.trajectory.steps) + 1
        assert acted.episode.solved == (done == len(episode.task.solution))


@pytest.mark.parametrize(
    ("verbosity", "advice"),
    [
        ("terse", "Usage: list_team(team: str), where team is the name of the team."),
        ("standard", "Usage: list_team(team: str), where team is the name of the team."),
        ("verbose", None),
    ],
)
def test_a_failed_step_is_told_at_the_verbosity_and_has_the_rest_as_advice(
    verbosity: str, advice: str | None
) -> None:
    (episode,) = ToolCallsEnvironment(verbosity=verbosity).episodes(1)
    step = episode.act(Action("list_team()")).step
    assert (step.failed, step.error_family, step.tool) == (True, "missing_argument", "list_team")
    assert step.records.get("advised") == advice
    assert step.observation is not None
    assert ("Usage:" in step.observation) == (verbosity == "verbose")


def test_advice_holds_no_half_character_whatever_a_model_saved() -> None:
    saved = EPISODE.act(Action("save_document(path='minutes/\\ud800.md', text='x')")).episode
    step = saved.act(Action("open_document(path='a')")).step
    assert step.observation is not None
    assert [text.encode() for text in (step.observation, step.records["advised"])]


def test_a_step_that_works_has_no_advice() -> None:
    assert EPISODE.act(PYTHON.write(EPISODE.task.solution[0])).step.records == {}


@pytest.mark.parametrize("form", TEXT_FORMATS)
def test_demonstrations_show_every_tool_and_no_failure(form: str) -> None:
    told = demonstrations(ACTION_FORMATS[form])
    assert len(told) == 8
    steps = [step for one in told for step in one.steps]
    assert not [step for step in steps if step.failed]
    assert {step.tool for step in steps} == set(TOOLS)
    assert {len(one.steps) for one in told} == {1, 2}
    assert len({step.tool for one in told[:3] for step in one.steps}) == 5


@pytest.mark.parametrize("form", [PYTHON, JSON])
def test_everything_a_demonstrated_call_uses_was_told_or_shown_before(form: ActionFormat) -> None:
    for one in demonstrations(form):
        seen = one.goal
        for step in one.steps:
            for value in form.read(step.action).arguments.values():
                for item in value if isinstance(value, list) else str(value).split(", "):
                    assert str(item) in seen
            seen += f" {step.observation}"


def test_the_demonstrations_do_what_their_goals_ask_for() -> None:
    after = WORLD
    for one in demonstrations(PYTHON):
        for step in one.steps:
            after = attempt(after, step.action, PYTHON).world
    assert {document.path: document.text for document in after.documents} == {
        "letters/thanks.md": "Thank you for the apple trees.",
        "stories/field.md": "8.0937",
        "stories/trees.md": "Thank you for the apple trees.",
        "letters/helpers.md": "Una Webb, Ivo Stone",
    }
    assert [(one.topic, one.day, one.start, one.called_off) for one in after.meetings] == [
        ("bee hives", "2031-05-14", "07:45", True),
        ("river walk", "2031-05-13", "17:30", False),
    ]
    assert [(mail.subject, mail.message) for mail in after.mails] == [("soup", "Buy onions.")]
    assert [(one.note, one.day) for one in after.reminders] == [("feed the cat", "2031-05-12")]


def pools() -> list[str]:
    """The values from which offices are drawn."""
    units = [one for short, other in UNKNOWN_CONVERSIONS.items() for one in (short, other.target)]
    return [
        *world.FIRST_NAMES,
        *world.LAST_NAMES,
        *world.TEAMS,
        *world.TOPICS,
        *world.STARTS,
        *world.DOCUMENT_TEXTS,
        *world.POLICIES,
        *world.FOLDERS,
        world.PROTECTED_FOLDER,
        world.DOMAIN,
        *NOTES,
        *rollout_tasks.MESSAGES,
        *rollout_tasks.MESSAGES.values(),
        *units,
    ]


def test_nothing_in_a_demonstration_is_valid_in_any_office() -> None:
    told = demonstrations(PYTHON)
    texts = [one.goal for one in told]
    texts += [f"{step.action} {step.observation}" for one in told for step in one.steps]
    for text in texts:
        # "in" is a unit as well as a word.
        found = [one for one in pools() if one != "in" and re.search(rf"\b{one}\b", text)]
        assert not found, text
        assert not re.search(r"\b20(?:2[0-9])-|mtg-\d\d\b", text)


def test_demonstrated_calls_fail_or_solve_nothing_in_every_office() -> None:
    actions = [step.action for one in demonstrations(PYTHON) for step in one.steps]
    for episode in EPISODES:
        for action in actions:
            assert not episode.act(action).episode.solved


def test_the_demonstrations_are_the_last_ones_whatever_the_seed_and_the_task() -> None:
    eight = demonstrations(PYTHON)
    for count in (0, 1, 3, 8):
        for seed in (0, 1):
            for primed in (False, True):
                for episode in ToolCallsEnvironment(seed).episodes(
                    3, primed=primed, demonstrations=count
                ):
                    trajectory = episode.trajectory
                    turns = [UserTurn(trajectory.goal), *trajectory.steps]
                    chosen = eight[len(eight) - count :]
                    told = [turn for one in chosen for turn in (UserTurn(one.goal), *one.steps)]
                    assert turns[: len(told) + 1] == [*told, UserTurn(episode.task.goal)]


@pytest.mark.parametrize("count", [0, -1, AVAILABLE + 1])
def test_an_impossible_number_of_tasks_is_refused_with_the_number_there_is(count: int) -> None:
    with pytest.raises(UsageError, match=f"cannot give {count} tasks: a seed has {AVAILABLE}"):
        ENVIRONMENT.episodes(count)


@pytest.mark.parametrize("count", [0, 513])
def test_an_impossible_number_of_primed_episodes_is_refused_as_for_cases(count: int) -> None:
    with pytest.raises(UsageError, match=f"cannot give {count} cases: a seed has 512"):
        ENVIRONMENT.episodes(count, primed=True)


@pytest.mark.parametrize("demonstrations", [-1, 9])
def test_an_impossible_number_of_demonstrations_is_refused(demonstrations: int) -> None:
    with pytest.raises(UsageError, match=f"{demonstrations} demonstrations: ask for 0 to 8"):
        ENVIRONMENT.episodes(1, demonstrations=demonstrations)


def test_the_native_format_is_refused_with_those_that_can_be_read() -> None:
    with pytest.raises(UsageError, match='use action_format "python" or "json"'):
        ToolCallsEnvironment(action_format="native").episodes(1)


def test_no_text_is_a_call_in_the_native_format() -> None:
    replies = ToolCallsEnvironment(action_format="native").replies
    assert replies.meaning("list_team(team='a')") is None


@pytest.mark.parametrize(
    ("form", "text", "other"),
    [
        ("python", "lookup_contact('X')", "lookup_contact(full_name='X')"),
        ("python", "`add_reminder('n', day='d')`", "add_reminder(day='d', note='n')"),
        ("python", "strange_tool('X')", "strange_tool( 'X' )"),
        ("json", '{"name": "f", "arguments": {"a": 1}}', '{"arguments":{"a":1},"name":"f"}'),
    ],
)
def test_calls_that_differ_in_writing_alone_mean_the_same(form: str, text: str, other: str) -> None:
    replies = ToolCallsEnvironment(action_format=form).replies
    assert replies.meaning(text) is not None
    assert replies.meaning(text) == replies.meaning(other)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("lookup_contact('X')", "lookup_contact('Y')"),
        ("lookup_contact('X')", "list_team('X')"),
        ("lookup_contact('X')", "lookup_contact(team='X')"),
        ("lookup_contact('X', 'Y')", "lookup_contact('X')"),
        ("strange_tool('X')", "strange_tool(full_name='X')"),
        ("convert_amount(amount=1)", "convert_amount(amount='1')"),
    ],
)
def test_other_calls_mean_something_else(text: str, other: str) -> None:
    meaning = ENVIRONMENT.replies.meaning
    assert None is not meaning(text) != meaning(other) is not None


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("python", ""),
        ("python", "  \n"),
        ("python", "lookup_contact("),
        ("python", '{"name": "f", "arguments": {}}'),
        ("python", f"lookup_contact(0x{'f' * 5000})"),
        ("json", "lookup_contact('X')"),
        ("json", NESTED),
    ],
)
def test_what_can_not_be_read_means_nothing(form: str, text: str) -> None:
    assert ToolCallsEnvironment(action_format=form).replies.meaning(text) is None


def test_the_first_line_is_the_reply_and_ends_it() -> None:
    replies = ENVIRONMENT.replies
    assert replies.action("Call: list_team('a')\nand then") == "list_team('a')"
    assert replies.is_over("list_team('a')\n")
    assert replies.ends_itself("list_team('a')")
    assert not replies.ends_itself("list_team('a'")


def test_each_format_has_replies_of_its_own_name() -> None:
    names = {ToolCallsEnvironment(action_format=form).replies.name for form in ACTION_FORMATS}
    assert names == {"tool_calls python", "tool_calls json", "tool_calls native"}


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        ("python", "list_team(team='nobody')", "valid"),
        ("python", "show_agenda('tomorrow')", "valid"),
        ("python", "Call: `list_team('nobody')`", "valid"),
        ("python", "list_teams(team='archive')", "invalid"),
        ("python", "list_team()", "invalid"),
        ("python", "list_team('a', 'b')", "invalid"),
        ("python", "list_team(group='a')", "invalid"),
        ("python", "list_team(team=1)", "invalid"),
        ("python", "list_team(team=archive)", "invalid"),
        ("python", "list_team", "invalid"),
        ("python", "list_team(team='a') # done (", "valid"),
        ("python", "list_team(team='arch", "truncated"),
        ("python", "`book_meeting(guests=['a', 'b", "truncated"),
        ("python", "list_teams(team='arch", "prose"),
        ("python", "I would call list_team(team='a').", "prose"),
        ("python", "\0", "prose"),
        ("python", '{"name": "list_team", "arguments": {"team": "a"}}', "invalid"),
        ("json", '{"name": "list_team", "arguments": {"team": "a"}}', "valid"),
        ("json", '{"name": "list_team", "arguments": {}}', "invalid"),
        ("json", '{"name": "list_team"}', "invalid"),
        ("json", '{"name": "list_team", "arguments": {"te', "truncated"),
        ("json", "list_team(team='a')", "invalid"),
        ("json", "{}", "prose"),
        ("json", "The team is archive.", "prose"),
    ],
)
def test_writings_are_told_apart(form: str, text: str, expected: str) -> None:
    assert writing(text, form) == expected


anything = st.text(st.characters(exclude_categories=()), min_size=1).filter(str.strip)
calls_with_anything = st.builds(
    lambda tool, rest: f"{tool}({rest}", st.sampled_from(sorted(TOOLS)), anything
)


@quick
@given(anything | calls_with_anything, st.sampled_from(TEXT_FORMATS))
def test_acting_never_raises_whatever_a_model_writes(text: str, form: str) -> None:
    acted = STARTS[form].act(Action(text))
    assert acted.writing in WRITINGS
    assert acted.step.action == Action(text)
    assert acted.episode.trajectory.steps == (acted.step,)
    # No encoder takes half a surrogate pair.
    assert [told.encode() for told in (acted.step.observation or "", *acted.step.records.values())]


@pytest.mark.parametrize("form", TEXT_FORMATS)
@pytest.mark.parametrize(
    "text",
    [
        "\ufffd",
        "\0",
        HALF,
        f"list_team(team='{HALF}')",
        "x" * 10_001,
        "list_team(" * 2000,
        f"convert_amount(amount=0x{'f' * 5000}, source='mi', target='km')",
        f"list_team(team={'[' * 150}{']' * 150})",
        NESTED,
    ],
)
def test_acting_survives_the_oddest_replies(form: str, text: str) -> None:
    acted = STARTS[form].act(Action(text))
    assert acted.step.failed
    assert not acted.episode.solved


def test_a_structured_call_is_no_text_to_act_on() -> None:
    acted = EPISODE.act(Action(calls=(ToolCall("list_team", "{}"),)))
    assert (acted.step.error_family, acted.writing) == ("parse_error", "prose")


@quick
@given(st.sampled_from(EPISODES), st.sampled_from(TEXT_FORMATS), st.data())
def test_a_call_that_is_broken_off_is_never_taken_for_prose(
    episode: OfficeEpisode, form: str, data: st.DataObject
) -> None:
    call: Call = data.draw(st.sampled_from(episode.task.solution))
    text = str(ACTION_FORMATS[form].write(call))
    end = data.draw(st.integers(len(call.tool) + 1, len(text) - 1))
    assert writing(text[:end], form) in ("truncated", "invalid")
