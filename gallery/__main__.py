"""Captures every agent of the gallery, measures its record, and prints both as Markdown."""

from __future__ import annotations

import logging
import sys
from contextlib import redirect_stdout

from gallery.agents import AGENTS
from gallery.page import page
from pytest_failgain import Failgain


def main() -> None:
    """Print the page for the model that is named on the command line."""
    logging.disable(logging.ERROR)  # frameworks log the very failures that are wanted here
    model = sys.argv[1] if len(sys.argv) > 1 else "smollm2-135m-q4_1"
    failgain = Failgain(model)
    with redirect_stdout(sys.stderr):  # where they print them
        measured = {agent: failgain.measure_agent(*agent.experiment) for agent in AGENTS}
    print(page(measured))


if __name__ == "__main__":
    main()
