"""`python -m pytest_failgain rollouts`."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_failgain import __version__
from pytest_failgain.errors import UsageError
from pytest_failgain.model_options import add_model_options
from pytest_failgain.models import KNOWN

if TYPE_CHECKING:
    from pytest_failgain.rollout.results import Rollouts

DEFAULT_HARNESSES = (
    "verbatim,instructed,described,dropped,verbatim+masked,verbatim+searched,described+searched"
)

_DESCRIPTION = """\
Let a model act in an environment with each of several harnesses, and print
tables of how often it solved its tasks and repeated its failures. Replies are
kept, so that a run that was stopped goes on where it was.
"""

_EXAMPLES = """\
examples:
  rollouts smollm2-135m
  rollouts smollm2-135m --start primed --harnesses verbatim,described,advised
  rollouts smollm2-135m --temperature 0.7 --samples 3 --out rollouts.md
"""


def add_parser(commands: Any) -> None:
    """Add the command `rollouts` to the sub-commands of a parser."""
    rollouts: argparse.ArgumentParser = commands.add_parser(
        "rollouts",
        help="let a model act with several harnesses, and compare them",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    rollouts.add_argument(
        "model",
        help=f"a known name ({', '.join(KNOWN)}), a hub id (org/name), a directory or a GGUF file",
    )
    rollouts.add_argument(
        "--harnesses",
        default=DEFAULT_HARNESSES,
        metavar="NAMES",
        help="remedies and blocks, joined by '+', the harnesses by commas (default: %(default)s)",
    )
    rollouts.add_argument(
        "--environment", default="tool_calls", help="where to act (default: %(default)s)"
    )
    rollouts.add_argument(
        "--start",
        choices=("free", "primed", "both"),
        default="both",
        help="free: from the task; primed: just behind a given failure (default: %(default)s)",
    )
    for flag, default, what in (
        ("--tasks", 24, "how many tasks"),
        ("--max-steps", 6, "how many steps a rollout may take"),
        ("--demonstrations", 8, "how many solved tasks are told before each"),
        ("--samples", 1, "how often each task is drawn, with a temperature"),
        ("--seed", 0, "seed of the tasks, and of what is drawn"),
    ):
        rollouts.add_argument(
            flag, type=int, default=default, metavar="N", help=f"{what} (default: %(default)s)"
        )
    rollouts.add_argument(
        "--temperature", type=float, default=0.0, help="0 is greedy (default: %(default)s)"
    )
    rollouts.add_argument("--out", type=Path, metavar="FILE", help="write Markdown there as well")
    rollouts.add_argument("--mbpp", type=Path, help="a file of MBPP, to make program_repair of")
    rollouts.add_argument(
        "--allow-code-execution",
        action="store_true",
        help="run the model's own programs, in a sandbox, which program_repair needs",
    )
    add_model_options(rollouts)
    rollouts.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the rollouts and print their tables.

    Raises:
        FailgainError: when an option does not fit, or the model can't be used.
    """
    from pytest_failgain.failgain import Failgain
    from pytest_failgain.progress import StderrProgress
    from pytest_failgain.report.rollouts import rollouts_text
    from pytest_failgain.study.command import own_options

    failgain = Failgain(
        options.model,
        dtype=options.dtype,
        device=options.device,
        threads=options.threads,
        cache_dir=options.cache_dir,
        offline=options.offline,
        prompt_format=options.prompt_format,
        fold_system=options.fold_system,
        seed=options.seed,
        mbpp=options.mbpp,
        allow_code_execution=options.allow_code_execution,
        progress=StderrProgress(),
        on_note=lambda subject, note: print(own_options(f"note: {note}"), file=sys.stderr),
    )
    harnesses = [failgain.remedy(name.strip()) for name in options.harnesses.split(",")]
    environment = failgain.environment(options.environment)
    starts = (False, True) if options.start == "both" else (options.start == "primed",)
    results: list[Rollouts] = []
    if options.out is not None:
        _check_place(options.out)  # better now than in an hour
    try:
        for primed, harness in itertools.product(starts, harnesses):
            results.append(
                failgain.rollout(
                    harness,
                    environment,
                    options.tasks,
                    options.max_steps,
                    primed=primed,
                    demonstrations=options.demonstrations,
                    temperature=options.temperature,
                    samples=options.samples,
                )
            )
            _write(options.out, results)
    finally:
        if results:
            print(rollouts_text(results))
    return 0


def _check_place(path: Path) -> None:
    """Refuse a place for a page where none can be written.

    Raises:
        UsageError: when the system refuses.
    """
    from pytest_failgain.atomic import check_writable

    try:
        check_writable(path)
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"{path} can't be written ({error.strerror}); give another file with --out")


def _write(path: Path | None, results: Sequence[Rollouts]) -> None:
    """Write the page of `results`, if there is a place for it."""
    from pytest_failgain.atomic import write_atomically
    from pytest_failgain.machine import describe
    from pytest_failgain.report.rollouts import rollouts_page

    if path is None:
        return
    page = rollouts_page(results, f"pytest-failgain {__version__}; {describe()}.")
    try:
        write_atomically(path, page.encode())
    except OSError as error:
        raise _unwritable(path, error) from None
