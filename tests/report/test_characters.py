"""Characters that a report may not let through."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_failgain.report.characters import shortened, visible
from strategies import quick


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb\nc", "a\tb\nc"),
        ("a\r\nb", "a\\r\nb"),
        ("\x1b[31m", "\\x1b[31m"),
        ("user\u202etxt", "user\\u202etxt"),
        ("\ud83e", "\\ud83e"),
        ("\U000e0041", "\\U000e0041"),
        ("日本 🦊 é שלום", "日本 🦊 é שלום"),
        ("क्\u200dष", "क्\\u200dष"),  # part of how this is spelt, but it has no shape
    ],
)
def test_what_can_not_be_seen_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@quick
@given(st.text(st.characters()) | st.text(st.characters(categories=["Cs", "Cc", "Cf", "Zl"])))
def test_any_text_can_be_written_to_a_file_and_is_left_in_its_order(text: str) -> None:
    shown = visible(text)
    shown.encode()
    for character in shown:
        assert unicodedata.category(character) not in ("Cs", "Zl", "Zp")
        assert unicodedata.category(character) != "Cc" or character in "\t\n"
        assert unicodedata.bidirectional(character) not in {
            *("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
        }


def test_a_long_text_is_cut_and_says_so() -> None:
    assert shortened("abcdef", 6) == "abcdef"
    assert shortened("a" * 3000, 4) == "aaaa… (2,996 more characters)"
