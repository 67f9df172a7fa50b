"""One trial in the sandbox, seen from outside."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pytest_failgain.environments.sandbox.verdict import Frame, Trial, Verdict
from pytest_failgain.environments.sandbox.wording import error_line
from pytest_failgain.errors import UsageError

# All means of containment; tests leave some out, to see that the others hold by themselves.
WALLS = frozenset({"user_namespace", "network", "processes", "files", "ipc", "landlock", "filter"})

# Over the program's own time: to start, to build the walls, to end.
_GRACE_SECONDS = 10.0

_START = """
import sys
sys.path[:] = [path for path in sys.path if path] + [{here!a}]
from inside.main import main
sys.path.pop()
main({folder!a}, {limits!a}, {walls!a})
"""

TIMED_OUT = "TimeoutError: the program did not finish in time"
_ENDED = "SystemExit: the program ended its own process"
_KILLED = "SystemError: the program's process was killed by a signal"


def run_program(trial: Trial, *, walls: frozenset[str] = WALLS) -> Verdict:
    """Run `trial` in a fresh process and folder, and end all that it started.

    Never raises for anything that the program does.

    Raises:
        UsageError: when the platform can't start a sandbox at all, or the tests are no Python.
    """
    if not hasattr(os, "fork"):
        raise UsageError(
            f"programs can't be executed on {sys.platform}: the sandbox needs Linux or macOS"
        )
    try:
        folder = tempfile.mkdtemp(prefix="failgain-")
        try:
            answer = _answer(trial, folder, walls)
        finally:
            _remove(folder)
    except OSError as error:
        raise UsageError(f"the sandbox did not start on this platform: {error}") from None
    if "refused" in answer:
        raise UsageError(answer["refused"])
    return _verdict(answer)


def _answer(trial: Trial, folder: str, walls: frozenset[str]) -> Mapping[str, Any]:
    """What the judge wrote, or what stands for it where it was cut short."""
    start = _START.format(
        here=str(Path(__file__).parent),
        folder=os.path.realpath(folder),
        limits=json.dumps(asdict(trial.limits)),
        walls=",".join(sorted(walls)),
    )
    process = subprocess.Popen(
        [sys.executable or "", *_bytecode(), "-S", "-s", "-X", "utf8", "-c", start],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # An isolated interpreter (-I) would be deaf to the seed, too.
        env={"PYTHONHASHSEED": str(trial.hash_seed), **_libraries()},
        cwd=folder,
        start_new_session=True,
    )
    try:
        written, errors = process.communicate(
            json.dumps(trial.as_dict()).encode(), trial.limits.wall_seconds + _GRACE_SECONDS
        )
    except subprocess.TimeoutExpired as expired:
        written, errors = expired.output or b"", b""
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        with process:
            pass
    started, *parts = written.split(b"\n")
    if not started:
        raise UsageError(
            "the sandbox did not start on this platform: "
            + (errors.decode(errors="replace").strip().rpartition("\n")[2] or "it said nothing")
        )
    answer = {"outcome": "gone", "tests": 0, "tests_passed": 0}
    for part in parts:
        with contextlib.suppress(ValueError):  # the last one can be cut short
            answer |= json.loads(part)
    return answer


def _bytecode() -> Sequence[str]:
    """No less of it than this process writes, since compiling takes time on every trial."""
    return ["-B"] if sys.dont_write_bytecode or sys.pycache_prefix else []


def _libraries() -> Mapping[str, str]:
    """Where the interpreter may have its own shared library; the program won't see it."""
    names = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
    return {name: os.environ[name] for name in names if name in os.environ}


def _remove(folder: str) -> None:
    """Remove `folder`, however deep it is and whatever in it is closed to its owner."""
    with contextlib.suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if os.path.exists(folder):
        for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            with contextlib.suppress(OSError):
                subprocess.run([*command, folder], stderr=subprocess.DEVNULL, check=False)


def _verdict(answer: Mapping[str, Any]) -> Verdict:
    outcome = answer["outcome"]
    error = ""
    if outcome == "timeout":
        error = TIMED_OUT
    elif outcome == "gone":
        outcome = "runtime_error"
        error = _KILLED if (answer.get("status") or 0) < 0 else _ENDED
    elif outcome != "passed":
        error = error_line(answer["kind"], _printable(answer["message"]))
    return Verdict(
        outcome=outcome,
        tests=answer["tests"],
        tests_passed=answer["tests_passed"],
        error=error,
        frames=tuple(
            Frame(file, line, _printable(function), _printable(text))
            for file, line, function, text in answer.get("frames", ())
        ),
        cpu_seconds=answer.get("cpu_seconds"),
        memory_bytes=answer.get("memory_bytes"),
        walls=frozenset(answer.get("walls", ())),
    )


def _printable(text: str) -> str:
    """Without half characters, which no encoding has."""
    return text.encode("utf-8", "backslashreplace").decode()
