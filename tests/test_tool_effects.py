"""Which tools and commands are known to change nothing."""

from __future__ import annotations

import pytest

from pytest_failgain.tool_effects import command_reads, reads_only, reads_only_by_name
from pytest_failgain.trajectory import Action, ToolCall


def made(name: str, arguments: str = "{}") -> Action:
    return Action(calls=(ToolCall(name, arguments),))


@pytest.mark.parametrize(
    "name",
    ["list_events", "getUser", "read", "Grep", "LS", "fs.read", "mcp__files__read_file", "is-open"],
)
def test_tools_that_look_are_known_by_name(name: str) -> None:
    assert reads_only_by_name(name)


@pytest.mark.parametrize(
    "name", ["create_event", "update", "listen", "gets", "mcp__list__delete", "set_status", ""]
)
def test_other_tools_may_change_something(name: str) -> None:
    assert not reads_only_by_name(name)


@pytest.mark.parametrize(
    "command",
    [
        "ls -la",
        "cat a.py | head -5",
        "cd src && grep -rn x . 2>/dev/null",
        "/usr/bin/find . -name '*.py'",
        "git status; git -P log",
        "LC_ALL=C sort a.txt",
        "sudo cat /etc/hosts",
        "sed -n 1,5p a.py",
        "env",
        "pwd\nwc -l a.py 2>&1",
        "grep x <<< y",
    ],
)
def test_commands_that_look(command: str) -> None:
    assert command_reads(command)


@pytest.mark.parametrize(
    "command",
    [
        "",
        "cd src",
        "rm a.py",
        "ls; rm a.py",
        "ls && make",
        "cat a.py | xargs rm",
        "ls & rm a.py",
        "echo x > a.py",
        "cat a.py >> b.py",
        "echo $(rm a.py)",
        "echo `rm a.py`",
        "sed -i s/a/b/ a.py",
        "sed -ni.bak p a.py",
        "sed --in-place=.b p a.py",
        "find . -delete",
        "find . -exec rm {} +",
        "sort -o a.txt a.txt",
        "git commit -m x",
        "git",
        "env A=1 make",
        "python a.py",
        "pip install x",
        "FOO=1",
    ],
)
def test_commands_that_may_change_something(command: str) -> None:
    assert not command_reads(command)


@pytest.mark.parametrize(
    ("action", "tool", "looks"),
    [
        (made("list_events"), None, True),
        (made("create_event"), None, False),
        (made("bash", '{"command": "ls"}'), None, True),
        (made("bash", '{"command": "rm x"}'), None, False),
        (made("shell", '{"command": ["bash", "-lc", "rm x"]}'), None, False),
        (made("shell", '{"command": ["bash", "-lc", "ls x"]}'), None, True),
        (made("shell", '{"cmd": ["ls", "-l"]}'), None, True),
        (made("shell", "{}"), None, False),
        (made("bash", "no JSON"), None, False),
        (made("query", '{"sql": "SELECT 1"}'), None, True),
        (made("query", '{"sql": "delete from events"}'), None, False),
        (made("search", '{"query": "delete an event"}'), None, False),
        (made("search", '{"query": "events to delete"}'), None, True),
        (Action(calls=(ToolCall("read", "{}"), ToolCall("write", "{}"))), None, False),
        (Action('{"name": "list_events", "arguments": {}}'), None, True),
        (Action('{"tool": "list_events"}'), "list_events", True),
        (Action('{"tool": "create_event"}'), "create_event", False),
        (Action("list_events()"), None, True),
        (Action("create_event(title='x')"), None, False),
        (Action("Thought: x\nAction: search[y]"), None, True),
        (Action("Thought: x\nAction: delete[y]"), None, False),
        (Action("ls -l"), None, True),
        (Action("ls -l"), "bash", True),
        (Action("rm x"), "bash", False),
        (Action("SELECT x"), "query", True),
        (Action("x = 1"), "python", False),
    ],
)
def test_actions_of_every_form(action: Action, tool: str | None, looks: bool) -> None:
    assert reads_only(action, tool) is looks
