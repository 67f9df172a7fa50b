"""What a scorer that a conftest or a plugin adds is made with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pytest_failgain.progress import NoProgress, Progress


def ignore_note(note: str) -> None:
    """Takes notes where nobody wants them."""


@dataclass(frozen=True, slots=True)
class ScorerSettings:
    """The options of a run, of which each scorer uses those that concern it.

    `model` is what stands behind the scorer's name: "tiny" in `--failgain-model mine:tiny`, nothing
    in `--failgain-model mine`. `threads` is None for as many as there are cores to use. `cache_dir`
    is the folder for models, and `keep_scores` tells whether results may be kept there, too.
    `on_note` is told what the user should know.
    """

    model: str = ""
    revision: str | None = None
    dtype: str = "float32"
    device: str = "cpu"
    threads: int | None = None
    cache_dir: Path | None = None
    offline: bool = False
    fold_system: bool = False
    prompt_format: str = "template"
    keep_scores: bool = True
    progress: Progress = field(default_factory=NoProgress)
    on_note: Callable[[str], None] = ignore_note
