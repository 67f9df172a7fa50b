"""`LocalScorer.decode`: what becomes of requests before and after the tokens are written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

import tiny_language_models as tiny
from pytest_failgain.blocking.block import Block
from pytest_failgain.environments.program_repair.replies import PROGRAMS
from pytest_failgain.errors import ScoringError
from pytest_failgain.prompt import Prompt
from pytest_failgain.replies import CALL_LINES
from pytest_failgain.scoring.local import LocalScorer
from pytest_failgain.scoring.protocol import Refusal, Reply, ReplyRequest, Sampling
from pytest_failgain.scoring.reply_store import ReplyStore


def request(text: str = "Book a room.", **settings: Any) -> ReplyRequest:
    prompt = Prompt(messages=({"role": "user", "content": text},))
    return ReplyRequest(prompt, **{"style": CALL_LINES, "max_tokens": 8, **settings})


def decoded(scorer: LocalScorer, *requests: ReplyRequest) -> list[Reply]:
    replies = scorer.decode(requests)
    assert all(isinstance(reply, Reply) for reply in replies)
    return [reply for reply in replies if isinstance(reply, Reply)]


def computed(scorer: LocalScorer) -> int:
    """How many tokens went through the model for replies."""
    return scorer.load().decoder.tokens


def always(token: int) -> LocalScorer:
    """A model that says nothing but `token`."""
    model = tiny.llama()
    with torch.no_grad():
        model.lm_head.weight.zero_()
    forward = model.lm_head.forward

    def one(hidden: Any) -> Any:
        logits = forward(hidden).clone()
        logits[..., token] = 1.0
        return logits

    model.lm_head.forward = one
    return tiny.tiny_scorer(model)


def token_of(text: str) -> int:
    (token,) = tiny.byte_tokenizer().encode(text, add_special_tokens=False)
    return int(token)


def test_replies_come_in_the_order_of_their_requests() -> None:
    texts = ["Hi.", "Book a room.", "Hello there."]
    together = decoded(tiny.tiny_scorer(), *map(request, texts))
    assert together == [decoded(tiny.tiny_scorer(), request(text))[0] for text in texts]
    assert len({reply.text for reply in together}) == 3


def test_equal_requests_are_decoded_once() -> None:
    one, several = tiny.tiny_scorer(), tiny.tiny_scorer()
    (reply,) = decoded(one, request())
    assert decoded(several, request(), request(), request()) == [reply] * 3
    assert computed(several) == computed(one)
    decoded(several, request())
    assert computed(several) == computed(one)


def test_known_replies_are_not_decoded_by_another_scorer(tmp_path: Path) -> None:
    path = tmp_path / "replies.db"
    (reply,) = decoded(tiny.tiny_scorer(known_replies=ReplyStore(path, "tiny")), request())
    second = tiny.tiny_scorer(known_replies=ReplyStore(path, "tiny"))
    assert decoded(second, request()) == [reply]
    assert computed(second) == 0


@pytest.mark.parametrize(
    "change",
    [
        {"style": PROGRAMS},
        {"max_tokens": 7},
        {"block": Block(("f()",), CALL_LINES)},
        {"sampling": Sampling(1.0, "a")},
    ],
)
def test_a_request_that_differs_is_decoded(tmp_path: Path, change: dict[str, Any]) -> None:
    scorer = tiny.tiny_scorer(known_replies=ReplyStore(tmp_path / "replies.db", "tiny"))
    decoded(scorer, request())
    before = computed(scorer)
    decoded(scorer, replace(request(), **change))
    assert computed(scorer) > before


def test_a_context_that_leaves_no_room_is_refused_by_name() -> None:
    refusal, reply = tiny.tiny_scorer().decode([request("x" * tiny.CONTEXT), request()])
    assert isinstance(refusal, Refusal)
    assert f"the model takes {tiny.CONTEXT}" in refusal.reason
    assert isinstance(reply, Reply)


@pytest.mark.parametrize("room", [1, 3])
def test_a_reply_is_cut_to_the_room_that_is_left(room: int) -> None:
    scorer = always(token_of("x"))
    used = scorer.count_prompt_tokens(request("").prompt)
    (reply,) = decoded(scorer, request("x" * (tiny.CONTEXT - used - room)))
    assert (reply.n_tokens, reply.ended) == (room, "length")
    assert reply.prompt_tokens == tiny.CONTEXT - room
    (refusal,) = scorer.decode([request("x" * (tiny.CONTEXT - used))])
    assert isinstance(refusal, Refusal)


def test_how_the_prompt_was_adapted_is_told() -> None:
    messages = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi."})
    scorer = tiny.tiny_scorer(template=tiny.NO_SYSTEM, fold_system=True)
    adapted = replace(request(), prompt=Prompt(messages=messages))
    (reply,) = decoded(scorer, adapted)
    assert reply.adaptations == scorer.renderer.render(adapted.prompt).adaptations != ()


def test_each_of_two_prompts_with_the_same_tokens_tells_how_it_was_adapted() -> None:
    scorer = tiny.tiny_scorer(template=tiny.NO_SYSTEM, fold_system=True)
    system, user = {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi."}
    by_hand = {"role": "user", "content": "Be brief.\n\nHi."}
    folded, plain = (
        replace(request(), prompt=Prompt(messages=messages))
        for messages in ((system, user), (by_hand,))
    )
    (first,), (second,) = decoded(scorer, plain), decoded(scorer, folded)
    assert first.text == second.text
    assert first.prompt_tokens == second.prompt_tokens
    assert first.adaptations == ()
    assert second.adaptations == scorer.renderer.render(folded.prompt).adaptations != ()


def test_plain_passes_are_told() -> None:
    (reply,) = decoded(tiny.tiny_scorer(tiny.mamba()), request())
    assert reply.adaptations[-1].startswith("decoded by plain passes, slowly: ")
    (usual,) = decoded(tiny.tiny_scorer(), request())
    assert usual.adaptations == ()


def test_a_model_that_never_stops_is_cut() -> None:
    (reply,) = decoded(always(token_of("x")), request())
    assert (reply.text, reply.ended, reply.n_tokens) == ("x" * 8, "length", 8)


def test_a_model_that_says_nothing_has_said_so() -> None:
    end = tiny.byte_tokenizer().eos_token_id
    (reply,) = decoded(always(end), request(block=Block(("f()",), CALL_LINES)))
    assert (reply.text, reply.ended, reply.n_tokens, reply.n_decoded) == ("", "stop", 0, 1)


def test_bytes_that_are_no_character_are_no_error() -> None:
    half = tiny.byte_tokenizer().encode("é", add_special_tokens=False)[0]
    block = Block(("f()", "\ufffd"), CALL_LINES)
    (reply,) = decoded(always(half), request(block=block))
    assert reply.text == "\ufffd" * 8


def test_a_token_that_the_tokenizer_lacks_is_no_error() -> None:
    # Many models have more logits than their tokenizers have tokens.
    (reply,) = decoded(always(tiny.VOCABULARY - 1), request(block=Block(("f()",), CALL_LINES)))
    assert (reply.text, reply.ended, reply.n_tokens) == ("", "length", 8)


def test_blocked_actions_are_counted() -> None:
    scorer = always(token_of("x"))
    (reply,) = decoded(scorer, request(max_tokens=3, block=Block(("xxx",), CALL_LINES)))
    assert (reply.blocked, reply.ended) == (1, "length")
    assert reply.text != "xxx"


def test_an_error_in_the_model_is_told_and_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scorer = tiny.tiny_scorer()
    expected = decoded(tiny.tiny_scorer(), request("Hello there."))
    decoded(scorer, request("Hello you."))
    monkeypatch.setattr(scorer.model.lm_head, "forward", lambda hidden: 1 / 0)
    with pytest.raises(ScoringError, match=r"can't write replies: ZeroDivisionError: .* memory"):
        scorer.decode([request("Hello there.")])
    monkeypatch.undo()
    assert decoded(scorer, request("Hello there.")) == expected
