"""Which tools and commands only look: what is known to change nothing, by name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from pytest_failgain.call_text import read_json, read_python
from pytest_failgain.trajectory import Action

_LOOKING_VERBS = frozenset(
    [
        "browse",
        "cat",
        "check",
        "count",
        "describe",
        "diff",
        "explain",
        "fetch",
        "find",
        "get",
        "glob",
        "grep",
        "head",
        "help",
        "info",
        "inspect",
        "is",
        "list",
        "load",
        "lookup",
        "ls",
        "peek",
        "preview",
        "query",
        "read",
        "retrieve",
        "search",
        "show",
        "sleep",
        "stat",
        "status",
        "tail",
        "think",
        "view",
        "wait",
    ]
)
_LOOKING_COMMANDS = frozenset(
    [
        "basename",
        "cat",
        "cmp",
        "column",
        "comm",
        "cut",
        "date",
        "df",
        "diff",
        "dirname",
        "du",
        "echo",
        "egrep",
        "env",
        "fgrep",
        "file",
        "find",
        "git",
        "grep",
        "head",
        "hexdump",
        "id",
        "jq",
        "less",
        "ls",
        "md5sum",
        "more",
        "nl",
        "od",
        "printenv",
        "printf",
        "ps",
        "pwd",
        "readlink",
        "realpath",
        "rg",
        "sed",
        "sha256sum",
        "sleep",
        "sort",
        "stat",
        "tail",
        "test",
        "tree",
        "true",
        "type",
        "uname",
        "uniq",
        "wc",
        "whereis",
        "which",
        "whoami",
        "xxd",
    ]
)
_LOOKING_GIT = frozenset(
    [
        "blame",
        "cat-file",
        "describe",
        "diff",
        "grep",
        "log",
        "ls-files",
        "rev-parse",
        "shortlog",
        "show",
        "status",
    ]
)
# What makes a command that looks change something all the same.
_CHANGING_OPTIONS = {
    "sed": re.compile(r"(?:-[a-zA-Z]*i|--in-place)\S*"),
    "find": re.compile(r"-delete|-exec(?:dir)?|-ok(?:dir)?|-fprint.?"),
    "sort": re.compile(r"-[a-zA-Z]*o\S*|--output\S*"),
}
_SHELLS = frozenset(
    [
        "bash",
        "cmd",
        "console",
        "exec",
        "execute",
        "powershell",
        "run",
        "sh",
        "shell",
        "terminal",
        "local_shell",
        "exec_command",
        "execute_bash",
        "execute_command",
        "run_bash",
        "run_command",
        "run_in_terminal",
        "run_shell",
        "run_shell_command",
        "run_terminal_cmd",
        "run_terminal_command",
        "shell_command",
    ]
)
_COMMAND_KEYS = ("command", "cmd", "commands", "script", "input", "code")
_SQL_KEYS = ("query", "sql", "statement")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_LOOKING_SQL = re.compile(r"\s*(?:select|show|explain|describe|desc|pragma\s+\w+\s*;?\s*$)\b", re.I)
_CHANGING_SQL = re.compile(r"\b(?:insert|update|delete|drop|alter|create|replace|into)\b", re.I)
_HARMLESS_REDIRECT = re.compile(r"[12&]?>>?\s*(?:/dev/null|&[12])|<<<?")
_SEPARATORS = re.compile(r"&&|\|\|?|;|\n|&")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=\S*")
_LABELLED = re.compile(r"^\s*Action\s*:\s*([\w.-]+)\s*(?:\[|$)", re.M)


def reads_only_by_name(tool: str) -> bool:
    """Whether a tool of this name only looks, as "list_events", "getUser" or "fs.read" do."""
    words = [word.lower() for word in _WORDS.findall(tool)]
    if any(word in _LOOKING_VERBS for word in words[:1]):
        return True
    # Behind the name of a server or a namespace, as in "mcp__files__read_file".
    parts = re.split(r"__|[./:]", tool)
    return len(parts) > 1 and reads_only_by_name(parts[-1])


def reads_only(action: Action, tool: str | None = None) -> bool:
    """Whether `action` is known to change nothing; `tool` is the runtime's name of its tool.

    What is not known is taken to change something.
    """
    if action.calls:
        return all(_call_reads(call.name, _arguments(call.arguments)) for call in action.calls)
    for read in (read_json, read_python):
        try:
            call = read(action.text)
        except ValueError:
            continue
        return _call_reads(call.tool, call.arguments)
    labelled = _LABELLED.search(action.text)
    if labelled is not None:
        return _call_reads(labelled.group(1), None)
    if tool is not None and tool.lower() not in _SHELLS:
        return _call_reads(tool, action.text)
    return command_reads(action.text)


def _call_reads(tool: str, arguments: Any) -> bool:
    if tool.lower() in _SHELLS:
        commands = list(_commands(arguments))
        return bool(commands) and all(map(command_reads, commands))
    if not reads_only_by_name(tool):
        return False
    given = arguments if isinstance(arguments, dict) else {}
    statements = [given[key] for key in _SQL_KEYS if isinstance(given.get(key), str)]
    return not any(map(_changes_as_sql, statements))


def _changes_as_sql(statement: str) -> bool:
    if _LOOKING_SQL.match(statement):
        return False
    # A query need not be SQL: words of one behind each other are what tells it.
    begins = _CHANGING_SQL.match(statement.strip())
    return begins is not None and len(statement.split()) > 2


def _commands(arguments: Any) -> Iterable[str]:
    if isinstance(arguments, str):
        yield arguments
    for key in _COMMAND_KEYS if isinstance(arguments, dict) else ():
        value = arguments.get(key)
        if isinstance(value, str):
            yield value
        elif isinstance(value, list) and all(isinstance(part, str) for part in value):
            # As ["bash", "-lc", "ls"], the last part is the command.
            yield value[-1] if value[:1] in (["bash"], ["sh"], ["zsh"]) else " ".join(value)


def _arguments(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def command_reads(command: str) -> bool:
    """Whether each part of a shell's command line only looks.

    `cd` before another command belongs to that; alone it changes where the next one runs.
    """
    if re.search(r"\$\(|`|>", _HARMLESS_REDIRECT.sub("", command)):
        return False
    parts = [part.split() for part in _SEPARATORS.split(_HARMLESS_REDIRECT.sub("", command))]
    parts = [words for words in parts if words]
    looking = [words for words in parts if words[0] != "cd"]
    return bool(looking) and all(map(_part_reads, looking))


def _part_reads(words: list[str]) -> bool:
    while words and (_ASSIGNMENT.fullmatch(words[0]) or words[0] == "sudo"):
        words = words[1:]
    name = words[0].rpartition("/")[2] if words else ""
    if name not in _LOOKING_COMMANDS:
        return False
    if name == "git":
        options = [word for word in words[1:] if not word.startswith("-")]
        return bool(options) and options[0] in _LOOKING_GIT
    if name == "env" and len(words) > 1:
        return False
    changing = _CHANGING_OPTIONS.get(name)
    return changing is None or not any(changing.fullmatch(word) for word in words[1:])
