"""What the walls of a trial do not hold, in words."""

from __future__ import annotations

from collections.abc import Collection

from pytest_failgain.environments.sandbox.runner import run_program
from pytest_failgain.environments.sandbox.verdict import Trial

_HARMLESS = Trial("def one():\n    return 1", ("assert one() == 1",))


def weaknesses(walls: Collection[str]) -> tuple[str, ...]:
    """What a program can do behind `walls`, as `Verdict.walls` names them; nothing with all."""
    found = []
    if "network" not in walls and "filter" not in walls:
        found.append("reach the network")
    if "processes" not in walls and "filter" not in walls:
        found.append("leave processes behind and signal yours")
    whose = "anyone" if "user" in walls else "you"
    if "files" not in walls and "landlock" not in walls:
        found.append(f"write files wherever {whose} can")
    elif "files" not in walls:
        found.append(f"fill the disk, and change the permissions of files where {whose} can")
    if "user" not in walls and "landlock" not in walls and not {"processes", "files"} <= set(walls):
        found.append("read your environment variables")
    if "RLIMIT_AS" not in walls:
        found.append("use all memory")
    return tuple(found)


def probe() -> tuple[str, ...]:
    """The weaknesses on this machine, found by running a harmless program.

    Raises:
        UsageError: when the platform can't start a sandbox at all.
    """
    return weaknesses(run_program(_HARMLESS).walls)
