"""What the agent is told about its program: every text of the environment's runtime is here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_failgain.environments.sandbox import Frame, Verdict

RECEIVED = "The program was received."

_SHOWN_REPEATS = 3


def success(tests: int) -> str:
    """What a program that passes so many tests is answered."""
    return f"{tests} of {tests} tests passed."


def told(verdict: Verdict, verbosity: str) -> str:
    """A failure as told at `verbosity`: "terse", "standard" or "verbose"."""
    return {"terse": _terse, "standard": _standard, "verbose": _verbose}[verbosity](verdict)


def echoed(verdict: Verdict, program: str) -> str:
    """The standard text with the program, the way some runtimes quote it."""
    return f"{_standard(verdict)}\nThe program was:\n{program}"


def _terse(verdict: Verdict) -> str:
    return "A test failed." if verdict.outcome == "test_failure" else verdict.error


def _standard(verdict: Verdict) -> str:
    if verdict.outcome == "test_failure":
        return f"{verdict.frames[0].text}\n{verdict.error}"
    return "\n".join([*_entries(verdict.frames), verdict.error]).strip()


def _verbose(verdict: Verdict) -> str:
    stand = f"{verdict.tests_passed} of {verdict.tests} tests passed before this:"
    if verdict.outcome in ("test_failure", "runtime_error") and verdict.frames:
        stand += "\nTraceback (most recent call last):"
    return "\n".join([stand, *_entries(verdict.frames), verdict.error])


def _entries(frames: Sequence[Frame]) -> Iterator[str]:
    """The frames in the layout of Python's tracebacks, a recursion cut as Python cuts it."""
    repeats = 0
    for number, frame in enumerate(frames):
        repeats = repeats + 1 if number and frame == frames[number - 1] else 0
        if repeats < _SHOWN_REPEATS:
            place = f", in {frame.function}" if frame.function else ""
            yield f'  File "{frame.file}", line {frame.line}{place}'
            yield f"    {frame.text}"
        elif repeats == _SHOWN_REPEATS:
            yield "  [Previous line repeated]"
