from __future__ import annotations

import argparse
import sys
from typing import Any

import pytest

import benchmarks.__main__ as program
import tiny_language_models as tiny
from benchmarks import bootstrap, noise
from benchmarks.engines import (
    Engine,
    OurScorer,
    PlainPasses,
    PrefixCache,
    evaluation_harness,
)
from benchmarks.figures import Figure, NotRunError, Verdict, middle_half, not_run, verdict_table
from benchmarks.overhead import empty_project
from benchmarks.speed import Contestant, Effort, measure
from benchmarks.workload import Workload, office_pairs, tokenised
from pytest_failgain.scoring.local import LocalScorer

MET = Figure("speed", ">= 3", "4", Verdict.MET)
MISSED = Figure("speed", ">= 3", "2", Verdict.NOT_MET)
NOT_RUN = not_run("speed", ">= 3", "no such engine")
OMITTED = not_run("speed", ">= 3", "no such engine", optional=True)


@pytest.fixture(scope="module")
def scorer() -> LocalScorer:
    model = tiny.llama()
    # The office's prompts have thousands of bytes, and each is a token here.
    model.config.max_position_embeddings = 8192
    return LocalScorer.of(model, tiny.byte_tokenizer(), tiny.IDENTITY)


@pytest.fixture(scope="module")
def workload(scorer: LocalScorer) -> Workload:
    return tokenised(office_pairs(1)[:6], scorer.renderer)


def ran(engine: Engine, scorer: LocalScorer, workload: Workload) -> Contestant:
    contestant = Contestant(engine, workload, range(len(workload)), threads=1)
    contestant.run(scorer.model)
    return contestant


@pytest.mark.parametrize("engine", [OurScorer, PrefixCache])
def test_engines_agree_with_plain_passes(
    engine: Any, scorer: LocalScorer, workload: Workload
) -> None:
    made = ran(engine(scorer if engine is OurScorer else scorer.model), scorer, workload)
    plain = ran(PlainPasses(scorer.model), scorer, workload)
    assert len(plain.sums) == len(workload)
    assert made.largest_difference(plain) < 1e-3


def test_prefix_cache_computes_each_shared_prefix_once(
    scorer: LocalScorer, workload: Workload
) -> None:
    (context, action), *_ = workload.sequences
    same = Workload(workload.pairs[:2], [(context, action), (context, action)])
    # An action's last token is never fed, and a context's last one always is.
    fed = len(context) + len(action) - 1 + len(action)
    assert ran(PrefixCache(scorer.model), scorer, same).tokens == fed


def test_our_scorer_remembers_nothing_between_rounds(
    scorer: LocalScorer, workload: Workload
) -> None:
    ours = ran(OurScorer(scorer), scorer, workload)
    first = ours.tokens
    ours.run(scorer.model)
    assert ours.tokens == first > 0


def test_sample_is_the_same_every_time(workload: Workload) -> None:
    sample, places = workload.sample(5)
    assert len(sample) == 5
    assert [workload.pairs[i] for i in places] == sample.pairs
    assert places == workload.sample(5)[1]
    assert len(workload.sample(10_000)[0]) == len(workload)


def test_speed_without_the_harness_says_so(
    scorer: LocalScorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "lm_eval.models.huggingface", None)
    shown: list[str] = []
    effort = Effort(cases=1, repeats=1, sample=2, reference=2)
    figures = measure(scorer, 1, effort, shown.append)
    assert [figure.what for figure in figures if figure.missing] == [
        "scoring speed, times that of lm-evaluation-harness"
    ]
    assert figures[-1].verdict is Verdict.MET
    assert "sequential prefix cache" in shown[-1]


def test_missing_harness_names_the_remedy(
    scorer: LocalScorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "lm_eval.models.huggingface", None)
    with pytest.raises(NotRunError, match=r"pip install -r benchmarks/requirements\.txt"):
        evaluation_harness(scorer.model, scorer.tokenizer, 1)


@pytest.mark.parametrize(
    ("figures", "status"),
    [([MET], 0), ([MET, MISSED], 0), ([MET, OMITTED], 0), ([MET, NOT_RUN], 1)],
)
def test_only_what_could_not_be_run_is_an_error(
    figures: list[Figure],
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(program, "_PARTS", {"speed": lambda options: figures})
    assert program.main([]) == status
    printed = capsys.readouterr().out
    assert all(figure.verdict.value in printed for figure in figures)


def test_part_that_fails_is_a_row_of_the_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(options: argparse.Namespace) -> list[Figure]:
        raise NotRunError("no disk")

    monkeypatch.setattr(program, "_PARTS", {"memory": fail, "speed": lambda options: [MET]})
    assert program.main([]) == 1
    printed = capsys.readouterr().out
    assert "no disk" in printed
    assert "met" in printed


def test_table_keeps_columns_apart() -> None:
    lines = verdict_table([MET, NOT_RUN]).splitlines()
    assert lines[0].split() == ["figure", "wanted", "measured", "verdict"]
    assert len({line.index(word) for line, word in zip(lines[2:], ["4", "no"], strict=True)}) == 1


def test_middle_half() -> None:
    assert middle_half([5, 1, 3, 2, 4]) == (2, 4)


def test_empty_project_holds_all_that_a_run_writes() -> None:
    with empty_project() as project:
        before = project.contents()
        project.pytest("-p", "no:failgain")
        assert project.contents() == before
        (project.root / "home" / "cache" / "left").touch()
        assert project.contents() - before == {"home/cache/left"}


def test_noise_is_the_gap_to_the_same_numbers_computed_otherwise(scorer: LocalScorer) -> None:
    shown: list[str] = []
    (figure,) = noise.measure(scorer, {"tool_calls": 2}, shown.append)
    assert len(shown) == len(noise.OTHERS)
    assert figure.verdict is Verdict.NONE
    assert "scores of 2 cases of tool_calls" in figure.what
    assert all("greedy flags 0" in line for line in (*shown, figure.measured))


def test_pairs_come_back_in_their_order(scorer: LocalScorer) -> None:
    pairs = office_pairs(1)[:6]
    texts = [score.text for score in noise.Shuffled(scorer, 1).score(pairs)]  # type: ignore[union-attr]
    assert texts == [pair.action.text for pair in pairs]


def test_the_bootstrap_is_held_to_a_loop_over_draws() -> None:
    first, further = bootstrap.measure(1, draws=2000)
    assert "2,000 draws of 275 cases in 58 tasks" in first.what
    assert {first.verdict, further.verdict} <= {Verdict.MET, Verdict.NOT_MET}
