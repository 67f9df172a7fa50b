from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tiny_language_models as tiny
from pytest_failgain.blocking.block import WAYS, Block
from pytest_failgain.errors import ScoringError
from pytest_failgain.replies import CALL_LINES
from pytest_failgain.scoring import decoding
from pytest_failgain.scoring.decoding import BatchDecoder, Task
from pytest_failgain.scoring.protocol import Sampling
from pytest_failgain.scoring.vocabulary import Vocabulary
from pytest_failgain.scoring.writing import BRANCHES, Writing
from scripted_models import PieceTokenizer, write
from strategies import quick

MODELS = {"full": tiny.llama, "sliding": tiny.mistral, "mixed": tiny.gemma3, "none": tiny.mamba}
VOCABULARY = Vocabulary.of(tiny.llama(), tiny.byte_tokenizer())
MOST = 6
Prompt = tuple[int, ...]


@pytest.fixture(scope="module", params=list(MODELS.values()), ids=list(MODELS))
def model(request: pytest.FixtureRequest) -> Any:
    make: Callable[[], Any] = request.param
    return make()


@pytest.fixture(scope="module")
def llama() -> Any:
    return tiny.llama()


def task(
    prompt: Sequence[int],
    sampling: Sampling | None = None,
    block: Block | None = None,
    most: int = MOST,
) -> Task:
    return Task(tuple(prompt), Writing(VOCABULARY, CALL_LINES, most, block), sampling)


def written(decoder: BatchDecoder, *tasks: Task) -> list[list[int]]:
    """The tokens of the replies."""
    decoder.write(tasks)
    assert all(one.writing.ended for one in tasks)
    return [one.writing.tokens for one in tasks]


def plainly(model: Any, prompt: Prompt, most: int = MOST) -> list[int]:
    """What a loop over whole passes writes."""
    reply: list[int] = []
    while len(reply) < most:
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([[*prompt, *reply]]), use_cache=False).logits
        token = int(logits[0, -1].argmax())
        if token in VOCABULARY.stops:
            break
        reply.append(token)
        if CALL_LINES.is_over(VOCABULARY.text(reply)):
            break
    return reply


@torch.inference_mode()
def blocked_plainly(model: Any, prompt: Prompt, block: Block) -> list[int]:
    """What whole passes write where `block` is in the way."""
    writing = Writing(VOCABULARY, CALL_LINES, MOST, block)
    while not writing.ended:
        ids = torch.tensor([[*prompt, *writing.tokens]])
        logits = model(input_ids=ids, use_cache=False).logits[0, -1]
        best = logits.log_softmax(-1).topk(BRANCHES)
        others = list(zip(best.indices.tolist(), best.values.tolist(), strict=True))
        writing.take(logits, others[0][0], others if writing.searches else ())
    return writing.tokens


BEGINNINGS = ((), tuple(range(40, 52)), tuple(range(90, 130)), (*range(40, 52), 7, 8, 9))
tokens = st.integers(0, 250)
prompts = st.tuples(
    st.sampled_from(BEGINNINGS), st.lists(tokens, min_size=1, max_size=6).map(tuple)
).map(lambda parts: parts[0] + parts[1])


@st.composite
def batches(draw: st.DrawFn) -> list[Prompt]:
    """Prompts, some of them equal and some the beginnings of others."""
    chosen = draw(st.lists(prompts, min_size=1, max_size=5))
    again = draw(st.lists(st.sampled_from(chosen), max_size=3))
    cut = [one[: draw(st.integers(1, len(one)))] for one in again]
    longer = [(*one, *draw(st.lists(tokens, max_size=3))) for one in cut]
    return draw(st.permutations([*chosen, *again, *cut, *longer]))


@settings(quick, max_examples=8)
@given(st.lists(batches(), min_size=1, max_size=3), st.sampled_from([1, 2, 3, 32]))
def test_together_each_prompt_gets_what_a_plain_loop_gives_it(
    model: Any, rounds: list[list[Prompt]], rows_at_once: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "_ROWS_AT_ONCE", rows_at_once)
        patch.setattr(decoding, "_TOKENS_AT_ONCE", 7)
        # Several rounds, since what one leaves behind must not change the next.
        decoder = BatchDecoder(model)
        for batch in rounds:
            replies = written(decoder, *map(task, batch))
            assert replies == [plainly(model, prompt) for prompt in batch]


@pytest.mark.parametrize("way", WAYS)
def test_together_a_block_gives_what_whole_passes_give(model: Any, way: str) -> None:
    prompts = [(*range(40, 60), last) for last in range(6)]
    free = written(BatchDecoder(model), *map(task, prompts))
    block = Block(tuple(map(VOCABULARY.text, free)), CALL_LINES, way=way)
    together = written(BatchDecoder(model), *(task(prompt, block=block) for prompt in prompts))
    assert together == [blocked_plainly(model, prompt, block) for prompt in prompts]
    assert not any(block.repeats(VOCABULARY.text(reply)) for reply in together)


def test_a_model_without_attention_is_read_plainly_and_that_is_said() -> None:
    reason = BatchDecoder(tiny.mamba()).plain_reason
    assert reason is not None
    assert BatchDecoder(tiny.llama()).plain_reason is None


def test_a_shared_beginning_is_read_once(llama: Any) -> None:
    decoder = BatchDecoder(llama)
    system = tuple(range(100))
    written(decoder, *(task((*system, 1, last), most=1) for last in range(8)))
    # All share 101 tokens, and each has one more to be read.
    assert decoder.tokens == 101 + 8


def test_a_step_pays_only_for_what_it_adds(llama: Any) -> None:
    decoder = BatchDecoder(llama)
    system = tuple(range(100))
    prompts = [(*system, last) for last in (1, 2, 3)]
    first = written(decoder, *map(task, prompts))
    before = decoder.tokens
    longer = [
        (*prompt, *reply, 200, 201, 202) for prompt, reply in zip(prompts, first, strict=True)
    ]
    written(decoder, *(task(prompt, most=1) for prompt in longer))
    # Besides what is new, at most the reply's last token, which was never read.
    assert decoder.tokens - before == 3 * (3 + 1)


def test_a_beginning_that_is_used_again_is_not_read_again(llama: Any) -> None:
    decoder = BatchDecoder(llama)
    one, other = tuple(range(100)), tuple(range(100, 200))
    for beginning in (one, other):
        written(decoder, *(task((*beginning, 1, last), most=1) for last in range(3)))
    before = decoder.tokens
    # The rows of `one` are forgotten by now; its beginning is not.
    written(decoder, *(task((*one, 1, last), most=1) for last in (7, 8, 9)))
    assert decoder.tokens - before == 3


def test_part_of_a_longer_beginning_is_not_read_again(llama: Any) -> None:
    decoder = BatchDecoder(llama)
    written(decoder, *(task((*range(100), 1, last), most=1) for last in range(3)))
    before = decoder.tokens
    # Only half as much is shared with what comes now, and then something else.
    written(decoder, *(task((*range(60), *range(200, 240), last), most=1) for last in range(3)))
    assert decoder.tokens - before == 40 + 3


def test_rows_of_finished_replies_cost_nothing_more(llama: Any) -> None:
    decoder = BatchDecoder(llama)
    short, long = task((*range(9), 50, 51), most=1), task((*range(9), 60, 61), most=9)
    decoder.write([short, long])
    # The beginning, what each prompt has besides, and then a token each step.
    assert decoder.tokens == 9 + 2 + 1 + long.writing.n_decoded
    assert long.writing.n_decoded > 2


def test_the_same_tokens_behind_another_beginning_are_read_again(llama: Any) -> None:
    decoder = BatchDecoder(llama)
    for beginning in (range(40), range(100, 140)):
        prompts = [(*beginning, last, *range(60, 80)) for last in (1, 2)]
        replies = written(decoder, *map(task, prompts))
        assert replies == [plainly(llama, prompt) for prompt in prompts]


def test_only_the_last_batches_are_kept(llama: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = BatchDecoder(llama)
    two_kinds = [(*start, last) for start in ((1, 2), (100, 101)) for last in (3, 4)]
    for _ in range(3):
        written(decoder, *map(task, two_kinds))
        assert len(decoder._kept) == 2
    monkeypatch.setattr(decoding, "_BYTES_KEPT", decoder._kept[1].bytes)
    written(decoder, *map(task, two_kinds))
    assert len(decoder._kept) == 1
    monkeypatch.setattr(decoding, "_BYTES_KEPT", 0)
    written(decoder, *map(task, two_kinds))
    assert not decoder._kept


def test_what_each_has_for_itself_may_be_longer_than_what_all_share(llama: Any) -> None:
    decoder = BatchDecoder(llama)
    prompts = [(*range(20), *range(100 + own, 160 + own)) for own in range(12)]
    written(decoder, *map(task, prompts))
    before = decoder.tokens
    longer = [task((*prompt, 7, 8), most=1) for prompt in prompts]
    written(decoder, *longer)
    # The first call read all of a prompt but what comes out of it; then two more tokens each.
    assert decoder.tokens - before <= len(prompts) * 3


def test_a_beginning_within_another_does_not_take_its_rows_away(llama: Any) -> None:
    decoder = BatchDecoder(llama)
    written(decoder, task((*range(102), 200)), task((*range(102), 201)))
    written(decoder, task((*range(100), 202)), task((*range(100), 203)))
    prompts = [(*range(102), 200), (*range(102), 201)]
    written(decoder, *map(task, prompts))
    for more in range(3):
        before = decoder.tokens
        prompts = [(*prompt, 210 + more) for prompt in prompts]
        written(decoder, *(task(prompt, most=1) for prompt in prompts))
        assert decoder.tokens - before <= 2 * len(prompts)


def test_rows_are_filled_up_only_where_the_model_has_positions() -> None:
    model = tiny.gpt2()
    prompts = [(*range(61),), (*range(1, 52),)]
    decoder = BatchDecoder(model)
    assert decoder.plain_reason is None
    assert written(decoder, *(task(prompt, most=3) for prompt in prompts)) == [
        plainly(model, prompt, most=3) for prompt in prompts
    ]


def test_memory_bounds_how_many_are_under_way(llama: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = [(*range(30), last, *range(9)) for last in range(6)]
    expected = written(BatchDecoder(llama), *map(task, prompts))
    decoder = BatchDecoder(llama)
    written(decoder, task(prompts[0]))
    bytes_of_a_row = decoder._prefixes[0].token_bytes * 75
    monkeypatch.setattr(decoding, "_BYTES_AT_ONCE", 2 * bytes_of_a_row)
    decoder = BatchDecoder(llama)
    assert written(decoder, *map(task, prompts)) == expected
    assert [len(rows.tokens) for rows in decoder._kept] == [2, 2, 2]


@pytest.mark.parametrize("fails_at", [1, 2, 3, 5])
def test_an_error_in_the_model_leaves_nothing_stale_behind(
    fails_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny.llama()
    decoder = BatchDecoder(model)
    prompts = [(*range(60), last, *range(9)) for last in (70, 71)]
    other = [(*range(60), last, *range(30, 39)) for last in (80, 81)]
    expected = [plainly(model, prompt) for prompt in prompts + other]
    written(decoder, *map(task, prompts))
    forward, calls = model.lm_head.forward, []

    def failing(hidden: Any) -> Any:
        calls.append(hidden)
        if len(calls) == fails_at:
            raise ZeroDivisionError
        return forward(hidden)

    monkeypatch.setattr(model.lm_head, "forward", failing)
    with pytest.raises(ZeroDivisionError):
        written(decoder, *map(task, other))
    monkeypatch.undo()
    assert written(decoder, *map(task, prompts + other)) == expected


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("sampling", [None, Sampling(1.0, "a")])
def test_logits_that_are_no_numbers_are_refused(value: float, sampling: Sampling | None) -> None:
    model = tiny.llama()
    with torch.no_grad():
        model.lm_head.weight.fill_(value)
    with pytest.raises(ScoringError, match=r"no numbers.*--failgain-dtype float32"):
        written(BatchDecoder(model), task((1, 2, 3), sampling))


def test_the_same_key_draws_the_same_reply_whatever_else_is_decoded(model: Any) -> None:
    prompt, sampling = (*range(40, 60), 1), Sampling(1.5, "task 3, step 1")
    (alone,) = written(BatchDecoder(model), task(prompt, sampling))
    others = [task((*range(40, 60), 2), Sampling(1.5, str(key))) for key in range(5)]
    replies = written(BatchDecoder(model), *others[:2], task(prompt, sampling), *others[2:])
    assert replies[2] == alone
    assert len(set(map(tuple, replies))) > 3


def drawn(chances: Sequence[float], temperature: float, key: str) -> int:
    """The first token of a reply that these are the chances of."""
    logits = torch.tensor(chances).log().tolist()
    tokenizer = PieceTokenizer("abcd")
    sampling = Sampling(temperature, key)
    return write(lambda reply: logits, tokenizer, max_tokens=1, sampling=sampling).tokens[0]


@pytest.mark.parametrize(
    ("temperature", "expected"),
    [(1.0, (0.1, 0.2, 0.7)), (0.5, (0.0185, 0.0741, 0.9074)), (4.0, (0.2562, 0.3047, 0.4391))],
)
def test_tokens_are_drawn_as_often_as_the_softmax_says(
    temperature: float, expected: Sequence[float]
) -> None:
    count = 600
    counts = Counter(
        drawn((1e-30, 0.1, 0.2, 0.7), temperature, f"key {index}") for index in range(count)
    )
    for token, share in enumerate(expected, start=1):
        # Four standard errors.
        bound = 4 * (share * (1 - share) / count) ** 0.5
        assert counts[token] / count == pytest.approx(share, abs=bound)


def test_prompts_with_the_same_key_have_the_same_luck() -> None:
    # Two contexts that differ a little draw mostly the same tokens; with luck of their own, half.
    same = sum(
        drawn((1e-30, 0.5, 0.5), 1.0, str(key)) == drawn((1e-30, 0.45, 0.55), 1.0, str(key))
        for key in range(200)
    )
    assert same > 170


def test_places_of_a_reply_have_luck_of_their_own() -> None:
    logits = torch.tensor([1e-30, 0.25, 0.25, 0.25, 0.25]).log().tolist()
    writing = write(
        lambda reply: logits, PieceTokenizer("abcd"), max_tokens=40, sampling=Sampling(1.0, "a")
    )
    counts = Counter(writing.tokens)
    assert len(counts) == 4
    assert min(counts.values()) > 2


def test_luck_is_never_endless() -> None:
    # In this draw numpy's exponential for the token 277,770 is 0.
    assert decoding._gumbel("key 13", 0, 277_771).max() < 20
