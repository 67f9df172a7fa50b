"""The JSON report: what it holds, and that its schema tells of all of it."""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from reported import (
    DESCRIBED,
    GAINS,
    SETTINGS,
    SHARES,
    VERBATIM,
    comparisons,
    everything,
    findings,
    with_records,
)

from fake_scorer import measured
from pytest_failgain.measurement import Skip
from pytest_failgain.options import Settings
from pytest_failgain.report.document import CASE_VALUES, document_of
from pytest_failgain.report.json_report import json_report
from pytest_failgain.rollout.measures import ROLLOUT_MEASURES
from pytest_failgain.stash import Findings
from pytest_failgain.summary_values import SUMMARY_ESTIMATES
from strategies import quick

SCHEMA: dict[str, Any] = json.loads(
    resources.files("pytest_failgain.report").joinpath("report-1.schema.json").read_text("utf-8")
)


def closed(schema: Any) -> Any:
    """`schema` without room for keys that it does not tell of."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(value) for key, value in schema.items()}
    return made | {"additionalProperties": False} if "properties" in schema else made


def report(found: Findings, settings: Settings = SETTINGS) -> dict[str, Any]:
    """The report of what was found, which fits the schema and has no key that is not in it."""
    text = json_report(document_of(found, settings))
    assert text.isascii()
    value: dict[str, Any] = json.loads(text, parse_constant=pytest.fail)
    Draft202012Validator(SCHEMA).validate(value)
    Draft202012Validator(closed(SCHEMA)).validate(value)
    return value


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_the_schema_demands_every_key_that_it_tells_of() -> None:
    def check(schema: Any) -> None:
        for value in schema.values() if isinstance(schema, dict) else schema:
            if isinstance(value, (dict, list)):
                check(value)
        if isinstance(schema, dict) and isinstance(schema.get("properties"), dict):
            assert schema["required"] == list(schema["properties"])

    check(SCHEMA)
    defs = SCHEMA["$defs"]
    assert defs["measurement"]["properties"]["estimates"]["required"] == [*SUMMARY_ESTIMATES]
    assert defs["case"]["properties"]["values"]["required"] == [*CASE_VALUES]
    assert defs["rollouts"]["properties"]["estimates"]["required"] == [*ROLLOUT_MEASURES]


def test_a_report_of_everything_fits_the_schema() -> None:
    value = report(everything())
    assert value["failgain_report"] == 1
    assert value["counts"] == {
        "harmful": 1,
        "fine": 1,
        "unknown": 1,
        "regressions": 1,
        "not_comparable": 1,
        "without_a_baseline": 1,
    }
    assert value["caution"].startswith("Repeating less is not succeeding more")
    assert value["notes"] == ["nothing was kept"]
    assert value["settings"] == [
        {"option": "--failgain-model", "value": "fake", "source": "--failgain-model"},
        {"option": "--failgain-seed", "value": 3, "source": "FAILGAIN_SEED"},
    ]


def test_a_report_of_nothing_fits_the_schema() -> None:
    value = report(findings())
    assert value["measurements"] == value["rollouts"] == value["comparisons"] == []
    assert report(findings(), Settings())["settings"] == []


def test_paths_among_the_settings_are_text() -> None:
    given_path = Settings(json=Path("out.json"), sources={"json": "--failgain-json"})
    assert report(findings(), given_path)["settings"][0]["value"] == "out.json"


def test_estimates_are_those_of_the_measurement() -> None:
    one = report(findings(VERBATIM))["measurements"][0]
    summary = VERBATIM.summary()
    for name, estimate in one["estimates"].items():
        assert estimate["value"] == pytest.approx(summary[name], nan_ok=True)
        assert (estimate["low"], estimate["high"]) == pytest.approx(summary[f"{name}_ci"])
        assert estimate["n"] == 10
    assert (one["n"], one["n_tasks"], one["n_wanted"]) == (10, 10, 10)
    assert (one["environment"], one["harness"]) == ("own cases", "verbatim")
    assert one["model"]["name"] == "fake"


def test_a_case_has_its_values_its_record_and_its_tokens() -> None:
    one = report(findings(VERBATIM))["measurements"][0]
    assert [case["case"] for case in one["cases"]] == list(GAINS)
    case = one["cases"][1]
    assert case["goal"] == "Do case1."
    assert case["action"] == "send(to='case1')"
    assert case["correct"] == "send(to='Ann')"
    assert case["record"] == "assistant\nsend(to='case1')\nError: no\n"
    assert case["values"]["corrective_gain_per_token"] == pytest.approx(-0.875)
    assert case["values"]["repeat_probability_after"] == pytest.approx(0.75)
    assert case["values"]["greedy_repeat_after"] == 1
    assert "".join(token["text"] for token in case["tokens"]) == case["action"]
    for token in case["tokens"]:
        assert case["action"][token["start"] : token["end"]] == token["text"]
        assert token["before"] == pytest.approx(-4.0)
        assert token["after"] == pytest.approx(-3.125)


def test_a_remedy_is_compared_with_its_reference() -> None:
    first, second = report(findings(VERBATIM, DESCRIBED))["measurements"]
    assert first["compared"] is None
    assert first["group"] == second["group"] == 0
    assert second["compared"]["over"] == "verbatim"
    assert second["compared"]["gain_per_token"]["value"] == pytest.approx(0.61875)
    assert second["compared"]["inversion_removed"]["value"] > 1


def test_a_measurement_that_was_made_twice_is_reported_once() -> None:
    again = with_records(measured(GAINS, repeat=SHARES, greedy=["case0", "case1"]))
    assert len(report(findings(VERBATIM, again, VERBATIM))["measurements"]) == 1
    twice = [*comparisons(), *comparisons()]
    assert len(report(Findings([], [], twice, {}))["comparisons"]) == 4


def test_what_is_not_known_is_null() -> None:
    one = report(findings(measured({}, harness="none")))["measurements"][0]
    assert one["verdict"] == "unknown"
    assert one["estimates"]["corrective_gain"] == {"value": None, "low": None, "high": None, "n": 0}
    assert one["cases"] == []
    single = report(findings(measured({"a": -1.0})))["measurements"][0]
    assert single["cases"][0]["values"]["repeat_probability_before"] is None


def test_all_that_takes_away_from_a_figure_is_told() -> None:
    held_back = replace(
        VERBATIM,
        skips=(Skip("case9", "before: too long"),),
        adaptations=(("folded", 4),),
        left_out=(("succeeded", 2),),
        by_construction="gain 0",
    )
    one = report(findings(held_back))["measurements"][0]
    assert one["skips"] == [{"case": "case9", "reason": "before: too long"}]
    assert one["adaptations"] == [{"adaptation": "folded", "n": 4}]
    assert one["left_out"] == [{"condition": "succeeded", "n": 2}]
    assert one["by_construction"] == "gain 0"
    assert one["warnings"] == list(held_back.warnings)
    assert (one["n"], one["n_wanted"]) == (9, 10)


def test_comparisons_tell_what_changed_and_what_was_allowed() -> None:
    regressed, fine, missing, other = report(everything())["comparisons"]
    assert regressed["verdict"] == "regression"
    changes = {change["measure"]: change for change in regressed["changes"]}
    share = changes["repeat probability"]
    assert (share["before"], share["now"], share["allowed"]) == (0.4, 0.75, 0.05)
    assert share["difference"]["value"] == pytest.approx(0.35)
    assert share["regressed"] is True
    assert (changes["greedy repeat"]["exceeds"], changes["greedy repeat"]["regressed"]) == (
        True,
        False,
    )
    assert fine["added"] == ["case8", "case9"]
    assert (missing["verdict"], missing["changes"]) == ("missing", [])
    assert missing["reason"] == "there is no file kept.json"
    assert other["reason"].startswith("the model's weights differ")


def test_comparisons_have_every_case_in_the_baseline_and_now() -> None:
    regressed, fine, missing, _ = report(everything())["comparisons"]
    assert [case["case"] for case in regressed["cases"]] == list(GAINS)
    assert regressed["cases"][0] == {
        "case": "case0",
        "before": {
            "gain_per_token": -0.5,
            "repeat_probability": 0.4,
            "greedy_repeat": False,
            "record": "assistant\nIt failed.\nError: no\n",
        },
        "now": {
            "gain_per_token": -1.0,
            "repeat_probability": 0.75,
            "greedy_repeat": True,
            "record": "assistant\nsend(to='case0')\nError: no\n",
        },
    }
    assert len(fine["cases"]) == 8
    assert missing["cases"] == []


def test_rollouts_tell_success_beside_repetition() -> None:
    verbatim, described = report(everything())["rollouts"]
    assert verbatim["estimates"]["success"]["value"] == 0.4
    assert verbatim["estimates"]["canonical_repeat_rate"]["value"] == pytest.approx(1 / 3)
    assert verbatim["outcomes"] == {"solved": 4, "quit": 0, "limit": 6, "full": 0}
    assert (verbatim["n"], verbatim["n_wanted"]) == (10, 11)
    assert verbatim["not_started"] == [{"task": "late", "reason": "too long"}]
    assert verbatim["rollouts"][9]["turns"][2] == {
        "action": "Well.",
        "failed": True,
        "writing": "prose",
    }
    assert verbatim["setting"]["max_steps"] == 6
    assert described["estimates"]["success"]["value"] == 0.7


def test_two_reports_of_the_same_are_the_same_text() -> None:
    one, other = (json_report(document_of(everything(), SETTINGS)) for _ in range(2))
    assert one == other


@quick
@given(st.text(st.characters()), st.text(st.characters(categories=["Cs", "Cc", "L", "P"])))
def test_every_text_comes_back_as_it_was(record: str, reason: str) -> None:
    odd = replace(
        with_records(VERBATIM, {"case0": record}), adaptations=((reason, 1),), harness=reason
    )
    one = report(findings(odd))["measurements"][0]
    assert one["cases"][0]["record"] == record
    assert one["harness"] == one["adaptations"][0]["adaptation"] == reason


@quick
@given(
    st.dictionaries(st.text(min_size=1, max_size=3), st.floats(-3, 3), max_size=5),
    st.dictionaries(st.text(min_size=1, max_size=3), st.floats(0.01, 0.99), max_size=5),
)
def test_any_measurement_fits_the_schema(
    gains: Mapping[str, float], shares: Mapping[str, float]
) -> None:
    # Two candidates of a case may not be the same action.
    drawn = {case_id: gain for case_id, gain in gains.items() if case_id != "Ann"}
    one = report(findings(measured(drawn, repeat=shares)))["measurements"][0]
    for case in one["cases"]:
        assert all(value is None or math.isfinite(value) for value in case["values"].values())


@pytest.mark.parametrize("key", ["failgain_report", "measurements", "caution"])
def test_the_schema_refuses_what_is_no_report(key: str) -> None:
    value = report(everything())
    broken = copy.deepcopy(value)
    del broken[key]
    assert not Draft202012Validator(SCHEMA).is_valid(broken)
    assert not Draft202012Validator(SCHEMA).is_valid({**value, key: "?"}) or key == "caution"
    # A reader of this version has to take what later ones add.
    assert Draft202012Validator(SCHEMA).is_valid({**value, "new": 1})


def documented(page: str) -> str:
    return (Path(__file__).parents[2] / "docs" / page).read_text("utf-8")


def test_the_page_tells_of_every_main_key() -> None:
    page = documented("reports.md")
    measurement = SCHEMA["$defs"]["measurement"]["properties"]
    case = SCHEMA["$defs"]["case"]["properties"]
    compared = SCHEMA["$defs"]["comparison"]["properties"]
    change = compared["changes"]["items"]["properties"]
    kept = SCHEMA["$defs"]["kept_case"]["properties"]
    for key in (*SCHEMA["properties"], *measurement, *case, *compared, *change, *kept):
        assert f"`{key}`" in page


def test_the_code_on_the_page_reads_a_report(tmp_path: Path) -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```$", documented("reports.md"), re.M | re.S)
    names: dict[str, Any] = {}
    exec(compile(block, "reports.md", "exec"), names)
    path = tmp_path / "report.json"
    path.write_text(json_report(document_of(findings(VERBATIM, DESCRIBED), SETTINGS)), "utf-8")
    assert names["gains"](path) == pytest.approx({"verbatim": -0.4375, "described": 0.18125})
