"""What differs from run to run and from machine to machine is taken out, and nothing else."""

from __future__ import annotations

import tempfile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_failgain.capture.normalise import normalised


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<Tool object at 0x7f3a2b1c9d10>", "<Tool object at <address>>"),
        ("at 2026-12-01T09:02:09.123456+00:00.", "at <time>."),
        ("at 2026-12-01 09:02 and 2026-12-01T09:02Z", "at <time> and <time>"),
        ("2026-12-01 09:02:09,123 ERROR", "<time> ERROR"),
        ("[09:02:09] ERROR", "[<time>] ERROR"),
        ("run-123e4567-e89b-12d3-a456-426614174000", "<id 0>"),
        ("trace 123E4567-e89b-12d3-a456-426614174000", "trace <uuid>"),
        ("done in 0.31s, 12 ms, 3 seconds", "done in <n>s, <n> ms, <n> seconds"),
        (
            "at http://127.0.0.1:43121/v1 or localhost:80",
            "at http://127.0.0.1:<port>/v1 or localhost:<port>",
        ),
        (
            '  File "/home/ann/agent/tools.py", line 12, in add',
            '  File "<path>/tools.py", line <n>, in add',
        ),
        (
            '  File "C:\\Users\\Ann B\\agent\\tools.py", line 12, in add',
            '  File "<path>/tools.py", line <n>, in add',
        ),
        ('  File "<stdin>", line 3', '  File "<stdin>", line <n>'),
        ("wrote /tmp/tmpab12cd/out.txt.", "wrote <temp>"),
        ("wrote /private/var/folders/x1/T/a, and more", "wrote <temp>, and more"),
        ("in C:\\Users\\Ann\\AppData\\Local\\Temp\\x1", "in <temp>"),
        ("in /home/ann/work/a.txt, /Users/ann/b, /root", "in <home>/work/a.txt, <home>/b, <home>"),
        (
            "/opt/py/lib/python3.11/site-packages/langchain/x.py:41: error",
            "<packages>/langchain/x.py:<n>: error",
        ),
        ("tools.py:41:7 failed", "tools.py:<n> failed"),
    ],
)
def test_what_differs_gets_a_placeholder(text: str, expected: str) -> None:
    assert normalised(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "'date' must be YYYY-MM-DD, got '12 Oct'",
        "Add it on 2026-10-12.",
        "at 10:30",
        "cat /srv/app/main.py",
        "cat src/home/a.py /rooted /tmpfiles",
        "run_command, call_center, msg_text and run-tests",
        "return code 1, 12 files, section 3",
        "https://example.com/v1:80",
        '{"title": "Dentist", "n": 1.50}',
        "",
    ],
)
def test_what_an_agent_works_on_stays(text: str) -> None:
    assert normalised(text) == text


def test_same_id_gets_the_same_number_wherever_it_stands() -> None:
    text = "call_a1b2 failed, call_c3d4 too; call_a1b2 again, chatcmpl-tool-9f"
    assert normalised(text) == "<id 0> failed, <id 1> too; <id 0> again, <id 2>"


def messages(first: str, second: str, folder: str) -> list[dict[str, Any]]:
    call = {"type": "function", "function": {"name": "add", "arguments": '{"n": 1}'}}
    return [
        {"role": "user", "content": [{"type": "text", "text": f"Work in {folder}/x."}]},
        {"role": "assistant", "content": None, "tool_calls": [{**call, "id": first}]},
        {"role": "tool", "tool_call_id": first, "content": f"Error in {first}"},
        {"role": "assistant", "content": None, "tool_calls": [{**call, "id": second}]},
        {"role": "tool", "tool_call_id": second, "content": "0x7f3a2b1c9d10", "n": 5},
    ]


def test_messages_of_two_runs_are_the_same_and_stay_as_they_were() -> None:
    # An id that nothing but its place tells, as some servers make them.
    one = messages("aBcdEfgHi", "zyxwvutsr", "/home/ann")
    other = messages("KlMnoPqrS", "qrstuvwxy", "/Users/bob")
    assert normalised(one) == normalised(other)
    assert normalised(one)[2] == {
        "role": "tool",
        "tool_call_id": "<id 0>",
        "content": "Error in <id 0>",
    }
    assert one == messages("aBcdEfgHi", "zyxwvutsr", "/home/ann")


def test_messages_that_answer_another_call_are_told_apart() -> None:
    one = messages("aBcdEfgHi", "zyxwvutsr", "/home/ann")
    other = messages("aBcdEfgHi", "zyxwvutsr", "/home/ann")
    other[4]["tool_call_id"] = "aBcdEfgHi"
    assert normalised(one) != normalised(other)


def test_short_ids_are_no_part_of_texts() -> None:
    said = [{"id": "1", "content": "1 of 1"}, ("a", 1, None)]
    assert normalised(said) == said


def test_temporary_folder_of_this_machine_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/scratch/ann")
    assert normalised("in /scratch/ann/pytest-1/x, /scratch/anna") == "in <temp>, /scratch/anna"


pieces = st.sampled_from(
    [
        "0x7f3a2b1c",
        "call_a1b2c3",
        "call_d4e5f6",
        "2026-12-01T09:02:09Z",
        "/tmp/x/y",
        "/home/ann/z.py:4",
        'File "/a/b.py", line 3',
        "0.5s",
        "Error:",
        "127.0.0.1:80",
        "12 Oct",
    ]
)


@settings(max_examples=80)
@given(st.lists(pieces, max_size=8).map(" ".join))
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    once = normalised(text)
    assert normalised(once) == once
