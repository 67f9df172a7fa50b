"""The machine that figures come from."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pytest_failgain.threads import usable_cores

_PACKAGES = ("numpy", "torch", "transformers")


def describe() -> str:
    """Processor, cores, system and the versions that can move a figure or a time, on one line."""
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
