"""A base model in a project's tests: it has no chat template."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from agent_projects import CONFTEST, MEASURES_VERBATIM, measured_names, options_for, section

NO_SYSTEM = "{% for message in messages if message['role'] != 'system' %}{{ message['content'] }}\n"
NO_SYSTEM += "{% endfor %}"

ADAPTED = "verbatim: adapted in 3 of 3 cases: chat messages written in the plain-text format"

GIVES_TEXT = """
def as_text(trajectory):
    return "\\n".join([trajectory.goal, *(step.action.text for step in trajectory.steps), ""])

def test_text(failgain, cases):
    failgain.measure(as_text, cases)
"""


@pytest.fixture
def base_model(tiny_model_folder: Path, tmp_path: Path) -> Path:
    """The folder of a model without a chat template."""
    folder = Path(shutil.copytree(tiny_model_folder, tmp_path / "base"))
    (folder / "chat_template.jinja").unlink()
    return folder


@pytest.fixture
def with_model(project: pytest.Pytester, base_model: Path) -> list[str]:
    """A project with cases, and the options that give it the base model."""
    project.makeconftest(CONFTEST)
    return options_for(base_model, project.path / "cache")


def adaptations(result: pytest.RunResult) -> list[str]:
    return [line for line in section(result) if "adapted in" in line]


@pytest.mark.parametrize("way", ["command line", "environment", "ini"])
def test_plain_format_can_be_asked_for_and_is_named_in_header_and_summary(
    project: pytest.Pytester, with_model: list[str], monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    project.makepyfile(MEASURES_VERBATIM)
    if way == "environment":
        monkeypatch.setenv("FAILGAIN_PROMPT_FORMAT", "plain")
    if way == "ini":
        project.makepyprojecttoml('[tool.pytest]\nfailgain_prompt_format = "plain"')
    flags = ["--failgain-prompt-format=plain"] * (way == "command line")
    result = project.runpytest(*with_model, *flags)
    result.assert_outcomes(passed=1)
    source = {
        "command line": "--failgain-prompt-format",
        "environment": "FAILGAIN_PROMPT_FORMAT",
        "ini": "failgain_prompt_format in pyproject.toml",
    }[way]
    result.stdout.fnmatch_lines([f"failgain: model *prompt_format plain ({source})*"])
    assert adaptations(result) == [f"{ADAPTED} (as asked for)"]


@pytest.mark.parametrize(
    ("template", "reason"),
    [(None, "model has no chat template"), (NO_SYSTEM, "template has no system role")],
)
def test_auto_names_its_reason_in_the_summary(
    project: pytest.Pytester,
    with_model: list[str],
    base_model: Path,
    template: str | None,
    reason: str,
) -> None:
    project.makepyfile(MEASURES_VERBATIM)
    if template is not None:
        (base_model / "chat_template.jinja").write_text(template)
    result = project.runpytest(*with_model, "--failgain-prompt-format=auto")
    result.assert_outcomes(passed=1)
    assert adaptations(result) == [f"{ADAPTED} ({reason})"]


def test_base_model_without_the_option_is_an_error_that_names_it(
    project: pytest.Pytester, with_model: list[str]
) -> None:
    project.makepyfile(MEASURES_VERBATIM)
    result = project.runpytest(*with_model)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["E*ScoringError: * has no chat template, *, or pass --failgain-prompt-format plain for *"]
    )


def test_harness_that_gives_text_is_measured_as_ever(
    project: pytest.Pytester, with_model: list[str]
) -> None:
    project.makepyfile(GIVES_TEXT)
    tables = []
    for flags in ([], ["--failgain-prompt-format=plain"], ["--failgain-prompt-format=auto"]):
        result = project.runpytest(*with_model, "--failgain-no-cache", *flags)
        result.assert_outcomes(passed=1)
        assert measured_names(result) == ["as_text"]
        assert adaptations(result) == []
        tables.append(section(result))
    assert tables[0] == tables[1] == tables[2]
