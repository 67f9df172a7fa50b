from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")

import torch

import tiny_language_models as tiny
from pytest_failgain.blocking.block import Block
from pytest_failgain.blocking.processor import BlockedActions
from pytest_failgain.blocking.token_texts import token_texts
from pytest_failgain.call_text import Call, write_json
from pytest_failgain.errors import UsageError
from pytest_failgain.replies import CALL_LINES, ReplyStyle
from strategies import quick

STOP = 0
PROMPT = [0, 0, 0]


class Pieces:
    """A tokenizer whose tokens are `pieces`, joined and then decoded, as those over bytes are.

    The first piece is its end of sequence, which has no text.
    """

    eos_token_id = STOP

    def __init__(self, pieces: Iterable[str | bytes], *, strips: bool = False) -> None:
        texts = dict.fromkeys(p.encode() if isinstance(p, str) else p for p in pieces)
        self.pieces = [b"", *(text for text in texts if text)]
        self.strips = strips

    def __len__(self) -> int:
        return len(self.pieces)

    def decode(self, tokens: Sequence[int], **settings: bool) -> str:
        assert settings == {"skip_special_tokens": True, "clean_up_tokenization_spaces": False}
        text = b"".join(self.pieces[token] for token in tokens).decode(errors="replace")
        return text.removeprefix(" ") if self.strips else text

    def token(self, piece: str | bytes) -> int:
        return self.pieces.index(piece.encode() if isinstance(piece, str) else piece)


def masked(processor: BlockedActions, tokens: Sequence[int], size: int) -> set[int]:
    """The tokens that `processor` takes away behind the reply `tokens`."""
    ids = torch.tensor([[*PROMPT, *tokens]])
    scores = processor(ids, torch.zeros(1, size))
    assert not torch.isnan(scores).any()
    return set(torch.isneginf(scores[0]).nonzero().flatten().tolist())


def tried(block: Block, tokenizer: Any, tokens: Sequence[int], *, last: bool = False) -> set[int]:
    """The same by trying every token."""
    found = {
        token
        for token in range(len(tokenizer))
        if block.forbids(text_of(tokenizer, [*tokens, token]), over=last)
    }
    return found | {STOP} if block.forbids(text_of(tokenizer, tokens), over=True) else found


def text_of(tokenizer: Any, tokens: Sequence[int]) -> str:
    text: str = tokenizer.decode(
        list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False
    )
    return text


def blocked(tokenizer: Any, actions: Iterable[str], **settings: Any) -> BlockedActions:
    return BlockedActions(
        tokenizer, actions, **{"prompt_length": len(PROMPT), "stop_ids": STOP, **settings}
    )


def refused(actions: Iterable[str], pieces: Sequence[str | bytes], **settings: Any) -> bool:
    """Whether the last of `pieces` is taken away behind the others."""
    tokenizer = Pieces(pieces)
    tokens = [tokenizer.token(piece) for piece in pieces]
    return tokens[-1] in masked(
        blocked(tokenizer, actions, **settings), tokens[:-1], len(tokenizer)
    )


def stopped(actions: Iterable[str], reply: str, **settings: Any) -> bool:
    """Whether a reply can't end behind `reply`."""
    tokenizer = Pieces([reply])
    return STOP in masked(blocked(tokenizer, actions, **settings), [1], 2)


FAILED = (
    *("f(a='x')", "f(a='xy')", "f('x')", "f()", "f(a=1)", "f(a=(1,))", "f(a='')", "f(a='x`')"),
    *("f(a='x', b=[1, 'y'])", "f(a={'x': 'y'})", "f(a={'x'})", "f(a=b'x')", "f(a='(')", "f(a='é')"),
    *('{"name": "f", "arguments": {"a": "x"}}', '{"name": "f", "arguments": "{\\"a\\": \\"x\\"}"}'),
    *("g()", "g(a=[])", "call(a='x')", "f(a='x') # y", "go", "f(", "f(x)", "a b", "é"),
)
PIECES = (
    *("f", "g", "go", "a", "b", "x", "y", "1", "(", ")", "[", "]", "{", "}", "=", "'", '"', ","),
    *(" ", "  ", "\n", "\r", "`", "```", "#", "\\", "_", ":", "-", ".", "*", "é", "''", "'''"),
    *("'x'", "x'", "')", "'])", ")\n", ") ", " )", "()", "a='x'", "Action:", "act", "ion:", "call"),
    *("tool :", "```py", "python ", "json", '{"name": "f"', ', "arguments": {"a": "x', '"}', '"}}'),
    *("\\x78", "\\u0078", "\uff46", "\ufb06", "\u017f", "#)", "r'", "b'", "f'", "`)", "\u2028"),
    *("\x0b", "\x7f", "\ufffd", "\\'", '\\"', "\\n", "\\", "(f(", "\ta", ")`", ")\\", "\\)"),
    *(b"\xc3", b"\xa9", b"\xc3'", b"\xa9')", b")\xe2\x80", b"\xa8", b"\xa8)", b"x\xf0\x9f"),
)
REWRITINGS = (
    *(("'", '"'), (", ", " , "), ("(", "( "), ("=", " = "), ("f", "\uff46"), ("x", "\\x78")),
    *(("'x'", "'' 'x'"), ("'x'", "'''x'''"), ("'x'", "r'x'"), ("'x'", "('x')"), (")", ",)")),
    *(("a='x'", "a='z', a='x'"), ("f(", "Action: f("), ("f(", "```python f("), ("f(", "`f(")),
    *(("f(", "(f("), ("f(", "\nf("), ("f(", "```\nf("), ("f(", "#\rf("), (")", ") # y")),
)


def cut(luck: random.Random, text: str) -> list[str]:
    """The text in pieces of random lengths."""
    pieces = []
    while text:
        size = luck.randint(1, 4)
        pieces.append(text[:size])
        text = text[size:]
    return pieces


def rewritten(luck: random.Random, action: str) -> str:
    return action.replace(*luck.choice(REWRITINGS)) if luck.random() < 0.8 else action


@quick
@given(st.randoms(use_true_random=False), st.sampled_from(["exact", "canonical"]), st.booleans())
def test_the_mask_is_what_trying_all_tokens_gives(
    luck: random.Random, match: str, strips: bool
) -> None:
    actions = luck.sample(FAILED, luck.randint(1, 3))
    path = cut(luck, rewritten(luck, luck.choice(actions)))
    odd: list[str | bytes] = luck.sample(PIECES, 25)
    joined = ["".join(luck.sample([p for p in PIECES if isinstance(p, str)], 2)) for _ in range(9)]
    others = cut(luck, rewritten(luck, luck.choice(actions)))
    tokenizer = Pieces([*path, *odd, *joined, *others], strips=strips)
    block = Block(tuple(actions), CALL_LINES, match=match)
    usual = blocked(tokenizer, actions, match=match)
    tokens: list[int] = []
    for step in range(len(path) + 3):
        forbidden = tried(block, tokenizer, tokens)
        assert masked(usual, tokens, len(tokenizer)) == forbidden, text_of(tokenizer, tokens)
        if luck.random() < 0.3:
            ending = blocked(tokenizer, actions, match=match, max_new_tokens=len(tokens) + 1)
            assert masked(ending, tokens, len(tokenizer)) == tried(
                block, tokenizer, tokens, last=True
            ), text_of(tokenizer, tokens)
        follows = step < len(path) and luck.random() < 0.9
        token = tokenizer.token(path[step]) if follows else luck.randrange(1, len(tokenizer))
        if token in forbidden:
            token = luck.choice([t for t in range(len(tokenizer)) if t not in forbidden])
        tokens.append(token)


@quick
@given(st.randoms(use_true_random=False), st.sampled_from(["exact", "canonical"]))
def test_no_walk_under_the_mask_ends_in_a_failed_action(luck: random.Random, match: str) -> None:
    actions = luck.sample(FAILED, 3)
    wanted = [piece for action in actions for piece in cut(luck, rewritten(luck, action))]
    odd: list[str | bytes] = luck.sample(PIECES, 10)
    tokenizer = Pieces([*wanted, *odd])
    block = Block(tuple(actions), CALL_LINES, match=match)
    most = luck.randint(1, 12)
    processor = blocked(tokenizer, actions, match=match, max_new_tokens=most)
    path = cut(luck, rewritten(luck, luck.choice(actions)))
    path = [piece for piece in path if piece.encode() in tokenizer.pieces]
    tokens: list[int] = []
    while len(tokens) < most:
        allowed = sorted(set(range(len(tokenizer))) - masked(processor, tokens, len(tokenizer)))
        likely = tokenizer.token(path[len(tokens)]) if len(tokens) < len(path) else -1
        tokens.append(likely if likely in allowed else luck.choice(allowed))
        if tokens[-1] == STOP:
            break
    assert not processor.dead_ends
    assert not block.repeats(text_of(tokenizer, tokens))


@pytest.mark.parametrize(
    "pieces",
    [
        ["f(a='x'", ")"],
        ["f(a='x'", " )"],
        ["f(a='x'", ")\n"],
        ["f(a='x'", ")\n\nDone"],
        ["f(a='x'", ")`"],
        ["f(a='x'", ",)"],
        ["f(a='x", "')"],
        ["f(a='", "x')"],
        ["f(a=", "'x')"],
        ["f", "(a='x')"],
        ["", "f(a='x')"],
        ['f(a="x', '")'],
        ["f(a='z', a='x'", ")"],
        ["f(a='x', a='", "x')"],
        ["Action: f(a='x", "')"],
        ["Act", "ion: f(a='x')"],
        ["```python f(a='x", "')"],
        ["```py", "thon f(a='x')"],
        ["```\n", "f(a='x')"],
        ["`f(a='x'", ")"],
        ["(f(a='x')", ")"],
        ["f(a=('x'", "))"],
        ["f(a='' 'x'", ")"],
        ["f(a='''x''", "')"],
        ["f(a='\\x7", "8')"],
        ["f(a='\\", "x78')"],
        ["\uff46(a='x'", ")"],
        ["# see\rf(a='x'", ")"],
        ['{"name": "f", "arguments": {"a": "x', '"}}'],
        ['{"arguments": {"a": "x"}, "name": "', 'f"}'],
        ['{"name": "f", "arguments": "{\\"a\\": \\"x', '\\"}"}'],
        ['{"name": "\\u0066", "arguments": {"a": "x"}', "}"],
    ],
)
def test_every_way_to_complete_the_call_is_taken_away(pieces: list[str]) -> None:
    pieces = [piece for piece in pieces if piece]
    assert refused(["f(a='x')"], pieces)
    assert not refused(["f(a='other')"], pieces)


def test_the_outer_strings_of_json_may_hold_the_last_of_a_call() -> None:
    assert refused(["f()"], ['{"name": "f", "arguments": "{', '}"}'])
    assert refused(["f(a='f')"], ['{"arguments": {"a": "f"}, "name": "', 'f"}'])


@pytest.mark.parametrize(
    ("failed", "pieces"),
    [
        # What looks like a comment is in a string of three quotes, two of which stand before.
        ('f(a="x\'#y")', ["f(a=''", "'x'#y''')"]),
        ('f(a="x\'#y")', ["f(a='", "''x'#y''')"]),
        # Nothing of the failed call can be seen.
        ("f(a='zzzzzzzz', b=[])", ["f(a='" + 8 * "\\x7a" + "', b=", "[])"]),
        # The tool's name stands in what turns out to be a fence, or a label.
        ("a(b='x')", ["```a", "\na(b='x')"]),
        ("call(b='x')", ["call", ":\ncall(b='x')"]),
        # What stands at the end is no dressing.
        ("f(a='x````````')", ["f(a='x````````", "')"]),
        ("find_contact", ["`find_contact`", "\n"]),
    ],
)
def test_what_looks_like_something_else(failed: str, pieces: list[str]) -> None:
    assert refused([failed], pieces)


def test_a_call_with_a_list_is_completed_by_merged_closers() -> None:
    assert refused(["f(a=['x', 'y'])"], ["f(a=['x', 'y", "'])"])
    assert not refused(["f(a=['x', 'y'])"], ["f(a=['x', 'z", "'])"])


def test_only_another_text_is_allowed_at_the_exact_level() -> None:
    assert refused(["f(a='x')"], ["f(a='x'", ")"], match="exact")
    assert refused(["f(a='x')"], ["call: f(a='x'", ")\n"], match="exact")
    assert not refused(["f(a='x')"], ['f(a="x"', ")"], match="exact")
    assert refused(["f(a='x') # y"], ["f(a='x') # ", "y"], match="exact")


def test_actions_that_begin_alike_stay_within_reach() -> None:
    for rest in (["'y", "')"], ["'x", "', b=1)"], ["'x", " ')"]):
        assert not refused(["f(a='x')", "f", "f(a"], ["f(a=", *rest])


def test_of_two_failed_actions_the_longer_one_is_taken_away_too() -> None:
    failed = ["find", "find(a='x')", "find(a='xy')"]
    assert refused(failed, ["find(a='x", "')"])
    assert refused(failed, ["find(a='x", "y')"])
    assert stopped(failed, "find")
    assert not refused(failed, ["find", "(a='"])


def test_a_failed_text_that_is_no_call_is_forbidden_where_the_reply_ends() -> None:
    failed = ["find_contact"]
    assert stopped(failed, "find_contact")
    assert stopped(failed, "Action: `find_contact`")
    assert refused(failed, ["find_contact", "\n"])
    assert refused(failed, ["find_", "contact \nand"])
    assert not refused(failed, ["find_", "contact"])
    assert not refused(failed, ["find_contact", "(a='x')\n"])
    assert not stopped(failed, "find_contacts")


def test_the_last_position_ends_a_reply() -> None:
    for pieces in (["find_", "contact"], ["find_contact", "`"], ["", "find_contact"]):
        there = [piece for piece in pieces if piece]
        assert refused(["find_contact"], there, max_new_tokens=len(there))
        assert not refused(["find_contact"], there, max_new_tokens=len(there) + 1)
    assert not refused(["find_contact"], ["find_contact", "s"], max_new_tokens=2)
    assert refused(["f(a='x')"], ["f(a='x'", ")"], max_new_tokens=2)


def test_bytes_that_become_a_character_are_followed() -> None:
    assert refused(["f(a='é')"], [b"f(a='\xc3", b"\xa9')"])
    assert refused(["f(a='é')"], [b"f(a='\xc3", b"\xa9", b"')"])
    assert not refused(["f(a='é')"], [b"f(a='\xc3", b"\xa8')"])
    # A space of three bytes bares the call before it.
    assert refused(["f(a='x')"], [b"f(a='x')\xe2\x80", b"\xa8"])
    assert refused(["f(a='x')"], [b"f(a='x')\xe2\x80", b"\xa8"], match="exact")
    assert refused(["é"], [b"\xc3", b"\xa9"], max_new_tokens=2)


class Fallback(Pieces):
    """Breaks every byte of a run of byte tokens that is no text, as byte fallback does."""

    def decode(self, tokens: Sequence[int], **settings: bool) -> str:
        text, run = "", b""
        for token in [*tokens, STOP]:
            piece = self.pieces[token]
            if len(piece) == 1:
                run += piece
                continue
            try:
                text += run.decode()
            except UnicodeDecodeError:
                text += "\ufffd" * len(run)
            text, run = text + piece.decode(), b""
        return text


def test_what_byte_fallback_hides_comes_out_again() -> None:
    tokenizer = Fallback(["f(a='x'", "f(b", ")", b"\xe2", b"\x80", b"\xa8", "zz"])
    assert masked(blocked(tokenizer, ["f(a='x')"]), [1], len(tokenizer)) == {3}
    block = Block(("f(a='x')",), CALL_LINES)
    # The quote is broken along with the byte behind it, and whole again with the character.
    late = Fallback(["f(a='x", "'", b"\xc3", b"\xa9", "zz", ")"])
    assert token_texts(late, len(late)).broken_signs == (3, 4)
    hidden = [1, 4, 5]
    assert masked(blocked(tokenizer, ["f(a='x')"]), hidden, len(tokenizer)) == tried(
        block, tokenizer, hidden
    )


def test_a_first_token_may_lose_its_space() -> None:
    tokenizer = Pieces([" f()", "f()", "a"], strips=True)
    assert masked(blocked(tokenizer, ["f()"]), [], len(tokenizer)) == {1, 2}


def test_a_first_token_is_judged_without_its_lost_space() -> None:
    tokenizer = Pieces([" go", "go"], strips=True)
    style = ReplyStyle("as it is", str, lambda text: None, one_line=False, self_ending=False)
    for action, expected in (("go", {1, 2}), (" go", set())):
        processor = blocked(tokenizer, [action], match="exact", style=style, max_new_tokens=1)
        assert masked(processor, [], 3) == expected


def test_a_later_token_keeps_its_space() -> None:
    tokenizer = Pieces(["a", " b", "b"], strips=True)
    assert masked(blocked(tokenizer, ["a b"], max_new_tokens=2), [1], 4) == {2}


def test_tokens_that_go_on_in_a_second_line_are_told_apart() -> None:
    for opening in ("```", "Action:", " "):
        tokenizer = Pieces([opening, "\nf(1)", "\nf()", "\nf()\n"])
        assert masked(blocked(tokenizer, ["f()"]), [1], 5) == {3, 4}


def test_nothing_to_block_changes_nothing() -> None:
    tokenizer = Pieces(["f()", "\n"])
    scores = torch.zeros(1, 3)
    for actions in ([], ["", " ` "]):
        processor = BlockedActions(tokenizer, actions)
        assert processor(torch.tensor([[1]]), scores) is scores
        assert processor(torch.tensor([[1, 1, 1]]), scores) is scores


def test_the_given_scores_are_left_as_they_are() -> None:
    tokenizer = Pieces(["f(", ")"])
    scores = torch.rand(1, 3)
    before = scores.clone()
    result = blocked(tokenizer, ["f()"])(torch.tensor([[*PROMPT, 1]]), scores)
    assert torch.equal(scores, before)
    assert result[0].tolist() == [*before[0, :2].tolist(), -torch.inf]


def test_a_dead_end_lets_the_stop_token_through() -> None:
    tokenizer = Pieces(["go\n"])
    processor = blocked(tokenizer, ["go"])
    scores = torch.tensor([[-torch.inf, 1.0]])
    result = processor(torch.tensor([PROMPT]), scores)
    assert processor.dead_ends == 1
    assert result[0, 1] == -torch.inf
    assert torch.isfinite(result[0, 0])
    assert masked(processor, [], 2) == {1}
    assert processor.dead_ends == 1


def test_tokens_without_a_text_end_a_text_at_the_last_position() -> None:
    # A model may have more tokens than its tokenizer.
    class Larger(Pieces):
        def decode(self, tokens: Sequence[int], **settings: bool) -> str:
            return super().decode([t for t in tokens if t < len(self)], **settings)

    tokenizer = Larger(["go", "x"])
    assert masked(blocked(tokenizer, ["go"], max_new_tokens=2), [1], 6) == {0, 3, 4, 5}


def test_rows_stand_at_points_of_their_own() -> None:
    tokenizer = Pieces(["f(", ")", "go", "\n", "g("])
    ids = torch.tensor([[*PROMPT, 1, 1], [*PROMPT, STOP, 1], [*PROMPT, STOP, 3], [*PROMPT, 5, 1]])
    result = blocked(tokenizer, ["f()", "go"])(ids, torch.zeros(4, 6))
    rows = [set(row.nonzero().flatten().tolist()) for row in torch.isneginf(result)]
    assert rows == [set(), {2}, {STOP, 4}, set()]


def test_several_stop_tokens() -> None:
    tokenizer = Pieces(["go", "<|end|>"])
    assert masked(blocked(tokenizer, ["go"], stop_ids=[0, 2]), [1], 3) == {0, 2}
    assert masked(blocked(tokenizer, ["go"], stop_ids=None), [1], 3) == {0}


PROGRAMS = ReplyStyle("programs", str.strip, lambda text: None, one_line=False, self_ending=False)
SHOUTED = ReplyStyle("shouted", str.upper, lambda text: None, one_line=True, self_ending=True)


@pytest.mark.parametrize("style", [PROGRAMS, SHOUTED])
@pytest.mark.parametrize("last", [False, True])
def test_other_styles_are_tried_in_full(style: ReplyStyle, last: bool) -> None:
    tokenizer = Pieces(["go", "g", "o", "O", "o\n", "\n", "x"])
    block = Block(("go", "GO\n"), style)
    for tokens in ([1], [2], [2, 6], []):
        processor = blocked(
            tokenizer, block.actions, style=style, max_new_tokens=len(tokens) + 1 if last else None
        )
        wanted = tried(block, tokenizer, tokens, last=last)
        assert masked(processor, tokens, len(tokenizer)) == wanted
    assert tried(block, tokenizer, [1], last=True)


def test_without_a_length_a_processor_serves_one_generation() -> None:
    tokenizer = Pieces(["f(", ")", "x"])
    processor = BlockedActions(tokenizer, ["f()"])
    scores = torch.zeros(2, 4)
    processor(torch.tensor([[3, 3], [2, 2]]), scores)
    # Beams take one another's place.
    result = processor(torch.tensor([[2, 2, 1], [2, 2, 3]]), scores)
    assert torch.isneginf(result).tolist() == [[False, False, True, False], [False] * 4]
    for other in ([[2, 2], [3, 3]], [[2, 2, 1, 3], [3, 3, 3, 1]], [[2] * 5] * 2):
        with pytest.raises(UsageError, match="prompt_length"):
            processor(torch.tensor(other), scores)
    again = BlockedActions(tokenizer, ["f()"])
    again(torch.tensor([[3, 3]]), scores[:1])
    with pytest.raises(UsageError, match="stop_ids"):
        again(torch.tensor([[3, 3, STOP]]), scores[:1])


def test_with_a_length_it_serves_any_number() -> None:
    tokenizer = Pieces(["f(", ")", "x"])
    processor = BlockedActions(tokenizer, ["f()"], prompt_length=1)
    for ids in ([[3, 1]], [[1]], [[2, 1]], [[3, 3, 3, 3]], [[1, 1]]):
        forbidden = torch.isneginf(processor(torch.tensor(ids), torch.zeros(1, 4)))
        assert forbidden[0, 2] == (ids[0][1:] == [1])
    with pytest.raises(UsageError, match="prompt_length is 3"):
        blocked(tokenizer, ["f()"])(torch.tensor([[1]]), torch.zeros(1, 4))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"match": "roughly"}, "roughly"),
        ({"prompt_length": 0}, "prompt_length"),
        ({"max_new_tokens": 0}, "max_new_tokens"),
        ({"stop_ids": []}, "stop_ids"),
        ({"actions": "f()"}, "one text"),
    ],
)
def test_what_can_not_be_meant_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        BlockedActions(Pieces(["x"]), **{"actions": ["f()"], **settings})


def generated(settings: dict[str, Any], processor: list[BlockedActions]) -> list[str]:
    """Replies of a random model to two prompts, one of them padded on the left."""
    tokenizer = tiny.byte_tokenizer()
    ids = torch.tensor([[tokenizer.eos_token_id] * 2 + [65] * 4, [70] * 6])
    torch.manual_seed(3)
    model = tiny.llama()
    out = model.generate(
        ids,
        attention_mask=(ids != tokenizer.eos_token_id).long(),
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.eos_token_id,
        max_new_tokens=3,
        logits_processor=processor,
        **settings,
    )
    return [text_of(tokenizer, row) for row in out[:, ids.shape[1] :].tolist()]


@pytest.mark.parametrize("settings", [{}, {"num_beams": 2}, {"do_sample": True}], ids=str)
def test_generated_replies_are_never_the_blocked_ones(settings: dict[str, Any]) -> None:
    settings = {"do_sample": False, **settings}
    tokenizer = tiny.byte_tokenizer()
    failed: list[str] = []
    for _ in range(6):
        processor = BlockedActions(tokenizer, failed, max_new_tokens=3)
        replies = generated(settings, [processor])
        block = Block(tuple(failed), CALL_LINES)
        assert not any(map(block.repeats, replies))
        failed += [CALL_LINES.action(reply) for reply in replies]
    # What the model would write without it is blocked by now.
    assert any(map(Block(tuple(failed), CALL_LINES).repeats, generated(settings, [])))


SPELLINGS = (
    "book_room(room='4', day='Monday', hours=[9, 10])",
    'book_room(day="Monday", room="4", hours=[9,10])',
    "book_room( hours = [ 9, 10 ], room='''4''', day='Mon' 'day' )",
    "book_room(room='5', room='\\x34', day='Monday', hours=[9, 10,],)",
    "Action: `book_room(room='4', day='Monday', hours=[9, 0xA])`",
    "```python\n(book_room(room='4', day='Monday', hours=[9, 10]))\n```",
    '{"name": "book_room", "arguments": {"room": "4", "day": "Monday", "hours": [9, 10]}}',
    '{"arguments": {"hours":[9,10],"day":"Monday","room":"\\u0034"},"name":"book_room"}',
    write_json(Call.of("book_room", room="4", day="Monday", hours=[9, 10])).replace(
        '{"room": "4", "day": "Monday", "hours": [9, 10]}',
        json.dumps('{"room": "4", "day": "Monday", "hours": [9, 10]}'),
    ),
)


@pytest.mark.model
def test_each_spelling_is_stopped_in_any_tokens_of_a_real_tokenizer(smollm2_tokenizer: Any) -> None:
    luck, tokenizer, failed = random.Random(0), smollm2_tokenizer, SPELLINGS[0]
    block = Block((failed,), CALL_LINES)
    processor = BlockedActions(tokenizer, [failed, "find_contact"], prompt_length=len(PROMPT))
    for spelling in SPELLINGS:
        for _ in range(6):
            tokens: list[int] = []
            for piece in cut(luck, spelling):
                tokens += tokenizer.encode(piece, add_special_tokens=False)
            at = next(
                i for i in range(len(tokens)) if block.forbids(text_of(tokenizer, tokens[: i + 1]))
            )
            for before in range(at):
                forbidden = masked(processor, tokens[:before], len(tokenizer))
                assert tokens[before] not in forbidden, text_of(tokenizer, tokens[: before + 1])
            assert tokens[at] in masked(processor, tokens[:at], len(tokenizer)), spelling


@pytest.mark.model
def test_the_mask_is_that_of_all_tokens_of_a_real_tokenizer(smollm2_tokenizer: Any) -> None:
    tokenizer = smollm2_tokenizer
    failed = ("f(name='José')", "find_contact")
    block = Block(failed, CALL_LINES)
    for reply, last in (
        ("f(name='José", False),
        ("f(name='José'", False),
        ("find_contact", False),
        ("find_", True),
    ):
        tokens = tokenizer.encode(reply, add_special_tokens=False)
        known = {
            token
            for token in range(len(tokenizer))
            if block.forbids(text_of(tokenizer, [*tokens, token]), over=last)
        }
        if block.forbids(reply, over=True):
            known.add(tokenizer.eos_token_id)
        most = len(tokens) + 1 if last else None
        processor = BlockedActions(
            tokenizer, failed, prompt_length=len(PROMPT), max_new_tokens=most
        )
        assert masked(processor, tokens, len(tokenizer)) == known
        assert known
