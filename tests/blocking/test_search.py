from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

import tiny_language_models as tiny
from pytest_failgain.blocking.block import MATCHES, WAYS, Block
from pytest_failgain.blocking.search import generate_blocked
from pytest_failgain.environments.program_repair.replies import PROGRAMS
from pytest_failgain.errors import FailgainError, ScoringError, UsageError
from pytest_failgain.models import resolve
from pytest_failgain.replies import CALL_LINES, ReplyStyle
from pytest_failgain.scoring.vocabulary import Vocabulary
from scripted_models import (
    STOP,
    Logits,
    PieceTokenizer,
    ScriptedModel,
    bent_on,
    tree,
    write,
)

TOKENIZER = PieceTokenizer(["f", "g", "(", ")", "x", "y"])
CHANCES = {
    "": {"f": 0.6, "g": 0.4},
    "f": {"(": 1.0},
    "g": {"(": 1.0},
    "f(": {")": 0.8, "x": 0.2},
    "g(": {")": 1.0},
    "f(x": {")": 1.0},
}
PROMPT = torch.tensor([[3, 3]])
MODEL = ScriptedModel(tree(TOKENIZER, CHANCES), len(TOKENIZER.pieces), prompt_length=2)


def reply(**settings: Any) -> str:
    ids = generate_blocked(MODEL, TOKENIZER, PROMPT, ["f()"], **settings)
    assert ids.dtype == PROMPT.dtype
    assert ids.shape[0] == 1
    assert ids[:, :2].equal(PROMPT)
    return TOKENIZER.decode(ids[0, 2:].tolist())


def test_a_search_gives_the_likeliest_other_reply_behind_its_prompt() -> None:
    assert reply() == "g()"


@pytest.mark.parametrize("settings", [{"way": "masked"}, {"tries": 0}])
def test_a_mask_takes_the_next_best_token(settings: dict[str, Any]) -> None:
    assert reply(**settings) == "f(x)"


def test_a_reply_is_cut_at_the_most_new_tokens() -> None:
    assert reply(max_new_tokens=2) == "f("


def test_seeds_draw_different_replies_and_the_same_seed_the_same() -> None:
    drawn = {seed: reply(temperature=1.0, seed=seed, way="masked") for seed in range(20)}
    assert len(set(drawn.values())) == 2
    assert "f()" not in drawn.values()
    assert all(reply(temperature=1.0, seed=seed, way="masked") == drawn[seed] for seed in drawn)


def test_where_only_a_failed_action_can_be_said_the_reply_is_empty() -> None:
    only = PieceTokenizer(["go"])
    impossible = -float("inf")
    model = ScriptedModel(lambda said: [0.0 if said else impossible, impossible if said else 0], 2)
    ids = generate_blocked(model, only, torch.tensor([[1]]), ["go"])
    assert ids.tolist() == [[1]]


@pytest.mark.parametrize("shape", [(3,), (2, 3), (1, 0), (1, 1, 3)])
def test_anything_but_one_prompt_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match=r"one prompt, shape \(1, tokens\), not"):
        generate_blocked(MODEL, TOKENIZER, torch.zeros(shape, dtype=torch.long), ["f()"])


@pytest.mark.parametrize("wrong", [{"max_new_tokens": 0}, {"tries": -1}])
def test_numbers_that_are_too_small_are_refused_by_name(wrong: dict[str, Any]) -> None:
    ((name, value),) = wrong.items()
    with pytest.raises(UsageError, match=rf"{name} must be {value + 1} or more, not {value}"):
        reply(**wrong)


@pytest.mark.parametrize("wrong", [{"way": "banned"}, {"match": "fuzzy"}])
def test_unknown_ways_and_matches_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="there is no"):
        reply(**wrong)


def test_a_model_that_gives_no_numbers_is_told() -> None:
    model = tiny.llama()
    with torch.no_grad():
        model.lm_head.weight.fill_(float("nan"))
    with pytest.raises(ScoringError, match="--failgain-dtype float32"):
        generate_blocked(model, tiny.byte_tokenizer(), PROMPT, ["f()"])


@pytest.mark.parametrize("way", WAYS)
def test_a_real_model_writes_its_greedy_reply_where_nothing_is_in_the_way(way: str) -> None:
    model, tokenizer = tiny.llama(), tiny.byte_tokenizer()
    ids = torch.tensor([[40, 41, 42]])
    written = generate_blocked(model, tokenizer, ids, ["f()"], way=way, max_new_tokens=8)
    free = generate_blocked(model, tokenizer, ids, [], way=way, max_new_tokens=8)
    assert written.equal(free)
    plain = ids
    for _ in range(written.shape[1] - ids.shape[1]):
        plain = torch.cat([plain, model(plain).logits[:, -1:].argmax(-1)], dim=1)
    assert written.equal(plain)


REAL_FAILED = (
    (CALL_LINES, "book_room(room='Möwe', day='Monday', hours=[9, 10])"),
    (CALL_LINES, "find_contact"),
    (CALL_LINES, "I can't do that."),
    (CALL_LINES, '{"name": "send", "arguments": {"to": "Al", "text": "Hi (you)"}}'),
    (PROGRAMS, "def double(a):\n    return a + a\n"),
)
REAL_REWRITINGS = (
    *(("{}", "{}"), ("{}", "Action: {}"), ("{}", "`{}`"), ("{}", "```python\n{}\n```")),
    *(("{}", "({})"), ("{}", "\n {}"), ("day='Monday'", "day='Friday', day='Monday'")),
    *(("'", '"'), (", ", " ,  "), ("room='Möwe', day='Monday'", "day='Monday', room='Möwe'")),
    *(("{}", "{} # again"), ("a + a", "(a+a)  # twice"), ("Möwe", "M\\xf6we")),
)


class RealVocabulary:
    """SmolLM2's tokens: what a script says of some of them, spread over all."""

    def __init__(self, tokenizer: Any) -> None:
        stop = tokenizer.eos_token_id
        self.vocabulary = Vocabulary(tokenizer, frozenset({stop}))
        self._stop = stop
        self._pieces = [tokenizer.decode([token]).encode() for token in range(len(tokenizer))]

    def bent_on(self, texts: Sequence[str], seed: int) -> Logits:
        """The logits of a model that knows the pieces of `texts`, all letters and the end."""
        together = "\n".join(texts).encode()
        useful = (
            token
            for token, piece in enumerate(self._pieces)
            if token != self._stop and (len(piece) == 1 or (piece.strip() and piece in together))
        )
        known = [self._stop, *useful]
        places = {token: place for place, token in enumerate(known)}
        script = bent_on(texts, [b"", *(self._pieces[token] for token in known[1:])], seed)

        def logits(reply: tuple[int, ...]) -> list[float]:
            row = [-100.0] * len(self._pieces)
            said = tuple(places.get(token, STOP) for token in reply)
            for token, score in zip(known, script(said), strict=True):
                row[token] = score
            return row

        return logits


@pytest.fixture(scope="module")
def real() -> RealVocabulary:
    """Skips the test where the model is not at hand."""
    from transformers import AutoTokenizer

    try:
        path = resolve("smollm2-135m", offline=True).path
    except FailgainError as error:
        pytest.skip(f"SmolLM2's tokenizer is not here: {error}")
    return RealVocabulary(AutoTokenizer.from_pretrained(path))


def rewritings(luck: random.Random, text: str) -> list[str]:
    """`text`, and what becomes of it by some rewritings one after the other."""
    texts = [text]
    for old, new in luck.sample(REAL_REWRITINGS, 3):
        texts.append(new.format(texts[-1]) if old == "{}" else texts[-1].replace(old, new))
    return texts


@pytest.mark.model
@pytest.mark.parametrize(("style", "failed"), REAL_FAILED)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("match", MATCHES)
def test_no_failed_action_comes_of_the_tokens_of_a_real_tokenizer(
    match: str, way: str, style: ReplyStyle, failed: str, real: RealVocabulary
) -> None:
    luck = random.Random(f"{match} {way} {failed}")
    block = Block((failed,), style, match=match, way=way)
    for max_tokens in (6, 15, 40):
        writing = write(
            real.bent_on(rewritings(luck, failed), luck.randrange(1000)),
            real.vocabulary,
            (failed,),
            way=way,
            match=match,
            style=style,
            max_tokens=max_tokens,
        )
        assert not block.repeats(writing.text), writing.text
