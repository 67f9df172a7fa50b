from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_failgain.blocking.block import MATCHES, WAYS, Block
from pytest_failgain.environments.program_repair.replies import PROGRAMS
from pytest_failgain.errors import UsageError
from pytest_failgain.replies import CALL_LINES
from strategies import quick

FAILED = "book(room='A', day=3)"
# The same call written differently.
SPELLINGS = (
    'book(room="A", day=3)',
    "book(day=3, room='A')",
    "book( room = 'A' ,day=3, )",
    "book(room='B', room='A', day=3)",
    "(book(room='A', day=3))",
    "book(room=('A'), day=0b11)",
    "book(room='A', day=3) # again",
    "book(room='\\x41', day=3)",
    '{"name": "book", "arguments": {"room": "A", "day": 3}}',
    '{"arguments": "{\\"day\\": 3, \\"room\\": \\"A\\"}", "name": "book"}',
)
# What stands around a call without being part of it.
DRESSED = (
    "Action: {}",
    "`{}`",
    "`Action: {}`",
    "```python\n{}\n```",
    "Answer: ```json {}```",
    "\n\n  {}  \nand so on",
    "```\nAction: `tool: {}`",
    "{}\n" + FAILED.replace("3", "4"),
)
OTHERS = (
    "book(room='A', day=4)",
    "book(room='A', day=3.0)",
    "book(room='A', day='3')",
    "book(room='A')",
    "book(room='A', day=3, hour=1)",
    "book('A', 3)",
    "books(room='A', day=3)",
    "book(room='A', day=3).now()",
    "I book(room='A', day=3)",
    "",
)


def canonical(*actions: str) -> Block:
    return Block(actions, CALL_LINES, match="canonical")


def exact(*actions: str) -> Block:
    return Block(actions, CALL_LINES, match="exact")


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_another_spelling_is_the_same_action_only_canonically(spelling: str) -> None:
    assert canonical(FAILED).repeats(spelling)
    assert canonical(FAILED).forbids(spelling)
    assert not exact(FAILED).repeats(spelling)
    assert canonical(spelling).repeats(FAILED)


@pytest.mark.parametrize("block", [canonical(FAILED), exact(FAILED)])
@pytest.mark.parametrize("dressed", DRESSED)
def test_dressing_hides_nothing(block: Block, dressed: str) -> None:
    reply = dressed.format(FAILED)
    assert block.repeats(reply)
    assert block.forbids(reply)


@pytest.mark.parametrize("block", [canonical(FAILED), exact(FAILED)])
@pytest.mark.parametrize("other", OTHERS)
def test_other_actions_are_allowed(block: Block, other: str) -> None:
    assert not block.repeats(other)
    assert not block.forbids(other, over=True)


def test_a_whole_call_is_forbidden_before_anything_is_written_behind_it() -> None:
    assert canonical(FAILED).forbids(FAILED)
    assert not canonical(FAILED).forbids(FAILED[:-1])


@pytest.mark.parametrize("match", MATCHES)
def test_what_is_no_call_is_forbidden_only_where_the_reply_ends(match: str) -> None:
    block = Block(("find_contact",), CALL_LINES, match=match)
    assert not block.forbids("find_contact")
    assert block.forbids("find_contact\n")
    assert block.forbids("find_contact", over=True)
    assert not block.forbids("find_contact(name='Al')\n", over=True)


def test_words_of_no_call_count_whatever_stands_between_them() -> None:
    assert canonical("book the  room").repeats("book the room")
    assert not exact("book the  room").repeats("book the room")


def test_programs_are_forbidden_only_where_they_end() -> None:
    failed = "def f(a):\n    return a + 1\n"
    again = "def f(a):  # once more\n\n    return (a + 1)"
    block = Block((failed,), PROGRAMS)
    assert not block.forbids(again)
    assert block.forbids(again, over=True)
    assert not block.forbids(f"{again}\n\ndef g(): pass", over=True)
    assert Block((failed,), PROGRAMS, match="exact").repeats(f"\n{failed}")
    assert not Block((failed,), PROGRAMS, match="exact").repeats(again)


@given(st.text(alphabet="`f(=')x \n\tacionstl:A", max_size=30), st.sampled_from(MATCHES))
@example("`Action: find`", "exact")
@example("```Action: ```Action: `f(a='x')", "exact")
@quick
def test_an_action_read_from_a_reply_blocks_that_reply(reply: str, match: str) -> None:
    # What is kept of a failed reply is its action alone.
    action = CALL_LINES.action(reply)
    block = Block((action,), CALL_LINES, match=match)
    assert block.repeats(reply) is bool(block) is bool(action)


@pytest.mark.parametrize("actions", [(), ("",), ("  \n", "```", "Action:")])
def test_nothing_to_forbid_forbids_nothing(actions: tuple[str, ...]) -> None:
    block = Block(actions, CALL_LINES)
    assert not block
    assert not block.forbids("", over=True)
    assert not block.repeats(FAILED)


@pytest.mark.parametrize(
    ("unknown", "known"), [({"way": "banned"}, WAYS), ({"match": "fuzzy"}, MATCHES)]
)
def test_an_unknown_way_or_match_is_refused_by_name(
    unknown: dict[str, str], known: tuple[str, ...]
) -> None:
    (word,) = unknown.values()
    with pytest.raises(UsageError, match=f"'{word}'.* {' or '.join(known)}"):
        Block((FAILED,), CALL_LINES, **unknown)
