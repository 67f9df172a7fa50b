from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_failgain.replies import CALL_LINES, call_in_line, read_call
from strategies import quick

CALL = "f(a='x')"
SURROGATE = chr(0xD800)
HOSTILE = (
    "\0",
    SURROGATE,
    f"f(a='{SURROGATE}')",
    "f(" * 500,
    f"f({'-' * 4000}1)",
    f"f(a={'[' * 900}{']' * 900})",
    f"f(a={'9' * 5000})",
    f"f(a=0x{'f' * 5000})",
    '{"name": "f", "arguments": ' * 300,
    '{"name": "f", "arguments": {"a": ' + "9" * 5000 + "}}",
    '{"name": ["f"], "arguments": 1}',
    "f(a={[]: 1})",
    "f(**{'a': 1})",
    "f(a=1e999, b=-'x')",
    "f(a='\\N{nothing}')",
    "x" * 20_000,
)


@pytest.mark.parametrize(
    "reply",
    [
        CALL,
        f"\n \t\n{CALL}",
        f"```\n{CALL}\n```",
        f"```python\n\n{CALL}",
        f"Action:\n{CALL}\nAction: g()",
        f"assistant: Action:  {CALL}",
        f"`{CALL}`",
        f"TOOL: ```py {CALL}```",
        f"```Reply: `{CALL}`",
        f"{CALL}\r",
    ],
)
def test_the_first_line_that_says_anything_is_the_action(reply: str) -> None:
    assert call_in_line(reply) == CALL


@pytest.mark.parametrize("reply", ["", "\n\n", "```", "```python", "``` json \n", "Action:", "``"])
def test_a_reply_that_says_nothing_yet_is_no_action_and_not_over(reply: str) -> None:
    assert call_in_line(reply) == ""
    assert not CALL_LINES.is_over(reply)


def test_an_action_is_read_before_its_line_is_finished() -> None:
    assert call_in_line("```\nf(a=") == "f(a="
    assert call_in_line("Sorry, I can") == "Sorry, I can"


@pytest.mark.parametrize("reply", ["f()\n", "\n```\nf()\n", "Action: I can't.\n\n"])
def test_a_reply_is_over_with_the_line_of_its_action(reply: str) -> None:
    assert CALL_LINES.is_over(reply)
    assert not CALL_LINES.is_over(reply.rstrip("\n"))


@pytest.mark.parametrize("line_end", ["\r", "\x0b", "\x85", "\u2028"])
def test_only_a_newline_ends_a_line(line_end: str) -> None:
    reply = f"f(a='x{line_end}y')"
    assert call_in_line(reply) == reply
    assert not CALL_LINES.is_over(reply)


def test_only_a_whole_call_ends_itself() -> None:
    assert CALL_LINES.ends_itself(CALL)
    for action in ("f(a='x'", "f", "f(a=x)", "", "I call f(a='x')"):
        assert not CALL_LINES.ends_itself(action)


def test_calls_are_read_in_python_and_in_json() -> None:
    python, json = read_call("f(a=1)"), read_call('{"name": "f", "arguments": {"a": 1}}')
    assert python is not None
    assert python == json
    assert read_call("f and g") is None


@given(st.text(alphabet="`Action: call\n```python f(a='x')", max_size=40))
@example("`Action: find`")
@example("```Action: ```Action: `f()")
@quick
def test_reading_an_action_again_changes_nothing(reply: str) -> None:
    action = call_in_line(reply)
    assert call_in_line(action) == action


@given(st.text(max_size=40) | st.sampled_from(HOSTILE))
@quick
def test_no_text_is_an_error(text: str) -> None:
    action = CALL_LINES.action(text)
    assert CALL_LINES.canonical(action) == CALL_LINES.canonical(action)
    hash(CALL_LINES.canonical(action))
    CALL_LINES.ends_itself(text)
    CALL_LINES.is_over(text)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_hostile_text_is_an_error(text: str) -> None:
    hash(CALL_LINES.canonical(CALL_LINES.action(text)))
