"""`python -m pytest_failgain study`, with a tiny random model."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from study_models import study_case

import tiny_language_models as tiny
from pytest_failgain.__main__ import main
from pytest_failgain.case_files import save_cases
from pytest_failgain.conditions import CONDITIONS
from pytest_failgain.scoring.score_store import ScoreStore

pytestmark = pytest.mark.slow

PAIRS = len(CONDITIONS) * 4


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    path = tmp_path / "mails.jsonl"
    save_cases([study_case(f"c{number}") for number in range(6)], path)
    return path


@pytest.fixture
def model(tiny_model_folder: Path, tmp_path: Path) -> Path:
    """A copy of the tiny model, to be changed."""
    return Path(shutil.copytree(tiny_model_folder, tmp_path / "model"))


def study(model: Path | str, *arguments: Path | str, out: Path) -> int:
    return main(["study", str(model), *map(str, arguments), "--threads", "1", "--out", str(out)])


def read_json(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return value


def computed(out: Path) -> int:
    """The pairs that went through the model in all runs."""
    works = read_json(out / "work.json")
    return sum(work["pairs"] for work in works.values())


def read_table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def assert_same_estimates(out: Path, other: Path) -> None:
    """Equal but for rounding: other pairs were in the same passes."""
    rows, others = (read_table(one / "tables" / "estimates.csv") for one in (out, other))
    assert rows
    for row, same in zip(rows, others, strict=True):
        assert (row["measure"], row["condition"]) == (same["measure"], same["condition"])
        assert float(row["value"]) == pytest.approx(float(same["value"]), abs=1e-3)


def test_a_study_is_a_folder_of_rows_tables_figures_and_a_page(
    model: Path, cases: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert study(model, "--cases", cases, out=out) == 0
    assert sorted(path.name for path in out.iterdir() if not path.name.startswith(".")) == [
        "figures",
        "rows",
        "scores-1.sqlite3",
        "study.json",
        "summary.md",
        "tables",
        "work.json",
    ]
    said = capsys.readouterr()
    assert "model on mails: gain " in said.out
    assert "6 cases of 6 tasks" in said.out
    assert str(out / "summary.md") in said.out
    page = (out / "summary.md").read_text("utf-8")
    assert all(f"(figures/{path.name})" in page for path in (out / "figures").iterdir())
    for name in ("estimates", "breakdowns"):
        rows = read_table(out / "tables" / f"{name}.csv")
        lines = (out / "tables" / f"{name}.md").read_text("utf-8").splitlines()
        assert len(lines) == len(rows) + 2
    record = read_json(out / "study.json")
    assert record["case_sets"][0]["cases"] == 6
    assert record["models"][0]["parameters"] > 0
    assert [cell["n"] for cell in record["cells"]] == [6]


def test_the_same_command_again_computes_nothing_and_gives_the_same_tables(
    model: Path, cases: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    study(model, "--cases", cases, out=out)
    first = (out / "tables" / "estimates.csv").read_bytes()
    pairs = computed(out)
    study(model, "--cases", cases, out=out)
    assert computed(out) == pairs
    assert (out / "tables" / "estimates.csv").read_bytes() == first


def test_an_interrupted_study_goes_on_where_it_was(
    model: Path,
    cases: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    study(model, "--cases", cases, out=whole)
    put_all, batches = ScoreStore.put_all, []

    def interrupted(store: ScoreStore, scored: Any) -> None:
        put_all(store, scored)
        batches.append(1)
        if len(batches) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ScoreStore, "put_all", interrupted)
        assert study(model, "--cases", cases, out=out) == 130
    assert "run the same command again" in capsys.readouterr().err
    assert not (out / "tables").exists()
    before = computed(out)
    assert 0 < before < computed(whole)
    assert study(model, "--cases", cases, out=out) == 0
    # The batch that was kept but not put on record is not computed again either.
    assert computed(whole) - 2 * PAIRS <= computed(out) <= computed(whole)
    assert_same_estimates(out, whole)


def test_a_killed_study_goes_on_where_it_was(model: Path, tmp_path: Path) -> None:
    cases, out = tmp_path / "many.jsonl", tmp_path / "out"
    save_cases([study_case(f"c{number}") for number in range(60)], cases)
    command = [sys.executable, "-m", "pytest_failgain", "study", str(model), "--cases", str(cases)]
    command += ["--threads", "1", "--out", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not (out / "work.json").exists() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    killed = computed(out)
    subprocess.run(command, check=True, capture_output=True)
    whole = tmp_path / "whole"
    study(model, "--cases", cases, out=whole)
    assert 0 < killed < computed(whole)
    assert computed(out) <= computed(whole)
    assert_same_estimates(out, whole)


def test_a_changed_case_alone_is_measured_again(model: Path, cases: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    study(model, "--cases", cases, out=out)
    before = computed(out)
    changed = [study_case(f"c{number}") for number in range(5)]
    last = study_case("c5")
    error = replace(last.failed, observation="ValueError: another")
    save_cases([*changed, replace(last, failed=error)], cases)
    study(model, "--cases", cases, out=out)
    # The conditions without the error in them stay as they are.
    assert 0 < computed(out) - before < PAIRS


def test_a_changed_template_is_measured_again(model: Path, cases: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    study(model, "--cases", cases, out=out)
    before = computed(out)
    tiny.byte_tokenizer(tiny.CHATML.replace("<|im_end|>", "<|end|>")).save_pretrained(model)
    study(model, "--cases", cases, out=out)
    # Under a key of its own, since the template belongs to the model.
    assert computed(out) == 2 * before


def test_a_changed_model_is_measured_again(model: Path, cases: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    study(model, "--cases", cases, out=out)
    before, first = computed(out), (out / "tables" / "estimates.csv").read_bytes()
    other = tiny.llama()
    other.config.max_position_embeddings = 4096
    for parameter in other.parameters():
        parameter.data *= 1.5
    other.save_pretrained(model)
    study(model, "--cases", cases, out=out)
    assert computed(out) == 2 * before
    assert (out / "tables" / "estimates.csv").read_bytes() != first


def test_a_missing_model_is_reported_and_the_others_are_measured(
    model: Path, cases: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    gone = tmp_path / "gone"
    assert study(gone, model, "--cases", cases, "--offline", out=out) == 1
    said = capsys.readouterr()
    assert f"error: {gone} is not measured: " in said.err
    assert "model on mails: gain" in said.out
    assert "## Not measured" in (out / "summary.md").read_text("utf-8")
    assert read_json(out / "study.json")["not_measured"][0]["model"] == str(gone)


def test_a_model_without_a_chat_template_is_measured_in_plain_text(
    model: Path, cases: Path, tmp_path: Path
) -> None:
    tiny.byte_tokenizer(None).save_pretrained(model)
    (model / "chat_template.jinja").unlink(missing_ok=True)
    out = tmp_path / "out"
    assert study(model, "--cases", cases, out=out) == 0
    page = (out / "summary.md").read_text("utf-8")
    assert "plain-text format (model has no chat template)" in page


def test_only_the_conditions_that_are_asked_for_are_scored(
    model: Path, cases: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    study(model, "--cases", cases, "--conditions", "described, neutral", out=out)
    assert read_json(out / "study.json")["conditions"] == [
        "before",
        "failed",
        "neutral",
        "described",
    ]
    assert computed(out) == 6 * 4 * 4


def test_an_environment_gives_as_many_cases_as_are_asked_for(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ("--environment", "tool_calls=3", "--conditions", "neutral")
    assert study(model, *arguments, out=out) == 0
    assert read_json(out / "study.json")["case_sets"][0]["cases"] == 3


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--environment", "tool_call"], "there is no environment 'tool_call'"),
        (["--environment", "tool_calls=many"], "'many' is no number of cases"),
        (["--environment", "tool_calls=0"], "cannot give 0 cases"),
        (["--conditions", "failled"], "there is no condition 'failled'"),
        (["--cases", "gone.jsonl"], "there is no case file gone.jsonl"),
        (["--environment", "tool_calls=3", "--environment", "tool_calls=4"], "'tool_calls'"),
    ],
)
def test_what_can_not_be_studied_is_one_line_before_anything_is_loaded(
    arguments: list[str], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert study("smollm2-135m", *arguments, "--offline", out=tmp_path / "out") == 1
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert problem in said
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_model_that_stands_twice_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert study("small", "small", out=tmp_path / "out") == 1
    assert "stands twice" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["--threads", "0"], ["--dtype", "float64"], ["--prompt-format", "pretty"]]
)
def test_a_value_that_an_option_does_not_take_is_wrong_usage(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["study", "smollm2-135m", *arguments])
    assert ended.value.code == 2
    assert arguments[0] in capsys.readouterr().err


def test_two_studies_do_not_write_to_one_folder(
    model: Path, cases: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with FileLock(out / ".lock"):
        assert study(model, "--cases", cases, out=out) == 1
    assert "another study is writing to" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_can_not_be_written_to_is_named(
    model: Path, cases: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    assert study(model, "--cases", cases, out=closed / "out") == 1
    assert "choose another folder with --out" in capsys.readouterr().err


def test_a_file_in_the_place_of_the_folder_is_named(
    model: Path, cases: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert study(model, "--cases", cases, out=cases) == 1
    assert "choose another folder with --out" in capsys.readouterr().err


def test_without_matplotlib_all_but_the_figures_is_there(
    model: Path,
    cases: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Other tests have imported parts of it, which would be found without it.
    for name in ("matplotlib", *sys.modules):
        if name.partition(".")[0] == "matplotlib":
            monkeypatch.setitem(sys.modules, name, None)
    out = tmp_path / "out"
    assert study(model, "--cases", cases, out=out) == 0
    assert "pip install 'pytest-failgain[study]'" in capsys.readouterr().err
    assert (out / "tables" / "estimates.csv").exists()
    assert "figures/" not in (out / "summary.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--mbpp", "mbpp.json", "--environment", "tool_calls=3"], "--mbpp mbpp.json is of use"),
        (["--seed", "1", "--cases", "mails.jsonl"], "--seed changes the cases of environments"),
        (["--conditions", ""], "there is no condition ''"),
        (["--environment", "tool_calls="], "'' is no number of cases"),
    ],
)
def test_an_option_without_any_effect_is_refused(
    arguments: list[str], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert study("smollm2-135m", *arguments, "--offline", out=tmp_path / "out") == 1
    assert problem in capsys.readouterr().err


def test_messages_name_the_options_of_this_command(
    model: Path, cases: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny.byte_tokenizer(tiny.NO_SYSTEM).save_pretrained(model)
    arguments = ("--cases", cases, "--prompt-format", "template")
    assert study(model, *arguments, out=tmp_path / "out") == 1
    said = capsys.readouterr()
    assert "--fold-system" in said.err
    assert "--failgain" not in said.err
    assert "not measured: " in said.out


def test_a_broken_template_is_not_taken_for_one_without_a_system_role(
    model: Path, cases: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny.byte_tokenizer("{{ nope.foo.bar }}{% for").save_pretrained(model)
    assert study(model, "--cases", cases, out=tmp_path / "out") == 1
    assert "TemplateSyntaxError" in capsys.readouterr().err


def test_a_tokenizer_of_another_model_is_told_and_the_others_go_on(
    model: Path,
    tiny_model_folder: Path,
    cases: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    small = tiny.llama()
    small.resize_token_embeddings(40)
    small.config.max_position_embeddings = 4096
    small.save_pretrained(model)
    out = tmp_path / "out"
    assert study(model, tiny_model_folder, "--cases", cases, out=out) == 1
    said = capsys.readouterr()
    assert "can't score: IndexError" in said.err
    assert "tiny on mails: gain" in said.out


def test_a_reader_that_goes_away_changes_nothing(model: Path, cases: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = f"{sys.executable} -m pytest_failgain study {model} --cases {cases} --out {out}"
    status = subprocess.run(
        ["bash", "-c", f"{command} --threads 1 2>{tmp_path}/err | true; echo ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert status == "0"
    assert "Traceback" not in (tmp_path / "err").read_text()
    assert (out / "summary.md").exists()


def test_a_killed_study_leaves_no_page_of_an_earlier_one(
    model: Path, cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    study(model, "--cases", cases, "--conditions", "neutral", out=out)

    def interrupted(store: ScoreStore, scored: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ScoreStore, "put_all", interrupted)
        assert study(model, "--cases", cases, out=out) == 130
    assert not (out / "summary.md").exists()
    assert read_json(out / "study.json")["finished"] is None
