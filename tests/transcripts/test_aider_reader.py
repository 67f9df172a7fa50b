from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_failgain.transcripts.aider import LEFT_OUT
from pytest_failgain.transcripts.read import read_transcript

START = "\n# aider chat started at 2026-01-01 00:00:00\n\n> Aider v0.86.1  \n> Main model: m  \n\n"
ASKED = "#### rename foo  \n#### in a.py  \n\n"


def edit(search: str, path: str = "a.py", fence: str = "```python") -> str:
    block = f"<<<<<<< SEARCH\n{search}\n=======\nbar\n>>>>>>> REPLACE"
    return f"{path}\n{fence}\n{block}\n```"


def quoted(text: str) -> str:
    return "".join(f"> {line}  \n" for line in text.split("\n"))


def refused(*searches: str) -> str:
    blocks = "\n".join(
        f"## SearchReplaceNoExactMatch: This SEARCH block failed to exactly match lines in a.py\n"
        f"<<<<<<< SEARCH\n{search}\n=======\nbar\n>>>>>>> REPLACE\n"
        for search in searches
    )
    return quoted(f"# {len(searches)} SEARCH/REPLACE block failed to match!\n\n{blocks}")


USAGE = "> Tokens: 2.5k sent, 120 received.  \n"


def history(*said: str) -> str:
    return START + ASKED + "".join(f"{one}\n" for one in said)


def test_refused_edit_is_read_with_its_file_and_fence() -> None:
    text = history(f"I rename it.\n\n{edit('foo')}\n", f"{USAGE}{refused('foo')}")
    transcript = read_transcript(text)
    (case,) = transcript.failures
    assert transcript.format == "aider"
    assert case.failed.action.text == edit("foo")
    assert case.failed.lead == "I rename it.\n\n"
    assert case.failed.observation == refused("foo")
    assert case.trajectory.goal == "rename foo\nin a.py"


def test_other_answer_stands_in_place_of_the_notice() -> None:
    transcript = read_transcript(history(edit("foo"), refused("foo")))
    (case,) = transcript.failures
    neutral = replace(case.failed, observation="Received.", failed=False)
    prompt = transcript.as_recorded(case.trajectory.then(neutral))
    assert prompt.messages is not None
    assert prompt.messages[-1] == {"role": "user", "content": "Received."}


def test_applied_edit_is_no_failure() -> None:
    text = history(edit("foo"), quoted("Applied edit to a.py\nCommit abc1234 fix: the error"))
    assert not read_transcript(text).failures


def test_lint_errors_after_an_edit_are_its_failure() -> None:
    notice = quoted("Applied edit to a.py\n# Fix any errors below, if possible.\n\nE999 no")
    assert len(read_transcript(history(edit("foo"), notice)).failures) == 1


def test_only_the_edit_that_is_quoted_failed() -> None:
    reply = f"{edit('foo')}\n\n{edit('spam', 'b.py')}"
    (case,) = read_transcript(history(reply, refused("spam"))).failures
    assert case.failed.action.text == edit("spam", "b.py")


def test_all_edits_failed_where_the_notice_quotes_none() -> None:
    reply = f"{edit('foo')}\n\n{edit('spam', 'b.py')}"
    notice = quoted("The LLM did not conform to the edit format.")
    assert len(read_transcript(history(reply, notice)).failures) == 2


@pytest.mark.parametrize(
    "block",
    [
        edit("foo"),
        "```python\na.py\n<<<<<<< SEARCH\nfoo\n=======\nbar\n>>>>>>> REPLACE\n```",
        "a.py\n<<<<<<< SEARCH\nfoo\n=======\nbar\n>>>>>>> REPLACE",
        "**a.py**\n```\n<<<<<<< SEARCH\nfoo\n=======\nbar\n>>>>>>> REPLACE\n```",
        "<<<<<<< SEARCH\nfoo\n=======\nbar\n>>>>>>> REPLACE",
    ],
)
def test_variants_of_a_block_are_read_as_they_stand(block: str) -> None:
    (case,) = read_transcript(
        history(f"Here you are:\n\n{block}\n\nDone.", refused("foo"))
    ).failures
    assert case.failed.action.text == block


def test_lines_of_an_edit_may_begin_as_other_speakers_do() -> None:
    block = edit("#### title\n> quote\n# aider is\n")
    (case,) = read_transcript(history(block, refused("#### title\n> quote\n# aider is\n"))).failures
    assert case.failed.action.text == block


def test_block_that_is_cut_off_does_not_swallow_the_next_turn() -> None:
    cut = "a.py\n```python\n<<<<<<< SEARCH\nfoo"
    notice = quoted("Expected `=======`")
    text = history(cut, notice, "#### go on\n", edit("foo"), refused("foo"))
    transcript = read_transcript(text)
    first, second = transcript.failures
    assert first.failed.action.text == cut
    assert second.failed.action.text == edit("foo")
    assert len(second.trajectory.steps) == 2


def test_unified_diff_is_an_action() -> None:
    diff = "```diff\n--- a.py\n+++ a.py\n@@ ... @@\n-foo\n+bar\n```"
    notice = quoted("UnifiedDiffNoMatch: hunk failed to apply!")
    (case,) = read_transcript(history(f"So:\n\n{diff}", notice)).failures
    assert case.failed.action.text == diff


def test_shell_command_is_judged_by_what_the_tool_says() -> None:
    command = "```bash\npytest -q\n```"
    notice = quoted("Run shell command? (Y)es/(N)o [Yes]: y\nRunning pytest -q\n1 failed in 0.1s")
    (case,) = read_transcript(history(f"Run it:\n{command}", notice)).failures
    assert case.failed.action.text == command


def test_each_session_is_a_conversation() -> None:
    one = history(edit("foo"), refused("foo"))
    transcript = read_transcript(one + one)
    assert [len(case.trajectory.steps) for case in transcript.failures] == [0, 0]
    assert len(transcript.trajectories) == 2


def test_commands_to_the_tool_and_notices_are_not_sent() -> None:
    text = history(
        "#### /add b.py  \n> Added b.py to the chat  \n\n#### /ask why?  ",
        "Because.\n",
        "#### <blank>  \n",
        f"So:\n\n{edit('foo')}",
        refused("foo"),
    )
    transcript = read_transcript(text)
    (recorded,) = transcript.recorded
    assert recorded.before.messages is not None
    assert any(LEFT_OUT in note for note in transcript.notes)
    sent = [one["content"] for one in recorded.before.messages]
    assert sent == ["rename foo\nin a.py", "why?", "Because."]


def test_history_with_windows_line_ends_is_read() -> None:
    text = history(edit("foo"), refused("foo")).replace("\n", "\r\n")
    (case,) = read_transcript(text).failures
    assert case.failed.action.text == edit("foo").replace("\n", "\r\n")


def test_other_markdown_is_not_taken_for_it() -> None:
    assert read_transcript([{"role": "user", "content": START}]).format == "openai-chat"
