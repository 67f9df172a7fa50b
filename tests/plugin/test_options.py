"""Every option under its three names, and what a person is told about it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_failgain.options import FLAG, OPTIONS, Settings
from pytest_failgain.stash import SETTINGS


@dataclass(frozen=True)
class Given:
    """Texts for an option on the command line, in the environment and in an ini file."""

    flag: str
    variable: str
    ini: str
    toml: str
    """The ini's value as TOML has it."""
    values: tuple[Any, Any, Any]


def words(flag: str, variable: str, ini: str) -> Given:
    return Given(flag, variable, ini, f'"{ini}"', (flag, variable, ini))


def numbers(flag: int, variable: int, ini: int) -> Given:
    return Given(str(flag), str(variable), str(ini), str(ini), (flag, variable, ini))


# A flag can't be switched off on the command line, but in the environment it can.
ON_OFF_ON = Given("", "no", "yes", "true", (True, False, True))

PLACE = Given(
    "flag", "/variable", "/ini", '"/ini"', (Path("flag"), Path("/variable"), Path("/ini"))
)


def output(name: str) -> Given:
    """A file to write, each option its own."""
    paths = Path(f"/flag.{name}"), Path(f"/variable.{name}"), Path(f"/ini.{name}")
    flag, variable, ini = map(str, paths)
    return Given(flag, variable, ini, f'"{ini}"', paths)


GIVEN = {
    "model": words("org/flag", "org/variable", "org/ini"),
    "revision": words("flag", "variable", "ini"),
    "dtype": words("float16", "bfloat16", "float32"),
    "device": words("cuda:0", "meta", "cpu"),
    "threads": numbers(3, 2, 1),
    "cases": numbers(30, 20, 10),
    "seed": numbers(2, 1, 0),
    "cache_dir": PLACE,
    "offline": ON_OFF_ON,
    "no_cache": ON_OFF_ON,
    "require_model": ON_OFF_ON,
    "fold_system": ON_OFF_ON,
    "prompt_format": words("plain", "auto", "template"),
    "mbpp": Given(__file__, __file__, __file__, f'"{__file__}"', (Path(__file__),) * 3),
    "allow_code_execution": ON_OFF_ON,
    "baseline": output("baseline"),
    "update_baseline": ON_OFF_ON,
    "json": output("json"),
    "html": output("html"),
}


def arguments() -> list[str]:
    return [
        argument
        for option in OPTIONS
        for argument in (option.flag, GIVEN[option.name].flag)
        if argument
    ]


def settings(project: pytest.Pytester, *args: str) -> Settings:
    return project.parseconfigure(*args).stash[SETTINGS]


def values(settings: Settings) -> dict[str, Any]:
    return {option.name: getattr(settings, option.name) for option in OPTIONS}


def given(place: int) -> dict[str, Any]:
    return {name: given.values[place] for name, given in GIVEN.items()}


def test_every_setting_is_an_option() -> None:
    names = [name for name in Settings._fields if name != "sources"]
    assert [option.name for option in OPTIONS] == names == list(GIVEN)


def test_nothing_is_set_where_nothing_is_given(project: pytest.Pytester) -> None:
    assert settings(project) == Settings(sources={})


def test_options_can_be_given_on_the_command_line(project: pytest.Pytester) -> None:
    found = settings(project, *arguments())
    assert values(found) == given(0)
    assert found.sources == {option.name: option.flag for option in OPTIONS}


def test_options_can_be_given_in_the_environment(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    for option in OPTIONS:
        monkeypatch.setenv(option.variable, GIVEN[option.name].variable)
    found = settings(project)
    assert values(found) == given(1)
    assert found.sources == {option.name: option.variable for option in OPTIONS}


@pytest.mark.parametrize("file", ["pytest.ini", "tox.ini", "setup.cfg"])
def test_options_can_be_given_as_text_in_an_ini_file(project: pytest.Pytester, file: str) -> None:
    section = "tool:pytest" if file == "setup.cfg" else "pytest"
    lines = [f"{option.ini} = {GIVEN[option.name].ini}" for option in OPTIONS]
    (project.path / file).write_text("\n".join([f"[{section}]", *lines]))
    found = settings(project)
    assert values(found) == given(2)
    assert found.sources == {option.name: f"{option.ini} in {file}" for option in OPTIONS}


@pytest.mark.parametrize(
    ("file", "table"),
    [
        ("pyproject.toml", "tool.pytest"),
        ("pyproject.toml", "tool.pytest.ini_options"),
        ("pytest.toml", "pytest"),
    ],
)
def test_options_can_be_given_in_their_native_types_in_a_toml_file(
    project: pytest.Pytester, file: str, table: str
) -> None:
    lines = [f"{option.ini} = {GIVEN[option.name].toml}" for option in OPTIONS]
    (project.path / file).write_text("\n".join([f"[{table}]", *lines]))
    found = settings(project)
    assert values(found) == given(2)
    assert found.sources == {option.name: f"{option.ini} in {file}" for option in OPTIONS}


def test_command_line_outdoes_environment_outdoes_ini(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [f"{option.ini} = {GIVEN[option.name].ini}" for option in OPTIONS]
    project.makeini("\n".join(["[pytest]", *lines]))
    for option in OPTIONS:
        monkeypatch.setenv(option.variable, GIVEN[option.name].variable)
    assert values(settings(project)) == given(1)
    assert values(settings(project, *arguments())) == given(0)


def test_ini_value_of_the_command_line_is_named_as_such(project: pytest.Pytester) -> None:
    project.makeini("[pytest]\nfailgain_cases = 3\nfailgain_seed = 4\n")
    found = settings(project, "-o", "failgain_cases=8")
    assert (found.cases, found.source("cases")) == (8, "-o failgain_cases")
    assert (found.seed, found.source("seed")) == (4, "failgain_seed in tox.ini")


def test_ini_value_of_the_command_line_needs_no_ini_file(project: pytest.Pytester) -> None:
    found = settings(project, "-o", "failgain_cases=8")
    assert (found.cases, found.source("cases")) == (8, "-o failgain_cases")


def test_folder_in_an_ini_file_is_relative_to_that_file(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.makeini("[pytest]\nfailgain_cache_dir = models\n")
    monkeypatch.chdir(project.mkdir("deeper"))
    assert settings(project).cache_dir == project.path / "models"
    assert settings(project, "--failgain-cache-dir", "models").cache_dir == Path("models")


def test_home_is_found_in_a_folder(project: pytest.Pytester) -> None:
    project.makeini("[pytest]\nfailgain_cache_dir = ~/models\n")
    assert settings(project).cache_dir == Path.home() / "models"


def test_spaces_around_a_value_do_not_matter(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CASES", "DTYPE", "MODEL", "OFFLINE"):
        text = {"CASES": "8", "DTYPE": "float16", "MODEL": "a", "OFFLINE": "Yes"}[name]
        monkeypatch.setenv(f"FAILGAIN_{name}", f" {text} ")
    found = settings(project)
    assert (found.cases, found.dtype, found.model, found.offline) == (8, "float16", "a", True)


NUMBER = "must be a whole number of 1 or more"


@pytest.mark.parametrize(
    ("option", "text", "told"),
    [
        ("model", "", "must be a non-empty text, not ''"),
        ("revision", " ", "must be a non-empty text, not ' '"),
        ("device", "", "must be a non-empty text, not ''"),
        (
            "dtype",
            "flot32",
            "must be one of float32, bfloat16, float16, not 'flot32' (did you mean float32?)",
        ),
        ("dtype", "int8", "must be one of float32, bfloat16, float16, not 'int8'"),
        (
            "prompt_format",
            "plane",
            "must be one of template, plain, auto, not 'plane' (did you mean plain?)",
        ),
        ("threads", "0", f"{NUMBER}, not '0'"),
        ("threads", "two", f"{NUMBER}, not 'two'"),
        ("cases", "0", f"{NUMBER}, not '0'"),
        ("cases", "-1", f"{NUMBER}, not '-1'"),
        ("cases", "x", f"{NUMBER}, not 'x'"),
        ("cases", "1.5", f"{NUMBER}, not '1.5'"),
        ("seed", "-1", "must be a whole number of 0 or more, not '-1'"),
        ("seed", "", "must be a whole number of 0 or more, not ''"),
        ("cache_dir", "a_file.txt", "must be a folder, not 'a_file.txt', which is a file"),
        ("cache_dir", "", "must be a folder, not ''"),
        ("offline", "maybe", "must be true or false, not 'maybe'"),
        ("require_model", "2", "must be true or false, not '2'"),
        ("fold_system", "nope", "must be true or false, not 'nope'"),
    ],
)
def test_value_that_does_not_fit_is_a_usage_error_of_one_line(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, option: str, text: str, told: str
) -> None:
    (declared,) = (known for known in OPTIONS if known.name == option)
    project.maketxtfile(a_file="")
    if declared.kind is not FLAG:
        result = project.runpytest(f"{declared.flag}={text}")
        assert_usage_error(result, f"{declared.flag}: {told}")
    monkeypatch.setenv(declared.variable, text)
    assert_usage_error(project.runpytest(), f"{declared.variable}: {told}")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("failgain_model =", "must be a non-empty text, not ''"),
        ("failgain_cases = 0", f"{NUMBER}, not '0'"),
        ("failgain_cases = x", f"{NUMBER} (invalid literal for int() with base 10: 'x')"),
        ("failgain_seed = -1", "must be a whole number of 0 or more, not '-1'"),
        ("failgain_offline = maybe", "must be true or false (invalid truth value 'maybe')"),
        ("failgain_cache_dir =", "must be a folder, not ''"),
    ],
)
def test_ini_value_that_does_not_fit_is_a_usage_error_of_one_line(
    project: pytest.Pytester, line: str, told: str
) -> None:
    project.path.joinpath("pytest.ini").write_text(f"[pytest]\n{line}\n")
    name = line.partition(" ")[0]
    assert_usage_error(project.runpytest(), f"{name} in pytest.ini: {told}")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("failgain_cases = 0", f"{NUMBER}, not '0'"),
        ('failgain_cases = "8"', f"{NUMBER} (*expects an int, got str: '8')"),
        ("failgain_cases = true", f"{NUMBER} (*expects an int, got bool: True)"),
        ('failgain_offline = "yes"', "must be true or false (*expects a bool, got str: 'yes')"),
        ("failgain_model = 8", "must be a non-empty text (*expects a string, got int: 8)"),
    ],
)
def test_toml_value_of_another_type_is_a_usage_error_of_one_line(
    project: pytest.Pytester, line: str, told: str
) -> None:
    project.makepyprojecttoml(f"[tool.pytest]\n{line}\n")
    name = line.partition(" ")[0]
    assert_usage_error(project.runpytest(), f"{name} in pyproject.toml: {told}")


def assert_usage_error(result: pytest.RunResult, message: str) -> None:
    """`message` is all that was said; its asterisks stand for anything."""
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = [line for line in result.errlines if line]
    assert len(said) == 1, said
    escaped = message.replace("[", "[[]")
    result.stderr.fnmatch_lines([f"ERROR: {escaped}"])
    result.stdout.no_fnmatch_line("*INTERNALERROR*")


def test_header_tells_each_value_and_its_source(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.makepyprojecttoml("[tool.pytest]\nfailgain_require_model = true\n")
    monkeypatch.setenv("FAILGAIN_SEED", "0")
    result = project.runpytest("--failgain-model", "smollm2-135m")
    result.stdout.fnmatch_lines(
        [
            (
                "failgain: model smollm2-135m (--failgain-model), seed 0 (FAILGAIN_SEED), "
                "require_model True (failgain_require_model in pyproject.toml)"
            )
        ]
    )


def test_quiet_run_has_no_header(project: pytest.Pytester) -> None:
    result = project.runpytest("-q", "--failgain-cases", "8")
    result.stdout.no_fnmatch_line("failgain:*")


def test_help_lists_every_option_under_its_three_names(project: pytest.Pytester) -> None:
    result = project.runpytest("--help")
    listed = " ".join(result.stdout.str().split())
    for option in OPTIONS:
        value = "" if option.kind is FLAG else f"={option.metavar}"
        named = f"[env {option.variable}, ini {option.ini}]"
        assert f"{option.flag}{value} {option.help} {named}" in listed
        assert f"{option.ini} ({option.kind.ini}): {option.help}" in listed


@pytest.mark.parametrize("option", ["json", "html", "baseline", "cache-dir", "mbpp"])
def test_path_that_the_system_can_not_look_at_is_told(
    project: pytest.Pytester, option: str
) -> None:
    with pytest.raises(pytest.UsageError) as caught:
        settings(project, f"--failgain-{option}={'n' * 300}")
    assert "which can't be looked at: File name too long" in str(caught.value)
