"""Rollouts with a real, tiny model whose replies are kept in a folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import tiny_language_models as tiny
from pytest_failgain.environments.tool_calls import ToolCallsEnvironment
from pytest_failgain.harnesses import VERBATIM, remedied
from pytest_failgain.progress import NoProgress
from pytest_failgain.rollout.results import Rollouts
from pytest_failgain.rollout.run import rollout
from pytest_failgain.scoring.local import LocalScorer
from pytest_failgain.scoring.protocol import Reply
from pytest_failgain.scoring.reply_store import ReplyStore

TASKS, STEPS = 3, 4


class CountingStore(ReplyStore):
    """Counts the replies that were decoded, since each of them is put here."""

    decoded = 0

    def put_all(self, replies: Iterable[tuple[bytes, Reply]]) -> None:
        kept = list(replies)
        self.decoded += len(kept)
        super().put_all(kept)


class Office(ToolCallsEnvironment):
    """The office, in which replies are short."""

    reply_tokens = 12


class BreaksOff(NoProgress):
    """A job that is interrupted when so much is done."""

    def __init__(self, at: int) -> None:
        self.at = at

    def advance(self, done: int) -> None:
        if done >= self.at:
            raise KeyboardInterrupt


def decoder_in(folder: Path) -> tuple[LocalScorer, CountingStore]:
    """A new process's decoder, as far as it can tell."""
    model: Any = tiny.llama()
    # A byte is a token, and the office's system prompt has 1,400.
    model.config.max_position_embeddings = 4096
    store = CountingStore(folder / "replies.sqlite3", "tiny")
    return tiny.tiny_scorer(model, known_replies=store), store


def run(scorer: LocalScorer, name: str = "verbatim", **settings: Any) -> Rollouts:
    given = {"tasks": TASKS, "max_steps": STEPS, "demonstrations": 0, **settings}
    return rollout(scorer, remedied(name), Office(), **given)


def test_a_random_model_drives_to_the_limit_and_everything_is_counted(tmp_path: Path) -> None:
    scorer, store = decoder_in(tmp_path)
    result = run(scorer)
    assert sum(result.outcomes.values()) == TASKS
    turns = [turn for one in result.rollouts for turn in one.turns]
    assert store.decoded == len(turns) > TASKS
    assert result.on_the_floor
    assert all(0 < turn.n_tokens <= Office.reply_tokens for turn in turns)
    assert all(turn.prompt_tokens > 1000 for turn in turns)


@pytest.mark.parametrize("name", ["verbatim", "dropped+masked"])
def test_a_second_run_decodes_nothing_and_ends_alike(tmp_path: Path, name: str) -> None:
    scorer, store = decoder_in(tmp_path)
    first = run(scorer, name, primed=True, temperature=0.7, samples=2)
    assert store.decoded > 0
    again, unused = decoder_in(tmp_path)
    assert run(again, name, primed=True, temperature=0.7, samples=2) == first
    assert unused.decoded == 0


def test_a_run_that_broke_off_goes_on_where_it_was(tmp_path: Path) -> None:
    scorer, whole = decoder_in(tmp_path / "whole")
    expected = run(scorer)
    scorer, begun = decoder_in(tmp_path / "broken")
    with pytest.raises(KeyboardInterrupt):
        run(scorer, progress=BreaksOff(at=3 * TASKS))
    scorer, rest = decoder_in(tmp_path / "broken")
    assert run(scorer) == expected
    assert begun.decoded == 3 * TASKS
    assert begun.decoded + rest.decoded == whole.decoded


def test_equal_prompts_are_decoded_once_across_steps_and_harnesses(tmp_path: Path) -> None:
    scorer, store = decoder_in(tmp_path)
    dropped = run(scorer, "dropped")
    # The context is unchanged after each failure.
    assert {len(one.turns) for one in dropped.rollouts} == {STEPS}
    assert store.decoded == TASKS
    verbatim = rollout(scorer, VERBATIM, Office(), TASKS, 1, demonstrations=0)
    assert store.decoded == TASKS
    assert [one.turns for one in verbatim.rollouts] == [
        one.turns[:1] for one in dropped.rollouts
    ]  # fmt: skip


def test_a_context_that_grows_too_long_ends_a_rollout_as_full(tmp_path: Path) -> None:
    scorer, _ = decoder_in(tmp_path)
    longest = max(one.turns[0].prompt_tokens for one in run(scorer, max_steps=1).rollouts)
    scorer.model.config.max_position_embeddings = longest + 30
    result = run(scorer)
    assert "full" in {one.outcome for one in result.rollouts}
    assert all(one.turns for one in result.rollouts)
    scorer.model.config.max_position_embeddings = 1000
    result = run(scorer)
    assert result.rollouts == ()
    assert {one.reason.partition(" tokens, ")[2] for one in result.not_started} == {
        "the model takes 1000"
    }
