from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_failgain.blocking.block import Block
from pytest_failgain.environments.program_repair.replies import PROGRAMS
from pytest_failgain.prompt import Prompt
from pytest_failgain.replies import CALL_LINES
from pytest_failgain.scoring.protocol import Reply, ReplyRequest, Sampling
from pytest_failgain.scoring.reply_store import ReplyCache, ReplyStore, request_key
from strategies import quick, texts

KEY = b"k" * 16
REPLY = Reply("f('é')\n", "line", 3, 5, 70, blocked=2)
PROMPT = Prompt(messages=({"role": "user", "content": "Hi."},))
BLOCK = Block(("f()", "g()"), CALL_LINES)
REQUEST = ReplyRequest(PROMPT, CALL_LINES, 20, BLOCK, Sampling(0.7, "a"))


def test_a_cache_knows_what_was_put_into_it() -> None:
    cache = ReplyCache()
    assert cache.get(KEY) is None
    cache.put_all([(KEY, REPLY)])
    assert cache.get(KEY) == REPLY


@quick
@given(st.builds(Reply, texts, texts, *[st.integers(0, 99)] * 4))
def test_another_process_reads_the_very_reply(
    tmp_path_factory: pytest.TempPathFactory, reply: Reply
) -> None:
    path = tmp_path_factory.mktemp("kept") / "replies.db"
    ReplyStore(path, "model").put_all([(KEY, reply)])
    read = ReplyStore(path, "model").get(KEY)
    assert read == reply
    assert hash(read) == hash(reply)


def test_how_a_prompt_was_adapted_is_not_kept_with_its_reply(tmp_path: Path) -> None:
    path = tmp_path / "replies.db"
    ReplyStore(path, "model").put_all([(KEY, replace(REPLY, adaptations=("folded",)))])
    assert ReplyStore(path, "model").get(KEY) == REPLY


def test_replies_of_another_model_are_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "replies.db"
    ReplyStore(path, "one").put_all([(KEY, REPLY)])
    other = ReplyStore(path, "other")
    assert other.get(KEY) is None
    other.put_all([(KEY, replace(REPLY, text="g()"))])
    assert ReplyStore(path, "one").get(KEY) == REPLY


def test_a_file_that_is_no_use_is_told_and_replies_are_kept_in_memory(tmp_path: Path) -> None:
    told: list[str] = []
    (tmp_path / "file").touch()
    store = ReplyStore(tmp_path / "file" / "replies.db", "model", told.append)
    store.put_all([(KEY, REPLY)])
    assert store.get(KEY) == REPLY
    assert "replies can't be opened" in told[0]


def test_row_that_holds_no_reply_is_damage(tmp_path: Path) -> None:
    told: list[str] = []
    path = tmp_path / "replies.db"
    ReplyStore(path, "model").put_all([(KEY, REPLY)])
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE replies SET reply = ?", [b'{"text": "a"}'])
    connection.close()
    store = ReplyStore(path, "model", told.append)
    assert store.get(KEY) is None
    assert "is damaged (a row holds no reply: " in told[0]
    store.put_all([(KEY, REPLY)])
    assert ReplyStore(path, "model").get(KEY) == REPLY


@pytest.mark.parametrize(
    "change",
    [
        {"style": PROGRAMS},
        {"max_tokens": 21},
        {"block": None},
        {"block": Block(("f()",), CALL_LINES)},
        {"block": Block(BLOCK.actions, CALL_LINES, match="exact")},
        {"block": Block(BLOCK.actions, CALL_LINES, way="searched")},
        {"block": Block(BLOCK.actions, PROGRAMS)},
        {"sampling": None},
        {"sampling": Sampling(0.7, "b")},
        {"sampling": Sampling(0.8, "a")},
    ],
)
def test_whatever_may_give_another_reply_gives_another_key(change: dict[str, Any]) -> None:
    assert request_key((1, 2), replace(REQUEST, **change)) != request_key((1, 2), REQUEST)


def test_another_prompt_gives_another_key() -> None:
    keys = {request_key(prompt, REQUEST) for prompt in [(1, 2), (2, 1), (12,), (1, 2, 0)]}
    assert len(keys) == 4


def test_the_order_of_failed_actions_gives_no_other_key() -> None:
    same = Block(("g()", "f()", "g()"), CALL_LINES)
    assert request_key((1,), replace(REQUEST, block=same)) == request_key((1,), REQUEST)


def test_a_block_of_nothing_gives_the_key_of_no_block() -> None:
    nothing = replace(REQUEST, block=Block(("",), CALL_LINES))
    assert request_key((1,), nothing) == request_key((1,), replace(REQUEST, block=None))
