"""The machine that the figures come from, and who else was using it."""

from __future__ import annotations

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pytest_failgain.threads import usable_cores

_PACKAGES = ("pytest", "torch", "transformers", "lm-eval")


def describe() -> str:
    versions = ", ".join(f"{name} {found}" for name in _PACKAGES if (found := _version(name)))
    cores = usable_cores()
    return (
        f"{_processor()}, {cores} core{'s' if cores > 1 else ''}, {platform.system()}; "
        f"Python {platform.python_version()}, {versions}"
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not on this platform
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


class Neighbours:
    """How many cores other processes kept busy since this was made.

    Timings taken beside others are slower and more scattered, and two threads suffer more than one,
    so a figure that is missed on a busy machine is no verdict on the code.
    """

    def __init__(self) -> None:
        self._start = self._reading()

    def cores(self) -> float | None:
        """Mean number of cores since then, None where the platform does not tell."""
        now = self._reading()
        if self._start is None or now is None:
            return None
        busy, own, wall = (after - before for after, before in zip(now, self._start, strict=True))
        return max(0.0, (busy - own) / wall)

    @staticmethod
    def _reading() -> tuple[float, float, float] | None:
        """CPU seconds of the whole machine and of this process with its children, and the clock."""
        try:
            fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
        except OSError:
            return None
        user, nice, system, _, _, irq, softirq, steal = map(int, fields[:8])
        ticks = os.sysconf("SC_CLK_TCK")
        busy = (user + nice + system + irq + softirq + steal) / ticks
        return busy, sum(os.times()[:4]), time.monotonic()
