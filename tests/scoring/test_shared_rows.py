from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import Gemma2Config, Gemma2ForCausalLM

import tiny_language_models as tiny
from pytest_failgain.scoring.decoding import BatchDecoder
from pytest_failgain.scoring.shared_rows import (
    PlainRows,
    Prefix,
    Rows,
    SharedRows,
    shared_attention,
)
from strategies import quick

MODELS = {
    "full attention": tiny.llama,
    "layer types, all full": tiny.qwen2,
    "sliding layers": tiny.mistral,
    "sliding and full layers": tiny.gemma3,
}
NOTHING = Prefix((), [])
COUNT = 3


@pytest.fixture(scope="module", params=list(MODELS.values()), ids=list(MODELS))
def model(request: pytest.FixtureRequest) -> Any:
    make: Callable[[], Any] = request.param
    return make()


def plain_logits(model: Any, tokens: tuple[int, ...]) -> Any:
    """The logits behind `tokens`, of one pass over all of them with the model's own attention."""
    shared = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        with torch.inference_mode():
            return model(input_ids=torch.tensor([tokens]), use_cache=False).logits[0, -1].numpy()
    finally:
        model.set_attn_implementation(shared)


def check_step(model: Any, rows: Rows, tokens: list[int]) -> None:
    """Put `tokens` behind the first rows, and hold the logits to plain passes."""
    logits = rows.step(tokens)
    assert logits.shape[0] == len(tokens)
    for row, got in zip(rows.tokens, logits, strict=False):
        wanted = plain_logits(model, (*rows.prefix.tokens, *row))
        np.testing.assert_allclose(got.numpy(), wanted, atol=2e-3)


class Story:
    """Rows that random things happen to, and what each row must consist of by then."""

    def __init__(self, model: Any, kind: Any, luck: random.Random) -> None:
        self.model, self.kind, self.luck = model, kind, luck
        self.rows: Rows = kind(model, NOTHING, COUNT)
        self.known: list[list[int]] = [[] for _ in range(COUNT)]
        self.earlier: Rows = self.rows

    def go_on(self) -> None:
        do = self.luck.choice(
            [self.absorb, self.step, self.step, self.cut, self.swap, self.take_over, self.begin]
        )
        do()
        assert [list(row) for row in self.rows.tokens] == self.known

    def tokens(self, most: int) -> list[int]:
        return [self.luck.randrange(200) for _ in range(self.luck.randrange(most + 1))]

    def absorb(self) -> None:
        added = [self.tokens(9) for _ in range(self.luck.randrange(1, COUNT + 1))]
        self.rows.absorb(added)
        for row, tokens in zip(self.known, added, strict=False):
            row.extend(tokens)

    def step(self) -> None:
        tokens = [self.luck.randrange(200) for _ in range(self.luck.randrange(1, COUNT + 1))]
        check_step(self.model, self.rows, tokens)
        for row, token in zip(self.known, tokens, strict=False):
            row.append(token)

    def cut(self) -> None:
        place = self.luck.randrange(COUNT)
        length = self.luck.randrange(len(self.known[place]) + 1)
        self.rows.cut(place, length)
        del self.known[place][length:]

    def swap(self) -> None:
        one, other = self.luck.randrange(COUNT), self.luck.randrange(COUNT)
        self.rows.swap(one, other)
        self.known[one], self.known[other] = self.known[other], self.known[one]

    def take_over(self) -> None:
        """Go on with new rows behind the same prefix, which begin as some of the old ones."""
        old, self.rows = self.rows, self.kind(self.model, self.rows.prefix, COUNT)
        self.known = [[] for _ in range(COUNT)]
        for place in range(COUNT):
            source = self.luck.randrange(COUNT)
            length = self.luck.randrange(len(old.tokens[source]) + 1)
            if length:
                self.rows.take_over(place, old, source, length)
                self.known[place] = list(old.tokens[source][:length])

    def begin(self) -> None:
        """Go on behind a longer prefix, or part of it, which may be nothing."""
        if not self.known[0]:
            return
        prefix = self.rows.as_prefix()
        assert prefix.tokens == (*self.rows.prefix.tokens, *self.known[0])
        prefix = prefix.cut(self.luck.choice([0, len(prefix.tokens) // 2, len(prefix.tokens)]))
        self.rows = self.kind(self.model, prefix, COUNT)
        self.known = [[] for _ in range(COUNT)]


@settings(quick, max_examples=8)
@given(st.integers(0, 2**32))
def test_rows_give_what_plain_passes_give_whatever_happens_to_them(model: Any, seed: int) -> None:
    # As the decoder does, which changes the rows outside of the model's passes.
    with shared_attention(model), torch.inference_mode():
        story = Story(model, SharedRows, random.Random(seed))
        for _ in range(10):
            story.go_on()
        story.step()


@settings(quick, max_examples=8)
@given(st.integers(0, 2**32))
def test_plain_rows_do_the_same(seed: int) -> None:
    story = Story(LLAMA, PlainRows, random.Random(seed))
    for _ in range(10):
        story.go_on()
    story.step()


LLAMA = tiny.llama()


def test_rows_that_outgrow_their_room_keep_what_they_have(model: Any) -> None:
    with shared_attention(model):
        rows = SharedRows(model, NOTHING, 2)
        rows.absorb([list(range(60)), list(range(100, 103))])
        before = rows.bytes
        rows.absorb([list(range(60, 80)), []])
        assert rows.bytes > before
        check_step(model, rows, [7, 8])


def test_a_window_is_counted_over_prefix_and_row() -> None:
    # The window of 4 ends within the prefix for the one row, and behind it for the other.
    near, far = tiny.mistral(window=4), tiny.mistral(window=400)
    with shared_attention(near):
        first = SharedRows(near, NOTHING, 1)
        first.absorb([list(range(10))])
        rows = SharedRows(near, first.as_prefix(), 2)
        rows.absorb([[20], list(range(30, 40))])
        check_step(near, rows, [5, 6])
    # The control: the window does change these numbers.
    tokens = (*range(10), 20, 5)
    assert np.abs(plain_logits(near, tokens) - plain_logits(far, tokens)).max() > 0.01


def test_the_prefix_is_kept_once_for_all_rows(model: Any) -> None:
    with shared_attention(model):
        first = SharedRows(model, NOTHING, 1)
        first.absorb([list(range(200))])
        few, many = (SharedRows(model, first.as_prefix(), count) for count in (1, 8))
        few.step([1])
        many.step([1])
    assert many.bytes == 8 * few.bytes
    assert few.bytes < first.bytes


def test_the_models_own_attention_is_back_afterwards(model: Any) -> None:
    before = model.config._attn_implementation
    with shared_attention(model):
        assert model.config._attn_implementation != before
    assert model.config._attn_implementation == before
    with pytest.raises(ZeroDivisionError), shared_attention(model):
        raise ZeroDivisionError
    assert model.config._attn_implementation == before


def gemma2() -> Any:
    """Its attention squeezes its logits."""
    torch.manual_seed(7)
    model: Any = Gemma2ForCausalLM(
        Gemma2Config(
            vocab_size=tiny.VOCABULARY,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=8,
        )
    )
    return model.eval()


def test_attention_with_squeezed_logits_is_refused_and_said() -> None:
    model = gemma2()
    before = model.config._attn_implementation
    reason = BatchDecoder(model).plain_reason
    assert reason is not None
    assert "refuses a shared prefix (NotImplementedError: attention with soft-capped" in reason
    assert model.config._attn_implementation == before


def test_attention_with_sinks_is_refused() -> None:
    from pytest_failgain.scoring.shared_rows import _attend

    nothing = torch.zeros(1, 1, 1, 1)
    with pytest.raises(NotImplementedError, match="sinks"):
        _attend(None, nothing, nothing, nothing, nothing, 1.0, shared_rows=None, s_aux=nothing)  # type: ignore[arg-type]


def test_models_with_plain_attention_share_their_prefix(model: Any) -> None:
    assert BatchDecoder(model).plain_reason is None
