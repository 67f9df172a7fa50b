"""The options of every command that runs a model."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_failgain.choices import DTYPES, PROMPT_FORMATS


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add what decides how a model is found, loaded and prompted."""
    parser.add_argument("--dtype", choices=DTYPES, default="float32", help="of the model's numbers")
    parser.add_argument("--device", default="cpu", help="torch device, such as cpu or cuda:0")
    parser.add_argument("--threads", type=_count, metavar="N", help="threads for the model")
    parser.add_argument(
        "--cache-dir", type=Path, help="where models are kept, and replies of rollouts"
    )
    parser.add_argument("--offline", action="store_true", help="use no network to fetch a model")
    parser.add_argument(
        "--prompt-format",
        choices=PROMPT_FORMATS,
        default="auto",
        help="auto (default) takes the model's chat template where it has one with a system role, "
        "else plain text",
    )
    parser.add_argument(
        "--fold-system",
        action="store_true",
        help="put the system prompt into the first user turn where a template has no system role",
    )


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of 1 or more")
    return int(text)
