"""Which runs fail, and what a run that is none leaves alone."""

from __future__ import annotations

import pytest
from agent_projects import (
    COMPARES,
    USES_NOTHING,
    give_fake_model,
    has_section,
    section,
)

from pytest_failgain.baseline.file import read_baseline
from pytest_failgain.finishing import failed
from pytest_failgain.options import DEFAULT_BASELINE

MODEL = ["--failgain-model", "fake"]
UPDATE = "--failgain-update-baseline"
FILES = (DEFAULT_BASELINE, "results.json", "report.html")
WRITES = [*MODEL, UPDATE, "--failgain-json=results.json", "--failgain-html=report.html"]

OK, FAILED, INTERRUPTED, INTERNAL, USAGE, NONE = (
    pytest.ExitCode.OK,
    pytest.ExitCode.TESTS_FAILED,
    pytest.ExitCode.INTERRUPTED,
    pytest.ExitCode.INTERNAL_ERROR,
    pytest.ExitCode.USAGE_ERROR,
    pytest.ExitCode.NO_TESTS_COLLECTED,
)


@pytest.fixture(autouse=True)
def _fake_model(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    give_fake_model(project, monkeypatch)


def errors(result: pytest.RunResult) -> list[str]:
    """What the summary says went wrong."""
    return [line for line in section(result) if line.startswith("error: ")]


def written(project: pytest.Pytester) -> list[str]:
    return [name for name in FILES if project.path.joinpath(name).exists()]


def test_regression_fails_the_test_that_asserted_it(project: pytest.Pytester) -> None:
    project.makepyfile(COMPARES)
    assert project.runpytest(*MODEL, UPDATE).ret == OK
    # As if the gain of this harness had been higher by far.
    baseline = project.path / DEFAULT_BASELINE
    before, name, after = baseline.read_text().partition('"dropped": {')
    baseline.write_text(
        before + name + after.replace('"gain_per_token": 0.0', '"gain_per_token": 9.0', 3)
    )
    result = project.runpytest(*MODEL)
    assert result.ret == FAILED
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["E *dropped on own cases: regression against *"])


def test_update_of_nothing_fails_the_run(project: pytest.Pytester) -> None:
    project.makepyfile(USES_NOTHING)
    result = project.runpytest(*MODEL, UPDATE)
    assert result.ret == FAILED
    result.assert_outcomes(passed=1)
    (error,) = errors(result)
    assert "no test that was run compared anything with it" in error
    assert written(project) == []


def test_update_of_nothing_fails_the_run_of_workers(project: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    project.makepyfile(USES_NOTHING)
    result = project.runpytest("-n", "1", *MODEL, UPDATE)
    assert result.ret == FAILED
    result.assert_outcomes(passed=1)
    assert len(errors(result)) == 1


@pytest.mark.parametrize("args", [["-k", "nothing"], ["--deselect=test_it.py"]], ids=" ".join)
def test_update_in_which_no_test_is_left_fails(project: pytest.Pytester, args: list[str]) -> None:
    project.makepyfile(test_it=COMPARES)
    assert project.runpytest(*MODEL, *args).ret == NONE
    result = project.runpytest(*MODEL, UPDATE, *args)
    assert result.ret == FAILED
    assert len(errors(result)) == 1


def test_update_that_can_not_be_written_fails_the_run(project: pytest.Pytester) -> None:
    project.makepyfile(
        COMPARES
        + """
    import pathlib
    pathlib.Path("baseline.json").mkdir(exist_ok=True)
"""
    )
    result = project.runpytest(*MODEL, UPDATE, "--failgain-baseline=baseline.json")
    assert result.ret == FAILED
    assert any("baseline.json" in error for error in errors(result))


def test_place_that_no_baseline_can_be_written_to_is_told_before_the_run(
    project: pytest.Pytester,
) -> None:
    project.makepyfile(COMPARES)
    project.path.joinpath("file").touch()
    result = project.runpytest(*MODEL, UPDATE, "--failgain-baseline=file/baseline.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --failgain-update-baseline: can't write the baseline *"])


def test_update_without_a_model_says_that_there_is_none(project: pytest.Pytester) -> None:
    project.makepyfile(COMPARES)
    result = project.runpytest(UPDATE)
    assert result.ret == FAILED
    (error,) = errors(result)
    assert "no model was given, so all tests that measure were skipped" in error


def test_update_of_a_file_with_a_conflict_says_so(project: pytest.Pytester) -> None:
    project.makepyfile(COMPARES)
    project.path.joinpath(DEFAULT_BASELINE).write_text(
        "<<<<<<< ours\n{}\n=======\n>>>>>>> theirs\n"
    )
    result = project.runpytest(*MODEL, UPDATE)
    (error,) = errors(result)
    assert "holds both sides of a merge (line 1): take one of them" in error


SHARED = """
import pytest
from pytest_failgain import assert_no_regression

@pytest.mark.parametrize("number", [0, 1, 2])
def test_shared(failgain, failgain_harness, cases, number):
    result = failgain.measure(failgain_harness, [cases[number]])
    if number == {stops_at}:
        {stops}
    assert_no_regression(result)
"""


@pytest.mark.parametrize(
    ("stops", "args"),
    [
        ("pass", ["-k", "1"]),
        ("pass", ["test_it.py::test_shared[1]"]),
        ("pass", ["--deselect=test_it.py::test_shared[1]"]),
        ("assert False", []),
        ("raise KeyboardInterrupt", []),
        ("pytest.exit('enough')", []),
    ],
)
def test_update_that_does_not_see_all_tests_loses_none_of_their_cases(
    project: pytest.Pytester, stops: str, args: list[str]
) -> None:
    project.makepyfile(test_it=SHARED.format(stops_at=1, stops="pass"))
    project.runpytest(*MODEL, UPDATE).assert_outcomes(passed=3)
    before = read_baseline(project.path / DEFAULT_BASELINE)
    assert [len(entry.cases) for entry in before.values()] == [3]
    project.makepyfile(test_it=SHARED.format(stops_at=1, stops=stops))
    project.runpytest_inprocess(*MODEL, UPDATE, *args, no_reraise_ctrlc=True)
    assert read_baseline(project.path / DEFAULT_BASELINE) == before


def test_update_that_sees_all_tests_takes_out_what_is_no_more(project: pytest.Pytester) -> None:
    project.makepyfile(test_it=SHARED.format(stops_at=1, stops="pass"))
    project.runpytest(*MODEL, UPDATE)
    project.makepyfile(test_it=SHARED.format(stops_at=1, stops="return"))
    result = project.runpytest(*MODEL, UPDATE)
    (entry,) = read_baseline(project.path / DEFAULT_BASELINE).values()
    assert list(entry.cases) == ["room-1", "room-3"]
    result.stdout.fnmatch_lines(
        ["note: taken out of failgain-baseline.json, since not measured: room-2"]
    )


def test_command_in_a_failure_repeats_the_options_of_the_run(project: pytest.Pytester) -> None:
    project.makepyfile(COMPARES)
    result = project.runpytest(*MODEL, "--failgain-baseline=a.json", "--failgain-seed", "3")
    command = "pytest --failgain-model=fake --failgain-seed=3 --failgain-baseline=*a.json"
    result.stdout.fnmatch_lines([f"*; write it with: {command} --failgain-update-baseline"])


SETS_STATUS = """
import pytest

@pytest.hookimpl({order})
def pytest_sessionfinish(session):
    session.exitstatus = {status}
"""

SETS_STATUS_BEHIND = """
import pytest

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session):
    result = yield
    session.exitstatus = {status}
    return result
"""


@pytest.mark.parametrize("status", [INTERRUPTED, INTERNAL, USAGE, NONE, 77])
@pytest.mark.parametrize("order", ["", "tryfirst=True", "trylast=True", None])
def test_status_of_another_plugin_stays(
    project: pytest.Pytester, status: int, order: str | None
) -> None:
    source = SETS_STATUS_BEHIND if order is None else SETS_STATUS
    project.makepyfile(USES_NOTHING, other=source.format(order=order, status=int(status)))
    project.syspathinsert()
    result = project.runpytest("-p", "other", *MODEL, UPDATE)
    assert result.ret == status
    assert len(errors(result)) == 1


@pytest.mark.parametrize("order", ["", "tryfirst=True", "trylast=True"])
def test_plugin_that_calls_it_a_success_does_not_hide_what_went_wrong(
    project: pytest.Pytester, order: str
) -> None:
    # As those that take the status of a run without tests for a success.
    project.makepyfile(other=SETS_STATUS.format(order=order, status=0))
    project.syspathinsert()
    assert project.runpytest("-p", "other", *MODEL, UPDATE).ret == FAILED


@pytest.mark.parametrize(
    ("status", "pytests_own", "becomes"),
    [
        (OK, OK, FAILED),
        (0, NONE, FAILED),
        (NONE, NONE, FAILED),
        (NONE, OK, NONE),
        (FAILED, FAILED, FAILED),
        (INTERRUPTED, INTERRUPTED, INTERRUPTED),
        (INTERNAL, OK, INTERNAL),
        (77, NONE, 77),
    ],
)
def test_only_a_run_without_failure_gets_another_status(
    status: int, pytests_own: int, becomes: int
) -> None:
    assert failed(status, pytests_own) == becomes


def test_failing_tests_are_what_a_run_fails_for_first(project: pytest.Pytester) -> None:
    project.makepyfile("def test_it(failgain, cases): assert 0")
    result = project.runpytest(*MODEL, UPDATE)
    assert result.ret == FAILED
    assert len(errors(result)) == 1


def test_plugin_that_fails_at_the_end_does_not_keep_the_baseline_from_being_written(
    project: pytest.Pytester,
) -> None:
    project.makepyfile(
        COMPARES,
        other="""
        import pytest

        def pytest_sessionfinish():
            pytest.exit("enough", 9)
        """,
    )
    project.syspathinsert()
    assert project.runpytest("-p", "other", *MODEL, UPDATE).ret == 9
    assert written(project) == [DEFAULT_BASELINE]


def test_interrupted_run_stays_one_and_writes_what_it_found(project: pytest.Pytester) -> None:
    project.makepyfile(
        COMPARES
        + """
def test_stop():
    raise KeyboardInterrupt
"""
    )
    result = project.runpytest_subprocess(*MODEL, UPDATE)
    assert result.ret == INTERRUPTED
    assert written(project) == [DEFAULT_BASELINE]


@pytest.mark.parametrize(
    ("source", "status"),
    [
        ("def test_stop(): raise KeyboardInterrupt", INTERRUPTED),
        ("assert 0", INTERRUPTED),
        ("import pytest\n\ndef test_stop(): pytest.exit('enough', 9)", 9),
    ],
    ids=["interrupted", "not collected", "exited"],
)
def test_run_that_broke_off_before_it_found_anything_writes_nothing(
    project: pytest.Pytester, source: str, status: int
) -> None:
    project.makepyfile(source)
    result = project.runpytest_subprocess(*WRITES)
    assert result.ret == status
    assert written(project) == []
    assert not has_section(result)


def test_internal_error_stays_one_and_what_was_found_is_written(project: pytest.Pytester) -> None:
    project.makepyfile(
        COMPARES + USES_NOTHING,
        other="""
        def pytest_runtest_setup(item):
            if item.name == "test_plain":
                import _pytest.runner
                _pytest.runner.check_interactive_exception = lambda call, report: 1 / 0
                raise OSError
        """,
    )
    project.syspathinsert()
    result = project.runpytest_subprocess("-p", "other", *MODEL, UPDATE)
    assert result.ret == INTERNAL
    assert written(project) == [DEFAULT_BASELINE]


def test_wrong_use_is_told_and_nothing_is_written(project: pytest.Pytester) -> None:
    project.makepyfile(COMPARES)
    assert project.runpytest(*WRITES, "no_such_file.py").ret == USAGE
    assert project.runpytest(*WRITES, "--no-such-option").ret == USAGE
    assert written(project) == []


@pytest.mark.parametrize(
    "way",
    [
        "--collect-only",
        "--setup-plan",
        "--setup-only",
        "--fixtures",
        "--fixtures-per-test",
        "--markers",
        "--help",
        "--version",
        "--cache-show",
    ],
)
def test_run_that_runs_no_test_neither_fails_nor_writes(project: pytest.Pytester, way: str) -> None:
    project.makepyfile(COMPARES)
    result = project.runpytest(way, *WRITES)
    assert result.ret == OK
    assert written(project) == []
    assert not has_section(result)


def test_collecting_for_workers_neither_fails_nor_writes(project: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    project.makepyfile(COMPARES)
    assert project.runpytest("--collect-only", "-n", "1", *WRITES).ret == OK
    assert written(project) == []
