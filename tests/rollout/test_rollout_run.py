"""Rollouts in the real office, with replies from a script or from a tiny model."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest

from fake_scorer import FakeScorer, ScriptedDecoder, prompt_text
from progress_recorder import Recorder
from pytest_failgain.blocking.kinds import BLOCKS
from pytest_failgain.environments.program_repair import ProgramRepairEnvironment
from pytest_failgain.environments.protocol import Episode
from pytest_failgain.environments.tool_calls import ToolCallsEnvironment
from pytest_failgain.environments.tool_calls.calls import PYTHON
from pytest_failgain.environments.tool_calls.episode import OfficeEpisode
from pytest_failgain.errors import HarnessError, UsageError
from pytest_failgain.failgain import Failgain
from pytest_failgain.harness_checks import render
from pytest_failgain.harnesses import VERBATIM, RemediedHarness, remedied
from pytest_failgain.rollout.measures import rollout_measure_named
from pytest_failgain.rollout.results import Rollouts
from pytest_failgain.rollout.run import rollout
from pytest_failgain.scoring.protocol import Refusal, Reply, ReplyRequest
from pytest_failgain.trajectory import Action, Step, Trajectory, UserTurn

OFFICE = ToolCallsEnvironment()
TASKS = 6
EPISODES = OFFICE.episodes(TASKS, demonstrations=0)
PRIMED = OFFICE.episodes(TASKS, primed=True, demonstrations=0)

WRONG = "list_team(team='nobody')"
RESPELT = 'list_team( team="nobody" )'
OTHER = "list_team(team='somebody')"
WORKS = "show_agenda(day='2027-06-02')"

Script = Callable[[ReplyRequest], str | Reply | Refusal]

short = partial(rollout, environment=OFFICE, tasks=TASKS, max_steps=4, demonstrations=0)


def episode_of(request: ReplyRequest, episodes: Sequence[OfficeEpisode] = EPISODES) -> int:
    """The place of the task that is asked about."""
    (place,) = (
        place
        for place, episode in enumerate(episodes)
        if repr(episode.trajectory.goal) in prompt_text(request.prompt)
        or episode.trajectory.goal in prompt_text(request.prompt)
    )
    return place


def steps_before(request: ReplyRequest) -> int:
    """How many steps stand in a prompt of the verbatim harness."""
    return prompt_text(request.prompt).count("'role': 'assistant'")


def solves(request: ReplyRequest) -> str:
    """The next call of the task's solution."""
    solution = EPISODES[episode_of(request)].task.solution
    return PYTHON.write(solution[steps_before(request)]).text


def says(*replies: str) -> Script:
    """These replies, one a step; the last one from then on."""
    return lambda request: replies[min(steps_before(request), len(replies) - 1)]


def outcomes(result: Rollouts) -> list[str]:
    return [one.outcome for one in result.rollouts]


def actions(result: Rollouts) -> list[list[str]]:
    return [[turn.action for turn in one.turns] for one in result.rollouts]


def test_calls_of_the_solutions_solve_the_tasks() -> None:
    result = short(ScriptedDecoder(solves), VERBATIM)
    assert outcomes(result) == ["solved"] * TASKS
    assert [len(one.turns) for one in result.rollouts] == [
        len(episode.task.solution) for episode in EPISODES
    ]
    assert {turn.writing for one in result.rollouts for turn in one.turns} == {"valid"}
    assert not any(turn.failed for one in result.rollouts for turn in one.turns)
    assert [one.task_id for one in result.rollouts] == [one.task_id for one in EPISODES]
    assert [one.place for one in result.rollouts] == [*range(TASKS)]


def test_a_task_that_is_solved_is_not_asked_about_again() -> None:
    decoder = ScriptedDecoder(solves)
    short(decoder, VERBATIM)
    lengths = [len(episode.task.solution) for episode in EPISODES]
    asked = [sum(length > step for length in lengths) for step in range(max(lengths))]
    assert [len(batch) for batch in decoder.batches] == asked


def test_a_rollout_ends_at_the_limit() -> None:
    decoder = ScriptedDecoder(says(WRONG))
    result = short(decoder, VERBATIM)
    assert outcomes(result) == ["limit"] * TASKS
    assert [len(batch) for batch in decoder.batches] == [TASKS] * 4
    assert actions(result) == [[WRONG] * 4] * TASKS
    turn = result.rollouts[0].turns[0]
    assert turn.failed
    assert turn.error_family == "team_not_found"
    assert turn.writing == "valid"


def test_a_task_that_is_solved_in_the_last_step_is_solved() -> None:
    longest = max(EPISODES, key=lambda episode: len(episode.task.solution))
    steps = len(longest.task.solution)
    result = short(ScriptedDecoder(solves), VERBATIM, max_steps=steps)
    assert outcomes(result) == ["solved"] * TASKS
    result = short(ScriptedDecoder(solves), VERBATIM, max_steps=steps - 1)
    assert outcomes(result)[EPISODES.index(longest)] == "limit"


@pytest.mark.parametrize("nothing", ["", "  \n\n", "```", "```python\n"])
def test_who_says_nothing_has_quit(nothing: str) -> None:
    result = short(ScriptedDecoder(says(WRONG, nothing)), VERBATIM)
    assert outcomes(result) == ["quit"] * TASKS
    last = result.rollouts[0].turns[-1]
    assert (last.reply, last.action, last.writing) == (nothing, "", "empty")
    assert actions(result) == [[WRONG, ""]] * TASKS
    # One call failed, and repeated nothing; to quit is no second failed call.
    assert result.estimates["canonical_repeat_rate"].value == 0
    assert result.estimates["empty_rate"].value == 0.5
    assert result.undefined("canonical_repeat_rate") == 0


def test_a_prompt_that_is_refused_at_once_is_a_task_not_started() -> None:
    def script(request: ReplyRequest) -> str | Refusal:
        return Refusal("too long") if episode_of(request) == 2 else WRONG

    decoder = ScriptedDecoder(script)
    result = short(decoder, VERBATIM)
    assert [(one.task_id, one.reason) for one in result.not_started] == [
        (EPISODES[2].task_id, "too long")
    ]
    assert [one.place for one in result.rollouts] == [0, 1, 3, 4, 5]
    assert outcomes(result) == ["limit"] * (TASKS - 1)
    assert [len(batch) for batch in decoder.batches] == [TASKS, *[TASKS - 1] * 3]


def test_a_prompt_that_is_refused_later_ends_its_rollout_as_full() -> None:
    def script(request: ReplyRequest) -> str | Refusal:
        full = episode_of(request) == 2 and steps_before(request) == 2
        return Refusal("too long") if full else WRONG

    result = short(ScriptedDecoder(script), VERBATIM)
    assert result.not_started == ()
    assert outcomes(result) == ["limit", "limit", "full", "limit", "limit", "limit"]
    assert len(result.rollouts[2].turns) == 2
    assert result.outcomes == {"solved": 0, "quit": 0, "limit": 5, "full": 1}


def replayed(texts: Sequence[str], start: Episode) -> list[Trajectory]:
    """The trajectories that a model saying `texts` stands before, from the first on."""
    trajectories = [start.trajectory]
    for text in texts:
        start = start.act(Action(text)).episode
        trajectories.append(start.trajectory)
    return trajectories


HARNESSES = ("verbatim", "instructed", "described", "dropped", "collapsed+instructed")


@pytest.mark.parametrize("primed", [False, True], ids=["free", "primed"])
@pytest.mark.parametrize("name", HARNESSES)
def test_the_model_reads_what_the_harness_makes_of_all_that_happened(
    name: str, primed: bool
) -> None:
    harness = remedied(name)
    said = [WRONG, WORKS, RESPELT, WRONG]
    decoder = ScriptedDecoder(lambda request: said[len(decoder.batches) - 1])
    short(decoder, harness, primed=primed)
    starts = PRIMED if primed else EPISODES
    for step in range(4):
        assert [request.prompt for request in decoder.batches[step]] == [
            render(harness, replayed(said[:step], start)[-1], case_id="any") for start in starts
        ]
        assert {request.max_tokens for request in decoder.batches[step]} == {OFFICE.reply_tokens}
        assert {request.style for request in decoder.batches[step]} == {OFFICE.replies}
    assert decoder.batches[0][0].prompt != decoder.batches[1][0].prompt or name == "dropped"


def test_a_harness_of_ones_own_is_driven_as_it_is() -> None:
    def mine(trajectory: Trajectory) -> str:
        return f"{trajectory.goal} after {len(trajectory.steps)}"

    decoder = ScriptedDecoder(lambda request: WRONG)
    result = short(decoder, mine)
    name = "test_a_harness_of_ones_own_is_driven_as_it_is.mine"
    assert (result.harness, result.block, result.by_construction) == (name, None, None)
    assert [request.prompt.text for request in decoder.batches[3]] == [
        f"{episode.trajectory.goal} after 3" for episode in EPISODES
    ]


def test_demonstrations_are_told_before_every_task() -> None:
    decoder = ScriptedDecoder(says(WRONG))
    result = short(decoder, VERBATIM, demonstrations=2)
    told = OFFICE.episodes(TASKS, demonstrations=2)
    assert [request.prompt for request in decoder.batches[0]] == [
        render(VERBATIM, episode.trajectory, case_id="any") for episode in told
    ]
    assert result.setting.demonstrations == 2
    # They are no steps of the rollout: nothing of theirs counts.
    assert {len(one.turns) for one in result.rollouts} == {4}


def test_the_chosen_name_of_a_block_gives_its_way_and_its_match() -> None:
    for name, kind in BLOCKS.items():
        decoder = ScriptedDecoder(says(WRONG))
        result = short(decoder, VERBATIM, block=name, max_steps=1)
        (blocks,) = {
            (request.block.way, request.block.match, request.block.style)
            for request in decoder.requests
            if request.block is not None
        }
        assert blocks == (kind.way, kind.match, OFFICE.replies)
        assert (result.block, result.harness) == (name, f"verbatim+{name}")
        assert result.by_construction == kind.by_construction


@pytest.mark.parametrize("primed", [False, True], ids=["free", "primed"])
def test_exactly_the_actions_that_failed_are_blocked(primed: bool) -> None:
    said = [WRONG, WORKS, RESPELT, OTHER]
    decoder = ScriptedDecoder(lambda request: said[len(decoder.batches) - 1])
    short(decoder, remedied("dropped+searched"), primed=primed)
    for place in range(TASKS):
        last = PRIMED[place].trajectory.steps[-1]
        assert isinstance(last, Step)
        given = [last.action.text] if primed else []
        blocked = [batch[place].block for batch in decoder.batches]
        assert [list(block.actions) for block in blocked if block is not None] == [
            given,
            [*given, WRONG],
            [*given, WRONG],
            [*given, WRONG, RESPELT],
        ]


def test_without_a_block_nothing_is_blocked() -> None:
    decoder = ScriptedDecoder(says(WRONG))
    result = short(decoder, VERBATIM)
    assert {request.block for request in decoder.requests} == {None}
    assert result.block is None


@pytest.mark.parametrize(
    ("harness", "block", "name", "taken"),
    [
        ("described+searched", None, "described+searched", "searched"),
        ("searched+described", None, "searched+described", "searched"),
        ("described+masked", "masked", "described+masked", "masked"),
        ("described+masked", "searched-exact", "described+searched-exact", "searched-exact"),
        ("masked", "searched", "searched", "searched"),
        ("described", "masked", "described+masked", "masked"),
    ],
)
def test_a_given_block_stands_in_for_the_harness_s_own(
    harness: str, block: str | None, name: str, taken: str
) -> None:
    decoder = ScriptedDecoder(says(WRONG))
    result = short(decoder, remedied(harness), block=block, max_steps=1)
    kinds = {(one.block.way, one.block.match) for one in decoder.requests if one.block is not None}
    assert kinds == {(BLOCKS[taken].way, BLOCKS[taken].match)}
    assert (result.harness, result.block) == (name, taken)


def test_a_harness_that_is_only_called_like_a_block_says_that_one_was_added() -> None:
    harness = RemediedHarness("masked", VERBATIM)
    assert short(ScriptedDecoder(says(WRONG)), harness, block="masked").harness == "masked+masked"


def test_drawn_replies_have_luck_of_their_own_that_all_harnesses_share() -> None:
    keys = {}
    for name in ("verbatim", "dropped"):
        decoder = ScriptedDecoder(lambda request: WRONG)
        result = short(decoder, remedied(name), temperature=0.7, samples=3, seed=5)
        drawn = [request.sampling for request in decoder.requests]
        assert {one and one.temperature for one in drawn} == {0.7}
        keys[name] = [one.key for one in drawn if one]
        assert len(set(keys[name])) == len(keys[name]) == TASKS * 3 * 4
        assert Counter(one.task_id for one in result.rollouts) == {
            episode.task_id: 3 for episode in EPISODES
        }
        assert [one.key for one in result.rollouts] == [
            (place, sample) for place in range(TASKS) for sample in range(3)
        ]
    assert keys["verbatim"] == keys["dropped"]
    other = ScriptedDecoder(lambda request: WRONG)
    short(other, VERBATIM, temperature=0.7, samples=3, seed=6)
    assert not {one.sampling.key for one in other.requests if one.sampling} & {*keys["verbatim"]}


def test_greedy_replies_are_drawn_without_luck() -> None:
    decoder = ScriptedDecoder(says(WRONG))
    short(decoder, VERBATIM)
    assert {request.sampling for request in decoder.requests} == {None}


def test_a_primed_rollout_starts_behind_a_failure() -> None:
    decoder = ScriptedDecoder(lambda request: WRONG)
    result = short(decoder, VERBATIM, primed=True)
    for one, episode in zip(result.rollouts, PRIMED, strict=True):
        last = episode.trajectory.steps[-1]
        assert isinstance(last, Step)
        assert last.failed
        assert one.given == last.action.text
        assert one.given_meaning == OFFICE.replies.canonical(last.action.text)
        assert len(one.turns) == 4
    assert result.setting.primed
    assert result.estimates["next_action_repeat"].value == 0
    assert {one.given for one in short(ScriptedDecoder(says(WRONG)), VERBATIM).rollouts} == {None}


def test_who_makes_the_given_call_again_repeats_it_in_every_step() -> None:
    def again(request: ReplyRequest) -> str:
        last = PRIMED[episode_of(request, PRIMED)].trajectory.steps[-1]
        assert isinstance(last, Step)
        return f"Action: `{last.action.text}`"

    result = short(ScriptedDecoder(again), remedied("dropped"), primed=True)
    for name in ("next_action_repeat", "exact_repeat_rate", "consecutive_repeat_rate"):
        assert result.estimates[name].value == 1
    assert result.by_construction is not None
    assert "(k-1)/k of its k failures, or all k where it makes the given" in result.by_construction


@dataclass
class Backwards:
    """The office with its tasks in the other order."""

    inner: ToolCallsEnvironment = OFFICE

    def episodes(self, count: int, **how: Any) -> Sequence[Episode]:
        return self.inner.episodes(count, **how)[::-1]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class Dressed(Backwards):
    """The office, with given failures written as a model might."""

    def episodes(self, count: int, **how: Any) -> Sequence[Episode]:
        dressed = []
        for episode in self.inner.episodes(count, **how):
            *before, last = episode.trajectory.steps
            assert isinstance(last, Step)
            step = replace(last, action=Action(f"Action: `{last.action.text}`"))
            trajectory = replace(episode.trajectory, steps=(*before, step))
            dressed.append(replace(episode, trajectory=trajectory))
        return dressed


def test_a_given_action_is_read_as_a_reply_is() -> None:
    decoder = ScriptedDecoder(lambda request: WRONG)
    plain, dressed = (
        short(decoder, VERBATIM, environment=environment, primed=True)
        for environment in (OFFICE, Dressed())
    )
    given = [(one.given, one.given_meaning) for one in dressed.rollouts]
    assert given == [(one.given, one.given_meaning) for one in plain.rollouts]


def test_a_task_goes_the_same_way_wherever_it_stands() -> None:
    def script(request: ReplyRequest) -> str:
        place = episode_of(request)
        return solves(request) if place % 2 else (WRONG, WORKS, "Well.", "")[steps_before(request)]

    one, other = (
        short(ScriptedDecoder(script), VERBATIM, environment=environment)
        for environment in (OFFICE, Backwards())
    )
    by_task = {each.task_id: replace(each, place=0) for each in other.rollouts}
    assert {each.task_id: replace(each, place=0) for each in one.rollouts} == by_task
    assert other.setting.tasks == one.setting.tasks[::-1]
    for name in ("success", "canonical_repeat_rate", "prose_rate"):
        assert one.estimates[name].value == other.estimates[name].value


def test_a_dropped_record_repeats_all_but_one_failure_when_decoding_is_greedy() -> None:
    """The (k-1)/k: the reply is a function of the prompt, whatever the function is."""

    def script(request: ReplyRequest) -> str:
        # So many steps of the solution, then the same wrong call for good.
        place, step = episode_of(request), steps_before(request)
        good = min(place % 3, len(EPISODES[place].task.solution) - 1)
        return solves(request) if step < good else f"list_team(team='{place}')"

    result = short(ScriptedDecoder(script), remedied("dropped"))
    for one in result.rollouts:
        k = sum(turn.failed for turn in one.turns)
        assert k >= 2
        for name in ("exact_repeat_rate", "canonical_repeat_rate", "consecutive_repeat_rate"):
            assert rollout_measure_named(name).of(one) == (k - 1) / k
    assert {sum(turn.failed for turn in one.turns) for one in result.rollouts} >= {3, 4}
    assert result.by_construction == (
        "at temperature 0 it repeats (k-1)/k of its k failures: the context is unchanged, so is "
        "the reply"
    )


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        pytest.param("dropped", {"temperature": 0.7}, id="luck changes"),
        pytest.param("dropped+instructed", {}, id="the instruction comes with the failure"),
        pytest.param("dropped+redirected", {}, id="the nudge comes with the failure"),
        pytest.param("described", {}, id="the description is counted"),
        pytest.param("verbatim", {}, id="the failure stands there"),
    ],
)
def test_nothing_is_said_to_be_so_by_construction_where_it_may_not_be(
    name: str, settings: dict[str, Any]
) -> None:
    result = short(ScriptedDecoder(lambda request: WRONG), remedied(name), **settings)
    assert result.by_construction is None


def failing(trajectory: Trajectory) -> str:
    failures = [step for step in trajectory.steps if isinstance(step, Step) and step.failed]
    if failures and trajectory.goal == EPISODES[3].trajectory.goal:
        raise KeyError("lost")
    return trajectory.goal


def test_an_error_of_the_harness_names_the_task_and_breaks_the_job_off() -> None:
    recorder = Recorder()
    with pytest.raises(HarnessError, match=rf"case '{EPISODES[3].task_id}'.*KeyError: 'lost'"):
        short(ScriptedDecoder(lambda request: WRONG), failing, progress=recorder)
    assert recorder.told[-1] is False


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(says(WRONG), id="all at the limit"),
        pytest.param(solves, id="all solved"),
        pytest.param(says(WRONG, ""), id="all quit"),
        pytest.param(lambda request: Refusal("no"), id="none started"),
        pytest.param(
            lambda request: [solves, says(WRONG), says("")][episode_of(request) % 3](request),
            id="all kinds",
        ),
    ],
)
def test_the_progress_grows_and_reaches_its_total(script: Script) -> None:
    recorder = Recorder()
    short(ScriptedDecoder(script), VERBATIM, progress=recorder)
    start, *done, last = recorder.told
    assert start == ("verbatim on tool_calls: rollouts", TASKS * 4)
    reached = [each for each in done if isinstance(each, int)]
    assert reached == sorted(reached)
    assert reached[-1] == TASKS * 4
    assert last is True


def test_a_primed_job_is_called_so_and_counts_samples() -> None:
    recorder = Recorder()
    decoder = ScriptedDecoder(lambda request: WRONG)
    short(
        decoder, VERBATIM, primed=True, block="masked", samples=2, temperature=1.0,
        progress=recorder,
    )  # fmt: skip
    assert recorder.told[0] == (
        "verbatim+masked on tool_calls: primed rollouts", TASKS * 2 * 4
    )  # fmt: skip
    assert recorder.told[1] == TASKS * 2


def test_a_decoder_is_never_asked_for_nothing() -> None:
    decoder = ScriptedDecoder(lambda request: "")
    short(decoder, VERBATIM)
    assert [len(batch) for batch in decoder.batches] == [TASKS]


def cut(text: str) -> Reply:
    return Reply(text, "length", OFFICE.reply_tokens, OFFICE.reply_tokens, 100)


@pytest.mark.parametrize(
    ("reply", "writing", "outcome", "warning"),
    [
        pytest.param("I would rather not.", "prose", "limit", None, id="prose"),
        pytest.param("", "empty", "quit", None, id="nothing"),
        pytest.param(cut("save_document(text='" + "la " * 900), "truncated", "limit",
                     "4 of 4 replies were cut at the length that a reply may have", id="endless"),
        pytest.param("open_document(path='\ufffd\ufffd')", "valid", "limit",
                     "4 of 4 replies held bytes that are no text", id="bytes that are no text"),
        pytest.param("\ufffd" * 40, "prose", "limit", "4 of 4 replies held bytes", id="no text"),
        pytest.param("(" * 5000, "prose", "limit", None, id="deep"),
        pytest.param("f(" * 5000, "prose", "limit", None, id="deeper"),
        pytest.param(f"list_team(team={'9' * 6000})", "invalid", "limit", None, id="long number"),
        pytest.param("list_team(team='\\x00\\ud800')", "valid", "limit", None, id="odd escapes"),
        pytest.param(Reply("", "dead end", 0, 40, 100, 9), "empty", "quit",
                     "1 of 1 replies came to a dead end", id="dead end"),
    ],
)  # fmt: skip
def test_whatever_a_model_says_is_counted(
    reply: str | Reply, writing: str, outcome: str, warning: str | None
) -> None:
    result = short(ScriptedDecoder(lambda request: reply), VERBATIM, tasks=1)
    (one,) = result.rollouts
    assert {turn.writing for turn in one.turns} == {writing}
    assert one.outcome == outcome
    assert all(turn.failed for turn in one.turns)
    said = [text for text in result.warnings if " replies " in text and "floor" not in text]
    assert [text.startswith(warning or "") for text in said] == [True] * bool(warning)
    assert result.on_the_floor == (writing != "valid")


def test_the_counts_of_a_reply_stand_in_its_turn() -> None:
    reply = Reply(f"Action: {WRONG}\n", "line", 9, 33, 250, 4, ("folded",))
    decoder = ScriptedDecoder(lambda request: reply if episode_of(request) else WORKS)
    result = short(decoder, VERBATIM)
    turn = result.rollouts[1].turns[0]
    assert turn.reply == reply.text
    assert (turn.action, turn.ended) == (WRONG, "line")
    assert (turn.n_tokens, turn.n_decoded, turn.prompt_tokens, turn.blocked) == (9, 33, 250, 4)
    # In how many rollouts, not in how many replies.
    assert result.adaptations == (("folded", TASKS - 1),)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"tasks": 0}, r"cannot give 0 tasks: .* Ask for 1 to 192"),
        ({"tasks": 193}, r"cannot give 193 tasks: .* Ask for 1 to 192"),
        ({"tasks": 0, "primed": True}, r"cannot give 0 cases: .* Ask for 1 to"),
        ({"demonstrations": -1}, r"cannot give -1 demonstrations: ask for 0 to \d+"),
        ({"demonstrations": 99}, r"cannot give 99 demonstrations: ask for 0 to \d+"),
        ({"max_steps": 0}, r"max_steps must be 1 or more, not 0"),
        ({"samples": 0, "temperature": 1.0}, r"samples must be 1 or more, not 0"),
        ({"samples": 2}, r"2 samples at temperature 0 .*: give a temperature, .* or one sample"),
        ({"temperature": math.nan}, r"temperature must be 0 \(greedy\) or more, not nan"),
        ({"temperature": math.inf}, r"temperature must be 0 \(greedy\) or more, not inf"),
        ({"temperature": -1.0}, r"temperature must be 0 \(greedy\) or more, not -1\.0"),
        ({"block": "searchd"}, r"block is 'searchd', .*searched-exact.*did you mean 'searched'\?"),
        ({"environment": ToolCallsEnvironment(action_format="native")},
         r"driven in the format 'native'.*use action_format \"python\" or \"json\""),
        ({"environment": ProgramRepairEnvironment()},
         r"not run unless you say so.*--failgain-allow-code-execution"),
    ],
)  # fmt: skip
def test_an_argument_that_does_not_fit_is_refused_before_anything_is_decoded(
    wrong: dict[str, Any], said: str
) -> None:
    decoder, recorder = ScriptedDecoder(says(WRONG)), Recorder()
    with pytest.raises(UsageError, match=said):
        short(decoder, VERBATIM, progress=recorder, **wrong)
    assert decoder.batches == recorder.told == []


def test_the_setting_tells_how_the_rollouts_were_run() -> None:
    decoder = ScriptedDecoder(lambda request: WRONG)
    setting = short(decoder, VERBATIM, temperature=0.5, samples=2, seed=3, primed=True).setting
    assert setting.environment == "tool_calls"
    assert setting.model == decoder.identity
    assert setting.tasks == tuple(episode.task_id for episode in PRIMED)
    assert (setting.max_steps, setting.demonstrations, setting.seed) == (4, 0, 3)
    assert (setting.temperature, setting.samples) == (0.5, 2)


def test_failgain_tells_of_every_rollout_and_takes_its_own_number_of_tasks() -> None:
    told: list[Rollouts] = []
    recorder = Recorder()
    failgain = Failgain(
        ScriptedDecoder(says(WRONG)), cases=2, progress=recorder, on_rolled_out=told.append
    )
    environment = failgain.environment("tool_calls")
    result = failgain.rollout(VERBATIM, environment, tasks=24, max_steps=2, demonstrations=0)
    assert told == [result]
    assert len(result.rollouts) == len(result.setting.tasks) == 2
    assert recorder.told[0] == ("verbatim on tool_calls: rollouts", 4)
    assert {len(one.turns) for one in result.rollouts} == {2}


def test_failgain_refuses_what_can_not_decode_and_where_nothing_can_act() -> None:
    office: Any = OFFICE
    with pytest.raises(UsageError, match=r"FakeScorer scores but writes no replies: .*Decoder"):
        Failgain(FakeScorer()).rollout(VERBATIM, office)

    class Cases:
        name = "my cases"
        cases = OFFICE.cases

    with pytest.raises(UsageError, match=r"'my cases', which lacks .*episodes"):
        Failgain(ScriptedDecoder(says(WRONG))).rollout(VERBATIM, Cases())


def test_user_turns_of_a_harness_are_no_failures_to_block() -> None:
    decoder = ScriptedDecoder(lambda request: WORKS)
    short(decoder, remedied("redirected+masked"), demonstrations=3)
    assert {block.actions for request in decoder.requests if (block := request.block)} == set()
    assert any(isinstance(step, UserTurn) for step in OFFICE.episodes(1)[0].trajectory.steps)
    assert re.search("masked", short(decoder, remedied("masked")).harness)
