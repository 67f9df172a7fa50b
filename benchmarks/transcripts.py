"""Reading transcripts beside parsing the JSON of the same text, in turns; formats one by one."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.figures import Figure, NotRunError, Verdict, table
from benchmarks.transcript_logs import LOGS
from pytest_failgain.transcripts.read import read_transcript

# A second a megabyte, whatever the content.
_WANTED = 1.0


@dataclass(frozen=True, slots=True)
class Read:
    """One format: megabytes a second of reading, and how many parses one reading takes."""

    name: str
    speed: float
    parses: float


def measure(megabytes: float, rounds: int, say: Callable[[str], None]) -> list[Figure]:
    """The speed of the slowest format, each a log in which every step fails."""
    reads = [_read(name, round(megabytes * 1e6), rounds) for name in LOGS]
    rows = [(one.name, f"{one.speed:.1f}", f"{one.parses:.1f}") for one in reads]
    say(table(("format", "MB/s", "times json.loads"), rows))
    slowest = min(reads, key=lambda one: one.speed)
    return [
        Figure(
            f"transcripts: MB/s of the slowest of {len(reads)} formats",
            f">= {_WANTED:g}",
            f"{slowest.speed:.1f} ({slowest.name}: {slowest.parses:.1f} times json.loads)",
            Verdict.of(slowest.speed >= _WANTED),
        )
    ]


def _read(name: str, size: int, rounds: int) -> Read:
    log = LOGS[name]
    steps = 100 * size // (len(log(101)) - len(log(1)))
    text = log(steps)
    _check(name, text, steps)
    lines = _json_lines(text)
    pairs = [
        (_seconds(lambda: read_transcript(text)), _seconds(lambda: [*map(json.loads, lines)]))
        for _ in range(rounds)
    ]
    reading = median(ours for ours, _ in pairs)
    return Read(name, len(text) / 1e6 / reading, median(ours / parse for ours, parse in pairs))


def _check(name: str, text: str, steps: int) -> None:
    """Speed counts only where everything is found."""
    transcript = read_transcript(text)
    if (transcript.format, len(transcript.failures)) != (name, steps):
        raise NotRunError(
            f"a log of {name} with {steps} failures was read as {transcript.format} with "
            f"{len(transcript.failures)}"
        )


def _json_lines(text: str) -> Sequence[str]:
    """What there is to parse; a text that is no JSON stands in one JSON string."""
    try:
        json.loads(text)
    except ValueError:
        lines = text.splitlines()
        return lines if lines[0].startswith("{") else [json.dumps(text)]
    return [text]


def _seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started
