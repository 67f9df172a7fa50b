"""Run as a program: resolve a model, and on request stand still in the middle of it.

    resolving_process.py SPEC CACHE [GO]

Each job's label is printed as it starts. With GO, the conversion holds, after its first stage,
until that file exists.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from pytest_failgain.models import resolve
from pytest_failgain.progress import NoProgress


class HoldingProgress(NoProgress):
    def __init__(self, go: Path | None) -> None:
        self._go = go
        self._converting = False

    def start(self, label: str, total: int | None = None) -> None:
        print(f"start {label}", flush=True)
        self._converting = label.startswith("converting")

    def advance(self, done: int) -> None:
        if self._go is not None and self._converting and not self._go.exists():
            print("holding", flush=True)
            while not self._go.exists():
                time.sleep(0.02)


def main(spec: str, cache: str, go: str | None = None) -> None:
    progress = HoldingProgress(None if go is None else Path(go))
    files = resolve(spec, cache_dir=Path(cache), progress=progress)
    print(f"{files.path} {files.fingerprint}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
