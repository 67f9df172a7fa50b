"""Sessions of pi: a tree of entries, one a line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_failgain.trajectory import UserTurn
from pytest_failgain.transcripts.draft import THOUGHTS
from pytest_failgain.transcripts.pi import BROKEN_OFF, COMPACTED, NO_SYSTEM, TOLD
from pytest_failgain.transcripts.read import ReadTranscript, read_transcript

Entry = dict[str, Any]

HEADER = {"type": "session", "version": 3, "id": "s", "cwd": "/"}


def entry(name: str, parent: str | None, **message: Any) -> Entry:
    return {"type": "message", "id": name, "parentId": parent, "message": message}


def user(name: str, parent: str | None, text: str = "Save it.") -> Entry:
    return entry(name, parent, role="user", content=[{"type": "text", "text": text}])


def reply(name: str, parent: str | None, *blocks: Any, **more: Any) -> Entry:
    return entry(name, parent, role="assistant", content=[*blocks], **more)


def call(call_id: str, **arguments: Any) -> Entry:
    return {"type": "toolCall", "id": call_id, "name": "put", "arguments": arguments}


def result(
    name: str, parent: str | None, call_id: str, text: str = "no body", error: Any = True
) -> Entry:
    marked = {} if error is None else {"isError": error}
    parts = [{"type": "text", "text": text}]
    told = {"toolCallId": call_id, "toolName": "put", "content": parts, **marked}
    return entry(name, parent, role="toolResult", **told)


RUN = [HEADER, user("u", None), reply("a", "u", call("c", b=1, a="é")), result("r", "a", "c")]


def only(transcript: ReadTranscript) -> Any:
    assert transcript.format == "pi"
    (case,) = transcript.failures
    return case


def without_parents(line: Entry) -> Entry:
    return {key: value for key, value in line.items() if key != "parentId"}


@pytest.mark.parametrize(
    "log",
    [RUN, "\n".join(map(json.dumps, RUN)), [*map(without_parents, RUN)], RUN[1:]],
    ids=["values", "lines", "without parents", "without its header"],
)
def test_session_is_told_as_chat_messages_and_says_so(log: Any) -> None:
    transcript = read_transcript(log)
    case = only(transcript)
    assert case.trajectory.goal == "Save it."
    assert case.failed.action.calls[0].arguments == '{"b": 1, "a": "é"}'
    assert case.failed.observation == "no body"
    assert {f"{TOLD} (1)", f"{NO_SYSTEM} (1)"} <= {*transcript.notes}
    after = transcript.as_recorded(case.trajectory.then(case.failed))
    assert after.messages is not None
    assert [message["role"] for message in after.messages] == ["user", "assistant", "tool"]


def test_text_beside_the_call_is_kept_and_thoughts_are_not() -> None:
    blocks = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "I do."}, call("c")]
    transcript = read_transcript([HEADER, RUN[1], reply("a", "u", *blocks), RUN[3]])
    assert only(transcript).failed.reply == "I do."
    assert f"{THOUGHTS} (1)" in transcript.notes


@pytest.mark.parametrize(
    "text", ["Skipped due to queued user message.", "Operation aborted", "Command aborted"]
)
def test_calls_that_were_skipped_or_aborted_are_no_failures(text: str) -> None:
    assert not read_transcript([*RUN[:3], result("r", "a", "c", text)]).failures


@pytest.mark.parametrize(("error", "failed"), [(False, 0), (None, 1), (True, 1)])
def test_mark_decides_and_words_where_there_is_none(error: bool | None, failed: int) -> None:
    log = [*RUN[:3], result("r", "a", "c", "Error: no body", error)]
    assert len(read_transcript(log).failures) == failed


def test_branches_share_their_beginning_and_each_failure_is_told_once() -> None:
    log = [
        *RUN,
        user("u2", "r", "So."),
        reply("a2", "u2", call("c2")),
        result("r2", "a2", "c2", "two"),
        {"type": "branch_summary", "id": "b", "parentId": "r", "summary": "One way was tried."},
        reply("a3", "b", call("c3")),
        result("r3", "a3", "c3", "three"),
    ]
    transcript = read_transcript(log)
    told = {case.failed.observation: case.trajectory.steps[1:] for case in transcript.failures}
    assert told == {
        "no body": (),
        "two": (UserTurn("So."),),
        "three": (UserTurn("One way was tried."),),
    }
    assert len(transcript.failures) == 3


def test_compaction_keeps_what_it_says_and_begins_with_its_summary() -> None:
    summary = {
        "type": "compaction",
        "id": "k",
        "parentId": "r2",
        "summary": "What was done.",
        "firstKeptEntryId": "a2",
    }
    log = [
        *RUN,
        reply("a2", "r", call("c2")),
        result("r2", "a2", "c2", "two"),
        summary,
        reply("a3", "k", call("c3")),
        result("r3", "a3", "c3", "three"),
    ]
    transcript = read_transcript(log)
    assert [case.failed.observation for case in transcript.failures] == ["no body", "two", "three"]
    last = transcript.failures[2].trajectory
    assert last.goal == "What was done."
    assert len(last.steps) == 1
    assert any(note.startswith(COMPACTED) for note in transcript.notes)


def test_reply_that_broke_off_is_left_out_and_noted() -> None:
    broken = reply("x", "r", call("c9"), stopReason="aborted", errorMessage="Aborted")
    transcript = read_transcript([*RUN, broken])
    only(transcript)
    assert f"{BROKEN_OFF} (1)" in transcript.notes


def test_commands_of_the_user_are_told_unless_they_were_kept_out() -> None:
    ran = entry("b1", "r", role="bashExecution", command="ls", output="x", exitCode=0)
    hidden = entry(
        "b2", "b1", role="bashExecution", command="id", output="y", excludeFromContext=True
    )
    custom = {"type": "custom_message", "id": "b3", "parentId": "b2", "content": "Hint."}
    (whole,) = read_transcript([*RUN, ran, hidden, custom]).trajectories
    assert whole.steps[1:] == (UserTurn("Ran `ls`\nx"), UserTurn("Hint."))


def test_changes_of_the_model_are_links_of_the_chain() -> None:
    change = {"type": "model_change", "id": "m", "parentId": "u", "modelId": "x"}
    log = [HEADER, RUN[1], change, reply("a", "m", call("c")), RUN[3]]
    assert only(read_transcript(log)).trajectory.goal == "Save it."


@pytest.mark.parametrize(
    "odd",
    [
        entry("x", "x", role="assistant", content=[{"type": "toolCall"}, None, 5]),
        entry("x", "r", role="toolResult", content={"a": 1}, toolCallId=[]),
        entry("x", "nowhere", role=["user"], content=5),
        {"type": "compaction", "id": {}, "parentId": [], "firstKeptEntryId": 5},
        {"type": "message", "message": []},
    ],
    ids=range(5),
)
def test_odd_entries_are_passed_over(odd: Entry) -> None:
    assert only(read_transcript([*RUN, odd])).failed.observation == "no body"


def test_second_summary_keeps_nothing_that_the_first_one_told() -> None:
    def summary(name: str, parent: str) -> Entry:
        told = {"type": "compaction", "id": name, "parentId": parent, "firstKeptEntryId": "u"}
        return {**told, "summary": f"Summary {name}."}

    log = [
        *RUN,
        summary("k1", "r"),
        reply("a2", "k1", call("c2")),
        result("r2", "a2", "c2", "two"),
        summary("k2", "r2"),
        reply("a3", "k2", call("c3")),
        result("r3", "a3", "c3", "three"),
    ]
    last = read_transcript(log).failures[-1]
    assert last.trajectory.goal == "Summary k2."
    assert len(last.trajectory.steps) == 1
