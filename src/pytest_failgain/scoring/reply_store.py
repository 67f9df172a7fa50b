"""Replies that were decoded already: equal requests are decoded once, and a killed run goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

from pytest_failgain.kept_rows import KeptRows
from pytest_failgain.replies import ReplyStyle
from pytest_failgain.scoring.protocol import Reply, ReplyRequest
from pytest_failgain.scoring.token_tree import Tokens
from pytest_failgain.scoring.writing import BRANCHES, TRIES

# In the file's name, so that a later format, or another way to decode, does not meet these rows.
FORMAT = 1

_MOST_ROWS = 200_000  # about 60 MB


class KnownReplies(Protocol):
    """Where a decoder looks before it decodes, and puts what it decoded."""

    def get(self, key: bytes) -> Reply | None: ...

    def put_all(self, replies: Iterable[tuple[bytes, Reply]]) -> None: ...


class ReplyCache:
    """Replies of this process."""

    def __init__(self) -> None:
        self._replies: dict[bytes, Reply] = {}

    def get(self, key: bytes) -> Reply | None:
        """The reply under `key`, or None if there is none."""
        return self._replies.get(key)

    def put_all(self, replies: Iterable[tuple[bytes, Reply]]) -> None:
        """Keep these replies."""
        self._replies.update(replies)


class ReplyStore:
    """Replies of the model `model`, in the file at `path`, which holds those of all models.

    `model` has to tell apart whatever gives other replies: weights, tokenizer, dtype. `warn` is
    told when the file is no use.
    """

    def __init__(self, path: Path, model: str, warn: Callable[[str], None] | None = None) -> None:
        self._path = path
        self._model = model.encode()
        self._warn = warn
        self._remembered = ReplyCache()

    @cached_property
    def _rows(self) -> KeptRows:
        # Opened at first use: whoever only scores has no such file.
        return KeptRows(self._path, "replies", ("reply",), _MOST_ROWS, self._warn)

    def get(self, key: bytes) -> Reply | None:
        """The reply under `key`, or None if there is none."""
        reply = self._remembered.get(key)
        if reply is not None:
            return reply
        row = self._rows.get(self._own(key))
        if row is None:
            return None
        try:
            return Reply(**json.loads(row[0]))
        except (ValueError, TypeError) as error:
            self._rows.begin_anew(f"a row holds no reply: {error}")
            return None

    def put_all(self, replies: Iterable[tuple[bytes, Reply]]) -> None:
        """Keep these replies: all of them are on disk when this returns, or none."""
        kept = list(replies)
        self._remembered.put_all(kept)
        self._rows.put_all(
            [(self._own(key), json.dumps(_fields(reply)).encode()) for key, reply in kept]
        )

    def _own(self, key: bytes) -> bytes:
        return blake2b(key + self._model, digest_size=16).digest()


def _fields(reply: Reply) -> dict[str, Any]:
    """All of a reply but its adaptations, which are of messages and not of tokens."""
    fields = asdict(reply)
    del fields["adaptations"]
    return fields


def request_key(prompt: Tokens, request: ReplyRequest) -> bytes:
    """A digest of all that decides the reply to `request`, whose prompt has these tokens."""
    block, sampling = request.block or None, request.sampling
    decisive = (
        list(prompt),
        _read_in(request.style),
        request.max_tokens,
        block and (_read_in(block.style), block.match, block.way, sorted(set(block.actions))),
        (TRIES, BRANCHES),
        sampling and (sampling.temperature, sampling.key),
    )
    return blake2b(json.dumps(decisive).encode(), digest_size=16).digest()


def _read_in(style: ReplyStyle) -> tuple[str, bool, bool]:
    return style.name, style.one_line, style.self_ending
