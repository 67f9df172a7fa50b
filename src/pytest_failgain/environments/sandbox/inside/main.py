"""The first process of a trial: builds the walls, starts the guest, and becomes the judge."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
import sys
import time
from typing import Any

from . import walls
from .guest import serve
from .judge import Judge, TestsError

_REQUEST, _VERDICT, _ERRORS = 0, 1, 2
_JUDGE_BYTES = 512 * 1024 * 1024
# For a process whose work has ended to end, too. Long, since a busy machine must not change the
# verdict; nothing but a program that closed the link and goes on uses it up.
_PATIENCE = 2.0


def main(folder: str, limits: str, wanted: str) -> None:
    """Read a trial from standard input, write its verdict to standard output."""
    sys.dont_write_bytecode = True
    bounds: dict[str, Any] = json.loads(limits)
    names = frozenset(wanted.split(",")) if wanted else frozenset[str]()
    _forget_the_parent()
    outer = walls.enter_namespaces(folder, names)
    judge = os.fork()
    if judge:
        _wait(judge, bounds["wall_seconds"] + 2 * _PATIENCE)
    built = walls.mount_read_only(folder, outer, bounds["file_bytes"])
    end = time.monotonic() + bounds["wall_seconds"]
    link, other = socket.socketpair()
    # Before the trial is read, so that the guest has no copy of the tests.
    guest = os.fork()
    if not guest:
        link.close()
        _be_guest(other, bounds, built, names)
    other.close()
    _judge(link, guest, end, bounds, built, names)


def _forget_the_parent() -> None:
    """Whatever pytest's own process is set up like."""
    os.environ.clear()
    os.umask(0o022)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _wait(judge: int, seconds: float) -> None:
    """Wait for the judge, and end it when a test takes too long. Never returns.

    What is in a process namespace ends with the judge, whoever started it.
    """

    def end(*_: object) -> None:
        os.write(_VERDICT, b'\n{"outcome": "timeout"}')
        os.kill(judge, signal.SIGKILL)

    os.close(_REQUEST)
    walls.die_with_parent()
    walls.hide_memory()
    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    os.waitpid(judge, 0)
    os._exit(0)


def _be_guest(
    link: socket.socket, bounds: dict[str, Any], built: walls.Walls, names: frozenset[str]
) -> None:
    _silence(_REQUEST, _VERDICT, _ERRORS)
    os.dup2(link.detach(), 3)
    os.closerange(4, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    more = names & {"landlock", "filter"}
    done = walls.confine(built.users[1] if built.users else None, bounds, built.names | more)
    link = socket.socket(fileno=3)
    link.sendall(",".join(sorted(done)).ljust(200).encode())
    serve(link)


def _judge(
    link: socket.socket,
    guest: int,
    end: float,
    bounds: dict[str, Any],
    built: walls.Walls,
    names: frozenset[str],
) -> None:
    told = link.recv(200, socket.MSG_WAITALL).decode().split(",")
    if told == [""]:
        sys.exit("the process for the program ended early")
    # The time of its own work is limited from outside. Signals stay allowed: where there is no
    # process namespace, the judge ends the guest itself.
    own = {**bounds, "cpu_seconds": 3600, "memory_bytes": _JUDGE_BYTES}
    walls.confine(built.users[0] if built.users else None, own, built.names)
    os.write(_VERDICT, b"started")  # from here on, whatever goes wrong is the trial's doing
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with open(os.dup(_REQUEST), encoding="utf-8") as stream:
        trial = json.load(stream)
    out = os.dup(_VERDICT)
    _silence(_REQUEST, _VERDICT, _ERRORS)  # a test may print
    with _Timed(link, end) as timed:
        try:
            judge = Judge(timed, trial["program"], "\n".join(trial["tests"]))
        except TestsError as error:
            _tell(out, {"refused": str(error)})
            os._exit(0)
        _tell(out, judge.verdict)
        judge.try_program()
    verdict = {**judge.verdict, **_ended(guest, judge.verdict["outcome"], bounds)}
    verdict["walls"] = sorted({*built.names, *(name.strip() for name in told)} - {""})
    _tell(out, verdict)
    os._exit(0)


def _tell(out: int, answer: dict[str, Any]) -> None:
    """Add a line to what is read outside. The last word on each thing is what counts."""
    with open(out, "w", encoding="utf-8", closefd=False) as stream:
        stream.write("\n" + json.dumps(answer))


def _silence(*streams: int) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in streams:
        os.dup2(nothing, stream)
    os.close(nothing)


class _Timed(socket.socket):
    """A socket that never waits for longer than until `end`."""

    def __init__(self, link: socket.socket, end: float) -> None:
        super().__init__(fileno=link.detach())
        self._end = end

    def recv(self, *arguments: Any) -> bytes:
        self._hurry()
        return super().recv(*arguments)

    def sendall(self, *arguments: Any) -> None:
        self._hurry()
        super().sendall(*arguments)

    def _hurry(self) -> None:
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.settimeout(left)


def _ended(guest: int, outcome: str, bounds: dict[str, Any]) -> dict[str, Any]:
    """How the guest's process ended and what it used, if it ended by itself."""
    patient_until = time.monotonic() + (0 if outcome == "timeout" else _PATIENCE)
    while True:
        ended, status, used = os.wait4(guest, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > patient_until:
            with contextlib.suppress(PermissionError):  # another user's goes with the namespace
                os.kill(guest, signal.SIGKILL)
                os.waitpid(guest, 0)
            return {"status": None, "cpu_seconds": None, "memory_bytes": None}
        time.sleep(0.001)
    cpu = used.ru_utime + used.ru_stime
    signaled = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    result: dict[str, Any] = {
        "status": -signaled if signaled else os.WEXITSTATUS(status),
        "cpu_seconds": round(cpu, 3),
        "memory_bytes": used.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
    }
    if outcome == "gone" and (signaled == signal.SIGXCPU or cpu >= bounds["cpu_seconds"]):
        result["outcome"] = "timeout"
    return result
