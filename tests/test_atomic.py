"""Writing a file whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_failgain.atomic import check_writable, remove_leftovers, write_atomically


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def killed_while_writing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave what a writer leaves that is killed before it is done."""
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", lambda *_: None)
        write_atomically(path, b"half")


def test_trial_leaves_no_trace(tmp_path: Path) -> None:
    check_writable(tmp_path / "new.json")
    assert names(tmp_path) == set()


def test_written_file_stands_alone(tmp_path: Path) -> None:
    # As long as names can be.
    path = tmp_path / ("n" * 255)
    for content in (b"one", b"two"):
        write_atomically(path, content)
        assert path.read_bytes() == content
    assert names(tmp_path) == {path.name}


def test_only_leftovers_of_the_same_file_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = tmp_path / "mine.json", tmp_path / "other.json"
    write_atomically(mine, b"whole")
    killed_while_writing(other, monkeypatch)
    of_other = names(tmp_path) - {"mine.json"}
    killed_while_writing(mine, monkeypatch)
    killed_while_writing(mine, monkeypatch)
    assert len(names(tmp_path)) == 4
    (tmp_path / "link.json").symlink_to(mine)
    remove_leftovers(tmp_path / "link.json")
    assert names(tmp_path) == {"mine.json", "link.json", *of_other}
    assert mine.read_bytes() == b"whole"


def test_what_is_no_regular_file_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    check_writable(pipe)
    # A writer waits for a reader, so there is one before.
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomically(pipe, b"all of it")
        assert os.read(reader, 100) == b"all of it"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert names(tmp_path) == {"pipe"}
