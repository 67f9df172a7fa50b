"""Cline and Roo Code: tool calls as XML in the text of a reply, results in the user's turn."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_failgain.trajectory import Action
from pytest_failgain.transcripts.content import content_text
from pytest_failgain.transcripts.conversation import Call, Conversation, Result, Turn
from pytest_failgain.transcripts.document import Document
from pytest_failgain.transcripts.messages import MessageList, message_lists, role_of, without

NO_TOOL = "a reply without a tool call, which the agent turned down: no case"

TOOLS = (
    "execute_command",
    "read_command_output",
    "read_file",
    "fetch_instructions",
    "write_to_file",
    "new_file",
    "replace_in_file",
    "apply_diff",
    "edit_file",
    "search_and_replace",
    "search_replace",
    "insert_content",
    "apply_patch",
    "search_files",
    "codebase_search",
    "list_files",
    "list_code_definition_names",
    "browser_action",
    "web_fetch",
    "web_search",
    "use_mcp_tool",
    "access_mcp_resource",
    "load_mcp_documentation",
    "ask_followup_question",
    "attempt_completion",
    "plan_mode_respond",
    "act_mode_respond",
    "switch_mode",
    "new_task",
    "condense",
    "update_todo_list",
    "run_slash_command",
    "use_skill",
    "generate_image",
)

# Whether these failed is told by what they did, not by the agent's mark.
_WITHOUT_MARK = ("execute_command", "read_command_output", "use_mcp_tool", "browser_action")

_HEADING_ENDS = "] Result:"
_LONGEST_HEADING = 20_000

_HEADER = re.compile(r"^(?:Tool #\d{1,4}: )?\[([a-z]\w{1,60})(?=[ \]])", re.M)
_SKIPPED = re.compile(
    r"^(?:Skipping tool|Tool) \[[a-z]\w{1,60}[^\n]{0,2000}? "
    r"(?:due to user rejecting|was not executed|was interrupted and not executed)[^\n]*",
    re.M,
)
_ENDS = re.compile(r"^<environment_details>|^# Reminder: Instructions for Tool Use", re.M)
_TAG = re.compile(r"<([a-z]\w{1,60})>")
_FAILED = re.compile(
    r"\A\s*(?:The tool execution failed with the following error|Missing value for required"
    r"|<error>|<files?>\s*(?:<file>)?\s*<path>[^<]{0,1000}</path>\s*<error>"
    r"|\{\s*\"status\": ?\"error\")"
)
_DENIED = re.compile(r"\A\s*(?:The user denied this operation|\{\s*\"status\": ?\"denied\")")
_NO_TOOL_USED = "[ERROR] You did not use a tool"


class ClineReader:
    """An `api_conversation_history.json`, or the messages of a request."""

    name = "cline"

    def recognises(self, document: Document) -> bool:
        return any(map(_is_task, message_lists(document)))

    def read(self, document: Document) -> Sequence[Conversation]:
        return [_conversation(task) for task in message_lists(document)]


def _is_task(task: MessageList) -> bool:
    """Whether a user's turn answers, under its heading, a tool that the reply before it calls."""
    called: list[str] = []
    for message in task.messages:
        text = _text(message)
        if role_of(message) == "assistant":
            called = [name for name, _ in _calls(text, TOOLS)]
            continue
        answered = [found[0] for found in _headings(text)]
        if called and (set(called) & set(answered) or text.lstrip().startswith(_NO_TOOL_USED)):
            return True
        called = []
    return False


def _conversation(task: MessageList) -> Conversation:
    turns: list[Turn] = []
    notes: list[str] = []
    system = task.around.get("system")
    if system is not None and content_text(system).strip():
        text = content_text(system)
        turns.append(Turn("system", text, message={"role": "system", "content": text}))
    known = _tools_of(task)
    for message in task.messages:
        role, text = role_of(message), _text(message)
        sent = without(message, "ts")
        if role == "assistant":
            calls = tuple(Call(Action(written)) for _, written in _calls(text, known))
            turns.append(Turn("assistant", text, calls, message=sent))
            continue
        results = tuple(_results(text)) if turns and turns[-1].calls else ()
        if _NO_TOOL_USED in text and not results:
            notes.append(NO_TOOL)
        turns.append(
            Turn("system" if role == "system" else "user", text, results=results, message=sent)
        )
    return Conversation(tuple(turns), notes=tuple(dict.fromkeys(notes)))


def _text(message: Mapping[str, Any]) -> str:
    """What a message says; its parts are blocks of lines, one under the other."""
    content = message.get("content")
    if not isinstance(content, list):
        return content_text(content)
    return "\n".join(content_text([part]) for part in content)


def _tools_of(task: MessageList) -> tuple[str, ...]:
    """The names of tools: the agent's own, and what else was answered as one."""
    answered = (
        name
        for message in task.messages
        if role_of(message) == "user"
        for name, _, _ in _headings(_text(message))
    )
    return tuple(dict.fromkeys((*TOOLS, *answered)))


def _calls(reply: str, tools: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The tool calls in a reply: the name and the text of each, cut off where the reply is."""
    names, at = set(tools), 0
    while opening := _TAG.search(reply, at):
        name, at = opening.group(1), opening.end()
        if name not in names:
            continue
        closing = f"</{name}>"
        end = reply.find(closing, at)
        # A tool may be named in its tag before it is called; then the last one opens the call.
        start = reply.rfind(f"<{name}>", opening.start(), end) if end >= 0 else opening.start()
        at = end + len(closing) if end >= 0 else len(reply)
        yield name, reply[start:at]


def _headings(text: str) -> Iterator[tuple[str, int, int]]:
    """Each heading of a result: the tool's name, where the heading begins, and where it ends."""
    at = end = 0
    while found := _HEADER.search(text, at):
        at = found.end()
        if end < at:
            end = text.find(_HEADING_ENDS, at)
        if end < 0:
            return
        # The heading quotes a command or a question, which may have several lines.
        if end - at <= _LONGEST_HEADING:
            at = end + len(_HEADING_ENDS)
            yield found.group(1), found.start(), at


def _results(text: str) -> Iterator[Result]:
    """The results in a user's turn, in the order of the calls that they answer."""
    headings = [(start, end, name) for name, start, end in _headings(text)]
    skipped = [(found.start(), found.end(), "") for found in _SKIPPED.finditer(text)]
    ends = [found.start() for found in _ENDS.finditer(text)]
    places = sorted([*headings, *skipped])
    for place, (start, end, name) in enumerate(places):
        if not name:
            yield Result(text[start:end], cancelled=True)
            continue
        limits = [places[place + 1][0]] if place + 1 < len(places) else []
        ended = bisect_left(ends, end)
        limits += ends[ended : ended + 1]
        yield _result(name, text[end : min(limits, default=len(text))].strip("\n").strip())


def _result(tool: str, text: str) -> Result:
    if _DENIED.match(text):
        return Result(text, cancelled=True)
    if _FAILED.match(text):
        return Result(text, failed=True, mark="a tool error")
    if tool in _WITHOUT_MARK:
        return Result(text)
    return Result(text, failed=False, mark="no tool error")
