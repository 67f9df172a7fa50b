"""What a test measured, as properties of the test."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree

import pytest
from agent_projects import (
    COMPARES,
    MEASURES_MINE,
    MEASURES_VERBATIM,
    USES_NOTHING,
    give_fake_model,
)

from fake_scorer import FakeScorer, failure_case, measured, rolled, rolled_out, solved_by
from pytest_failgain.harnesses import VERBATIM
from pytest_failgain.junit import add_properties, properties_of
from pytest_failgain.measurement import Measurement, measure
from pytest_failgain.rollout.results import Rollouts
from pytest_failgain.stash import Findings

MODEL = ["--failgain-model", "fake"]

MINE = "failgain: render_mine on own cases"


def found(
    measurements: list[Measurement] | None = None, rollouts: list[Rollouts] | None = None
) -> Findings:
    return Findings(measurements or [], rollouts or [], [], {})


def properties(project: pytest.Pytester, *args: str) -> dict[str, list[tuple[str, str]]]:
    """The properties of each test in the JUnit report of a run, by the test's name."""
    project.runpytest("--junitxml=report.xml", *MODEL, *args)
    return {
        test.attrib["name"]: [
            (one.attrib["name"], one.attrib["value"]) for one in test.iter("property")
        ]
        for test in ElementTree.parse(project.path / "report.xml").iter("testcase")
    }


def names(of_test: Iterable[tuple[str, object]]) -> list[str]:
    return [name for name, _ in of_test]


def test_measurement_has_four_properties() -> None:
    result = measured(
        {"a": -1.0, "b": -0.5}, repeat={"a": 0.9, "b": 0.5}, greedy=["a"], harness="mine"
    )
    assert dict(properties_of(found([result]))) == {
        "failgain: mine on own cases: gain_per_token": -0.75,
        "failgain: mine on own cases: repeat_probability": 0.7,
        "failgain: mine on own cases: greedy_repeat": 0.5,
        "failgain: mine on own cases: n": 2,
    }


def test_what_is_not_known_is_left_out() -> None:
    without_other_candidates = found([measured({"a": -1.0})])
    known = {name.rpartition(" ")[2] for name, _ in properties_of(without_other_candidates)}
    assert known == {"gain_per_token", "greedy_repeat", "n"}
    refusing = FakeScorer(refusal=lambda prompt, action: "too long")
    of_no_case = measure(refusing, VERBATIM, [failure_case()])
    assert [*properties_of(found([of_no_case]))] == [("failgain: verbatim on own cases: n", 0)]


def test_rollouts_have_three_properties() -> None:
    result = rolled_out(
        rolled("send(to='a')", "send(to='a')", task="a"), solved_by(task="b"), harness="mine"
    )
    assert dict(properties_of(found(rollouts=[result]))) == {
        "failgain: mine on tool_calls: success": 0.5,
        "failgain: mine on tool_calls: repeat_rate": 0.5,
        "failgain: mine on tool_calls: n": 2,
    }


def test_values_are_plain_numbers() -> None:
    # Others can't be sent by xdist, or written as JSON.
    result, rollouts = measured({"a": -1.0 / 3}), rolled_out(solved_by(task="b"))
    values: list[Any] = [value for _, value in properties_of(found([result], [rollouts]))]
    assert {type(value) for value in values} == {float, int}
    assert all(math.isfinite(value) for value in values)
    assert -0.333333 in values


def test_property_that_is_there_is_not_added_again() -> None:
    own = ("build", 1)
    held: list[tuple[str, object]] = [own]
    for _ in range(2):
        add_properties(held, found([measured({"a": -1.0})]))
    assert held[0] == own
    gain = "failgain: verbatim on own cases: gain_per_token"
    assert [name for name in names(held) if name == gain] == [gain]
    add_properties(held, found([measured({"a": -2.0})]))
    assert [value for name, value in held if name == gain] == [-1.0, -2.0]


@pytest.mark.parametrize("family", ["xunit1", "xunit2"])
def test_properties_are_those_of_the_test_that_measured(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, family: str
) -> None:
    give_fake_model(project, monkeypatch)
    project.makepyfile(USES_NOTHING + MEASURES_MINE + MEASURES_VERBATIM)
    tests = properties(project, "-o", f"junit_family={family}")
    assert tests["test_plain"] == []
    assert names(tests["test_mine"]) == [
        f"{MINE}: gain_per_token",
        f"{MINE}: repeat_probability",
        f"{MINE}: greedy_repeat",
        f"{MINE}: n",
    ]
    assert dict(tests["test_mine"])[f"{MINE}: n"] == "3"
    assert {name.partition(" on ")[0] for name in names(tests["test_verbatim"])} == {
        "failgain: verbatim"
    }


@pytest.mark.slow
def test_workers_send_the_properties(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xdist")
    give_fake_model(project, monkeypatch)
    project.makepyfile(MEASURES_MINE + MEASURES_VERBATIM)
    alone = properties(project, "-p", "no:xdist")
    assert len(alone["test_mine"]) == len(alone["test_verbatim"]) == 4
    assert properties(project, "-n", "2") == alone


def test_all_phases_of_a_test_count_and_its_own_properties_stay(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_fake_model(project, monkeypatch)
    project.makepyfile(
        """
        import pytest

        @pytest.fixture
        def office(failgain, cases):
            failgain.measure(failgain.remedy("described"), cases)
            yield
            failgain.measure(failgain.remedy("dropped"), cases)

        def test_it(failgain, office, cases, record_property):
            record_property("build", 7)
            failgain.measure(failgain.remedy("verbatim"), cases)
            assert 0

        def test_next():
            pass
        """
    )
    tests = properties(project, "-o", "junit_family=xunit1")
    counts = [name for name in names(tests["test_it"]) if name.endswith((": n", "build"))]
    assert counts == [
        "failgain: described on own cases: n",
        "build",
        "failgain: verbatim on own cases: n",
        "failgain: dropped on own cases: n",
    ]
    assert tests["test_next"] == []


def test_verdict_of_a_comparison_is_a_property(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_fake_model(project, monkeypatch)
    project.makepyfile(COMPARES)
    for args, verdict in (
        ([], "missing"),
        (["--failgain-update-baseline"], "updated"),
        ([], "no regression"),
    ):
        of_test = properties(project, *args)["test_compared[dropped]"]
        assert dict(of_test)["failgain: dropped on own cases: baseline"] == verdict


def test_rollouts_of_a_test_are_properties(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_fake_model(
        project,
        monkeypatch,
        """
from fake_scorer import ScriptedDecoder

loading.load_scorer = lambda name, **settings: ScriptedDecoder(lambda _: "list_team(team='x')")
""",
    )
    project.makepyfile(
        """
        def test_it(failgain):
            office = failgain.environment("tool_calls")
            failgain.rollout(
                failgain.remedy("verbatim"), office, tasks=2, max_steps=2, demonstrations=0
            )
        """
    )
    assert properties(project)["test_it"] == [
        ("failgain: verbatim on tool_calls: success", "0.0"),
        ("failgain: verbatim on tool_calls: repeat_rate", "0.5"),
        ("failgain: verbatim on tool_calls: n", "2"),
    ]
