"""What a test of a suite does when it runs, and what is shown of its failure."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from suite_projects import CONFTEST, HISTORY, MET, suite, write

import pytest_failgain
from fake_scorer import failure_case
from pytest_failgain.case_files import save_cases
from pytest_failgain.measurement import Measurement
from pytest_failgain.suites.harness_source import search_beside

PACKAGE = Path(pytest_failgain.__file__).parent
OFFICE = ("environment: tool_calls", "cases: 2")
CAN_NOT = "can't import the module"
UNMET = "thresholds: {corrective_gain: {at_least: 900}, n: {at_least: 3}}"


@pytest.fixture
def agent(project: pytest.Pytester) -> Iterator[pytest.Pytester]:
    """A project with a module of harnesses beside its conftest."""
    project.makeconftest(CONFTEST)
    project.makepyfile(history=HISTORY)
    path = [*sys.path]
    yield project
    # Runs in this process put their folders there.
    sys.path[:] = path


def outcome(project: pytest.Pytester, *lines: str, args: tuple[str, ...] = ()) -> pytest.RunResult:
    """The result of a run of one suite with these lines."""
    write(project, suite(*lines))
    return project.runpytest(*args)


def measurements(project: pytest.Pytester, *args: str) -> list[Measurement]:
    """What a run measured; all of its tests pass."""
    from pytest_failgain.stash import FINDINGS

    kept: list[Measurement] = []

    class Keep:
        def pytest_sessionfinish(self, session: pytest.Session) -> None:
            kept.extend(session.config.stash[FINDINGS].measurements)

    result = project.inline_run(*args, plugins=[Keep()])
    assert result.ret == pytest.ExitCode.OK
    return kept


def shows_our_code(result: pytest.RunResult) -> bool:
    return any(str(PACKAGE) in line for line in result.outlines)


def test_each_test_measures_its_own_harness_remedy_and_cases(agent: pytest.Pytester) -> None:
    write(
        agent,
        suite(
            *OFFICE,
            "harnesses: [verbatim, history:render]",
            "remedies: [none, verbatim, described]",
            "conditions: [before, failed]",
            MET,
        ),
    )
    found = measurements(agent)
    names = ["verbatim", "verbatim", "described", "render", "render", "render+described"]
    assert [(one.environment, one.harness) for one in found] == [
        ("tool_calls", name) for name in names
    ]
    assert {len(one.cases) for one in found} == {2}
    assert {row.condition for one in found for row in one.rows} == {"before", "failed"}


@pytest.mark.slow
def test_each_environment_gives_its_cases(agent: pytest.Pytester) -> None:
    write(agent, suite("environments: [tool_calls, program_repair]", "cases: 2", MET))
    environments = [one.environment for one in measurements(agent)]
    assert environments == ["tool_calls", "program_repair"]


def test_usual_conditions_are_measured_where_none_are_named(agent: pytest.Pytester) -> None:
    write(agent, suite(*OFFICE, MET))
    (found,) = measurements(agent)
    assert {row.condition for row in found.rows} == {"before", "failed", "neutral"}


def test_option_gives_another_number_of_cases(agent: pytest.Pytester) -> None:
    write(agent, suite(*OFFICE, MET))
    (found,) = measurements(agent, "--failgain-cases=3")
    assert len(found.cases) == 3


def test_cases_come_from_the_file_beside_the_yaml(agent: pytest.Pytester) -> None:
    path = write(agent, suite("cases: [data/a.jsonl, data/b.jsonl]", MET), "checks/failgain.yaml")
    folder = path.parent / "data"
    folder.mkdir()
    save_cases([failure_case("one")], folder / "a.jsonl")
    save_cases([failure_case("two"), failure_case("three")], folder / "b.jsonl")
    found = measurements(agent)
    assert [[case.case_id for case in one.cases] for one in found] == [["one"], ["two", "three"]]


def test_case_file_that_is_wrong_is_told_in_its_own_words(agent: pytest.Pytester) -> None:
    agent.path.joinpath("cases.jsonl").write_text("{}")
    result = outcome(agent, "cases: cases.jsonl", MET)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*cases.jsonl:1: the field 'failgain_case' is missing; *"])
    assert not shows_our_code(result)


@pytest.mark.parametrize("scope", ["function", "module", "package", "session"])
def test_harness_of_the_nearest_conftest_is_measured(agent: pytest.Pytester, scope: str) -> None:
    write(agent, suite(*OFFICE, "remedies: [none, described]", MET), "checks/failgain.yaml")
    write(
        agent,
        f"""
        import pytest
        from history import render

        @pytest.fixture(scope={scope!r})
        def failgain_harness():
            return render

        @pytest.fixture(autouse=True, scope={scope!r})
        def around(request):
            assert request.node is not None
            if request.scope in ("function", "module"):
                assert request.module is None
        """,
        "checks/conftest.py",
    )
    assert [one.harness for one in measurements(agent)] == ["render", "render+described"]


def test_harness_keeps_what_it_says_of_its_construction(agent: pytest.Pytester) -> None:
    with agent.path.joinpath("history.py").open("a") as module:
        module.write("\nrender.by_construction = 'nothing is written'\n")
    write(agent, suite(*OFFICE, "harness: history:render", MET))
    (found,) = measurements(agent)
    assert found.by_construction == "nothing is written"


def test_missed_thresholds_are_told_at_the_suite_without_a_traceback(
    agent: pytest.Pytester,
) -> None:
    result = outcome(agent, *OFFICE, UNMET)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*_ suite record: tool_calls-none _*",
            (
                "verbatim on tool_calls: corrective_gain * [[]*[]] nats, at least +900.000 wanted, "
                "n = 2"
            ),
            "also: n = 2, at least 3 wanted",
            "worst cases:  corrective_gain  greedy  failed action",
            "*(office-*)",
            "*(office-*)",
            "note: only 2 tasks: *",
            "note: *",
            "try: *",
            "",
            "failgain.yaml:3: AssertionError",
            "*= failgain =*",
        ],
        consecutive=True,
    )
    result.stdout.fnmatch_lines(["FAILED failgain.yaml::record::tool_calls-none - AssertionE*"])
    assert not shows_our_code(result)


def test_failure_is_told_from_where_pytest_was_started(agent: pytest.Pytester) -> None:
    folder = write(agent, suite(*OFFICE, UNMET), "checks/failgain.yaml").parent
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = agent.runpytest("--rootdir=..", "-c", "/dev/null")
    result.stdout.fnmatch_lines(["failgain.yaml:3: AssertionError"])


@pytest.mark.parametrize("style", ["long", "short", "line", "native", "no"])
def test_failure_is_told_in_every_style(agent: pytest.Pytester, style: str) -> None:
    result = outcome(agent, *OFFICE, UNMET, args=(f"--tb={style}",))
    if style == "line":
        result.stdout.fnmatch_lines(
            [f"{agent.path}/failgain.yaml:3: AssertionError: verbatim on *"]
        )
    elif style != "no":
        result.stdout.fnmatch_lines(
            ["verbatim on tool_calls: *", "failgain.yaml:3: AssertionError"]
        )
    assert not shows_our_code(result)


def test_failure_stands_in_the_junit_report(agent: pytest.Pytester) -> None:
    outcome(agent, *OFFICE, UNMET, args=("--junitxml=report.xml",))
    (case,) = ElementTree.parse(agent.path / "report.xml").iter("testcase")
    assert case.attrib["name"] == "tool_calls-none"
    (failure,) = case.iter("failure")
    assert failure.attrib["message"].startswith("AssertionError: verbatim on tool_calls: ")


def test_full_trace_shows_everything(agent: pytest.Pytester) -> None:
    assert shows_our_code(outcome(agent, *OFFICE, UNMET, args=("--full-trace",)))


def test_name_of_a_suite_with_dots_is_shown_as_it_is(agent: pytest.Pytester) -> None:
    write(agent, suite(*OFFICE, UNMET, name="v1.2"))
    result = agent.runpytest("-v")
    result.stdout.fnmatch_lines(["failgain.yaml::v1.2::tool_calls-none FAILED *"])


def test_measurement_of_no_case_fails_whatever_is_asked_of_it(agent: pytest.Pytester) -> None:
    with agent.path.joinpath("conftest.py").open("a") as conftest:
        conftest.write("\nFakeScorer._score = lambda *_: __import__(")
        conftest.write("'pytest_failgain.scoring.protocol', fromlist=['_']).Refusal('too long')\n")
    import fake_scorer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fake_scorer.FakeScorer, "_score", fake_scorer.FakeScorer._score)
        result = outcome(agent, *OFFICE, "thresholds: {n: {at_most: 5}}")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            (
                "verbatim on tool_calls: no case was measured (n = 0), so nothing can be asserted; "
                "all 2 were skipped:"
            ),
            "  office-*: before: too long",
            "failgain.yaml:3: AssertionError",
        ]
    )


def test_regression_is_compared_with_the_baseline(agent: pytest.Pytester) -> None:
    lines = (*OFFICE, "harness: history:render", "regression: {max_gain_drop: 0.01}")
    result = outcome(agent, *lines)
    result.stdout.fnmatch_lines(["render on record/tool_calls: no baseline: there is no file *"])
    outcome(agent, *lines, args=("--failgain-update-baseline",)).assert_outcomes(passed=1)
    outcome(agent, *lines).assert_outcomes(passed=1)


def test_limits_of_a_regression_are_those_of_the_suite(agent: pytest.Pytester) -> None:
    lines = ("environment: tool_calls", "cases: 12", "harness: history:render")
    outcome(agent, *lines, "regression: true", args=("--failgain-update-baseline",))
    agent.makepyfile(history=HISTORY.replace("trajectory.goal, *attempts", "*attempts"))
    baseline = agent.path / "failgain-baseline.json"
    # Every case was better before, by more than anybody would take for noise.
    kept = json.loads(baseline.read_text("utf-8"))
    for case in kept["entries"]["record/tool_calls"]["render"]["cases"].values():
        case["gain_per_token"] += 10
    baseline.write_text(json.dumps(kept), "utf-8")
    result = outcome(agent, *lines, "regression: true", "thresholds: {n: {at_least: 30}}")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "render on tool_calls: n = 12, at least 30 wanted",
            "also: regression against failgain-baseline.json: gain per token * (-0.1 allowed)",
            "worst cases: *",
            "try: ask for more cases, *",
            "try: take back *",
            "",
            "failgain.yaml:3: AssertionError",
        ]
    )
    loose = "regression: {max_gain_drop: 50, max_increase: 1}"
    outcome(agent, *lines, loose).assert_outcomes(passed=1)
    strict = "regression: {max_gain_drop: 0.25}"
    outcome(agent, *lines, strict).stdout.fnmatch_lines(["*(-0.25 allowed)"])
    for case in kept["entries"]["record/tool_calls"]["render"]["cases"].values():
        case["repeat_probability"] = 0
    baseline.write_text(json.dumps(kept), "utf-8")
    result = outcome(agent, *lines, "regression: {max_increase: 0.125}")
    result.stdout.fnmatch_lines(["* repeat probability *(+0.125 allowed)"])


def test_exception_of_a_harness_is_shown_at_its_own_line(agent: pytest.Pytester) -> None:
    result = outcome(agent, *OFFICE, "harness: history:broken", MET)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "    def broken(trajectory):",
            ">       return trajectory.steps[[]17[]]",
            "E       IndexError: tuple index out of range",
            "history.py:*: IndexError",
            "The above exception was the direct cause of the following exception:",
            "harness 'broken', case 'office-*': it raised at *history.py:*: IndexError: *",
        ]
    )
    assert not shows_our_code(result)


@pytest.mark.parametrize("style", ["short", "line", "native"])
def test_exception_of_a_harness_is_told_in_other_styles(agent: pytest.Pytester, style: str) -> None:
    result = outcome(agent, *OFFICE, "harness: history:broken", MET, args=(f"--tb={style}",))
    result.stdout.fnmatch_lines(["*arness 'broken', case 'office-*: IndexError: *"])
    if style != "line":
        result.stdout.fnmatch_lines(["*return trajectory.steps[[]17[]]"])


@pytest.mark.parametrize(
    ("harness", "told"),
    [
        ("history:rendr", "'history' has no 'rendr'; did you mean 'render'?"),
        ("history:render.x", "'history.render' has no 'x'"),
        ("history:NUMBER", "'history:NUMBER' is of the type int, which can't be called; *"),
        ("histry:render", "there is no module 'histry'; did you mean 'history'? Modules are *"),
        ("history.histori:x", "there is no module 'history.histori'. Modules are found *"),
        ("desk.histry:y", "there is no module 'desk.histry'; did you mean 'desk.history'? *"),
        ("desk.needs:y", f"{CAN_NOT} 'desk.needs': ModuleNotFoundError: No module named 'no_such'"),
        ("desk.raises:y", f"{CAN_NOT} 'desk.raises': ZeroDivisionError: division by zero"),
        ("desk.exits:y", f"{CAN_NOT} 'desk.exits': SystemExit: 3"),
        ("desk.not_python:y", f"{CAN_NOT} 'desk.not_python': SyntaxError: *"),
    ],
)
def test_harness_that_is_not_there_is_told_with_file_and_line(
    agent: pytest.Pytester, harness: str, told: str
) -> None:
    for name, text in {
        "__init__": "",
        "history": "",
        "needs": "import no_such",
        "raises": "1 / 0",
        "exits": "raise SystemExit(3)",
        "not_python": "def",
    }.items():
        write(agent, text, f"desk/{name}.py")
    result = outcome(agent, *OFFICE, f"harness: {harness}", MET)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"failgain.yaml:6: {told}"])
    assert not shows_our_code(result)
    if harness == "desk.raises:y":
        result.stdout.fnmatch_lines(
            [">   1 / 0", "E   ZeroDivisionError: *", "desk/raises.py:1: Z*"]
        )
        result.stdout.no_fnmatch_line("*importlib*")


def test_harness_is_imported_no_sooner_than_its_test_runs(agent: pytest.Pytester) -> None:
    agent.makepyfile(history="1 / 0")
    write(agent, suite(*OFFICE, "harness: history:render", MET))
    assert agent.runpytest("--collect-only").ret == pytest.ExitCode.OK


@pytest.mark.parametrize("mode", ["prepend", "append", "importlib"])
def test_modules_are_found_as_a_test_beside_the_file_finds_them(
    project: pytest.Pytester, mode: str
) -> None:
    project.makeconftest(CONFTEST)
    write(project, HISTORY, "checks/own_history.py")
    write(project, suite(*OFFICE, "harness: own_history:render", MET), "checks/failgain.yaml")
    write(project, "", "checks/pack/__init__.py")
    write(project, HISTORY, "checks/pack/own_history.py")
    write(
        project,
        suite(*OFFICE, "harness: pack.own_history:render", MET),
        "checks/pack/failgain.yaml",
    )
    result = project.runpytest_subprocess(f"--import-mode={mode}")
    if mode == "importlib":
        # The package is found, since pytest imports it by itself.
        result.assert_outcomes(passed=1, failed=1)
        result.stdout.fnmatch_lines(["checks/*: there is no module 'own_history'*"])
    else:
        result.assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("mode", "places"), [("prepend", [0]), ("append", [-1]), ("importlib", [])]
)
def test_folder_that_is_searched_is_the_first_that_is_no_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, places: list[int]
) -> None:
    monkeypatch.setattr(sys, "path", ["first", "last"])
    package = tmp_path / "outer" / "inner"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        folder.joinpath("__init__.py").touch()
    for _ in range(2):
        search_beside(package / "failgain.yaml", mode)
    assert [sys.path[place] for place in places] == [str(tmp_path)] * len(places)
    assert len(sys.path) == 2 + len(places)


def test_modules_are_found_by_the_ini_key_pythonpath(project: pytest.Pytester) -> None:
    project.makeconftest(CONFTEST)
    write(project, HISTORY, "src/desk_history.py")
    write(project, suite(*OFFICE, "harness: desk_history:render", MET))
    project.makeini("[pytest]\npythonpath = src")
    project.runpytest_subprocess("--import-mode=importlib").assert_outcomes(passed=1)


@pytest.mark.slow
@pytest.mark.parametrize("dist", ["load", "loadscope", "loadgroup"])
def test_workers_run_suites(agent: pytest.Pytester, dist: str) -> None:
    pytest.importorskip("xdist")
    result = outcome(
        agent,
        *OFFICE,
        "remedies: [none, described, dropped]",
        "thresholds: {record_tokens: {at_least: 20}}",
        args=("-n", "2", f"--dist={dist}"),
    )
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        ["dropped on tool_calls: record_tokens *", "failgain.yaml:3: AssertionError"]
    )


def test_a_module_of_the_same_name_from_elsewhere_is_not_measured(agent: pytest.Pytester) -> None:
    other = agent.mkdir("other")
    other.joinpath("history.py").write_text(HISTORY)
    yaml = "\n".join(
        [
            "failgain: 1",
            "suites:",
            "  record:",
            "    environment: tool_calls",
            "    cases: 2",
            "    harness: history:render",
            "    thresholds: {n: {at_least: 1}}",
        ]
    )
    agent.path.joinpath("failgain.yaml").write_text(yaml)
    other.joinpath("failgain.yaml").write_text(yaml)
    result = agent.runpytest()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["*failgain.yaml:6: the module 'history' was imported from *history.py before, and not *"]
    )


def test_harnesses_of_one_name_from_two_modules_are_told_apart(agent: pytest.Pytester) -> None:
    agent.path.joinpath("earlier.py").write_text(HISTORY)
    lines = (*OFFICE, "harnesses: [history:render, earlier:render]", "regression: true")
    outcome(agent, *lines, args=("--failgain-update-baseline",)).assert_outcomes(passed=2)
    kept = json.loads(agent.path.joinpath("failgain-baseline.json").read_text("utf-8"))
    assert list(kept["entries"]["record/tool_calls"]) == ["earlier:render", "history:render"]


def test_a_fixture_is_no_harness_and_the_error_says_what_to_do(agent: pytest.Pytester) -> None:
    agent.path.joinpath("fixtures_here.py").write_text(
        "import pytest\n\n@pytest.fixture\ndef mine():\n    return 1\n"
    )
    result = outcome(agent, *OFFICE, "harness: fixtures_here:mine", "regression: true")
    result.stdout.fnmatch_lines(
        ["*failgain.yaml:6: 'fixtures_here:mine' is a fixture; *leave the harness out"]
    )
