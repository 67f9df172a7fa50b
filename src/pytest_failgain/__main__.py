"""`python -m pytest_failgain`: what is done outside of a test run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_failgain import __version__
from pytest_failgain.errors import FailgainError
from pytest_failgain.models import KNOWN, resolve
from pytest_failgain.progress import StderrProgress
from pytest_failgain.rollout import command as rollouts
from pytest_failgain.study import command as study
from pytest_failgain.study.command import own_options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0, 1 after an error, 2 for wrong usage."""
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
    except FailgainError as error:
        print(f"error: {own_options(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pytest_failgain",
        description="Regression tests for the way an agent records failed tool calls.",
    )
    parser.add_argument("--version", action="version", version=f"pytest-failgain {__version__}")
    commands = parser.add_subparsers(title="commands", dest="command", required=True)
    fetch = commands.add_parser(
        "fetch",
        help="put a model on disk, ready for use without network",
        description="Put a model on disk, ready for use without network, and say where it is.",
    )
    fetch.add_argument(
        "model",
        help=f"a known name ({', '.join(KNOWN)}), a hub id (org/name), a directory or a GGUF file",
    )
    fetch.add_argument("--revision", help="branch, tag or commit of a model from the hub")
    fetch.add_argument("--cache-dir", type=Path, help="where models are kept")
    fetch.add_argument("--offline", action="store_true", help="only say what is on disk already")
    fetch.set_defaults(run=_fetch)
    study.add_parser(commands)
    rollouts.add_parser(commands)
    return parser


def _fetch(options: argparse.Namespace) -> int:
    files = resolve(
        options.model,
        revision=options.revision,
        cache_dir=options.cache_dir,
        offline=options.offline,
        progress=StderrProgress(),
    )
    print(f"model   {files.name}")
    print(f"path    {files.path}")
    print(f"source  {files.source}")
    print(f"size    {files.size / 1e6:,.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
