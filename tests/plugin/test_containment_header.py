"""What the header says of the sandbox."""

from __future__ import annotations

import pytest

from pytest_failgain.environments.sandbox import containment
from pytest_failgain.environments.sandbox.containment import weaknesses
from pytest_failgain.environments.sandbox.runner import WALLS
from pytest_failgain.errors import UsageError

ALL = WALLS | {"user", "RLIMIT_AS"}
ALLOWED = "--failgain-allow-code-execution"


def header(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if line.startswith("failgain: ")]


def probing(monkeypatch: pytest.MonkeyPatch, *found: str) -> None:
    monkeypatch.setattr(containment, "probe", lambda: found)


def test_nothing_is_said_where_no_option_is_given(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(containment, "probe", lambda: pytest.fail("a program was run"))
    assert header(project.runpytest()) == []
    assert len(header(project.runpytest("--failgain-seed=1"))) == 1


def test_containment_is_named_where_models_programs_may_run(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    probing(monkeypatch)
    assert header(project.runpytest(ALLOWED))[1:] == [
        "failgain: programs run contained: own processes, own files, no network, limits"
    ]
    assert len(header(project.runpytest("--failgain-model=m"))) == 1


@pytest.mark.parametrize("option", [ALLOWED, "--failgain-model=m"])
def test_weak_containment_is_always_named(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    probing(monkeypatch, "reach the network", "use all memory")
    assert header(project.runpytest(option))[1:] == [
        "failgain: weak sandbox: a program that runs here can reach the network; use all memory"
    ]


def test_a_platform_without_a_sandbox_is_named(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> tuple[str, ...]:
        raise UsageError("programs can't be executed on mars")

    monkeypatch.setattr(containment, "probe", refuse)
    assert header(project.runpytest(ALLOWED))[1:] == [
        "failgain: no programs can run here: programs can't be executed on mars"
    ]


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ((), ()),
        (("user_namespace", "ipc"), ()),
        (("filter",), ()),
        (("network",), ()),
        (("network", "filter"), ("reach the network",)),
        (("processes", "filter"), ("leave processes behind and signal yours",)),
        (("RLIMIT_AS",), ("use all memory",)),
    ],
)
def test_a_wall_that_another_stands_in_for_is_no_weakness(
    missing: tuple[str, ...], said: tuple[str, ...]
) -> None:
    assert weaknesses(ALL - set(missing)) == said


def test_whose_files_are_in_reach_depends_on_the_user() -> None:
    alone = ALL - {"files", "landlock"}
    assert weaknesses(alone) == ("write files wherever anyone can",)
    assert weaknesses(alone - {"user"}) == (
        "write files wherever you can",
        "read your environment variables",
    )
