"""Faster kernels for a forward pass in float32 on a CPU, with the same numbers up to rounding.

torch multiplies float32 matrices with MKL, which on processors that are not Intel's uses half of
their vector width. oneDNN, which torch brings too, uses all of it.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

# Query rows of one head at a time: their scores over a thousand keys stay in the processor's cache.
_ROWS = 256
# One head's scores are too little work for many threads; torch spreads heads over them.
_MOST_THREADS = 4


def fast_kernels(model: Any) -> AbstractContextManager[object]:
    """What to run `model` within: oneDNN where it is there and can be used, else nothing."""
    usable = (
        model.dtype == torch.float32
        and model.device.type == "cpu"
        and platform.machine() in ("x86_64", "AMD64")
        and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )
    return _OneDnn() if usable else nullcontext()


class _OneDnn(TorchFunctionMode):
    """Runs linear layers, and attention with a mask, through oneDNN while it is entered."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.nn.functional.linear and not kwargs and args[1].dtype == torch.float32:
            return _linear(*args)
        attends = func is torch.nn.functional.scaled_dot_product_attention and len(args) == 3
        if attends and _takes(*args, **kwargs):
            query, key, value = args
            return _attention(query, key, value, kwargs["attn_mask"], kwargs["scale"])
        return func(*args, **kwargs)


def _linear(rows: torch.Tensor, weight: torch.Tensor, bias: Any = None) -> torch.Tensor:
    product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")
    return product


def _takes(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    /,
    *,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    scale: float | None = None,
    is_causal: bool = False,
    enable_gqa: bool = False,
) -> bool:
    return (
        attn_mask is not None
        and scale is not None
        and attn_mask.is_floating_point()
        and attn_mask.shape[:2] == (1, 1)
        and query.shape[0] == 1
        and query.shape[1] == key.shape[1]
        and not (dropout_p or is_causal or enable_gqa)
        and torch.get_num_threads() <= _MOST_THREADS
    )


def _attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor, scale: float
) -> torch.Tensor:
    """Attention of shape (1, heads, queries, width), laid out as the next layer wants it."""
    _, heads, queries, _ = query.shape
    query, key, value, mask = query[0] * scale, key[0], value[0], mask[0, 0]
    mixed = query.new_empty(1, queries, heads, value.shape[-1]).transpose(1, 2)
    for start in range(0, queries, _ROWS):
        block = slice(start, start + _ROWS)
        for head in range(heads):
            weights = _linear(query[head, block], key[head])
            weights += mask[block]
            torch.softmax(weights, dim=-1, out=weights)
            mixed[0, head, block] = _linear(weights, value[head].t())
    return mixed
