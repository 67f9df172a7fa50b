"""A progress that remembers what it is told."""

from __future__ import annotations


class Recorder:
    """Notes what it is told about a job."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def start(self, label: str, total: int | None = None) -> None:
        self.told.append((label, total))

    def advance(self, done: int) -> None:
        self.told.append(done)

    def finish(self, *, completed: bool = True) -> None:
        self.told.append(completed)
