"""The search way of blocking, for code that has a transformers model of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pytest_failgain.blocking.block import Block
from pytest_failgain.errors import UsageError
from pytest_failgain.replies import CALL_LINES, ReplyStyle
from pytest_failgain.scoring.decoding import BatchDecoder, Task
from pytest_failgain.scoring.protocol import Sampling
from pytest_failgain.scoring.vocabulary import Vocabulary
from pytest_failgain.scoring.writing import TRIES, Writing

if TYPE_CHECKING:
    import torch


def generate_blocked(
    model: Any,
    tokenizer: Any,
    input_ids: torch.Tensor,
    actions: Sequence[str],
    *,
    way: str = "searched",
    match: str = "canonical",
    style: ReplyStyle = CALL_LINES,
    max_new_tokens: int = 64,
    tries: int = TRIES,
    temperature: float = 0.0,
    seed: int = 0,
) -> torch.Tensor:
    """Write a reply that makes none of the failed `actions` again.

    `model` and `tokenizer` are those of transformers, `input_ids` the tokens of one prompt, shape
    (1, tokens). A "searched" reply is written greedily (or drawn, with a `temperature`); where it
    comes to a failed action it goes back to the likeliest branch not taken, of the whole reply, and
    goes on from there, at most `tries` times; after that the token that completes a failed action
    is forbidden, as it is at once in a "masked" one. `match` and `style` are those of `Block`.

    Returns prompt and reply, without the token that ended it, shape (1, tokens + reply). The reply
    is empty where nothing could be said but a failed action.

    Raises:
        ScoringError: when the model gives numbers that are none.
        UsageError: when `input_ids` is not one prompt, or an argument is none that fits.
    """
    import torch

    if input_ids.dim() != 2 or input_ids.shape[0] != 1 or input_ids.shape[1] == 0:
        raise UsageError(
            f"input_ids must be the tokens of one prompt, shape (1, tokens), not "
            f"{tuple(input_ids.shape)}; for several prompts call this for each"
        )
    for name, value, least in (("max_new_tokens", max_new_tokens, 1), ("tries", tries, 0)):
        if value < least:
            raise UsageError(f"{name} must be {least} or more, not {value}")
    block = Block(actions, style, match=match, way=way)
    writing = Writing(Vocabulary.of(model, tokenizer), style, max_new_tokens, block, tries)
    sampling = Sampling(temperature, str(seed)) if temperature else None
    BatchDecoder(model).write([Task(tuple(input_ids[0].tolist()), writing, sampling)])
    reply = writing.tokens if writing.text else []
    return torch.cat([input_ids, input_ids.new_tensor([reply])], dim=1)
