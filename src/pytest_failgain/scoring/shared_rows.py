"""Several texts under way at once, behind one beginning whose keys and values are kept once.

A batch of replies shares a system prompt and demonstrations of a thousand tokens. Copied for every
row, as caches commonly do, reading that beginning takes as long as the rest of a decoding step; so
attention goes over it in one product for all rows, and over each row's own tokens apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pytest_failgain.scoring.attention import additive_masks, cache_argument

if TYPE_CHECKING:
    import torch

Layers = list[tuple["torch.Tensor", "torch.Tensor"]]

_ATTENTION = "pytest_failgain_shared_rows"
_ROWS_GROW_BY = 64


@dataclass(frozen=True, slots=True)
class Prefix:
    """A beginning with its keys and values, for each layer of shape (key heads, tokens, size)."""

    tokens: tuple[int, ...]
    layers: Layers

    @property
    def token_bytes(self) -> float:
        """How much memory keys and values of a token take."""
        whole = sum(part.nbytes for layer in self.layers for part in layer)
        return whole / max(1, len(self.tokens))

    def cut(self, length: int) -> Prefix:
        """The first `length` tokens of it."""
        layers = [(keys[:, :length], values[:, :length]) for keys, values in self.layers]
        return Prefix(self.tokens[:length], layers)


class Rows(Protocol):
    """Texts under way behind one prefix, told by their place, from 0.

    `tokens` has for each what it consists of behind the prefix.
    """

    prefix: Prefix
    tokens: list[list[int]]

    @property
    def bytes(self) -> int:
        """How much memory the rows take, the prefix left out."""
        ...

    def take_over(self, place: int, other: Rows, source: int, length: int) -> None:
        """Make row `place` begin as the first `length` tokens of row `source` in `other`."""

    def cut(self, place: int, length: int) -> None:
        """Forget what row `place` has after its first `length` tokens."""

    def swap(self, one: int, other: int) -> None:
        """Let two rows change places."""

    def absorb(self, added: Sequence[Sequence[int]]) -> None:
        """Put `added[i]` behind row i, for the first rows; some may get nothing."""

    def step(self, tokens: Sequence[int]) -> torch.Tensor:
        """Put one token behind each of the first rows.

        Returns the logits after it, shape (rows, vocabulary).
        """
        ...

    def as_prefix(self) -> Prefix:
        """The prefix with row 0 behind it, as one longer prefix."""
        ...


class SharedRows:
    """Rows whose keys and values are kept, of shape (rows, key heads, room, size).

    A row's own stand at the front of its room, which is for `room` tokens and grows.
    """

    def __init__(self, model: Any, prefix: Prefix, count: int, room: int = 0) -> None:
        self._model = model
        self._cache_argument = cache_argument(model)
        self.prefix = prefix
        self.tokens: list[list[int]] = [[] for _ in range(count)]
        self._layers: Layers = []
        self._room = -(-room // _ROWS_GROW_BY) * _ROWS_GROW_BY
        self._writes: tuple[torch.Tensor, torch.Tensor] | None = None
        self._shown = 0

    def take_over(self, place: int, other: Rows, source: int, length: int) -> None:
        assert isinstance(other, SharedRows)
        self._make_room(length)
        for layer, (from_keys, from_values) in enumerate(other._layers):
            keys, values = self._layer(layer, from_keys, from_values)
            keys[place, :, :length] = from_keys[source, :, :length]
            values[place, :, :length] = from_values[source, :, :length]
        self.tokens[place] = other.tokens[source][:length]

    def cut(self, place: int, length: int) -> None:
        del self.tokens[place][length:]

    def swap(self, one: int, other: int) -> None:
        if one == other:
            return
        length = max(len(self.tokens[one]), len(self.tokens[other]))
        for layer in self._layers:
            for part in layer:
                kept = part[one, :, :length].clone()
                part[one, :, :length] = part[other, :, :length]
                part[other, :, :length] = kept
        self.tokens[one], self.tokens[other] = self.tokens[other], self.tokens[one]

    def absorb(self, added: Sequence[Sequence[int]]) -> None:
        if any(added):
            self._forward(added)
        for row, tokens in zip(self.tokens, added, strict=False):
            row.extend(tokens)

    def step(self, tokens: Sequence[int]) -> torch.Tensor:
        logits = self._forward([[token] for token in tokens])
        for row, token in zip(self.tokens, tokens, strict=False):
            row.append(token)
        return logits

    def _forward(self, added: Sequence[Sequence[int]]) -> torch.Tensor:
        """The logits behind `added`, where it has as many tokens for each row."""
        import torch

        count, device = len(added), self._model.device
        longest = max(map(len, added))
        # Filled up at the right: what a row gets there is overwritten before it is seen.
        padded = [[*tokens, *[0] * (longest - len(tokens))] for tokens in added]
        lengths = torch.tensor([len(self.tokens[place]) for place in range(count)])
        places = lengths[:, None] + torch.arange(longest)
        ends = lengths + torch.tensor([max(1, len(tokens)) for tokens in added]) - 1
        self._shown = int(places.max()) + 1
        self._make_room(self._shown)
        self._writes = torch.arange(count)[:, None].to(device), places.to(device)
        arguments: dict[str, Any] = {
            "input_ids": torch.tensor(padded, device=device),
            # What fills up may not stand where the model knows no position any more.
            "position_ids": (places.minimum(ends[:, None]) + len(self.prefix.tokens)).to(device),
            "attention_mask": self._mask(places),
            self._cache_argument: _Cache(self),
            "use_cache": True,
            "logits_to_keep": 1,
            "shared_rows": self,
        }
        with torch.inference_mode():
            logits: torch.Tensor = self._model(**arguments).logits
        return logits[:, -1]

    @property
    def bytes(self) -> int:
        return sum(part.nbytes for layer in self._layers for part in layer)

    def as_prefix(self) -> Prefix:
        import torch

        length = len(self.tokens[0])
        own = [(keys[0, :, :length], values[0, :, :length]) for keys, values in self._layers]
        if not self.prefix.layers:
            return Prefix(tuple(self.tokens[0]), own)
        layers = [
            (torch.cat([keys, more_keys], 1), torch.cat([values, more_values], 1))
            for (keys, values), (more_keys, more_values) in zip(
                self.prefix.layers, own, strict=True
            )
        ]
        return Prefix((*self.prefix.tokens, *self.tokens[0]), layers)

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Take in new keys and values of one layer, shape (rows, key heads, new tokens, size)."""
        assert self._writes is not None
        own_keys, own_values = self._layer(layer, keys, values)
        rows, places = self._writes
        own_keys[rows, :, places] = keys.transpose(1, 2)
        own_values[rows, :, places] = values.transpose(1, 2)
        count = keys.shape[0]
        return own_keys[:count, :, : self._shown], own_values[:count, :, : self._shown]

    def _layer(
        self, layer: int, keys: torch.Tensor, values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of one layer, made like these where it is new."""
        if layer == len(self._layers):
            rows, room = len(self.tokens), self._room
            self._layers.append(
                (
                    keys.new_zeros((rows, keys.shape[1], room, keys.shape[3])),
                    values.new_zeros((rows, values.shape[1], room, values.shape[3])),
                )
            )
        return self._layers[layer]

    def _make_room(self, length: int) -> None:
        if length <= self._room:
            return
        grown = -(-length // _ROWS_GROW_BY) * _ROWS_GROW_BY
        for index, part in enumerate(self._layers):
            keys, values = (
                each.new_zeros((*each.shape[:2], grown, each.shape[3])) for each in part
            )
            keys[:, :, : self._room], values[:, :, : self._room] = part
            self._layers[index] = keys, values
        self._room = grown

    def _mask(self, places: torch.Tensor) -> Any:
        """The additive mask over prefix and rows, or one for each layer type if layers differ."""
        import torch

        start = len(self.prefix.tokens)
        keys = torch.cat([torch.arange(start), start + torch.arange(self._shown)])
        distances = (places + start)[:, :, None] - keys
        return additive_masks(self._model, distances >= 0, distances)


class PlainRows:
    """The same for a model that can't attend in that way: every step reads the whole text again."""

    bytes = 0

    def __init__(self, model: Any, prefix: Prefix, count: int, room: int = 0) -> None:
        self._model = model
        self.prefix = prefix
        self.tokens: list[list[int]] = [[] for _ in range(count)]

    def take_over(self, place: int, other: Rows, source: int, length: int) -> None:
        self.tokens[place] = other.tokens[source][:length]

    def cut(self, place: int, length: int) -> None:
        del self.tokens[place][length:]

    def swap(self, one: int, other: int) -> None:
        self.tokens[one], self.tokens[other] = self.tokens[other], self.tokens[one]

    def absorb(self, added: Sequence[Sequence[int]]) -> None:
        for row, tokens in zip(self.tokens, added, strict=False):
            row.extend(tokens)

    def step(self, tokens: Sequence[int]) -> torch.Tensor:
        import torch

        self.absorb([[token] for token in tokens])
        logits = []
        with torch.inference_mode():
            for row, _ in zip(self.tokens, tokens, strict=False):
                ids = torch.tensor([[*self.prefix.tokens, *row]], device=self._model.device)
                logits.append(self._model(input_ids=ids, use_cache=False).logits[0, -1])
        return torch.stack(logits)

    def as_prefix(self) -> Prefix:
        return Prefix((*self.prefix.tokens, *self.tokens[0]), [])


class _Cache:
    """What a model takes for its cache: it only ever puts keys and values in."""

    def __init__(self, rows: SharedRows) -> None:
        self._rows = rows

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return self._rows.update(keys, values, layer_idx)

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return 0


@contextmanager
def shared_attention(model: Any) -> Iterator[None]:
    """Let `model` attend over a shared prefix and rows while in here."""
    from transformers import AttentionInterface

    AttentionInterface.register(_ATTENTION, _attend)
    before = model.config._attn_implementation
    model.set_attn_implementation(_ATTENTION)
    try:
        yield
    finally:
        model.set_attn_implementation(before)


def _attend(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor,
    scaling: float,
    *,
    shared_rows: SharedRows,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of `query`, shape (rows, heads, new tokens, size), over prefix and own tokens.

    Returns shape (rows, new tokens, heads, size), as transformers' attention functions do.
    """
    import torch

    if softcap is not None or s_aux is not None:
        raise NotImplementedError("attention with soft-capped logits or sinks")
    count, heads, length, size = query.shape
    key_heads, own = key.shape[1], key.shape[2]
    group = heads // key_heads
    # Heads that share keys become queries of one head.
    grouped = (query * scaling).reshape(count, key_heads, group * length, size)
    weights = grouped @ key.transpose(2, 3)
    prefix = shared_rows.prefix.layers[module.layer_idx] if shared_rows.prefix.layers else None
    if prefix is not None:
        together = grouped.transpose(0, 1).reshape(key_heads, -1, size)
        shared = (together @ prefix[0].transpose(1, 2)).view(key_heads, count, group * length, -1)
        weights = torch.cat([shared.transpose(0, 1), weights], dim=-1)
    weights = weights.view(count, key_heads, group, length, -1)
    weights = (weights + attention_mask[:, :, None]).softmax(dim=-1, dtype=torch.float32)
    weights = weights.to(query.dtype).view(count, key_heads, group * length, -1)
    mixed = weights[..., -own:] @ value
    if prefix is not None:
        shared = weights[..., :-own].transpose(0, 1).reshape(key_heads, count * group * length, -1)
        behind = (shared @ prefix[1]).view(key_heads, count, group * length, size)
        mixed = mixed + behind.transpose(0, 1)
    return mixed.view(count, heads, length, size).transpose(1, 2).contiguous(), None
