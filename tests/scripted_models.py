"""Models whose logits are what a function says, and vocabularies of given pieces.

They stand where transformers' models and tokenizers do, and are asked in the same ways.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import torch

from pytest_failgain.blocking.block import Block
from pytest_failgain.replies import CALL_LINES, ReplyStyle
from pytest_failgain.scoring.decoding import BatchDecoder, Task
from pytest_failgain.scoring.protocol import Sampling
from pytest_failgain.scoring.vocabulary import Vocabulary
from pytest_failgain.scoring.writing import TRIES, Writing

STOP = 0
Logits = Callable[[tuple[int, ...]], Sequence[float]]


class PieceTokenizer:
    """Its tokens are `pieces`, joined and then decoded, as those of tokenizers over bytes are.

    Token 0 has no text and ends a turn.
    """

    eos_token_id = STOP

    def __init__(self, pieces: Iterable[str | bytes]) -> None:
        made = (piece.encode() if isinstance(piece, str) else piece for piece in pieces)
        self.pieces = [b"", *dict.fromkeys(piece for piece in made if piece)]

    def __len__(self) -> int:
        return len(self.pieces)

    def get_vocab(self) -> dict[str, int]:
        return {repr(piece): token for token, piece in enumerate(self.pieces)}

    def decode(self, tokens: Sequence[int], **_: Any) -> str:
        return self.joined(tokens).decode(errors="replace")

    def batch_decode(self, rows: Sequence[Sequence[int]], **_: Any) -> list[str]:
        return [self.decode(tokens) for tokens in rows]

    def joined(self, tokens: Iterable[int]) -> bytes:
        return b"".join(self.pieces[token] for token in tokens)

    def token(self, piece: str | bytes) -> int:
        return self.pieces.index(piece.encode() if isinstance(piece, str) else piece)

    def tokens(self, *pieces: str) -> list[int]:
        return [self.token(piece) for piece in pieces]


class ScriptedModel:
    """Gives `logits(reply)`, one for each of `size` tokens, behind a prompt of `prompt_length`."""

    device = torch.device("cpu")
    dtype = torch.float32

    def __init__(self, logits: Logits, size: int, prompt_length: int = 1) -> None:
        self._logits = logits
        self._prompt_length = prompt_length
        config = SimpleNamespace(vocab_size=size, layer_types=["scripted"])
        self.config: Any = SimpleNamespace(get_text_config=lambda: config)

    def __call__(self, input_ids: torch.Tensor, use_cache: bool) -> Any:
        reply = tuple(input_ids[0, self._prompt_length :].tolist())
        return SimpleNamespace(logits=torch.tensor([[self._logits(reply)]], dtype=torch.float32))


def write(
    logits: Logits,
    tokenizer: Any,
    actions: Sequence[str] = (),
    *,
    way: str = "masked",
    match: str = "canonical",
    style: ReplyStyle = CALL_LINES,
    max_tokens: int = 30,
    tries: int = TRIES,
    sampling: Sampling | None = None,
    stops: frozenset[int] = frozenset({STOP}),
) -> Writing:
    """A reply of a model with these logits that makes none of `actions` again.

    `tokenizer` may be a vocabulary that was made of one.
    """
    made = tokenizer if isinstance(tokenizer, Vocabulary) else Vocabulary(tokenizer, stops)
    block = Block(tuple(actions), style, match=match, way=way)
    writing = Writing(made, style, max_tokens, block, tries)
    BatchDecoder(ScriptedModel(logits, size=2)).write([Task((0,), writing, sampling)])
    return writing


def tree(
    tokenizer: PieceTokenizer, chances: Mapping[str, Mapping[str, float]], end: str = ""
) -> Logits:
    """What a model says that knows, for each text, how likely each next piece is.

    Behind other texts it says `end` for sure, which is the end of its turn unless told otherwise.
    """

    def logits(reply: tuple[int, ...]) -> list[float]:
        row = [-50.0] * len(tokenizer.pieces)
        for piece, chance in chances.get(tokenizer.decode(reply), {end: 1.0}).items():
            row[tokenizer.token(piece)] = float(torch.tensor(chance).log())
        return row

    return logits


def saying(tokenizer: PieceTokenizer, *pieces: str) -> Logits:
    """What a model says that wants to write these pieces, and likes all others less and less."""
    path = [*tokenizer.tokens(*pieces), STOP]

    def logits(reply: tuple[int, ...]) -> list[float]:
        row = [-1.0 - token for token in range(len(tokenizer.pieces))]
        row[path[min(len(reply), len(path) - 1)]] = 5.0
        return row

    return logits


def bent_on(texts: Sequence[str], pieces: Sequence[bytes], seed: int) -> Logits:
    """What a model says that wants nothing but `texts`, and then whatever can still pass for them.

    Which of their tokenisations it writes, and what it likes besides, depends on `seed`.
    """
    wanted = [text.encode(errors="replace") for text in texts]

    def logits(reply: tuple[int, ...]) -> list[float]:
        luck = random.Random(f"{seed} {reply}")
        said = b"".join(pieces[token] for token in reply)
        row = [luck.random() * 3 for _ in pieces]
        for token, piece in enumerate(pieces):
            after = said + piece
            if piece and any(text.startswith(after) for text in wanted):
                row[token] += 8
            elif piece and any(after.startswith(text) for text in wanted):
                row[token] += 5
        row[STOP] += 7 if said.strip() in wanted else 0
        return row

    return logits
