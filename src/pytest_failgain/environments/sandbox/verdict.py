"""What is asked of the sandbox, and what it answers. Plain frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Outcome = Literal["passed", "test_failure", "runtime_error", "syntax_error", "timeout"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one program may use. A file and all files together may have `file_bytes`.

    `cpu_seconds` is what the program is held to, since it does not depend on how busy the machine
    is; `wall_seconds` ends what sleeps.
    """

    cpu_seconds: int = 5
    wall_seconds: float = 20.0
    memory_bytes: int = 512 * 1024 * 1024
    file_bytes: int = 16 * 1024 * 1024
    processes: int = 16


@dataclass(frozen=True, slots=True)
class Trial:
    """A program, and the tests to run on it: the lines of a file, `assert` statements among them.

    `hash_seed` orders the sets of strings, which otherwise differ from process to process.
    """

    program: str
    tests: tuple[str, ...]
    limits: Limits = Limits()
    hash_seed: int = 0

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Frame:
    """One entry of a traceback: the statement being executed, and its first line."""

    file: str
    line: int
    function: str
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a trial went.

    `error` is the last line of the traceback, the same on every Python; `frames` are the statements
    that led there, oldest first. `tests_passed` counts the asserts before the failure.
    `cpu_seconds` and `memory_bytes` are the program's, None where it took them with it; `walls` are
    the means of containment that the platform had.
    """

    outcome: Outcome
    tests: int
    tests_passed: int
    error: str = ""
    frames: tuple[Frame, ...] = ()
    cpu_seconds: float | None = None
    memory_bytes: int | None = None
    walls: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def passed(self) -> bool:
        return self.outcome == "passed"

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "walls": sorted(self.walls)}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Verdict:
        frames = tuple(Frame(**frame) for frame in data["frames"])
        return Verdict(**{**data, "frames": frames, "walls": frozenset(data["walls"])})
