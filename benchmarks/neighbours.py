"""Who else was using the machine."""

from __future__ import annotations

import os
import time
from pathlib import Path


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
