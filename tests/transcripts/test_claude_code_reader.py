"""Sessions of Claude Code: a tree of lines, replies split over several of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_failgain.trajectory import Step, Trajectory, UserTurn
from pytest_failgain.transcripts.claude_code import COMPACTED, NO_SYSTEM, TOLD
from pytest_failgain.transcripts.read import ReadTranscript, read_transcript
from pytest_failgain.transcripts.session_tree import SHORTENED

Line = dict[str, Any]


def line(uuid: str, parent: str | None, message: Any, **more: Any) -> Line:
    return {
        "type": message["role"],
        "uuid": uuid,
        "parentUuid": parent,
        "isSidechain": False,
        "sessionId": "s",
        "message": message,
        **more,
    }


def said(uuid: str, parent: str | None, text: Any, **more: Any) -> Line:
    return line(uuid, parent, {"role": "user", "content": text}, **more)


def reply(uuid: str, parent: str | None, *blocks: Any, message: str = "", **more: Any) -> Line:
    content = {"role": "assistant", "id": message or f"m-{uuid}", "content": [*blocks]}
    return line(uuid, parent, content, **more)


def text(words: str) -> Line:
    return {"type": "text", "text": words}


def use(call_id: str, command: str = "ls") -> Line:
    return {"type": "tool_use", "id": call_id, "name": "Bash", "input": {"command": command}}


def result(uuid: str, parent: str, call_id: str, content: Any = "Exit code 1", **more: Any) -> Line:
    marked = {"is_error": more.pop("is_error", True)}
    if marked["is_error"] is None:
        marked = {}
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content, **marked}
    return said(uuid, parent, [block], **more)


def failures(transcript: ReadTranscript) -> list[tuple[str, str | None]]:
    assert transcript.format == "claude-code"
    return [
        (json.loads(case.failed.action.calls[0].arguments)["command"], case.failed.observation)
        for case in transcript.failures
    ]


def steps(trajectory: Trajectory) -> list[Step]:
    return [step for step in trajectory.steps if isinstance(step, Step)]


RUN = [said("u", None, "Look."), reply("a", "u", use("c1")), result("r", "a", "c1")]


@pytest.mark.parametrize("as_lines", [True, False])
def test_session_is_told_as_chat_messages_and_says_so(*, as_lines: bool) -> None:
    session = [{"type": "summary", "summary": "x", "leafUuid": "r"}, *RUN]
    transcript = read_transcript("\n".join(map(json.dumps, session)) if as_lines else session)
    assert failures(transcript) == [("ls", "Exit code 1")]
    assert {f"{TOLD} (1)", f"{NO_SYSTEM} (1)"} <= {*transcript.notes}
    case = transcript.failures[0]
    after = transcript.as_recorded(case.trajectory.then(case.failed))
    assert after.messages is not None
    assert [message["role"] for message in after.messages] == ["user", "assistant", "tool"]
    assert TOLD in after.adaptations


def test_lines_of_one_reply_are_one_turn_with_all_of_its_results() -> None:
    session = [
        said("u", None, "Look."),
        reply("a1", "u", text("Three."), message="m"),
        reply("a2", "a1", use("c1", "one"), message="m"),
        reply("a3", "a2", use("c2", "two"), message="m"),
        reply("a4", "a3", use("c3", "three"), message="m"),
        result("r1", "a2", "c1"),
        result("r3", "a4", "c3", "Exit code 3"),
        result("r2", "a3", "c2", "fine", is_error=False),
        reply("b", "r2", text("So.")),
    ]
    transcript = read_transcript(session)
    assert failures(transcript) == [("one", "Exit code 1"), ("three", "Exit code 3")]
    assert len(transcript.trajectories) == 1
    case = transcript.failures[0]
    assert case.failed.reply == "Three."
    assert case.trajectory.steps == ()
    messages = transcript.as_recorded(case.trajectory.then(case.failed)).messages
    assert messages is not None
    assert [message["role"] for message in messages[1:]] == ["assistant", "tool", "tool", "tool"]


def test_session_that_goes_on_from_the_first_result_keeps_the_other_calls() -> None:
    session = [
        said("u", None, "Look."),
        reply("a1", "u", use("c1", "one"), message="m"),
        result("r1", "a1", "c1"),
        reply("a2", "a1", use("c2", "two"), message="m"),
        result("r2", "a2", "c2"),
        reply("b", "r1", text("So.")),
    ]
    transcript = read_transcript(session)
    assert failures(transcript) == [("one", "Exit code 1"), ("two", "Exit code 1")]
    assert len(transcript.trajectories) == 1


@pytest.mark.parametrize(
    "words",
    [
        "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. …).",
        "The user doesn't want to take this action right now. STOP what you are doing.",
        "[Request interrupted by user for tool use]",
        "<tool_use_error>Cancelled because a call in the same batch failed</tool_use_error>",
        "<tool_use_error>Cancelled: parallel tool call Bash(ls) errored</tool_use_error>",
        "<tool_use_error>Sibling tool call errored</tool_use_error>",
        "Permission to use Bash with command rm -rf x has been denied.",
        "Claude requested permissions to use Bash, but you haven't granted it yet.",
    ],
)
def test_rejected_and_cancelled_calls_are_no_failures(words: str) -> None:
    transcript = read_transcript([*RUN[:2], result("r", "a", "c1", words)])
    assert failures(transcript) == []
    assert "a rejected or cancelled call: no failure (1)" in transcript.notes


@pytest.mark.parametrize(
    "words",
    [
        "<tool_use_error>File has not been read yet.</tool_use_error>",
        "<tool_use_error>InputValidationError: Edit failed</tool_use_error>",
        "Exit code 1\nThe user doesn't want to proceed",
        "PreToolUse:Bash hook error: not here",
        [{"type": "text", "text": "MCP error -32602"}],
    ],
    ids=lambda words: str(words)[:20],
)
def test_errors_of_tools_are_failures(words: Any) -> None:
    assert len(failures(read_transcript([*RUN[:2], result("r", "a", "c1", words)]))) == 1


def test_interrupted_command_is_no_failure() -> None:
    stopped = result("r", "a", "c1", toolUseResult={"interrupted": True, "stdout": ""})
    assert failures(read_transcript([*RUN[:2], stopped])) == []


@pytest.mark.parametrize("mark", [None, False])
def test_unmarked_result_is_a_success_whatever_it_shows(mark: bool | None) -> None:
    shown = result("r", "a", "c1", "Error: this is a file's first line", is_error=mark)
    assert failures(read_transcript([*RUN[:2], shown])) == []


def test_branches_share_their_beginning_and_each_failure_is_told_once() -> None:
    session = [
        *RUN,
        said("u2", "r", "No, otherwise."),
        reply("a2", "u2", use("c2", "one")),
        result("r2", "a2", "c2"),
        said("u3", "r", "Or so."),
        reply("a3", "u3", use("c3", "two")),
        result("r3", "a3", "c3"),
    ]
    transcript = read_transcript(session)
    assert sorted(failures(transcript)) == [
        ("ls", "Exit code 1"),
        ("one", "Exit code 1"),
        ("two", "Exit code 1"),
    ]
    assert len(transcript.trajectories) == 2
    by_command = {
        json.loads(case.failed.action.calls[0].arguments)["command"]: case
        for case in transcript.failures
    }
    assert by_command["one"].trajectory.steps[1:] == (UserTurn("No, otherwise."),)
    assert by_command["two"].trajectory.steps[1:] == (UserTurn("Or so."),)


def test_branch_in_which_nothing_was_done_is_left_out() -> None:
    session = [*RUN, said("x", "r", "Forget it."), reply("b", "r", text("So."))]
    assert len(read_transcript(session).trajectories) == 1


def test_subagent_in_the_same_log_is_a_conversation_of_its_own() -> None:
    side: dict[str, Any] = {"isSidechain": True, "agentId": "g"}
    session = [
        *RUN,
        said("su", None, "Search.", **side),
        reply("sa", "su", use("sc", "find"), **side),
        result("sr", "sa", "sc", **side),
        reply("b", "r", text("So.")),
    ]
    transcript = read_transcript(session)
    assert sorted(failures(transcript)) == [("find", "Exit code 1"), ("ls", "Exit code 1")]
    goals = {case.trajectory.goal for case in transcript.failures}
    assert goals == {"Look.", "Search."}


def test_lines_that_are_no_messages_are_links_of_the_chain() -> None:
    session = [
        RUN[0],
        {"type": "attachment", "uuid": "x", "parentUuid": "u"},
        {"type": "system", "uuid": "y", "parentUuid": "x", "content": "hook ran"},
        reply("a", "y", use("c1")),
        {"type": "progress", "uuid": "z", "parentUuid": "a"},
        result("r", "z", "c1"),
    ]
    transcript = read_transcript(session)
    assert failures(transcript) == [("ls", "Exit code 1")]
    assert transcript.failures[0].trajectory.goal == "Look."
    assert len(transcript.trajectories) == 1


def test_notices_of_the_program_are_no_replies() -> None:
    synthetic = {"role": "assistant", "model": "<synthetic>", "content": [text("No response.")]}
    session = [
        *RUN,
        line("n", "r", synthetic),
        reply("e", "n", text("API Error: 500"), isApiErrorMessage=True),
        reply("b", "e", text("So.")),
    ]
    (whole,) = read_transcript(session).trajectories
    assert [step.action.text for step in steps(whole)][1:] == ["So."]


def test_summary_begins_a_conversation_and_is_noted() -> None:
    session = [
        *RUN,
        {"type": "system", "subtype": "compact_boundary", "uuid": "k", "parentUuid": None},
        said("s", "k", "What was done.", isCompactSummary=True, isVisibleInTranscriptOnly=True),
        reply("b", "s", use("c2", "two")),
        result("r2", "b", "c2"),
    ]
    transcript = read_transcript(session)
    assert sorted(failures(transcript)) == [("ls", "Exit code 1"), ("two", "Exit code 1")]
    goals = {case.trajectory.goal for case in transcript.failures}
    assert goals == {"Look.", "What was done."}
    assert any(note.startswith(COMPACTED) for note in transcript.notes)


def test_line_whose_parent_is_not_in_the_log_follows_the_last() -> None:
    cut = [reply("a", "gone", use("c1")), result("r", "a", "c1"), said("u", "lost", "And?")]
    transcript = read_transcript(cut)
    assert failures(transcript) == [("ls", "Exit code 1")]
    assert len(transcript.trajectories) == 1


def test_stream_of_json_without_ids_is_read_in_its_order() -> None:
    def streamed(one: Line, parent: str | None = None) -> Line:
        return {
            "type": one["type"],
            "message": one["message"],
            "parent_tool_use_id": parent,
            "session_id": "s",
        }

    agent = [said("", None, "Search."), reply("x", None, use("sc", "find")), result("", "", "sc")]
    session = [
        {"type": "system", "subtype": "init", "session_id": "s"},
        *map(streamed, RUN[:2]),
        *(streamed(one, "c1") for one in agent),
        streamed(RUN[2]),
        {"type": "result", "subtype": "success", "session_id": "s"},
    ]
    transcript = read_transcript(session)
    assert sorted(failures(transcript)) == [("find", "Exit code 1"), ("ls", "Exit code 1")]
    assert len(transcript.trajectories) == 2


def test_call_that_a_resumed_session_tells_again_is_one() -> None:
    again = [said("u2", None, "Look."), reply("a2", "u2", use("c1")), result("r2", "a2", "c1")]
    assert failures(read_transcript([*RUN, *again])) == [("ls", "Exit code 1")]


@pytest.mark.parametrize(
    "session",
    [
        [said("u", "r", "Look."), reply("a", "u", use("c1")), result("r", "a", "c1")],
        [said("u", "u", "Look."), reply("a", "a", use("c1")), result("r", "r", "c1")],
        [*reversed(RUN)],
    ],
    ids=["circle", "own parents", "backwards"],
)
def test_odd_trees_still_tell_of_the_failure(session: list[Line]) -> None:
    assert failures(read_transcript(session)) == [("ls", "Exit code 1")]


def test_many_long_branches_are_told_shortened_and_say_so() -> None:
    count = 3000
    session = [said("n0", None, "Look.")]
    session += [reply(f"n{n}", f"n{n - 1}", text("on")) for n in range(1, count)]
    session += [reply(f"b{n}", f"n{count - 1}", text("x")) for n in range(count)]
    transcript = read_transcript(session)
    assert len(transcript.trajectories) == count
    assert any(note.startswith(SHORTENED) for note in transcript.notes)
    assert sum(len(one.steps) for one in transcript.trajectories) < 20 * len(session)


@pytest.mark.parametrize(
    "odd",
    [
        {"type": "user", "uuid": [], "parentUuid": {}, "message": {"content": 5}},
        {"type": "assistant", "uuid": "q", "parentUuid": "r", "message": {"id": 5}},
        {"type": "user", "uuid": "q", "message": {"content": [{"type": "tool_result"}]}},
        {"type": ["user"], "uuid": "q", "parentUuid": "r", "message": {}},
    ],
    ids=range(4),
)
def test_odd_lines_are_passed_over(odd: Line) -> None:
    assert failures(read_transcript([*RUN, odd])) == [("ls", "Exit code 1")]


def test_lines_of_a_reply_in_the_wrong_order_still_follow_what_was_said() -> None:
    session = [
        RUN[0],
        reply("a2", "a1", use("c2", "two"), message="m"),
        reply("a1", "u", use("c1", "one"), message="m"),
        result("r1", "a1", "c1"),
        result("r2", "a2", "c2"),
    ]
    transcript = read_transcript(session)
    assert len(transcript.trajectories) == 1
    assert {case.trajectory.goal for case in transcript.failures} == {"Look."}
    assert len(transcript.failures) == 2
