from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_failgain.transcripts.heuristics import CANCELLED, HEURISTICS, cancelled_by, judge

TRACEBACK = (
    'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    1/0\n'
    "ZeroDivisionError: division by zero\n"
)
STACK = (
    "ReferenceError: foo is not defined\n    at Object.<anonymous> (/app/x.js:3:3)\n"
    "    at node:internal/main:1:2"
)

FAILURES = {
    "JSON": [
        '{"errors":{"reason":"no such record"}}',
        '{"error": "Invalid API key", "code": "auth"}',
        '{"isError": true, "content": [{"type": "text", "text": "boom"}]}',
        '{"success": false, "reason": "seat taken"}',
        '{"ok": false}',
        '{"status": "error", "data": null}',
        '{"status": 404, "title": "Gone missing"}',
        '{"output": "ls: x", "metadata": {"exit_code": 2, "duration_seconds": 0.1}}',
        '{"returncode": 127, "output": "sh: foo"}',
        '{"exit_code": 1, "output": ""}',
        '{"detail": "Not found: user 12"}',
        '[{"type": "text", "text": "Error: no table of that name"}]',
        '"Error: the booking is closed"',
    ],
    "Python dict": [
        "{'error': 'city is unknown'}",
        "{'success': False, 'message': 'no seats'}",
    ],
    "exit code": [
        "Exit code: 1\nnpm test did not pass",
        "exit code 127\nfoo: command not found",
        "Process exited with code 2\nOutput:\nwrong flag",
        "collected 3 items\n...\n\nCommand exited with non-zero exit status 1",
        "Wall time: 0.1 seconds\nProcess exited with code 101\nOutput:\nfoo",
        "<returncode>1</returncode>\n<output>\ndiff shows lines\n</output>\n[exit code: 1]",
        "running…\nexited with exit code=137",
        "compiling\nSegmentation fault (core dumped)",
        "subprocess.CalledProcessError: Command '['make']' returned non-zero exit status 2.",
    ],
    "HTTP status": [
        "HTTP/1.1 503 Service Unavailable\nretry-after: 3",
        "404 Client Error: Not Found for url: https://example.org/x",
        "Request failed with status code 500",
        "HTTP error 403 while fetching the page",
        "Error code: 429 - slow down",
        "500 Internal Server Error",
    ],
    "traceback": [
        TRACEBACK,
        f"starting\nstep 1\n{TRACEBACK}",
        "  File \"c.py\", line 4\n    def f(\n         ^\nSyntaxError: '(' was never closed",
        f"/app/x.js:3\n  foo()\n  ^\n\n{STACK}\n\nNode.js v20.1.0",
        'Exception in thread "main" java.lang.NullPointerException\n\tat app.Main.run(M.java:7)',
    ],
    "test summary": [
        "tests/test_a.py .F\n\n=== 1 failed, 4 passed in 0.31s ===",
        "....F\n----\nRan 5 tests in 0.01s\n\nFAILED (failures=1)",
        "PASS a.test.js\nTests:       1 failed, 4 passed, 5 total\nTime: 1 s",
        "test result: FAILED. 3 passed; 1 failed; 0 ignored",
        "> Task :compile\n\nBUILD FAILED in 3s",
        "gcc -c x.c\nx.c:1: warning: unused\nmake: *** [Makefile:3: x.o] Error 1",
        "npm ERR! code ENOENT",
        "a.py:1: error: bad types\nFound 1 error in 1 file (checked 2 source files)",
    ],
    "error word": [
        "Error: file is locked",
        "ERROR - the queue is full",
        "ValueError: month must be in 1..12",
        "botocore.exceptions.ClientError: the bucket is gone",
        "error TS2304: Cannot find name 'foo'.",
        "error[E0308]: mismatched types",
        "fatal: not a git repository",
        "An error occurred (AccessDenied) when calling the PutObject operation: no",
        "Error executing tool book_room: room 9 is closed",
        "Action failed: 'the page did not load'",
        "Failed to parse the arguments",
        "Tool call failed with a timeout",
        "<tool_use_error>Error: the file was changed meanwhile</tool_use_error>",
        "Observation: Error: no connection",
        "Call id: call_1\nError:\nCode execution failed at line 1",
        "E: Unable to locate package foo",
        "❌ Error: two calendars match",
        "MCP error -32602: Invalid arguments for tool search",
    ],
    "refusal": [
        "rejected: this connection is read only. Statement was: INSERT INTO visits",
        "Edit refused: it would add a syntax error.\n\nERRORS:\n- E999",
        "Permission denied",
        "Command execute_command gave: there is no command of that name; see the COMMANDS list.",
        "search is not a valid tool, try one of [find, open].",
        "Unknown tool: 'fetch'",
        "Unknown command line option --foo",
        "Invalid `path` parameter: /x. The path is a directory",
        "Missing required argument: city",
        "No tool named frobnicate",
        "File not found: notes.txt",
        "The path /tmp/x does not exist. Please provide a valid path.",
        "bash: foo: command not found",
        "/bin/sh: 1: foo: not found",
        "ls: cannot access 'x': No such file or directory",
        "cat: /etc/shadow: Permission denied",
        "psql: connection refused",
        "Could not open the page",
        "Cannot read properties of undefined (reading 'id')",
        "You must read the file before you edit it.",
        "Command timed out after 30 seconds",
        "src/a.c:3:5: error: expected ';'",
        "'date' must be YYYY-MM-DD, got '12 Oct'",
        "The date must be in the future, and room_id is required",
    ],
    "usage": ["usage: tool [-h] file\ntool: error: unrecognized arguments: --foo"],
    "not done": [
        "Your proposed edit has introduced new syntax error(s).\n\nERRORS:\n- E999\n"
        + "12: x = 1\n" * 30,
        "Looking at the file.\nNo replacement was performed, old_str `x` did not appear verbatim",
        "The last command <command>sleep 99</command> timed out and has been killed.\n<output>\n"
        + "line\n" * 30,
    ],
}

NO_FAILURES = [
    "",
    "ok",
    "Done.",
    "No errors found.",
    "0 errors, 2 warnings",
    "Lint finished: 0 errors",
    "Errors: 0\nWarnings: 3",
    "Error: none",
    "error: 0",
    "failed: 0\npassed: 12",
    "Result 0 failed.",
    "No errors occurred while parsing.",
    "# Invalid tokens and how to find them",
    "     3\tInvalid key: x\n     4\tend",
    "The file /a/b.py has been updated. The hook was not executed.",
    "12 passed, 0 failed",
    "error.log\nmain.py\ntests",
    "errors.py: 20 lines",
    "total 8\n-rw-r--r-- 1 me me 12 May 1 10:00 error.log\n-rw-r--r-- 1 me me 9 May 1 failed.txt",
    "def f():\n    raise ValueError('Error: no')\n",
    'import sys\n\nTEXT = """\nTraceback (most recent call last):\n  boom\n"""\n',
    '1: print("x")\n2: # Traceback (most recent call last)\n3: print("Error: y")',
    "     1\tError handling\n     2\t==============",
    "# Error handling\n\nRaise `ValueError` for what is no number.",
    "Error handling is described in chapter 3.",
    "Exceptions in Python are objects.",
    "Failed login attempts are kept for 30 days.",
    "Invalid inputs raise ValueError, see the manual.",
    "The rejected applications are listed below.",
    "Denied claims by month\nMay 3\nJune 4",
    "Unknown authors are filed under U.",
    "server started\nWARN retrying after error\nlistening on 8080",
    '{"errors": []}',
    '{"error": null, "data": [1, 2]}',
    '{"error": "", "result": "fine"}',
    '{"isError": false, "content": [{"type": "text", "text": "3 rows"}]}',
    '{"success": true, "message": "Error log cleared"}',
    '{"status": "ok", "error_count": 0}',
    '{"name": "error budget", "value": 0.2}',
    '{"output": "Error: shown by cat", "metadata": {"exit_code": 0}}',
    '[{"id": 1, "error": "old"}]',
    "{'error': None, 'rows': 3}",
    "Exit code: 0\nError: this is only what the file says",
    "Process exited with code 0\nOutput:\nTraceback (most recent call last)",
    "An exit code of 1 means that a test failed; exit code 2 is for usage.",
    "HTTP/1.1 200 OK\ncontent-length: 404",
    "Page 404 of 500",
    "500 rows updated",
    "=== 5 passed in 0.12s ===",
    "Ran 3 tests in 0.001s\n\nOK",
    "Tests:       4 passed, 4 total",
    "test result: ok. 3 passed; 0 failed; 0 ignored",
    "Found 3 matches for 'error' in src/",
    "Found 0 errors in 12 files",
    "src/a.py:3:    except ValueError as error:\nsrc/b.py:9:    raise KeyError",
    "usage: tool [-h] file\n\noptions:\n  -h  show this help",
    "The file /a/b.py has been updated. Here's the result of running `cat -n`:\n 1\traise Error",
    "Successfully installed foo-1.0",
    "commit 3f2a\n\n    Fix: error when the list is empty",
    "diff --git a/x b/x\n-    raise Error('not found')\n+    return None",
    "Meeting moved to 3 pm; the old time was not available to two guests, as you know. " * 9,
    "Weather in Oslo: 12 °C, no rain.",
    "The most common error is a missing comma.",
    "log: retry\n" * 400 + "Error: in the middle\n" + "log: fine\n" * 400,
]

CANCELLATIONS = {
    "rejection": [
        "The user doesn't want to proceed with this tool use. The tool use was rejected",
        "The user denied this operation.",
        "User rejected the call",
        "Commands not executed. The user rejected your commands with the following message: no",
        "exec command rejected by user",
        "Permission to use Bash with command rm -rf / has been denied.",
    ],
    "interruption": [
        "[Request interrupted by user for tool use]",
        "Interrupted by user: stop",
        "aborted by user after 12.3s",
        "[Operation Cancelled] Reason: User did not allow tool call",
        'The user interrupted the action with the following feedback: "no"',
        "Human feedback: try another site",
        "Tool execution was cancelled.",
        "Cancelled",
    ],
    "cascade": [
        "<tool_use_error>Cancelled: parallel tool call Bash errored</tool_use_error>",
        "<tool_use_error>Sibling tool call errored</tool_use_error>",
        "Skipping tool [read_file for 'a'] due to user rejecting a previous tool.",
        "Tool [read_file] was not executed because a tool has already been used in this message.",
        "action was not executed",
    ],
}

NOT_CANCELLED = [
    "The command 'sleep 99' was cancelled because it took more than 30 seconds.",
    "Order 12 was cancelled: refund of 3 EUR",
    "The user guide denies this.",
    "Denied rows: see the audit table",
    "Error: the operation was rejected by the server",
    "skipped 3 files",
]


@pytest.mark.parametrize(
    ("rule", "text"), [(rule, text) for rule, texts in FAILURES.items() for text in texts]
)
def test_failure_is_told_by_the_rule_of_its_kind(rule: str, text: str) -> None:
    assert judge(text) == (True, rule)


@pytest.mark.parametrize("text", NO_FAILURES)
def test_what_only_mentions_an_error_is_no_failure(text: str) -> None:
    assert judge(text)[0] is False


@pytest.mark.parametrize(
    ("rule", "text"), [(rule, text) for rule, texts in CANCELLATIONS.items() for text in texts]
)
def test_rejected_and_cancelled_calls_are_told_by_their_texts(rule: str, text: str) -> None:
    assert cancelled_by(text) == rule


@pytest.mark.parametrize("text", [*NOT_CANCELLED, *NO_FAILURES[1:4], *FAILURES["error word"]])
def test_other_results_are_not_cancelled(text: str) -> None:
    assert cancelled_by(text) is None


def test_every_rule_has_examples() -> None:
    assert FAILURES.keys() == HEURISTICS.keys()
    assert CANCELLATIONS.keys() == CANCELLED.keys()


@given(st.text(), st.integers(1, 50_000))
@settings(max_examples=60, deadline=None)
def test_middle_of_a_long_output_says_nothing(text: str, times: int) -> None:
    output = "listing\n" * 400
    assert judge(f"{output}{text * times}{output}") == (False, "")


@given(st.text() | st.from_regex(r"[\W\w]{0,30}(error|failed|exit code|not found)[\W\w]{0,30}"))
@settings(max_examples=200, deadline=None)
def test_any_text_gets_a_verdict(text: str) -> None:
    verdict, rule = judge(text)
    assert isinstance(verdict, bool)
    assert rule in HEURISTICS or (rule == "" and not verdict)


HOSTILE = [
    "a ",
    "a" * 50,
    "error ",
    "no " * 2,
    "/",
    "\\",
    "'",
    "\n ",
    "\t",
    "x: ",
    'File "',
    "at a\n ",
    "{",
    "[",
    '{"a":',
    "1 passed, ",
    "exit ",
    "<output>",
    "Error\n",
    "the user ",
    ".-",
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_time_is_linear_whatever_the_text(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    started = time.perf_counter()
    judge(text)
    cancelled_by(text)
    assert time.perf_counter() - started < 1
