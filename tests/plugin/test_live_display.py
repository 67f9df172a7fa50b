"""Progress on a person's terminal, as bytes of a real one, and its absence everywhere else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from agent_projects import CONFTEST, MEASURES_MINE, options_for

pty = pytest.importorskip("pty")

# Two jobs in one test, between two tests without any.
JOBS = """
import time
import pytest
from pytest_failgain.live import pytest_progress
from pytest_failgain.progress import job

@pytest.fixture(scope="session")
def progress(pytestconfig):
    return pytest_progress(pytestconfig)

def test_before():
    pass

def test_jobs(progress):
    for label in ("verbatim on office", "described on office"):
        with job(progress, label, 2) as advance:
            time.sleep(0.11)
            advance(1)
            print("what a test prints")

def test_after():
    pass
"""


def on_a_terminal(project: pytest.Pytester, *args: str, columns: int = 80, **env: str) -> str:
    """What pytest writes on a terminal `columns` wide, without control sequences."""
    import fcntl
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *args],
        cwd=project.path,
        env={**environment, "TERM": "xterm", **env},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ):
        os.close(theirs)
        written = b""
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:  # how Linux says that the other end is closed
                break
            if not chunk:
                break
            written += chunk
    os.close(ours)
    # Colours, and the terminal's own progress bar.
    controls = r"\x1b\[[0-9;]*m|\x1b\]9;4;[0-9;]*\x1b\\"
    return re.sub(controls, "", written.decode()).replace("\r\n", "\n")


def part_of_the_tests(written: str) -> str:
    """What stands between the collection and the last line."""
    return re.split(r"collected \d+ items?[^\n]*\n\n", written)[1].rpartition("\n\n")[0]


def as_seen(written: str) -> list[str]:
    """The lines as they stand at the end: what follows a carriage return covers the line."""
    return [line.rpartition("\r")[2].rstrip() for line in written.split("\n")]


def test_progress_stands_between_the_file_and_the_result(project: pytest.Pytester) -> None:
    project.makepyfile(test_it=JOBS)
    written = part_of_the_tests(on_a_terminal(project))
    assert as_seen(written) == [
        "test_it.py .",
        "verbatim on office: done in 0 s",
        "described on office: done in 0 s",
        "test_it.py ..                                                            [100%]",
    ]
    assert "\rverbatim on office ...\rverbatim on office: 50%\rverbatim" in written
    assert "what a test prints" not in written


def test_progress_stands_between_name_and_result_of_a_verbose_test(
    project: pytest.Pytester,
) -> None:
    project.makepyfile(test_it=JOBS)
    seen = as_seen(part_of_the_tests(on_a_terminal(project, "-v")))
    assert [re.sub(r" +\[", " [", line) for line in seen] == [
        "test_it.py::test_before PASSED [ 33%]",
        "test_it.py::test_jobs",
        "verbatim on office: done in 0 s",
        "described on office: done in 0 s",
        "test_it.py::test_jobs PASSED [ 66%]",
        "test_it.py::test_after PASSED [100%]",
    ]


def test_progress_keeps_to_its_lines_where_nothing_is_captured(project: pytest.Pytester) -> None:
    project.makepyfile(test_it=JOBS)
    seen = as_seen(part_of_the_tests(on_a_terminal(project, "-s")))
    assert seen[:2] == ["test_it.py .", "verbatim on office: 50%what a test prints"]
    assert seen[2:] == [
        "verbatim on office: done in 0 s",
        "described on office: 50%what a test prints",
        "described on office: done in 0 s",
        ".",
        "test_it.py .",
    ]


def test_progress_is_cut_to_a_narrow_terminal(project: pytest.Pytester) -> None:
    project.makepyfile(test_it=JOBS)
    written = part_of_the_tests(on_a_terminal(project, columns=20))
    drawn = [line for line in re.split(r"[\r\n]", written) if " on o" in line]
    assert drawn
    assert max(map(len, drawn)) == 19


@pytest.mark.parametrize("why", ["quiet", "CI", "no terminal"])
def test_progress_is_not_shown(project: pytest.Pytester, why: str) -> None:
    project.makepyfile(test_it=JOBS)
    if why == "quiet":
        written = on_a_terminal(project, "-q")
    elif why == "CI":
        written = on_a_terminal(project, CI="true")
    else:
        written = project.runpytest().stdout.str()
    assert "3 passed" in written
    assert "office" not in written


def test_measurement_shows_how_far_it_is(project: pytest.Pytester, tiny_model_folder: Path) -> None:
    project.makeconftest(CONFTEST)
    project.makepyfile(test_it=MEASURES_MINE)
    model = options_for(tiny_model_folder, project.path / "cache")
    written = on_a_terminal(project, *model)
    seen = [line for line in as_seen(part_of_the_tests(written)) if "reading " not in line]
    assert seen[0] == "test_it.py"
    assert re.fullmatch(r"render_mine on own cases: done in \d+ s", seen[1])
    assert re.fullmatch(r"test_it.py \. +\[100%\]", seen[2])
    assert "Captured" not in written
