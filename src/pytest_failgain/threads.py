"""How many cores there are to use: threads that fight over a busy one are slower than one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def usable_cores() -> int:
    """Cores that this process may run on: its affinity, cut by a container's CPU quota."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on this platform
        cores = os.cpu_count() or 1
    quota = _container_quota(Path("/sys/fs/cgroup/cpu.max"))
    return max(1, min(cores, int(quota)) if quota is not None else cores)


def _container_quota(path: Path) -> float | None:
    """Cores' worth of CPU time that a cgroup v2 allows, or None without a limit."""
    try:
        quota, period = path.read_text().split()
        return int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None


def thread_count(environ: Mapping[str, str] = os.environ) -> int:
    """Threads for one model: the usable cores, shared evenly between xdist's workers."""
    given = environ.get("PYTEST_XDIST_WORKER_COUNT", "1")
    workers = int(given) if given.isdecimal() else 1
    return max(1, usable_cores() // max(1, workers))
