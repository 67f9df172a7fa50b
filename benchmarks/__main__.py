"""`python -m benchmarks`: measure every figure and say which are met.

Timings are ratios within one run on one machine. A figure that is missed is printed as such and is
no error: the exit status is 1 only when something could not be run.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence

from benchmarks.figures import Figure, NotRunError, not_run, verdict_table
from benchmarks.neighbours import Neighbours
from pytest_failgain import __version__
from pytest_failgain.errors import FailgainError
from pytest_failgain.machine import describe
from pytest_failgain.progress import duration
from pytest_failgain.threads import thread_count

_BUSY_CORES = 0.3


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    print(f"pytest-failgain {__version__}: its figures, measured")
    print(describe(), flush=True)
    started, neighbours = time.monotonic(), Neighbours()
    figures: list[Figure] = []
    for name in options.only or _PARTS:
        print(f"\n{name} ...", flush=True)
        figures.extend(_guarded(name, _PARTS[name], options))
    print(f"\n{verdict_table(figures)}\n")
    print(f"took {duration(time.monotonic() - started)}; {_company(neighbours)}")
    return int(any(figure.missing for figure in figures))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure the figures that the plugin is held to."
    )
    parser.add_argument("--model", default="smollm2-135m", help="name, hub id or directory")
    parser.add_argument(
        "--threads",
        type=int,
        default=thread_count(),
        help="of every engine (default: %(default)s)",
    )
    parser.add_argument("--quick", action="store_true", help="fewer pairs, cases and repeats")
    parser.add_argument(
        "--only", action="append", choices=list(_PARTS), help="one part; may stand several times"
    )
    return parser


def _guarded(
    name: str, part: Callable[[argparse.Namespace], list[Figure]], options: argparse.Namespace
) -> list[Figure]:
    try:
        return part(options)
    except (NotRunError, FailgainError, ImportError) as error:
        return [not_run(name, "-", " ".join(str(error).split()))]


def _overhead(options: argparse.Namespace) -> list[Figure]:
    from benchmarks import overhead

    return overhead.measure(pairs=8 if options.quick else 30)


def _speed(options: argparse.Namespace) -> list[Figure]:
    from pytest_failgain.scoring.loading import load_scorer

    # First of all, so that torch is imported the way the package imports it.
    scorer = load_scorer(options.model, threads=options.threads, keep_scores=False)
    from benchmarks import speed

    effort = speed.QUICK if options.quick else speed.FULL
    return speed.measure(scorer, options.threads, effort, lambda line: print(line, flush=True))


def _memory(options: argparse.Namespace) -> list[Figure]:
    from benchmarks import memory

    return memory.measure(options.model, 4 if options.quick else 16, options.threads)


def _bootstrap(options: argparse.Namespace) -> list[Figure]:
    from benchmarks import bootstrap

    return bootstrap.measure(repeats=1 if options.quick else 5)


def _blocking(options: argparse.Namespace) -> list[Figure]:
    from pytest_failgain.scoring.loading import load_scorer

    scorer = load_scorer(options.model, threads=options.threads, keep_scores=False)
    from benchmarks import blocking

    return blocking.measure(scorer, 4 if options.quick else 12)


def _decoding(options: argparse.Namespace) -> list[Figure]:
    from pytest_failgain.scoring.loading import load_scorer

    scorer = load_scorer(options.model, threads=options.threads, keep_scores=False)
    from benchmarks import decoding

    effort = decoding.QUICK if options.quick else decoding.FULL
    return decoding.measure(scorer, effort, lambda line: print(line, flush=True))


def _second_run(options: argparse.Namespace) -> list[Figure]:
    from benchmarks import second_run

    return second_run.measure(options.model, 6 if options.quick else 30, options.threads)


def _noise(options: argparse.Namespace) -> list[Figure]:
    from pytest_failgain.scoring.loading import load_scorer

    scorer = load_scorer(options.model, threads=options.threads, keep_scores=False)
    from benchmarks import noise

    cases = {"tool_calls": 4, "program_repair": 2} if options.quick else noise.CASES
    return noise.measure(scorer, cases, lambda line: print(line, flush=True))


def _transcripts(options: argparse.Namespace) -> list[Figure]:
    from benchmarks import transcripts

    size, rounds = (0.2, 1) if options.quick else (1.0, 3)
    return transcripts.measure(size, rounds, lambda line: print(line, flush=True))


def _record_checks(options: argparse.Namespace) -> list[Figure]:
    from benchmarks import record_checks

    return record_checks.measure(*((4, 3) if options.quick else (30, 7)))


_PARTS: dict[str, Callable[[argparse.Namespace], list[Figure]]] = {
    "overhead": _overhead,
    "speed": _speed,
    "memory": _memory,
    "bootstrap": _bootstrap,
    "blocking": _blocking,
    "decoding": _decoding,
    "second-run": _second_run,
    "noise": _noise,
    "record-checks": _record_checks,
    "transcripts": _transcripts,
}


def _company(neighbours: Neighbours) -> str:
    cores = neighbours.cores()
    if cores is None:
        return "who else used the machine is not known here"
    busy = f"other processes kept {cores:.1f} cores busy meanwhile"
    if cores < _BUSY_CORES:
        return busy
    return f"{busy}: timings are slower and more scattered than on an idle machine"


if __name__ == "__main__":
    sys.exit(main())
