"""The pieces of an action that reports colour."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reported import VERBATIM

from pytest_failgain.report.tokens import Piece, Token, pieces_of, tokens_of
from strategies import quick

spans = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4), st.floats(-5, 5))).map(
    lambda drawn: [
        Token(start, min(start + length, 12), -9.0, -9.0 + change)
        for start, length, change in sorted(drawn)
    ]
)


@quick
@given(spans)
def test_pieces_hold_the_whole_text_and_the_whole_change(tokens: list[Token]) -> None:
    text = "abcdefghijkl"
    pieces = pieces_of(text, tokens)
    assert "".join(piece.text for piece in pieces) == text
    assert all(piece.text for piece in pieces)
    known = [piece.change for piece in pieces if piece.change is not None]
    # Without any token that has characters, there is nothing to count the others to.
    if any(token.start < token.end for token in tokens):
        total = math.fsum(token.change for token in tokens)
        assert math.fsum(known) == pytest.approx(total, abs=1e-9)


def test_each_token_is_a_piece_and_what_no_token_has_is_one_without_a_change() -> None:
    tokens = [Token(0, 2, -3.0, -1.0), Token(3, 4, -1.0, -1.5)]
    assert pieces_of("abcde", tokens) == [
        Piece("ab", 2.0),
        Piece("c", None),
        Piece("d", -0.5),
        Piece("e", None),
    ]


def test_the_bytes_of_one_character_are_one_piece() -> None:
    tokens = [Token(0, 1, -1.0, 0.0), Token(0, 1, -2.0, 0.0), Token(1, 2, -1.0, -1.0)]
    assert pieces_of("日x", tokens) == [Piece("日", 3.0), Piece("x", 0.0)]


@pytest.mark.parametrize(("place", "shares"), [(0, (1.5, 1.0)), (1, (1.5, 1.0)), (2, (1.0, 1.5))])
def test_a_token_without_characters_counts_to_its_neighbour(
    place: int, shares: tuple[float, float]
) -> None:
    tokens = [Token(0, 1, -1.0, 0.0), Token(1, 2, -1.0, 0.0)]
    tokens.insert(place, Token(place, place, -0.5, 0.0))
    assert [piece.change for piece in pieces_of("ab", tokens)] == [*shares]


def test_tokens_have_the_log_probabilities_without_the_record_and_behind_it() -> None:
    rows = VERBATIM.case_rows[0].rows
    before, after = rows["before", "failed"], rows["failed", "failed"]
    tokens = tokens_of(before, after)
    assert tuple((token.start, token.end) for token in tokens) == after.token_spans
    assert tuple(token.before for token in tokens) == before.token_logprobs
    assert tuple(token.after for token in tokens) == after.token_logprobs
    assert tokens[0].change == pytest.approx(1.0)  # a gain of -1 nat per token
