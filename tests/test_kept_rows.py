"""Rows in an SQLite file, whatever else happens to it or to those that use it."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_failgain import kept_rows
from pytest_failgain.kept_rows import KeptRows

MOST = 1000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rows.sqlite3"


@pytest.fixture
def told() -> list[str]:
    return []


def opened(path: Path, told: list[str], most_rows: int = MOST) -> KeptRows:
    return KeptRows(path, "things", ("value",), most_rows, told.append)


def row(number: int, size: int = 20) -> tuple[bytes, bytes]:
    return b"%d" % number, (b"%d " % number) * size


def damage(path: Path, *, head: bool) -> None:
    """Write over the pages behind the first, or over all of them."""
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        start = 0 if head else 4096
        file.seek(start)
        file.write(b"\x5a" * (size - start))


def run(program: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
    )


WRITER = """
    import sys
    from pathlib import Path
    from pytest_failgain.kept_rows import KeptRows
    path, name, batches, size = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    rows = KeptRows(path, "things", ("value",), 10**6, lambda text: print(text, flush=True))
    for batch in range(batches):
        rows.put_all([(f"{name} {batch} {i}".encode(), b"x" * size) for i in range(10)])
        print(batch, flush=True)
"""


def assert_whole(path: Path) -> None:
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    finally:
        connection.close()


# Rows


def test_rows_are_there_for_the_next_and_the_first_one_stays(path: Path, told: list[str]) -> None:
    opened(path, told).put_all([row(1), row(2)])
    later = opened(path, told)
    later.put_all([(b"1", b"another")])
    assert later.get(b"1") == row(1)[1:]
    assert later.get(b"3") is None
    assert told == []


def test_batch_is_kept_whole_or_not_at_all(path: Path, told: list[str]) -> None:
    rows = opened(path, told)
    with pytest.raises(sqlite3.ProgrammingError):
        rows.put_all([row(1), (b"2", b"3", b"4")])
    assert rows.get(b"1") is None
    rows.put_all([row(5)])
    assert rows.get(b"5") is not None


def test_oldest_rows_make_room_while_others_are_written(path: Path, told: list[str]) -> None:
    rows = opened(path, told, most_rows=10)
    for number in range(100):
        rows.put_all([row(number)])
    assert [n for n in range(100) if rows.get(b"%d" % n)] == list(range(90, 100))


def test_room_of_old_rows_is_used_again(path: Path, told: list[str]) -> None:
    rows = opened(path, told, most_rows=200)
    sizes = []
    for round_ in range(10):
        for first in range(200 * round_, 200 * round_ + 200, 20):
            rows.put_all([(b"%06d" % (first + i), bytes(300)) for i in range(20)])
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        sizes.append(path.stat().st_size)
    assert max(sizes) < 1.5 * sizes[0]


# Damage


@pytest.mark.parametrize("content", [b"no database at all" * 300, b"\0" * 8192])
def test_file_that_is_no_database_is_set_aside(path: Path, told: list[str], content: bytes) -> None:
    path.write_bytes(content)
    rows = opened(path, told)
    rows.put_all([row(1)])
    assert opened(path, told).get(b"1") == row(1)[1:]
    assert len(told) == 1
    assert f"{path} is damaged (" in told[0]
    assert f"moved to {path.with_suffix('.damaged')}" in told[0]
    assert path.with_suffix(".damaged").read_bytes() == content


def test_file_of_something_else_is_set_aside(path: Path, told: list[str]) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE things (key BLOB PRIMARY KEY, other BLOB)")
    connection.close()
    rows = opened(path, told)
    rows.put_all([row(1)])
    assert rows.get(b"1") == row(1)[1:]
    assert "its table things has the columns key, other" in told[0]


@pytest.mark.parametrize("found_by", ["reading", "writing"])
def test_damage_that_shows_later_is_set_aside_then(
    path: Path, told: list[str], found_by: str
) -> None:
    rows = opened(path, told, most_rows=10**6)
    rows.put_all([row(number) for number in range(2000)])
    rows = opened(path, told, most_rows=10**6)
    damage(path, head=False)
    if found_by == "reading":
        assert rows.get(b"1500") is None
    rows.put_all([row(5000)])
    assert "is damaged" in told[0]
    assert rows.get(b"5000") == row(5000)[1:]
    assert opened(path, told).get(b"5000") == row(5000)[1:]
    assert len(told) == 1


def test_second_to_find_the_damage_leaves_the_new_file_alone(path: Path, told: list[str]) -> None:
    opened(path, told, most_rows=10**6).put_all([row(number) for number in range(2000)])
    first, second, third = (opened(path, told, most_rows=10**6) for _ in range(3))
    damage(path, head=False)
    assert first.get(b"1500") is None
    first.put_all([row(5000)])
    assert second.get(b"1501") is None
    assert first.path == second.path != path
    assert second.get(b"5000") == row(5000)[1:]
    second.put_all([row(5001)])
    assert first.get(b"5001") == row(5001)[1:]
    # Whoever did not notice puts an end to nothing when it ends.
    del third
    assert opened(path, told).get(b"5001") == row(5001)[1:]
    assert len([text for text in told if "moved to" in text]) == 1
    assert_whole(first.path)


def test_file_begun_under_the_old_name_meanwhile_is_left_alone(path: Path, told: list[str]) -> None:
    rows = opened(path, told, most_rows=10**6)
    rows.put_all([row(number) for number in range(2000)])
    rows = opened(path, told, most_rows=10**6)
    damage(path, head=False)
    moved = path.with_name("elsewhere")
    path.rename(moved)
    path.write_bytes(b"somebody's good one")
    assert rows.get(b"1500") is None
    assert path.read_bytes() == b"somebody's good one"


def test_damaged_files_do_not_pile_up(path: Path, told: list[str]) -> None:
    for number in range(5):
        rows = opened(path, told)
        rows.put_all([row(number)])
        current = rows.path
        del rows
        current.write_bytes(b"damaged once more")
    rows = opened(path, told)
    assert sorted(one.name for one in path.parent.iterdir() if one.suffix != "") == sorted(
        ["rows.damaged", rows.path.name, f"{rows.path.name}-shm", f"{rows.path.name}-wal"]
    )
    assert len(told) == 5


# Several processes


def test_four_writers_at_once_lose_nothing(path: Path, told: list[str]) -> None:
    writers = [run(WRITER, path, name, 60, 100) for name in "abcd"]
    assert [writer.communicate()[0].split() for writer in writers] == [
        [str(batch) for batch in range(60)]
    ] * 4
    rows = opened(path, told, most_rows=10**6)
    assert all(
        rows.get(f"{name} {batch} {i}".encode())
        for name in "abcd"
        for batch in range(60)
        for i in range(10)
    )
    del rows
    assert_whole(path)


@pytest.mark.slow
def test_writer_that_is_killed_leaves_all_that_it_reported(path: Path, told: list[str]) -> None:
    chance = random.Random(0)
    reported: dict[str, int] = {}
    for kill in range(20):
        name = f"writer {kill}"
        with run(WRITER, path, name, 10**6, 3000) as writer:
            assert writer.stdout is not None
            lines = [writer.stdout.readline()]
            time.sleep(chance.uniform(0, 0.15))
            writer.send_signal(signal.SIGKILL)
            lines += writer.stdout.readlines()
        finished = [line for line in lines if line.endswith("\n")]
        assert finished[0] == "0\n"
        reported[name] = int(finished[-1])
        rows = opened(path, told, most_rows=10**6)
        assert all(
            rows.get(f"{name} {batch} {i}".encode())
            for batch in range(reported[name] + 1)
            for i in range(10)
        )
        del rows
        assert_whole(path)
    rows = opened(path, told, most_rows=10**6)
    assert all(rows.get(f"{name} {last} 9".encode()) for name, last in reported.items())
    assert told == []


# Disks


def test_disk_that_fills_up_costs_what_is_new(path: Path, told: list[str]) -> None:
    rows = opened(path, told, most_rows=10**6)
    rows.put_all([row(1)])
    assert rows._connection is not None
    pages = rows._connection.execute("PRAGMA page_count").fetchone()[0]
    rows._connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    rows.put_all([row(number, 100) for number in range(2, 500)])
    assert rows.get(b"1") == row(1)[1:]
    assert rows.get(b"2") is None
    rows.put_all([row(600)])
    assert len(told) == 1
    assert "things can't be written" in told[0]
    assert "full" in told[0]
    assert "free the disk" in told[0]
    del rows
    assert_whole(path)


def test_file_that_may_grow_no_further_stays_whole(path: Path, told: list[str]) -> None:
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({2**20}, {2**20}))"
    writer = run(f"{limited}\n{textwrap.dedent(WRITER)}", path, "a", 100, 4000)
    lines = writer.communicate()[0].splitlines()
    assert writer.returncode == 0
    warnings = [line for line in lines if not line.isdecimal()]
    assert len(warnings) == 1
    assert "things can't be written" in warnings[0]
    kept = lines.index(warnings[0])
    assert kept > 3
    rows = opened(path, told)
    assert all(rows.get(f"a {batch} {i}".encode()) for batch in range(kept) for i in range(10))
    assert told == []
    del rows
    assert_whole(path)


def test_file_that_another_holds_for_long_is_written_again_later(
    path: Path, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_rows, "_BUSY_SECONDS", 0.1)
    rows = opened(path, told)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    rows.put_all([row(1)])
    (warning,) = told
    assert "another process held the file for over 0.1 seconds" in warning
    other.execute("ROLLBACK")
    other.close()
    rows.put_all([row(2)])
    assert [opened(path, told).get(row(number)[0]) is None for number in (1, 2)] == [True, False]


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that everybody can reach and, once `lock` has been called, nobody can write."""
    # pytest's own are for one user, who is root where tests run in a container.
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


READER = """
    import os, sys
    from pathlib import Path
    from pytest_failgain.kept_rows import KeptRows
    if os.geteuid() == 0:
        # Now somebody whom permissions bind.
        os.setgroups([]); os.setgid(65534); os.setuid(65534)
    rows = KeptRows(Path(sys.argv[1]), "things", ("value",), 1000, print)
    print(rows.get(sys.argv[2].encode()))
    rows.put_all([(b"new", b"one")])
    print(rows.get(b"new"))
"""


def read_as_another(path: Path, key: str) -> list[str]:
    reader = run(READER, path, key)
    lines = reader.communicate()[0].splitlines()
    assert reader.returncode == 0
    return lines


needs_permissions = pytest.mark.skipif(os.name == "nt", reason="permissions bind otherwise there")


@needs_permissions
@pytest.mark.parametrize("file_mode", [0o444, 0o644])
def test_folder_that_can_only_be_read_is_read(
    shared: Path, told: list[str], file_mode: int
) -> None:
    path = shared / "rows.sqlite3"
    opened(path, told).put_all([row(7)])
    path.chmod(file_mode)
    shared.chmod(0o555)
    warning, found, new = read_as_another(path, "7")
    assert found == str(row(7)[1:])
    assert new == "None"
    assert warning.startswith(f"things can't be written at {path}")
    assert "those that are there are read" in warning


@needs_permissions
def test_folder_is_read_while_its_owner_writes(shared: Path, told: list[str]) -> None:
    path = shared / "rows.sqlite3"
    rows = opened(path, told)
    rows.put_all([row(7)])
    shared.chmod(0o555)
    warning, found, _ = read_as_another(path, "7")
    assert found == str(row(7)[1:])
    assert warning.startswith("things can't be written")
    rows.put_all([row(8)])
    assert rows.get(b"8") is not None


@needs_permissions
def test_rows_that_only_a_writer_could_recover_are_left_alone(
    shared: Path, told: list[str]
) -> None:
    path = shared / "rows.sqlite3"
    rows = opened(path, told)
    rows.put_all([row(7)])
    copy = shared / "copied"
    copy.mkdir()
    for name in ("rows.sqlite3", "rows.sqlite3-wal"):
        shutil.copy(shared / name, copy)
    copy.chmod(0o555)
    warning, found, _ = read_as_another(copy / "rows.sqlite3", "7")
    assert found == "None"
    assert warning.startswith("things can't be opened")
    copy.chmod(0o755)


@needs_permissions
def test_folder_without_a_file_that_can_not_be_written_is_told(shared: Path) -> None:
    shared.chmod(0o555)
    warning, found, new = read_as_another(shared / "rows.sqlite3", "7")
    assert (found, new) == ("None", "None")
    assert "things can't be opened" in warning
    assert "choose another folder with --failgain-cache-dir" in warning
