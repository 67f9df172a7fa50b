"""Many trials: over the cores, and none of them twice."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from pytest_failgain.environments.sandbox.runner import run_program
from pytest_failgain.environments.sandbox.verdict import Trial, Verdict
from pytest_failgain.kept_rows import KeptRows
from pytest_failgain.progress import NoProgress, Progress, job
from pytest_failgain.threads import thread_count

# Counts up when a verdict would come out differently, so that older ones are not used.
FORMAT = 1

_MOST_ROWS = 200_000  # about 110 MB


class TrialRunner:
    """Runs trials, as many at once as there are cores.

    Verdicts are kept in the folder `kept_in`, if one is given, by the content of the trial and the
    version of Python; `warn` is told when that folder is no use.
    """

    def __init__(
        self,
        kept_in: Path | None = None,
        progress: Progress | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        self._progress = progress or NoProgress()
        self._known: dict[bytes, Verdict] = {}
        self._rows: KeptRows | None = None
        if kept_in is not None:
            path = kept_in / f"verdicts-{FORMAT}.sqlite3"
            self._rows = KeptRows(path, "verdicts", ("verdict",), _MOST_ROWS, warn)
        self.executed = 0

    def run(self, trials: Sequence[Trial], label: str) -> list[Verdict]:
        """The verdict of each trial; `label` is what the job is called while it runs.

        Raises:
            UsageError: see `run_program`.
        """
        keys = [_key(trial) for trial in trials]
        missing = {
            key: trial for key, trial in zip(keys, trials, strict=True) if not self._knows(key)
        }
        if missing:
            self._run_all(missing, label)
        return [self._known[key] for key in keys]

    def _knows(self, key: bytes) -> bool:
        if key not in self._known and self._rows is not None:
            row = self._rows.get(key)
            if row is not None:
                self._known[key] = Verdict.from_dict(json.loads(row[0]))
        return key in self._known

    def _run_all(self, missing: dict[bytes, Trial], label: str) -> None:
        with (
            job(self._progress, label, len(missing)) as advance,
            ThreadPoolExecutor(thread_count()) as pool,
        ):
            running = {pool.submit(run_program, trial): key for key, trial in missing.items()}
            try:
                for done, future in enumerate(as_completed(running), start=1):
                    self._keep(running.pop(future), future.result())
                    advance(done)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                for future, key in running.items():
                    if not future.cancelled() and future.exception() is None:
                        self._keep(key, future.result())
                raise

    def _keep(self, key: bytes, verdict: Verdict) -> None:
        self.executed += 1
        self._known[key] = verdict
        if self._rows is not None and _is_repeatable(verdict):
            self._rows.put_all([(key, json.dumps(verdict.as_dict()).encode())])


def _is_repeatable(verdict: Verdict) -> bool:
    """Whether the verdict says something of the program, and not of how busy the machine was."""
    return verdict.outcome != "timeout" or verdict.cpu_seconds is not None


def _key(trial: Trial) -> bytes:
    content = [FORMAT, sys.version, trial.as_dict()]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).digest()
