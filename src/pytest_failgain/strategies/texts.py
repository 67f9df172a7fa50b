"""Texts as they come in agents' logs, and JSON made of them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

_PLAIN = ("a", "look", "Order 42.", "It is done.")
_ODD = (
    " ",
    "\ufeff",
    "\0",
    "\u2028\u2029\x85",
    "a\r\nb",
    "line one\nline two\n",
    '{"a": "\\"',
    '{"order": {"id": 42, "note": "{\\"nested\\": true}"}}',
    "C:\\new\\table",
    "%s {0} $HOME `x` <b>&amp;</b>",
    "日本語のテキスト",
    "한국어 문장",
    "שלום עולם",
    "\u202eright to left\u202c مرحبا",
    "e\u0301 n\u0303",
    "🦊 \U0001d49c 𠮷 👩\u200d👩\u200d👧",
    "<|im_end|> [/INST] </tool_call>",
)
_LONG = ("word " * 200, "0123456789abcdef" * 40)


def texts(max_size: int = 12) -> st.SearchStrategy[str]:
    """Any text, empty or not: plain ones, odd ones, and of any characters up to `max_size`.

    There are all scripts among them, characters beyond the basic plane, and what ends a line
    somewhere; but no half characters.
    """
    any_text = st.text(max_size=max_size)
    return st.just("") | st.sampled_from(_PLAIN) | any_text | st.sampled_from(_ODD)


def words(max_size: int = 12) -> st.SearchStrategy[str]:
    """Texts that are more than white space."""
    any_words = st.text(min_size=1, max_size=max_size).map(_worded)
    odd = st.sampled_from([text for text in _ODD if text.strip()])
    return st.sampled_from(_PLAIN) | any_words | odd


def long_texts() -> st.SearchStrategy[str]:
    """Hundreds of characters, such as a file's contents given as an argument."""
    return st.sampled_from(_LONG)


def json_values() -> st.SearchStrategy[Any]:
    """Whatever JSON can hold, nested."""
    return st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | TEXTS,
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
        max_leaves=5,
    )


def _worded(text: str) -> str:
    return text if text.strip() else f"{text}a"


# Made once: hypothesis looks into every strategy that is new to it, which takes far longer than to
# draw from one that it knows.
TEXTS, WORDS, LONG_TEXTS = texts(), words(), long_texts()
JSON_VALUES = json_values()
