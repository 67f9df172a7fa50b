from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

import tiny_language_models as tiny
from pytest_failgain.prompt import Prompt
from pytest_failgain.scoring.local import LocalScorer
from pytest_failgain.scoring.protocol import Pair, Score
from pytest_failgain.scoring.score_cache import TokenScores
from pytest_failgain.scoring.score_store import ScoreStore
from pytest_failgain.scoring.tree_engine import TreeEngine
from pytest_failgain.trajectory import Action


def scores(value: float, tokens: int = 1) -> TokenScores:
    return np.full(tokens, value, dtype=np.float64), np.arange(tokens) == 0


def held(
    store: ScoreStore, context: tuple[int, ...], action: tuple[int, ...]
) -> list[float] | None:
    found = store.get(context, action)
    return None if found is None else found[0].tolist()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new folder" / "scores.sqlite3"


def test_another_thread_may_collect_the_store(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unraisable: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    stores = [ScoreStore(path, "model")]
    stores[0].put_all([((1,), (2,), scores(-1.0))])
    thread = threading.Thread(target=stores.clear)
    thread.start()
    thread.join()
    assert not stores
    assert unraisable == []


def test_another_process_finds_the_same_numbers(path: Path) -> None:
    ScoreStore(path, "model").put_all([((1, 2), (3, 4), scores(-1 / 3, tokens=2))])
    found = ScoreStore(path, "model").get((1, 2), (3, 4))
    assert found is not None
    assert found[0].tolist() == [-1 / 3, -1 / 3]
    assert found[1].tolist() == [True, False]


def test_models_do_not_mix(path: Path) -> None:
    ScoreStore(path, "float32").put_all([((1,), (2,), scores(-1))])
    assert held(ScoreStore(path, "bfloat16"), (1,), (2,)) is None


def test_oldest_rows_make_room(path: Path) -> None:
    store = ScoreStore(path, "model")
    for i in range(10):
        store.put_all([((i,), (1,), scores(-i))])
    small = ScoreStore(path, "model", most_rows=4)
    assert [i for i in range(10) if small.get((i,), (1,))] == [6, 7, 8, 9]


def test_damaged_file_is_set_aside_and_said(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.parent.mkdir()
    path.write_bytes(b"this was a database once" * 100)
    store = ScoreStore(path, "model")
    assert "is damaged" in caplog.text
    store.put_all([((1,), (2,), scores(-1))])
    assert held(ScoreStore(path, "model"), (1,), (2,)) == [-1]
    assert path.with_suffix(".damaged").read_bytes().startswith(b"this was")


def test_row_of_another_length_than_its_action_is_damage(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ScoreStore(path, "model").put_all([((1,), (2, 3), scores(-1))])
    store = ScoreStore(path, "model")
    assert store.get((1,), (2, 3)) is None
    assert "is damaged (a row is of another length than its action)" in caplog.text
    store.put_all([((1,), (2, 3), scores(-2, tokens=2))])
    assert held(ScoreStore(path, "model"), (1,), (2, 3)) == [-2, -2]


def test_folder_that_cannot_be_made_costs_a_warning_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    store = ScoreStore(tmp_path / "file" / "scores.sqlite3", "model")
    assert "--failgain-cache-dir" in caplog.text
    store.put_all([((1,), (2,), scores(-1))])
    assert held(store, (1,), (2,)) == [-1]


def test_full_disk_costs_a_warning_only(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = ScoreStore(path, "model")
    assert store._rows._connection is not None
    store._rows._connection.execute("PRAGMA max_page_count = 1")
    store.put_all([((i,), (2,), scores(-i)) for i in range(2000)])
    assert "can't be written" in caplog.text
    assert held(store, (5,), (2,)) == [-5]


def test_killed_writer_loses_no_finished_batch(path: Path) -> None:
    program = textwrap.dedent(
        f"""
        import numpy as np
        from pathlib import Path
        from pytest_failgain.scoring.score_store import ScoreStore
        store = ScoreStore(Path({str(path)!r}), "model")
        for i in range(10**6):
            store.put_all(
                [((i, j), (1,), (np.array([-1.0 * i]), np.array([True]))) for j in range(20)]
            )
            print(i, flush=True)
        """
    )
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        with process, process.stdout as lines:
            finished = [int(next(lines)) for _ in range(30)]
            process.send_signal(signal.SIGKILL)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    store = ScoreStore(path, "model")
    assert all(held(store, (i, j), (1,)) == [-1.0 * i] for i in finished for j in range(20))


def test_two_writers_at_once_both_keep_their_scores(path: Path) -> None:
    program = textwrap.dedent(
        f"""
        import sys
        import numpy as np
        from pathlib import Path
        from pytest_failgain.scoring.score_store import ScoreStore
        store = ScoreStore(Path({str(path)!r}), "model")
        for i in range(100):
            store.put_all([((int(sys.argv[1]), i), (1,), (np.array([-1.0]), np.array([True])))])
        """
    )
    writers = [subprocess.Popen([sys.executable, "-c", program, str(n)]) for n in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    store = ScoreStore(path, "model")
    assert all(store.get((n, i), (1,)) for n in range(3) for i in range(100))


def test_scorer_with_a_store_computes_nothing_twice(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scorer() -> LocalScorer:
        return tiny.tiny_scorer(known=ScoreStore(path, "tiny"))

    pair = Pair(Prompt(messages=({"role": "user", "content": "Hi."},)), Action("go()"))
    (first,) = scorer().score([pair])
    second = scorer()
    monkeypatch.setattr(TreeEngine, "run", None)
    assert isinstance(first, Score)
    assert second.score([pair]) == [first]
