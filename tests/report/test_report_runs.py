"""Reports of real runs of pytest, with a real, tiny model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from test_json_report import SCHEMA

CASES = """
    import pytest
    from pytest_failgain import Transcript

    @pytest.fixture
    def cases():
        return [
            Transcript(f"room-{room}")
            .system("You book rooms.")
            .user(f"Book room {room}. <b>")
            .failing_step(f"book(room='{room}')", error="TypeError: room must be int", tool="book")
            .correct(f"book(room={room})")
            .case()
            for room in (1, 2)
        ]
"""

MEASURES = """
    def test_it(failgain, cases):
        failgain.measure(failgain.remedy("verbatim"), cases)
        failgain.measure(failgain.remedy("described"), cases)
"""

PLAIN = "def test_it(): pass"


@pytest.fixture
def options(project: pytest.Pytester, tiny_model_folder: Path) -> list[str]:
    """A project with cases, and what makes a run measure them and write both files."""
    project.makeconftest(CASES)
    return [
        f"--failgain-model={tiny_model_folder}",
        f"--failgain-cache-dir={project.path / 'cache'}",
        "--failgain-threads=1",
        "--failgain-json=out/report.json",
        "--failgain-html=out/report.html",
    ]


def written(project: pytest.Pytester) -> dict[str, Any]:
    """The JSON report, which fits its schema."""
    value: dict[str, Any] = json.loads((project.path / "out" / "report.json").read_text("utf-8"))
    Draft202012Validator(SCHEMA).validate(value)
    return value


def test_a_run_writes_what_it_measured_and_says_where(
    project: pytest.Pytester,
    options: list[str],
    tiny_model_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "steps.md"))
    project.makepyfile(MEASURES)
    result = project.runpytest(*options)
    result.assert_outcomes(passed=1)
    assert result.ret == 0
    out = project.path / "out"
    result.stdout.fnmatch_lines(
        [
            f"wrote report {out / 'report.json'}",
            f"wrote report {out / 'report.html'}",
            f"wrote step summary {project.path / 'steps.md'}",
        ]
    )
    report = written(project)
    assert [one["harness"] for one in report["measurements"]] == ["verbatim", "described"]
    assert {one["option"] for one in report["settings"]} >= {"--failgain-model", "--failgain-json"}
    for case in report["measurements"][0]["cases"]:
        assert case["action"] in case["record"]
        assert "TypeError: room must be int" in case["record"]
        moved = sum(token["after"] - token["before"] for token in case["tokens"])
        assert moved == pytest.approx(-case["values"]["corrective_gain"], abs=1e-6)
    page = (out / "report.html").read_text("utf-8")
    assert "Book room 1. &lt;b&gt;" in page
    assert (project.path / "steps.md").read_text("utf-8").lstrip().startswith("## failgain: ")


@pytest.mark.slow
def test_workers_leave_the_same_report_as_one_process(
    project: pytest.Pytester, options: list[str]
) -> None:
    project.makepyfile(test_one=MEASURES, test_two=MEASURES)
    project.runpytest(*options, "-p", "no:xdist").assert_outcomes(passed=2)
    alone = written(project)
    project.runpytest(*options, "-n2", "--failgain-no-cache").assert_outcomes(passed=2)
    spread = written(project)
    names = [[one["harness"] for one in report["measurements"]] for report in (alone, spread)]
    assert names[0] == names[1] == ["verbatim", "described"]
    for one, other in zip(alone["measurements"], spread["measurements"], strict=True):
        assert [case["record"] for case in one["cases"]] == [
            case["record"] for case in other["cases"]
        ]
        gains = [each["estimates"]["corrective_gain"]["value"] for each in (one, other)]
        assert gains[0] == pytest.approx(gains[1], abs=1e-3)


def test_a_run_that_measures_nothing_still_writes_what_was_asked_for(
    project: pytest.Pytester,
) -> None:
    project.makepyfile(PLAIN)
    result = project.runpytest("--failgain-json=out/report.json", "--failgain-html=out/report.html")
    result.assert_outcomes(passed=1)
    assert written(project)["measurements"] == []
    assert "Nothing was measured" in (project.path / "out" / "report.html").read_text("utf-8")


def test_a_file_goes_where_it_was_wanted_although_a_test_leaves_for_another_folder(
    project: pytest.Pytester,
) -> None:
    (project.path / "elsewhere").mkdir()
    project.makepyfile("import os\ndef test_it(): os.chdir('elsewhere')")
    project.runpytest_subprocess("--failgain-json=out/report.json")
    assert (project.path / "out" / "report.json").exists()


def test_what_can_not_be_written_is_found_out_before_the_first_test(
    project: pytest.Pytester,
) -> None:
    project.makepyfile("def test_it(): print('was run')")
    (project.path / "file").write_text("")
    result = project.runpytest("-s", "--failgain-html=file/report.html")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [f"*--failgain-html: can't write the report {project.path}/file/report.html: *"]
    )
    assert "was run" not in result.stdout.str()


def test_what_can_not_be_written_at_the_end_fails_the_run(project: pytest.Pytester) -> None:
    project.makepyfile("import os\ndef test_it(): os.mkdir('report.json')")
    result = project.runpytest("--failgain-json=report.json", "--failgain-html=report.html")
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"error: can't write the report {project.path}/report.json: *"])
    assert (project.path / "report.html").exists()


LOADED = """
import sys
import pytest
assert pytest.main(sys.argv[1:]) == 0
print("loaded", *sys.modules)
"""


@pytest.mark.parametrize(
    ("options", "loaded"),
    [
        ([], set()),
        (["--failgain-json=report.json"], {"json_report", "outputs"}),
        (["--failgain-html=report.html"], {"html_report", "jinja2", "outputs"}),
    ],
)
def test_only_what_is_asked_for_is_loaded(
    project: pytest.Pytester, options: list[str], loaded: set[str]
) -> None:
    project.makepyfile(PLAIN)
    done = subprocess.run(
        [sys.executable, "-c", LOADED, "-p", "pytest_failgain.plugin", *options],
        cwd=project.path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    modules = done.stdout.splitlines()[-1].split()
    ours = {name.rpartition(".")[2] for name in modules if name.startswith("pytest_failgain.re")}
    found = (ours | {"jinja2"} & {*modules}) & {
        *("json_report", "html_report", "jinja2", "outputs", "github", "page", "document")
    }
    extra = {"page"} if "html_report" in loaded else set()
    assert found == (loaded | {"document"} | extra if loaded else set())
