from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given

from fake_scorer import FakeScorer, failure_case
from pytest_failgain.blocking.block import MATCHES, WAYS, Block
from pytest_failgain.blocking.kinds import BLOCKS, BlockKind
from pytest_failgain.errors import UsageError
from pytest_failgain.harnesses import (
    VERBATIM,
    Harness,
    RemediedHarness,
    harness_name,
    remedied,
    render_verbatim,
    with_remedy,
)
from pytest_failgain.measurement import measure
from pytest_failgain.prompt import Message
from pytest_failgain.remedies import INSTRUCTION, NUDGE, REMEDIES
from pytest_failgain.replies import CALL_LINES
from pytest_failgain.trajectory import Action, Step, ToolCall, Trajectory, UserTurn
from strategies import (
    plain_harnesses,
    quick,
    remedy_names,
    render_as_text,
    trajectories,
)

ASK = Step(Action("find(name='Ann')"), "ann@corp.example")
FAIL = Step(Action("send(to='Ann')"), "ValueError: no '@' in 'Ann'", True, "format_error", "send")
START = Trajectory(system="You call tools.", goal="Write to Ann.", steps=(ASK,))
FAILED = START.then(FAIL)


def test_verbatim_writes_text_steps_as_the_experiment_did() -> None:
    assert VERBATIM(FAILED.then(UserTurn("Go on."), Step(Action("Which Ann?"), None))) == [
        {"role": "system", "content": "You call tools."},
        {"role": "user", "content": "Write to Ann."},
        {"role": "assistant", "content": "find(name='Ann')"},
        {"role": "user", "content": "Observation: ann@corp.example"},
        {"role": "assistant", "content": "send(to='Ann')"},
        {"role": "user", "content": "Observation: ValueError: no '@' in 'Ann'"},
        {"role": "user", "content": "Go on."},
        {"role": "assistant", "content": "Which Ann?"},
    ]


def test_verbatim_writes_structured_calls_as_chat_apis_do() -> None:
    calls = (ToolCall("find", '{"name": "Ann"}'), ToolCall("finish", "{}"))
    trajectory = Trajectory("", "Write to Ann.", (Step(Action("So:", calls), "done"),))
    assert VERBATIM(trajectory) == [
        {"role": "user", "content": "Write to Ann."},
        {
            "role": "assistant",
            "content": "So:",
            "tool_calls": [
                {
                    "id": "call00000",
                    "type": "function",
                    "function": {"name": "find", "arguments": '{"name": "Ann"}'},
                },
                {
                    "id": "call00001",
                    "type": "function",
                    "function": {"name": "finish", "arguments": "{}"},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "call00000", "name": "find", "content": "done"},
        {"role": "tool", "tool_call_id": "call00001", "name": "finish", "content": "done"},
    ]


@quick
@given(trajectory=trajectories())
def test_every_call_has_its_own_id_and_every_answer_names_a_call(trajectory: Trajectory) -> None:
    messages = render_verbatim(trajectory)
    calls = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    answers = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert len(set(calls)) == len(calls)
    assert set(answers) <= set(calls)
    assert all(len(identity) == 9 and identity.isalnum() for identity in calls)


def test_remedies_come_before_a_harness_of_ones_own() -> None:
    def history(trajectory: Trajectory) -> Sequence[Message] | str:
        return render_as_text(trajectory)

    described = remedied("described", history)
    assert described(FAILED) == render_as_text(REMEDIES["described"].transform(FAILED))
    assert "Ann')\nResult: ValueError" not in str(described(FAILED))
    assert described.base is history
    assert described.name == "test_remedies_come_before_a_harness_of_ones_own.history+described"


@quick
@given(trajectory=trajectories(), harness=plain_harnesses)
def test_verbatim_stands_for_the_harness_as_it_is(trajectory: Trajectory, harness: Harness) -> None:
    assert remedied("verbatim", harness)(trajectory) == harness(trajectory)


@quick
@given(trajectory=trajectories(), names=remedy_names, harness=plain_harnesses)
def test_the_order_in_the_name_does_not_matter(
    trajectory: Trajectory, names: list[str], harness: Harness
) -> None:
    orders = itertools.islice(itertools.permutations([*names, "masked"]), 50)
    made = [remedied("+".join(order), harness) for order in orders]
    backwards = remedied("+".join(["masked", *names[::-1]]), harness)
    for one in (*made, backwards):
        assert one(trajectory) == made[0](trajectory)
        assert replace(one, name="") == replace(made[0], name="")


def test_the_instruction_is_given_because_of_failures_that_are_then_described_or_dropped() -> None:
    for name in ("described", "dropped"):
        prompt = remedied(f"{name}+instructed", render_as_text)(FAILED)
        assert isinstance(prompt, str)
        assert INSTRUCTION in prompt
        assert "send(to='Ann')" not in prompt


def test_names_may_have_spaces() -> None:
    assert remedied(" verbatim + instructed ").name == "verbatim+instructed"
    assert remedied("verbatim+instructed").remedies == (REMEDIES["instructed"],)


EVERY_NAME = f"verbatim, {', '.join(REMEDIES)}, and at the decoder: {', '.join(BLOCKS)}"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "abstract",
            f"there is no remedy 'abstract' (in 'abstract'); there are: {EVERY_NAME}; join several",
        ),
        ("masked+masked", "the remedy 'masked' stands twice in 'masked+masked'"),
        ("described+", "there is no remedy '' (in 'described+'); there are: "),
        ("", "there is no remedy '' (in ''); there are: "),
        ("described+described", "the remedy 'described' stands twice in 'described+described'"),
        ("verbatim+verbatim", "the remedy 'verbatim' stands twice in 'verbatim+verbatim'"),
    ],
)
def test_a_name_that_is_none(name: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        remedied(name)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("taking_away", ["described", "described-minimal", "dropped"])
@pytest.mark.parametrize("changing", ["collapsed", "stripped", "advised"])
def test_a_failed_step_is_not_both_changed_and_taken_away(changing: str, taking_away: str) -> None:
    with pytest.raises(UsageError) as caught:
        remedied(f"{changing}+{taking_away}")
    assert str(caught.value) == (
        f"{taking_away} and {changing} in '{changing}+{taking_away}' can't be joined: "
        f"{taking_away} takes away the failed step that {changing} would change; choose one"
    )


def test_a_failed_step_is_not_taken_away_twice() -> None:
    with pytest.raises(UsageError, match=r"described and dropped in .* each takes the failed step"):
        remedied("described+instructed+dropped")


def test_failures_are_counted_before_their_arguments_are_gone_and_advice_is_given() -> None:
    other = replace(FAIL, action=Action("send(to='Bob')"), records={"advised": "Ask Bob."})
    again = replace(FAIL, records={"advised": "Ask Eve."})
    harness = remedied("advised+labelled+stripped+collapsed", render_as_text)
    assert str(harness(START.then(FAIL, other, again))).splitlines()[4:] == [
        "Agent: send(...)",
        "Result: [failed] ValueError: no '@' in 'Ann'",
        "Ask Bob. (True)",
        "Agent: send(...)",
        "Result: [failed] ValueError: no '@' in 'Ann'",
        "[Tried 2 times; it failed in the same way each time.]",
        "Ask Eve. (True)",
    ]


def test_a_description_may_be_followed_by_a_nudge() -> None:
    prompt = remedied("redirected+described-minimal")(FAILED)
    assert isinstance(prompt, list)
    assert list(prompt[-2:]) == [
        {"role": "user", "content": "[Attempt 1 failed.]"},
        {"role": "user", "content": NUDGE},
    ]


def test_dropping_makes_something_certain_by_construction_and_only_by_itself() -> None:
    assert remedied("dropped").by_construction == (
        "gain 0: the retry's context is the one before the attempt"
    )
    for name in ("dropped+instructed", *(set(REMEDIES) - {"dropped"})):
        assert remedied(name).by_construction is None
    assert VERBATIM.by_construction is None


FORBIDDEN = "no failed action is made again: the decoder forbids it"


@pytest.mark.parametrize(
    ("name", "certain"),
    [
        ("verbatim+masked", FORBIDDEN),
        ("described+searched", FORBIDDEN),
        (
            "verbatim+searched-exact",
            "no failed action is made again in the same words: the decoder forbids it",
        ),
        # Nothing of a gain, which is not measured with a block.
        (
            "dropped+searched",
            f"the retry's context is the one before the attempt, and {FORBIDDEN}",
        ),
        ("dropped+instructed+masked", FORBIDDEN),
    ],
)
def test_what_a_block_makes_certain(name: str, certain: str) -> None:
    assert remedied(name).by_construction == certain


def test_blocks_are_named_by_way_and_by_a_match_that_is_not_the_usual_one() -> None:
    assert {name: (kind.way, kind.match) for name, kind in BLOCKS.items()} == {
        "masked": ("masked", "canonical"),
        "masked-exact": ("masked", "exact"),
        "searched": ("searched", "canonical"),
        "searched-exact": ("searched", "exact"),
    }
    assert len(BLOCKS) == len(WAYS) * len(MATCHES)
    usual = Block((), CALL_LINES)
    assert BLOCKS["masked"] == BlockKind("masked") == BlockKind(usual.way, usual.match)


@pytest.mark.parametrize("kind", BLOCKS.values(), ids=list(BLOCKS))
@quick
@given(trajectory=trajectories(), harness=plain_harnesses, names=remedy_names)
def test_a_block_changes_no_prompt(
    trajectory: Trajectory, harness: Harness, names: list[str], kind: BlockKind
) -> None:
    name = "+".join(names)
    blocked = remedied(f"{name}+{kind.name}", harness)
    assert blocked.block == kind
    assert blocked.name == f"{remedied(name, harness).name}+{kind.name}"
    assert blocked(trajectory) == remedied(name, harness)(trajectory)


def test_without_a_block_in_the_name_there_is_none() -> None:
    assert remedied("verbatim+described").block is None


def test_a_remedy_more_keeps_the_block() -> None:
    more = with_remedy(remedied("instructed+searched"), REMEDIES["described"])
    assert more == replace(remedied("instructed+described+searched"), name=more.name)
    assert more.name == "instructed+searched+described"


def test_a_harness_that_has_a_block_keeps_it_below_others() -> None:
    below = remedied("masked", render_as_text)
    assert remedied("described", below).block == BLOCKS["masked"]
    with pytest.raises(UsageError, match=r"^masked and searched can't be joined"):
        remedied("searched", below)


def test_two_blocks_can_not_be_joined() -> None:
    with pytest.raises(UsageError) as caught:
        remedied("masked+described+searched-exact")
    assert str(caught.value) == (
        "masked and searched-exact can't be joined (in 'masked+described+searched-exact'): a "
        "decoder blocks failed actions in one way; choose one"
    )


def test_a_harness_with_a_block_is_not_measured() -> None:
    with pytest.raises(UsageError, match=r"'verbatim\+masked' has the block 'masked'.* without it"):
        measure(FakeScorer(), remedied("verbatim+masked"), [failure_case()])


class Window:
    """A harness that is an object, such as one with settings."""

    def __call__(self, trajectory: Trajectory) -> str:
        return trajectory.goal

    def render(self, trajectory: Trajectory) -> str:
        return trajectory.goal


class Named(Window):
    name = "window"


class Misnamed(Window):
    name = 7


@pytest.mark.parametrize(
    ("harness", "name"),
    [
        (VERBATIM, "verbatim"),
        (RemediedHarness("mine", render_as_text), "mine"),
        (render_as_text, "render_as_text"),
        (Named(), "window"),
        (Window(), "Window"),
        (Misnamed(), "Misnamed"),
        (Window().render, "Window.render"),
    ],
)
def test_a_harness_is_called_by_its_name_or_by_how_it_was_defined(harness: Any, name: str) -> None:
    assert harness_name(harness) == name


def test_a_partial_has_the_name_of_its_function() -> None:
    def render(style: str, trajectory: Trajectory) -> list[Message]:
        return [{"role": "user", "content": style + trajectory.goal}]

    named = partial(partial(render), "brief: ")
    assert harness_name(named).endswith("render")
    assert harness_name(remedied("described", named)).endswith("render+described")
