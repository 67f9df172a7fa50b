"""The end of a run that measured something, or was to leave files."""

from __future__ import annotations

import os

import pytest

from pytest_failgain.closing import close
from pytest_failgain.stash import FINDINGS, OUTCOME, RUNS_TESTS, SETTINGS

_RAN_TO_THE_END = (
    pytest.ExitCode.OK,
    pytest.ExitCode.TESTS_FAILED,
    pytest.ExitCode.NO_TESTS_COLLECTED,
)


def finish(session: pytest.Session, exitstatus: int) -> None:
    """Write what the run is to write, and let it fail where that went wrong.

    `exitstatus` is pytest's own, which other plugins may have changed in the session since.
    """
    stash = session.config.stash
    findings = stash[FINDINGS]
    # A run that broke off before it found anything would write over what an earlier one found.
    if not stash.get(RUNS_TESTS, False) or not (any(findings) or exitstatus in _RAN_TO_THE_END):
        return
    outcome = close(
        findings,
        stash[SETTINGS],
        session.config.rootpath,
        os.environ,
        whole=exitstatus == pytest.ExitCode.OK and not _selects(session.config),
    )
    stash[OUTCOME] = outcome
    if outcome.problems:
        session.exitstatus = failed(session.exitstatus, exitstatus)


def _selects(config: pytest.Config) -> bool:
    """Whether the run was asked to leave some of the tests out."""
    selecting = ("keyword", "markexpr", "deselect", "lf", "stepwise", "ignore", "ignore_glob")
    return any(config.getoption(name, None) for name in selecting) or any(
        "::" in argument for argument in config.args
    )


def failed(status: int, pytests_own: int) -> int:
    """The exit status of a run that went wrong, where it was `status` up to now.

    A status that tells of something stays, and so does one that another plugin chose.
    """
    none_collected = pytest.ExitCode.NO_TESTS_COLLECTED
    if status == pytest.ExitCode.OK or status == pytests_own == none_collected:
        return pytest.ExitCode.TESTS_FAILED
    return status
