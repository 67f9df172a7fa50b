from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_failgain import threads
from pytest_failgain.threads import thread_count, usable_cores
from strategies import quick


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Twelve cores that this process may run on, and no container."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(12)), raising=False)
    monkeypatch.setattr(threads, "_container_quota", lambda path: None)
    return monkeypatch


def quota_file(folder: Path, content: str) -> Path:
    path = folder / "cpu.max"
    path.write_text(content)
    return path


@pytest.mark.parametrize(
    ("content", "cores"),
    [
        ("200000 100000\n", 2.0),
        ("150000 100000\n", 1.5),
        ("50000 100000", 0.5),
        ("max 100000\n", None),
        ("", None),
        ("200000\n", None),
        ("a b\n", None),
        ("1 2 3\n", None),
        ("200000 0\n", None),
    ],
)
def test_the_quota_of_a_container(tmp_path: Path, content: str, cores: float | None) -> None:
    assert threads._container_quota(quota_file(tmp_path, content)) == cores


def test_without_a_quota_file_there_is_no_quota(tmp_path: Path) -> None:
    assert threads._container_quota(tmp_path / "cpu.max") is None
    assert threads._container_quota(tmp_path) is None


def test_a_quota_that_is_no_text_is_no_quota(tmp_path: Path) -> None:
    path = tmp_path / "cpu.max"
    path.write_bytes(b"\xff\xfe\x00")
    assert threads._container_quota(path) is None


def test_cores_are_those_that_the_process_may_run_on(machine: pytest.MonkeyPatch) -> None:
    assert usable_cores() == 12
    machine.setattr(os, "sched_getaffinity", lambda pid: {3, 7})
    assert usable_cores() == 2


@pytest.mark.parametrize(("cores", "expected"), [(1, 1), (None, 1), (6, 6)])
def test_where_a_platform_tells_no_affinity_all_cores_count(
    machine: pytest.MonkeyPatch, cores: int | None, expected: int
) -> None:
    machine.delattr(os, "sched_getaffinity", raising=False)
    machine.setattr(os, "cpu_count", lambda: cores)
    assert usable_cores() == expected


@pytest.mark.parametrize(
    ("quota", "expected"), [(2.0, 2), (2.9, 2), (0.5, 1), (0.0, 1), (64.0, 12), (None, 12)]
)
def test_a_quota_cuts_the_cores_to_whole_ones_and_never_below_one(
    machine: pytest.MonkeyPatch, quota: float | None, expected: int
) -> None:
    machine.setattr(threads, "_container_quota", lambda path: quota)
    assert usable_cores() == expected


@pytest.mark.parametrize(
    ("workers", "expected"), [("1", 12), ("2", 6), ("5", 2), ("8", 1), ("100", 1)]
)
def test_workers_of_xdist_share_the_cores(
    machine: pytest.MonkeyPatch, workers: str, expected: int
) -> None:
    assert thread_count({"PYTEST_XDIST_WORKER_COUNT": workers}) == expected


@pytest.mark.parametrize("junk", ["", "0", "00", "-2", "1.5", "auto", "²", "1e3", " 2"])
def test_a_count_of_workers_that_is_none_means_one(machine: pytest.MonkeyPatch, junk: str) -> None:
    assert thread_count({"PYTEST_XDIST_WORKER_COUNT": junk}) == 12


def test_without_xdist_one_process_has_all_the_cores(machine: pytest.MonkeyPatch) -> None:
    assert thread_count({}) == 12


@quick
@given(workers=st.text(max_size=4) | st.integers().map(str))
def test_there_is_always_at_least_one_thread_and_never_more_than_cores(workers: str) -> None:
    assert 1 <= thread_count({"PYTEST_XDIST_WORKER_COUNT": workers}) <= usable_cores()
