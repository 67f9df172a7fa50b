"""What conftests and plugins add through hooks, where it is known, and where not."""

from __future__ import annotations

from pathlib import Path

import pytest
from agent_projects import measured_names, section
from extending_projects import ALL, ENVIRONMENT, IMPORTS, READER, REMEDY, SCORER

from pytest_failgain.fixtures import ENVIRONMENT_NAMES, REMEDY_NAMES

USES_BOTH = """
def test_environment(failgain_environment): pass
def test_remedy(failgain_remedy): pass
"""

MEASURES = """
import pytest

@pytest.mark.parametrize("failgain_environment", ["rooms"], indirect=True)
def test_it(failgain, failgain_environment):
    for remedy in ("verbatim", "apologised", "apologised+instructed"):
        failgain.measure(failgain.remedy(remedy), failgain_environment.cases(4))
"""

BUILT_IN = [
    *(f"test_environment[{name}]" for name in ENVIRONMENT_NAMES),
    *(f"test_remedy[{name}]" for name in REMEDY_NAMES),
]


def collected(result: pytest.RunResult, file: str = "") -> list[str]:
    """The names of the collected tests, of one file unless all are wanted."""
    lines = [line for line in result.outlines if "::" in line and line.startswith(file)]
    return [line.partition("::")[2] for line in lines]


def write(project: pytest.Pytester, **files: str) -> None:
    """Write files by path, in which "__" stands for "/" and ".py" is left out."""
    for name, text in files.items():
        path = project.path / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")


def test_added_environments_and_remedies_are_parameters_behind_the_built_in_ones(
    project: pytest.Pytester,
) -> None:
    project.makepyfile(USES_BOTH)
    assert collected(project.runpytest("--collect-only", "-q")) == BUILT_IN
    project.makeconftest(ALL)
    assert collected(project.runpytest("--collect-only", "-q")) == [
        *BUILT_IN[: len(ENVIRONMENT_NAMES)],
        "test_environment[rooms]",
        *BUILT_IN[len(ENVIRONMENT_NAMES) :],
        "test_remedy[apologised]",
    ]


def test_added_environment_is_built_once_with_the_settings_of_the_run(
    project: pytest.Pytester,
) -> None:
    project.makeconftest(IMPORTS + ENVIRONMENT)
    project.makepyfile(
        """
        SEEN = []

        def test_one(failgain_environment):
            SEEN.append(failgain_environment)

        def test_two(failgain_environment):
            assert failgain_environment in SEEN
            assert failgain_environment.settings.seed == 7
            assert len(failgain_environment.cases(30)) == len(failgain_environment.cases()) == 2
            assert not hasattr(failgain_environment, "episodes")
        """
    )
    result = project.runpytest("-k", "rooms", "--failgain-seed=7", "--failgain-cases=2")
    result.assert_outcomes(passed=2, deselected=2 * len(ENVIRONMENT_NAMES))


def test_harnesses_are_measured_on_what_is_added_with_what_is_added(
    project: pytest.Pytester,
) -> None:
    project.makeconftest(ALL)
    project.makepyfile(MEASURES)
    result = project.runpytest("--failgain-model=fake")
    result.assert_outcomes(passed=1)
    assert measured_names(result) == ["verbatim", "apologised", "apologised+instructed"]
    assert section(result)[0].startswith("rooms: 4 cases")


def test_the_controller_of_xdist_reports_what_is_added(project: pytest.Pytester) -> None:
    project.makeconftest(ALL)
    project.makepyfile(MEASURES)
    result = project.runpytest("--failgain-model=fake", "-n1")
    result.assert_outcomes(passed=1)
    assert measured_names(result) == ["verbatim", "apologised", "apologised+instructed"]


def test_scorer_is_chosen_by_its_name_and_given_what_stands_behind_it(
    project: pytest.Pytester,
) -> None:
    project.makeconftest(IMPORTS + SCORER)
    project.makepyfile(
        """
        def test_it(failgain_model, request):
            (conftest,) = (
                one for one in request.config.pluginmanager.get_plugins() if hasattr(one, "GIVEN")
            )
            (settings,) = conftest.GIVEN
            assert type(failgain_model).__name__ == "FakeScorer"
            assert settings.model == "tiny:v2"
            assert (settings.dtype, settings.threads, settings.device) == ("float16", 2, "cuda:1")
            assert (settings.revision, settings.prompt_format) == ("main", "auto")
            assert settings.offline and settings.fold_system and not settings.keep_scores
            assert settings.cache_dir == request.config.rootpath / "cache"
        """
    )
    project.runpytest(
        "--failgain-model=fake:tiny:v2",
        "--failgain-dtype=float16",
        "--failgain-threads=2",
        "--failgain-device=cuda:1",
        "--failgain-revision=main",
        "--failgain-prompt-format=auto",
        "--failgain-offline",
        "--failgain-fold-system",
        "--failgain-no-cache",
        f"--failgain-cache-dir={project.path / 'cache'}",
    ).assert_outcomes(passed=1)


def test_transcripts_are_read_by_an_added_reader_with_a_model_and_without(
    project: pytest.Pytester,
) -> None:
    project.makeconftest(IMPORTS + READER + SCORER)
    project.makepyfile(
        r"""
        from pytest_failgain import read_transcript

        DIARY = "Dear diary\nBook it.\nbook(1)\nError: no such room"

        def check(transcript):
            (case,) = transcript.failures
            assert transcript.format == "diary"
            assert case.failed.observation == "Error: no such room"

        def test_with(failgain):
            check(failgain.read_transcript(DIARY))
            check(failgain.read_transcript(DIARY, "diary"))
            assert not failgain.read_transcript(DIARY, is_failure=lambda *_: False).failures

        def test_without(failgain_extensions):
            check(read_transcript(DIARY, readers=failgain_extensions.readers))
        """
    )
    project.runpytest("--failgain-model=fake").assert_outcomes(passed=2)
    project.runpytest().assert_outcomes(passed=1, skipped=1)


def test_suites_know_what_is_added(project: pytest.Pytester) -> None:
    project.makeconftest(ALL)
    project.makefile(
        ".yaml",
        failgain="""
        failgain: 1
        suites:
          mine:
            harness: verbatim
            environments: [rooms]
            remedies: [none, apologised+described]
            thresholds: {n: {at_least: 1}}
        """,
    )
    result = project.runpytest("--failgain-model=fake", "--failgain-cases=3", "-v")
    result.assert_outcomes(passed=2)
    assert measured_names(result) == ["verbatim", "apologised+described"]
    project.makeconftest("")
    result = project.runpytest()
    result.stdout.fnmatch_lines(
        [
            "failgain.yaml:5: there is no environment 'rooms'; there are: tool_calls, *",
            "failgain.yaml:6: there is no remedy 'apologised'; there are: *",
        ]
    )


def test_suites_name_added_environments_among_those_that_there_are(
    project: pytest.Pytester,
) -> None:
    project.makeconftest(ALL)
    text = "failgain: 1\nsuites: {mine: {cases: 3, thresholds: {n: {at_least: 1}}}}"
    project.makefile(".yaml", failgain=text)
    project.runpytest().stdout.fnmatch_lines(["*(tool_calls, program_repair, rooms), or name a *"])


@pytest.mark.parametrize("options", [[], ["-n1"]], ids=["alone", "xdist"])
def test_what_a_conftest_adds_is_for_its_folder_alone(
    project: pytest.Pytester, options: list[str]
) -> None:
    write(
        project,
        one__conftest=ALL,
        one__test_one=USES_BOTH,
        two__conftest=IMPORTS + REMEDY.replace('"apologised"', '"other"'),
        two__test_two=USES_BOTH,
        test_three=USES_BOTH,
    )
    result = project.runpytest("--collect-only", "-q")
    mine = {"test_environment[rooms]", "test_remedy[apologised]"}
    assert {*collected(result, "one")} == {*BUILT_IN, *mine}
    assert {*collected(result, "two")} == {*BUILT_IN, "test_remedy[other]"}
    assert {*collected(result, "test_three")} == {*BUILT_IN}
    project.runpytest(*options).assert_outcomes(passed=3 * len(BUILT_IN) + 3)


def test_several_plugins_answers_are_put_together(project: pytest.Pytester) -> None:
    project.makeconftest(IMPORTS + REMEDY)
    renamed = REMEDY.replace('"apologised"', '"ashamed"')
    write(project, a_plugin=IMPORTS + renamed + ENVIRONMENT, test_it=USES_BOTH)
    project.syspathinsert()
    result = project.runpytest("-p", "a_plugin", "--collect-only", "-q")
    added = [name for name in collected(result) if name not in BUILT_IN]
    # The one that is registered last is asked first, as everywhere in pytest.
    names = ("test_environment[rooms]", "test_remedy[apologised]", "test_remedy[ashamed]")
    assert added == [*names]


def test_each_hook_is_called_once(project: pytest.Pytester) -> None:
    counting = (
        "\n    with (config.rootpath / 'calls').open('a') as calls:\n        calls.write('x')"
        "\n    return [APOLOGISED]"
    )
    write(
        project,
        conftest=IMPORTS + REMEDY.replace("\n    return [APOLOGISED]", counting),
        one__test_one=USES_BOTH,
        two__conftest=IMPORTS + ENVIRONMENT,
        two__test_two=USES_BOTH,
    )
    project.runpytest()
    assert (project.path / "calls").read_text("utf-8") == "x"


def test_hook_needs_neither_argument_nor_answer(project: pytest.Pytester) -> None:
    project.makeconftest("def pytest_failgain_remedies():\n    return None")
    project.makepyfile(USES_BOTH)
    assert collected(project.runpytest("--collect-only", "-q")) == BUILT_IN


OVERRIDES = {
    "plain": ("def failgain_environment():\n    return 1", ["test_environment"]),
    "parametrised": (
        "def failgain_environment(request):\n    return request.param",
        ["test_environment[a]", "test_environment[b]"],
    ),
    "on top": (
        "def failgain_environment(failgain_environment):\n    return failgain_environment",
        [f"test_environment[{name}]" for name in (*ENVIRONMENT_NAMES, "rooms")],
    ),
}


@pytest.mark.parametrize("way", OVERRIDES)
def test_overridden_fixture_is_left_as_it_is(project: pytest.Pytester, way: str) -> None:
    fixture, names = OVERRIDES[way]
    params = "(params=['a', 'b'])" if way == "parametrised" else ""
    project.makeconftest(f"{IMPORTS}{ENVIRONMENT}\n@pytest.fixture{params}\n{fixture}")
    project.makepyfile("def test_environment(failgain_environment): pass")
    assert collected(project.runpytest("--collect-only", "-q")) == names
    project.runpytest().assert_outcomes(passed=len(names))


def test_test_that_names_its_environments_has_those(project: pytest.Pytester) -> None:
    project.makeconftest(ALL)
    project.makepyfile(MEASURES)
    assert collected(project.runpytest("--collect-only", "-q")) == ["test_it[rooms]"]


def test_switched_off_plugin_lets_optional_hooks_be(project: pytest.Pytester) -> None:
    optional = "@pytest.hookimpl(optionalhook=True)\ndef pytest_failgain"
    project.makeconftest(ALL.replace("def pytest_failgain", optional))
    project.makepyfile("def test_it(): pass")
    project.runpytest("-p", "no:failgain").assert_outcomes(passed=1)
    project.makepyfile(USES_BOTH)
    assert len(collected(project.runpytest("--collect-only", "-q"))) == len(BUILT_IN) + 2


def test_hooks_are_told_of_by_pytest(project: pytest.Pytester) -> None:
    project.makeconftest(ALL)
    shown = project.runpytest("--fixtures").stdout.str()
    assert "pytest_failgain_environments" in shown
    assert "failgain_extensions [session scope]" in shown


def test_unused_hooks_import_nothing(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import sys

        def test_it():
            assert "pytest_failgain.hooks" not in sys.modules
        """
    )
    project.runpytest_subprocess().assert_outcomes(passed=1)


def test_added_things_are_known_without_pytest(tmp_path: Path) -> None:
    from fake_scorer import FakeScorer, failure_case
    from pytest_failgain import Extensions, Failgain, Remedy

    class Desk:
        name = "desk"

        def cases(self, count: int | None = None) -> list[object]:
            return [failure_case(environment="desk")]

    failgain = Failgain(
        "mine",
        cache_dir=tmp_path,
        extensions=Extensions(
            environments={"desk": lambda settings: Desk()},  # type: ignore[dict-item, return-value]
            remedies=[Remedy("quiet", lambda trajectory: trajectory)],
            scorers={"mine": lambda settings: FakeScorer()},
        ),
    )
    result = failgain.measure(failgain.remedy("quiet"), failgain.environment("desk").cases())
    assert (result.harness, result.environment) == ("quiet", "desk")
