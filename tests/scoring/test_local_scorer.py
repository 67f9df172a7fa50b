from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tiny_language_models as tiny
from pytest_failgain.errors import ScoringError
from pytest_failgain.prompt import Prompt
from pytest_failgain.scoring.protocol import Pair, Refusal, Score
from pytest_failgain.scoring.token_tree import build_tree
from pytest_failgain.scoring.tree_engine import TreeEngine, score_plainly
from pytest_failgain.trajectory import Action
from strategies import quick

tokens = st.integers(min_value=0, max_value=3)
some = st.lists(tokens, min_size=1, max_size=12).map(tuple)
batches = st.lists(st.lists(st.tuples(some, some), min_size=1, max_size=6), min_size=1, max_size=3)
MODELS = {
    "full attention": tiny.llama,
    "sliding and full layers": tiny.gemma3,
    "sliding layers": tiny.mistral,
    "layer types, all full": tiny.qwen2,
}


@pytest.fixture(scope="module", params=list(MODELS.values()), ids=list(MODELS))
def model(request: pytest.FixtureRequest) -> Any:
    make: Callable[[], Any] = request.param
    return make()


@settings(quick, max_examples=15)
@given(batches, st.integers(min_value=1, max_value=40))
def test_tree_gives_what_plain_passes_give(
    model: Any, batches: list[list[tuple[tuple[int, ...], ...]]], budget: int
) -> None:
    engine = TreeEngine(model, budget)
    # Several batches, since what one leaves in the cache must not change the next.
    for batch in batches:
        sequences = [(context, action) for context, action in batch]
        tree = build_tree(sequences)
        logprobs, matches = engine.run(tree)
        for (context, action), path in zip(sequences, tree.paths, strict=True):
            plain, plain_matches = score_plainly(model, context, action)
            np.testing.assert_allclose(logprobs[path], plain, atol=1e-4)
            sure = np.abs(plain) > 1e-3
            assert (matches[path] == plain_matches)[sure].all()


def test_window_is_counted_along_the_tree() -> None:
    # Longer than the window of 4, with branches between a token and what it may still see.
    model = tiny.gemma3(window=4)
    context = tuple(range(20))
    sequences = [((*context, i), (30 + i, 31, 32, 33, 34, 35)) for i in range(6)]
    tree = build_tree(sequences)
    logprobs, _ = TreeEngine(model, 64).run(tree)
    for (before, action), path in zip(sequences, tree.paths, strict=True):
        np.testing.assert_allclose(
            logprobs[path], score_plainly(model, before, action)[0], atol=1e-4
        )


def test_wrong_window_would_be_noticed() -> None:
    # The control for the test above: the window does change these numbers.
    near, far = tiny.gemma3(window=4), tiny.gemma3(window=400)
    context, action = tuple(range(20)), (30, 31, 32)
    gap = np.abs(score_plainly(near, context, action)[0] - score_plainly(far, context, action)[0])
    assert gap.max() > 0.01


def prompt(text: str) -> Prompt:
    return Prompt(messages=({"role": "user", "content": text},))


def scored(scorer: Any, *pairs: Pair) -> list[Score]:
    results = scorer.score(pairs)
    assert all(isinstance(result, Score) for result in results)
    return list(results)


def test_model_without_attention_takes_plain_passes_and_says_so() -> None:
    scorer = tiny.tiny_scorer(tiny.mamba())
    assert scorer.plain_reason is not None
    pair = Pair(prompt("Book a room."), Action("book(room=1)"))
    (score,) = scored(scorer, pair)
    assert score.adaptations[-1].startswith("scored by plain passes")
    rendered = scorer.renderer.render(pair.prompt)
    emitted = scorer.renderer.emit(pair.prompt, rendered, pair.action)
    plain, _ = score_plainly(scorer.model, rendered.tokens, emitted.tokens)
    assert score.token_logprobs == pytest.approx(plain.tolist(), abs=1e-6)


def test_attention_models_need_no_plain_passes(model: Any) -> None:
    assert tiny.tiny_scorer(model).plain_reason is None


def test_score_counts_tokens_and_sums_them() -> None:
    (score,) = scored(tiny.tiny_scorer(), Pair(prompt("Hi."), Action("go()")))
    assert score.n_tokens == len("go()") == len(score.token_spans) == len(score.argmax)
    assert score.logprob == pytest.approx(sum(score.token_logprobs))
    assert score.logprob < 0
    assert score.context_tokens == len("user\nHi.\nassistant\n") + 3  # and three special tokens


def test_greedy_is_what_the_model_would_decode() -> None:
    scorer = tiny.tiny_scorer()
    rendered = scorer.renderer.render(prompt("Hi."))
    ids = list(rendered.tokens)
    for _ in range(5):
        logits = scorer.model(torch.tensor([ids])).logits[0, -1]
        # Only tokens that are a byte of printable text, which the action can be written with.
        ids.append(int(logits[:94].argmax()))
    text = scorer.tokenizer.decode(ids[len(rendered.tokens) :])
    (score,) = scored(scorer, Pair(prompt("Hi."), Action(text)))
    plain = scorer.model(torch.tensor([ids])).logits[0, len(rendered.tokens) - 1 : -1]
    assert score.argmax == tuple(
        bool(row.argmax() == token)
        for row, token in zip(plain, ids[len(rendered.tokens) :], strict=True)
    )


def test_known_pairs_are_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = tiny.tiny_scorer()
    pair = Pair(prompt("Hi."), Action("go()"))
    (first,) = scored(scorer, pair)
    monkeypatch.setattr(scorer, "load", None)
    assert scored(scorer, pair) == [first]


def test_context_longer_than_the_model_takes_is_refused_by_name() -> None:
    scorer = tiny.tiny_scorer()
    long, short = prompt("x" * (tiny.CONTEXT + 1)), prompt("Hi.")
    refusal, score = scorer.score([Pair(long, Action("go()")), Pair(short, Action("go()"))])
    assert isinstance(refusal, Refusal)
    assert f"the model takes {tiny.CONTEXT}" in refusal.reason
    assert isinstance(score, Score)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_impossible_numbers_are_refused(value: float) -> None:
    model = tiny.llama()
    with torch.no_grad():
        model.lm_head.weight[5] = value
    scorer = tiny.tiny_scorer(model)
    with pytest.raises(ScoringError, match=r"impossible log-probability .*--failgain-dtype"):
        scorer.score([Pair(prompt("Hi."), Action("go()"))])


def test_a_pass_that_fails_is_told_and_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scorer = tiny.tiny_scorer()
    before = scored(tiny.tiny_scorer(), Pair(prompt("Hello there."), Action("go()")))
    monkeypatch.setattr(scorer.model.lm_head, "forward", lambda hidden: 1 / 0)
    with pytest.raises(ScoringError, match=r"can't score: ZeroDivisionError: .* memory enough"):
        scorer.score([Pair(prompt("Hello."), Action("go()"))])
    monkeypatch.undo()
    assert scored(scorer, Pair(prompt("Hello there."), Action("go()"))) == [
        pytest.approx(score) if not isinstance(score, Score) else score for score in before
    ]


def test_memory_of_a_pass_is_bounded_by_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = tiny.tiny_scorer(budget=16)
    lengths: list[int] = []
    forward = scorer.model.forward

    def watched(*args: Any, **kwargs: Any) -> Any:
        lengths.append(kwargs["input_ids"].shape[1])
        return forward(*args, **kwargs)

    monkeypatch.setattr(scorer.model, "forward", watched)
    scorer.score([Pair(prompt("Hi." * 20), Action(f"go({i}, 'there')")) for i in range(30)])
    assert len(lengths) > 10
    assert max(lengths) <= 16
