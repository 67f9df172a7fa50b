"""Measurements in several worker processes."""

from __future__ import annotations

import json
import signal

import pytest
from agent_projects import (
    COMPARES,
    MEASURES_MINE,
    MEASURES_VERBATIM,
    USES_NOTHING,
    give_fake_model,
    has_section,
    measured_names,
    section,
)

from pytest_failgain.baseline.file import read_baseline
from pytest_failgain.options import DEFAULT_BASELINE

pytest.importorskip("xdist")

pytestmark = pytest.mark.slow

MODEL = ["--failgain-model", "fake"]

MEASURES_DROPPED = """
def test_dropped(failgain, cases):
    failgain.measure(failgain.remedy("dropped"), cases)
"""

# How much the process that writes the summary knows, with what came twice.
COUNTS = """
from pytest_failgain.stash import FINDINGS

@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config):
    if not hasattr(config, "workerinput"):
        count = len(config.stash[FINDINGS].measurements)
        config.rootpath.joinpath("count.txt").write_text(str(count))
"""


@pytest.fixture(autouse=True)
def _fake_model(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    give_fake_model(project, monkeypatch)


def add_to_conftest(project: pytest.Pytester, source: str) -> None:
    with project.path.joinpath("conftest.py").open("a") as file:
        file.write(source)


def kept_harnesses(project: pytest.Pytester) -> set[str]:
    """The harnesses in the project's baseline."""
    return {harness for _, harness in read_baseline(project.path / DEFAULT_BASELINE)}


def test_controller_shows_what_all_workers_measured_and_each_thing_once(
    project: pytest.Pytester,
) -> None:
    # One module a worker; both measure the verbatim harness.
    project.makepyfile(
        test_one=MEASURES_MINE + MEASURES_VERBATIM,
        test_two=MEASURES_VERBATIM
        + MEASURES_DROPPED
        + """
def test_worker(worker_id):
    assert worker_id != "master"
""",
    )
    result = project.runpytest("-n", "2", "--dist", "loadfile", *MODEL)
    result.assert_outcomes(passed=5)
    assert sorted(measured_names(result)) == ["dropped", "render_mine", "verbatim"]
    assert [line for line in section(result) if line.startswith("own cases")] == [
        "own cases: 3 cases of 3 tasks, fake (a hash, float32)"
    ]


@pytest.mark.slow
def test_every_worker_may_run_every_test(project: pytest.Pytester) -> None:
    project.makepyfile(COMPARES)
    for update in ([], ["--failgain-update-baseline"], []):
        result = project.runpytest("-n", "2", "--dist", "each", *MODEL, *update)
        result.assert_outcomes(**{"passed" if kept_harnesses(project) else "failed": 6})
        assert sorted(measured_names(result)) == ["described", "dropped", "instructed"]
    assert kept_harnesses(project) == {"described", "dropped", "instructed"}


def test_one_of_each_file_is_written_from_what_all_workers_found(project: pytest.Pytester) -> None:
    project.makepyfile(test_one=COMPARES, test_two=COMPARES.replace("dropped", "stripped"))
    files = ["--failgain-update-baseline", "--failgain-json=results.json"]
    result = project.runpytest("-n", "2", "--dist", "loadfile", *MODEL, *files)
    result.assert_outcomes(passed=6)
    everything = {"described", "dropped", "instructed", "stripped"}
    assert kept_harnesses(project) == everything
    results = json.loads(project.path.joinpath("results.json").read_text())
    assert sorted(one["harness"] for one in results["measurements"]) == sorted(everything)
    assert sum(line.startswith("wrote baseline ") for line in section(result)) == 1
    project.runpytest("-p", "no:xdist", *MODEL).assert_outcomes(passed=6)


@pytest.mark.parametrize("way", ["os._exit(0)", f"os.kill(os.getpid(), {int(signal.SIGKILL)})"])
def test_worker_that_crashes_loses_only_what_its_test_had_found(
    project: pytest.Pytester, way: str
) -> None:
    project.makepyfile(
        MEASURES_MINE
        + f"""
import os

def test_crashes(failgain, cases):
    failgain.measure(failgain.remedy("described"), cases)
    {way}
"""
        + MEASURES_DROPPED
    )
    # One worker, and then the one that takes its place.
    result = project.runpytest("-n", "1", *MODEL)
    result.assert_outcomes(passed=2, failed=1)
    assert measured_names(result) == ["render_mine", "dropped"]


def test_test_that_crashes_after_it_was_run_loses_nothing_that_it_had_found(
    project: pytest.Pytester,
) -> None:
    project.makepyfile(
        """
        import os
        import pytest

        @pytest.fixture
        def office(failgain, cases):
            failgain.measure(failgain.remedy("described"), cases)
            yield
            os._exit(0)

        def test_it(office, failgain, cases):
            failgain.measure(failgain.remedy("dropped"), cases)
        """
    )
    result = project.runpytest("-n", "1", *MODEL)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert measured_names(result) == ["described", "dropped"]


@pytest.mark.slow
def test_baseline_keeps_the_entries_of_what_a_crash_took(project: pytest.Pytester) -> None:
    project.makepyfile(COMPARES)
    baseline = project.path / DEFAULT_BASELINE
    project.runpytest("-p", "no:xdist", *MODEL, "--failgain-update-baseline")
    written = read_baseline(baseline)
    # The cases that are not measured any more stay as well, since the run does not pass.
    project.makepyfile(
        COMPARES.replace("cases)", "cases[:2])")
        + """
    import os
    if remedy == "dropped":
        os._exit(1)
"""
    )
    result = project.runpytest("-n", "2", *MODEL, "--failgain-update-baseline")
    result.assert_outcomes(passed=2, failed=1)
    assert read_baseline(baseline) == written
    assert sum(line.startswith("note: the baseline ") for line in section(result)) == 1


ODD_CASES = """
import enum
from dataclasses import replace
from types import MappingProxyType
from pytest_failgain import Step

class Family(str, enum.Enum):
    TYPE = "type_error"

class Opaque(dict):
    def __reduce_ex__(self, version):
        raise ValueError("no copy of this")

def test_plain_enough(failgain, cases):
    case = cases[0]
    failed = replace(case.failed, error_family=Family.TYPE, records=MappingProxyType({"a": "b"}))
    failgain.measure(failgain.remedy("dropped"), [replace(case, failed=failed)])

def test_opaque(failgain, cases, monkeypatch):
    class Text:
        def __reduce__(self):
            raise ValueError("no copy of this")
    result = failgain.measure(failgain.remedy("described"), cases)
    object.__setattr__(result, "without_effect", Text())
"""


def test_values_that_only_the_worker_knows_arrive_as_plain_ones_or_fail_their_test(
    project: pytest.Pytester,
) -> None:
    project.mkdir("deeper").joinpath("test_odd.py").write_text(ODD_CASES)
    result = project.runpytest("-n", "1", *MODEL)
    result.assert_outcomes(passed=1, failed=1)
    assert measured_names(result) == ["dropped"]
    result.stdout.fnmatch_lines(
        ["what this test measured can't be sent to the main process: ValueError: no copy of this*"]
    )


def test_reports_are_handed_on_without_the_findings(project: pytest.Pytester) -> None:
    add_to_conftest(
        project,
        """
def pytest_runtest_logreport(report):
    if hasattr(report, "node"):
        with open("names.txt", "a") as file:
            file.write(" ".join(vars(report)) + "\\n")
""",
    )
    project.makepyfile(MEASURES_MINE)
    result = project.runpytest("-n", "1", *MODEL)
    assert measured_names(result) == ["render_mine"]
    seen = project.path.joinpath("names.txt").read_text()
    assert seen.count("\n") == 3
    assert "failgain" not in seen


MEASURES_AT_THE_END = """
import pytest

@pytest.fixture(scope="session")
def office(failgain):
    yield
    from conftest import booking
    failgain.measure(failgain.remedy("described"), [booking(1)])

def test_one(office):
    assert 0

def test_two(office):
    pass
"""


@pytest.mark.parametrize("args", [[], ["-x"], ["--maxfail=1"]], ids=" ".join)
@pytest.mark.parametrize("workers", [["-p", "no:xdist"], ["-n", "1"]], ids=" ".join)
def test_what_finalizers_of_the_session_measure_is_not_lost(
    project: pytest.Pytester, workers: list[str], args: list[str]
) -> None:
    project.makepyfile(MEASURES_AT_THE_END)
    result = project.runpytest(*workers, *args, *MODEL)
    result.assert_outcomes(failed=1, passed=0 if args else 1)
    assert measured_names(result) == ["described"]


@pytest.mark.parametrize("workers", [["-p", "no:xdist"], ["-n", "1"]], ids=" ".join)
def test_test_that_is_run_again_keeps_what_it_measured_each_time(
    project: pytest.Pytester, workers: list[str]
) -> None:
    add_to_conftest(
        project,
        COUNTS
        + """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    # As pytest-rerunfailures: of the first run, nothing behind the failure is reported.
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    for report in reports[:2]:
        report.outcome = "passed"
        item.ihook.pytest_runtest_logreport(report=report)
    runtestprotocol(item, nextitem=nextitem)
    return True
""",
    )
    project.makepyfile(
        """
        import pytest

        times = []

        @pytest.fixture
        def office(failgain, cases):
            yield
            failgain.measure(failgain.remedy("described"), cases)

        def test_it(office, failgain, cases):
            times.append(1)
            if len(times) == 1:
                failgain.measure(failgain.remedy("dropped"), cases)
                assert 0
        """
    )
    result = project.runpytest(*workers, *MODEL)
    assert sorted(measured_names(result)) == ["described", "dropped"]
    assert project.path.joinpath("count.txt").read_text() == "3"


@pytest.mark.parametrize("way", ["pytest.exit('enough')", "raise KeyboardInterrupt"])
def test_interrupted_worker_tells_everything_once(project: pytest.Pytester, way: str) -> None:
    add_to_conftest(project, COUNTS)
    project.makepyfile(
        MEASURES_AT_THE_END.replace("assert 0", way)
        # Its own report is never made.
        + MEASURES_MINE
    )
    result = project.runpytest_subprocess("-n", "1", "--max-worker-restart=0", *MODEL)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert measured_names(result) == ["described"]
    assert project.path.joinpath("count.txt").read_text() == "1"


@pytest.mark.slow
def test_what_came_before_an_interruption_is_shown_and_written(project: pytest.Pytester) -> None:
    add_to_conftest(
        project,
        """
def pytest_runtest_logfinish(nodeid):
    if "PYTEST_XDIST_WORKER" not in os.environ and "dropped" in nodeid:
        raise KeyboardInterrupt

import os
""",
    )
    project.makepyfile(COMPARES)
    for workers in (["-p", "no:xdist"], ["-n", "1"]):
        project.path.joinpath(DEFAULT_BASELINE).unlink(missing_ok=True)
        result = project.runpytest_subprocess(*workers, *MODEL, "--failgain-update-baseline")
        assert result.ret == pytest.ExitCode.INTERRUPTED
        assert measured_names(result) == ["described", "dropped"]
        assert kept_harnesses(project) == {"described", "dropped"}


NOTES_LOADING = """
def load_noting(name, **settings):
    with open("loads.txt", "a") as file:
        file.write(f"{os.environ['PYTEST_XDIST_WORKER']} {settings['threads']}\\n")
    return FakeScorer()

import os
loading.load_scorer = load_noting
"""


def loads(project: pytest.Pytester) -> list[list[str]]:
    """The worker and the threads of each time that the model was loaded."""
    lines = project.path.joinpath("loads.txt").read_text().splitlines()
    return [line.split() for line in lines]


NOTES_GROUPS = """
def pytest_collection_finish(session):
    with open("groups.txt", "w") as file:
        for item in session.items:
            for mark in item.iter_markers("xdist_group"):
                print(item.name, *mark.args, file=file)
"""

THROUGH_ANOTHER = """
import pytest

@pytest.fixture
def scorer(failgain_model):
    return failgain_model

class TestScorer:
    def test_scorer(self, scorer):
        pass
"""

IN_A_GROUP = """
import pytest

@pytest.mark.xdist_group("mine")
def test_grouped(failgain):
    pass
"""


def groups(project: pytest.Pytester) -> list[str]:
    """The names of the tests that were in a group, and the group."""
    return project.path.joinpath("groups.txt").read_text().splitlines()


def test_tests_that_need_the_model_are_in_one_group(project: pytest.Pytester) -> None:
    add_to_conftest(project, NOTES_GROUPS)
    project.makepyfile(
        test_one=USES_NOTHING + MEASURES_MINE, test_two=IN_A_GROUP, test_three=THROUGH_ANOTHER
    )
    project.path.joinpath("failgain.yaml").write_text(
        """
failgain: 1
suites:
  office: {environment: tool_calls, cases: 1, thresholds: {n: {at_least: 1}}}
"""
    )
    result = project.runpytest("-n", "1", "--dist", "loadgroup", "--strict-markers", *MODEL)
    result.assert_outcomes(passed=5)
    assert sorted(groups(project)) == [
        "test_grouped mine",
        "test_mine failgain",
        "test_scorer failgain",
        "tool_calls-none failgain",
    ]


def test_group_loads_the_model_once(project: pytest.Pytester) -> None:
    add_to_conftest(project, NOTES_LOADING)
    project.makepyfile(
        test_one=USES_NOTHING + MEASURES_MINE,
        test_two=MEASURES_VERBATIM + MEASURES_DROPPED + THROUGH_ANOTHER,
        test_three=IN_A_GROUP.replace("failgain", ""),
    )
    result = project.runpytest("-n", "2", "--dist", "loadgroup", "-v", *MODEL)
    result.assert_outcomes(passed=6)
    if "test_grouped@mine" not in result.stdout.str():
        pytest.skip("this xdist groups nothing with this pytest (pytest-xdist issue 1386)")
    assert len(loads(project)) == 1


@pytest.mark.parametrize(
    "args", [["-p", "no:xdist"], ["-n", "1"], ["-n", "0"], ["--dist", "loadgroup"]], ids=" ".join
)
def test_nothing_is_grouped_where_that_is_not_asked_for(
    project: pytest.Pytester, args: list[str]
) -> None:
    add_to_conftest(project, NOTES_GROUPS)
    project.makepyfile(MEASURES_MINE)
    result = project.runpytest(*args, "--strict-markers", *MODEL)
    result.assert_outcomes(passed=1)
    assert groups(project) == []


@pytest.mark.parametrize(
    ("given", "settings"), [([], "None"), (["--failgain-threads=7"], "7")], ids=["none", "7"]
)
def test_threads_that_are_given_are_those_of_each_worker(
    project: pytest.Pytester, given: list[str], settings: str
) -> None:
    add_to_conftest(project, NOTES_LOADING)
    project.makepyfile(MEASURES_MINE)
    result = project.runpytest("-n", "2", "--dist", "each", *MODEL, *given)
    result.assert_outcomes(passed=2)
    assert sorted(loads(project)) == [["gw0", settings], ["gw1", settings]]


def test_run_that_uses_nothing_shows_nothing(project: pytest.Pytester) -> None:
    project.makepyfile(USES_NOTHING)
    result = project.runpytest("-n", "1")
    result.assert_outcomes(passed=1)
    assert not has_section(result)
    result.stdout.no_fnmatch_line("failgain:*")


def test_workers_write_no_summary_of_their_own(project: pytest.Pytester) -> None:
    add_to_conftest(
        project,
        """
import os

if "PYTEST_XDIST_WORKER" in os.environ:
    import pytest_failgain.report.terminal as terminal

    terminal.write_summary = lambda *_: open("written.txt", "w").close()
""",
    )
    project.makepyfile(MEASURES_MINE)
    project.runpytest("-n", "1", *MODEL).assert_outcomes(passed=1)
    assert not project.path.joinpath("written.txt").exists()


def test_error_in_a_worker_is_one_line(project: pytest.Pytester) -> None:
    project.makepyfile("def test_it(failgain_model):\n    pass")
    result = project.runpytest("-n", "1", "--failgain-require-model")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "*_ ERROR at setup of test_it _*",
            "[[]gw0] *",
            "no model to measure with: *",
            "*= short test summary info =*",
        ],
        consecutive=True,
    )


def test_value_that_does_not_fit_is_told_once(project: pytest.Pytester) -> None:
    result = project.runpytest("-n", "1", "--failgain-cases", "0")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert [line for line in result.errlines if line] == [
        "ERROR: --failgain-cases: must be a whole number of 1 or more, not '0'"
    ]
