from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")

import torch

from pytest_failgain.blocking.block import MATCHES, WAYS, Block
from pytest_failgain.environments.program_repair.replies import PROGRAMS
from pytest_failgain.replies import CALL_LINES, ReplyStyle
from pytest_failgain.scoring.vocabulary import Vocabulary
from pytest_failgain.scoring.writing import Writing
from scripted_models import STOP, PieceTokenizer, bent_on, saying, tree, write
from strategies import quick

WORDS = PieceTokenizer(
    ["f", "g", "(", ")", ")\n", "') ", "'", "a=", "x", "y", "\n", " ", "find", "# no", "`", ", "]
)
CALL = ("f", "(", "a=", "'", "x", "'", ")")
FAILED = "".join(CALL)


@pytest.mark.parametrize("way", WAYS)
def test_without_a_block_the_likeliest_tokens_are_written(way: str) -> None:
    writing = write(saying(WORDS, *CALL), WORDS, way=way)
    assert (writing.text, writing.ended, writing.blocked) == (FAILED, "stop", 0)
    assert writing.n_decoded == len(CALL) + 1


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("match", MATCHES)
def test_another_action_that_begins_alike_is_written_unchanged(way: str, match: str) -> None:
    pieces = (*CALL[:-2], "y", "'", ")")
    writing = write(saying(WORDS, *pieces), WORDS, (FAILED, "find", "f"), way=way, match=match)
    assert (writing.text, writing.ended, writing.blocked) == ("f(a='xy')", "stop", 0)


@pytest.mark.parametrize("way", WAYS)
def test_a_name_that_failed_alone_does_not_take_its_calls_away(way: str) -> None:
    writing = write(saying(WORDS, "find", "(", ")"), WORDS, ("find",), way=way)
    assert (writing.text, writing.blocked) == ("find()", 0)


def test_masked_takes_the_likeliest_token_that_is_allowed() -> None:
    # Behind `f(`, `)` and its likes would be the failed call; `x` comes next.
    chances = {"": {"f": 1.0}, "f": {"(": 1.0}, "f(": {")": 0.5, ")\n": 0.3, "x": 0.15, "y": 0.05}}
    writing = write(tree(WORDS, {**chances, "f(x": {")": 1.0}}, "\n"), WORDS, ("f()",))
    assert (writing.text, writing.ended, writing.blocked) == ("f(x)\n", "line", 1)
    assert writing.n_decoded == 5


TREE = {
    "": {"f": 0.6, "g": 0.4},
    "f": {"(": 0.9, "y": 0.1},
    "f(": {")": 0.7, "x": 0.2, ")\n": 0.1},
    "f(x": {")": 0.7, ", ": 0.3},
    "g": {"(": 0.8, "x": 0.2},
    "g(": {")": 0.55, "y": 0.45},
    "g(y": {")": 1.0},
}


@pytest.mark.parametrize(
    ("failed", "expected"),
    [
        # Masked it would be f(x); but of the whole replies `g` (.4) is likelier than `f(x` (.108).
        (["f()"], "g()"),
        # `g(y` (.144) before `f(x` (.108), which stays there from the earlier path.
        (["f()", "g()"], "g(y)"),
        # And now `f(x`, which is likelier than `gx` (.08) and `fy` (.06).
        (["f()", "g()", "g(y)"], "f(x)"),
        (["f()", "g()", "g(y)", "f(x)"], "gx"),
        (["f()", "g()", "g(y)", "f(x)", "gx"], "fy"),
        # Of what is left `f(x, ` (.0324) is likelier than nothing; `f()\n` is never tried.
        (["f()", "g()", "g(y)", "f(x)", "gx", "fy"], "f(x,"),
    ],
)
def test_a_search_goes_back_to_the_likeliest_branch_of_the_whole_reply(
    failed: Sequence[str], expected: str
) -> None:
    writing = write(tree(WORDS, TREE), WORDS, failed, way="searched")
    assert writing.text.strip() == expected
    assert (writing.ended, writing.blocked) == ("stop", len(failed))


def test_a_search_counts_what_it_went_back_from() -> None:
    writing = write(tree(WORDS, TREE), WORDS, ["f()", "g()"], way="searched")
    # f ( ), g ( ), and y ) stop; the branches themselves are no steps of the model.
    assert writing.n_decoded == 3 + 2 + 2
    assert len(writing.tokens) == 4


def test_a_branch_that_is_forbidden_costs_no_try() -> None:
    chances = {"": {"f": 1.0}, "f": {"(": 1.0}, "f(": {")": 0.6, ")\n": 0.3, "x": 0.1}}
    writing = write(tree(WORDS, chances, ")"), WORDS, ("f()",), way="searched", tries=1)
    assert writing.text.startswith("f(x)")
    assert writing.blocked == 1


# With one try the search stays behind `g(`, and masks there; with two, `f(x` (.12) is likelier.
@pytest.mark.parametrize(
    ("tries", "expected", "blocked"), [(0, "f(x)", 1), (1, "g(y)", 2), (2, "f(x)", 2)]
)
def test_when_the_tries_are_used_up_the_search_masks(
    tries: int, expected: str, blocked: int
) -> None:
    chances = {**TREE, "g": {"(": 1.0}, "g(": {")": 0.9, "y": 0.1}}
    writing = write(tree(WORDS, chances), WORDS, ("f()", "g()"), way="searched", tries=tries)
    assert (writing.text, writing.blocked) == (expected, blocked)


def test_a_branch_counts_all_that_led_to_it() -> None:
    # Back at `fy` (.352), the way on to `fyx` (.116) is less likely than `g` (.12).
    chances = {
        "": {"f": 0.88, "g": 0.12},
        "f": {"(": 0.6, "y": 0.4},
        "f(": {")": 1.0},
        "fy": {")": 0.67, "x": 0.33},
    }
    writing = write(tree(WORDS, chances), WORDS, ("f()", "fy)"), way="searched")
    assert (writing.text, writing.blocked) == ("g", 2)


def test_of_two_tokens_as_likely_the_one_not_taken_is_a_branch() -> None:
    x, y = WORDS.tokens("x", "y")
    block = Block(("x",), CALL_LINES, way="searched")
    writing = Writing(Vocabulary(WORDS, frozenset({STOP})), CALL_LINES, 1, block)
    # Which of them stands first among the others is the device's choice.
    even = math.log(0.5)
    scores = torch.zeros(len(WORDS.pieces))
    writing.take(scores, x, [(y, even), (x, even)])
    assert (writing.text, writing.blocked) == ("y", 1)


@pytest.mark.parametrize("way", WAYS)
def test_when_nothing_is_allowed_the_reply_is_a_dead_end(way: str) -> None:
    only = PieceTokenizer(["f()"])
    writing = write(lambda reply: [-math.inf, 1.0], only, ("f()",), way=way)
    assert (writing.text, writing.ended, writing.blocked) == ("", "dead end", 1)


def test_a_dead_end_says_nothing_where_that_would_be_a_blocked_action() -> None:
    only = PieceTokenizer(["go", "\n"])
    logits = tree(only, {"": {"go": 1.0}, "go": {"\n": 1.0}})

    def stuck(reply: tuple[int, ...]) -> list[float]:
        return [score if score > -50 else -math.inf for score in logits(reply)]

    writing = write(stuck, only, ("go",))
    assert only.decode(writing.tokens) == "go"
    assert (writing.text, writing.ended) == ("", "dead end")


def test_the_stop_token_is_forbidden_behind_a_failed_action() -> None:
    writing = write(saying(WORDS, "find"), WORDS, ("find",), max_tokens=3)
    # `f` is the next best one; behind that the turn may end.
    assert (writing.text, writing.ended, writing.blocked) == ("findf", "stop", 1)


def test_the_line_break_is_forbidden_behind_a_failed_action() -> None:
    chances = {"": {"find": 1.0}, "find": {"\n": 0.6, "": 0.3, "x": 0.1}}
    writing = write(tree(WORDS, chances), WORDS, ("find",))
    # The end of the turn, which is next best, is forbidden as well.
    assert (writing.text, writing.ended, writing.blocked) == ("findx", "stop", 1)


@pytest.mark.parametrize("way", WAYS)
def test_the_last_token_must_not_leave_a_failed_action(way: str) -> None:
    chances = {"": {"f": 0.9, "x": 0.1}, "f": {"find": 0.6, "y": 0.4}}
    writing = write(tree(WORDS, chances), WORDS, ("ffind",), way=way, max_tokens=2)
    assert (writing.text, writing.ended, writing.blocked) == ("fy", "length", 1)


def test_a_reply_ends_with_the_token_that_holds_the_line_break() -> None:
    writing = write(saying(WORDS, "\n", "f", "(", ")\n", "g"), WORDS)
    assert (writing.text, writing.ended) == ("\nf()\n", "line")


def test_a_reply_that_never_ends_is_cut() -> None:
    writing = write(lambda reply: [0.0, 1.0], PieceTokenizer(["so "]), max_tokens=5)
    assert (writing.text, writing.ended, writing.n_decoded) == ("so " * 5, "length", 5)


def test_a_reply_of_nothing_is_one() -> None:
    writing = write(saying(WORDS), WORDS, ("f()",))
    assert (writing.text, writing.ended, writing.tokens, writing.n_decoded) == ("", "stop", [], 1)


def test_any_of_several_stop_tokens_ends_a_reply() -> None:
    both = frozenset({STOP, WORDS.token("# no")})
    writing = write(saying(WORDS, "f", "# no"), WORDS, stops=both)
    assert (writing.text, writing.ended) == ("f", "stop")


def test_bytes_that_are_no_character_are_written_as_the_sign_for_that() -> None:
    half = PieceTokenizer([b"\xe2\x80", b"\xa8", b"f(", ")"])
    path = [half.token(piece) for piece in (b"f(", b"\xe2\x80", b")")]

    def logits(reply: tuple[int, ...]) -> list[float]:
        row = [0.0] * 5
        row[path[len(reply)] if len(reply) < 3 else STOP] = 1.0
        return row

    writing = write(logits, half, ("f()",))
    assert (writing.text, writing.ended) == ("f(\ufffd)", "stop")


# What a call can be written as, in place of what it is, and still be the same one.
REWRITINGS = (
    *(("'", '"'), ("(", "( "), ("=", " = "), (")", " )"), (", ", ","), (")", ",)")),
    *(("a='x'", "a='y', a='x'"), ("a='x'", "a=('x')"), ("'x'", "'' 'x'"), ("x", "\\x78")),
    *(("f(", "Action: f("), ("f(", "`f("), ("f(", "```python f("), ("f(", "\n```\nf(")),
    *(("f(", "tool: `Action: f("), ("f(", "(f("), (")", ") # y"), (")", ")\n"), ("x", "é")),
    *(("a='x', b=1", "b=1, a='x'"), ("1", "0b1"), ("f(a=", '{"name": "f", "arguments": {"a": ')),
)
CALLS = (
    *("f(a='x')", "f(a='x', b=1)", "f()", "f(a='é')", "g(a=[1, 'x'])", "find", "f(x", "I can't."),
    *('{"name": "f", "arguments": {"a": "x"}}', "`Action: find`", "f(a='x') # y", "a  b", "é"),
)
PROGRAM_TEXTS = (
    "def f(a):\n    return a\n",
    "def f(a):\n    return a + 1",
    "```python\nx = 1\n```",
    "x = 1  # y",
    "def f(",
)
LETTERS = 'fgab xy1()[]{}=\'",:\n`#\\é"Action'
PIECES = (
    *(")\n", "')", "'])", "()", '"}}', ") ", ")`", "```", "Action: ", "f(a='x'", "x')", "\n\n"),
    *("def f(a):\n    ", "return a", " + 1", "  # y", "python\n", "    ", "find", "é'", "',"),
)
# Parts of characters, which come together to one or never do.
BROKEN_PIECES = (b"\xc3", b"\xa9", b"\xa9')", b")\xc2", b"\xa0", b"\xff", b"\xe2\x80", b"\xa8)")


def cut(luck: random.Random, text: str) -> list[bytes]:
    """The pieces of one tokenisation of `text`, which may break characters."""
    raw, pieces = text.encode(errors="replace"), []
    while raw:
        size = luck.choice([1, 1, 2, 3, 5, 20])
        pieces.append(raw[:size])
        raw = raw[size:]
    return pieces


def rewritten(luck: random.Random, text: str) -> str:
    for old, new in luck.sample(REWRITINGS, luck.randrange(4)):
        text = text.replace(old, new, 1)
    return text


def repeats(style: ReplyStyle, match: str, failed: Sequence[str], text: str) -> bool:
    """Whether the reply `text` makes a failed action again, told without `Block`."""
    action = style.action(text)
    known = {style.action(one) for one in failed} - {""}
    same = action in known
    if match == "exact" or same:
        return same
    return bool(action) and style.canonical(action) in {style.canonical(one) for one in known}


@settings(quick, max_examples=200)
@given(
    st.integers(0, 2**32),
    st.sampled_from(WAYS),
    st.sampled_from(MATCHES),
    st.sampled_from([(CALL_LINES, CALLS), (PROGRAMS, PROGRAM_TEXTS)]),
    st.integers(1, 24),
)
def test_no_failed_action_is_ever_made_again(
    seed: int,
    way: str,
    match: str,
    kind: tuple[ReplyStyle, Sequence[str]],
    max_tokens: int,
) -> None:
    luck = random.Random(seed)
    style, texts = kind
    failed = luck.sample(texts, luck.randrange(1, 4))
    wanted = failed + [rewritten(luck, text) for text in failed * 2]
    pieces: list[str | bytes] = [piece for text in wanted for piece in cut(luck, text)]
    pieces += luck.sample(PIECES, 9) + luck.sample(BROKEN_PIECES, 3) + luck.sample(LETTERS, 8)
    tokenizer = PieceTokenizer(pieces)
    writing = write(
        bent_on(wanted, tokenizer.pieces, seed),
        tokenizer,
        failed,
        way=way,
        match=match,
        style=style,
        max_tokens=max_tokens,
    )
    assert not repeats(style, match, failed, writing.text), (failed, writing.text, writing.ended)
    assert writing.ended in {"stop", "line", "length", "dead end"}
