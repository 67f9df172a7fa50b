"""What has to be known of a model's attention to give it masks and caches of our own."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def attention_windows(config: Any) -> dict[str, int | None]:
    """Window length in tokens by layer type, None for full attention.

    Empty where a layer is of a kind that can't take a mask of ours.
    """
    window = getattr(config, "sliding_window", None)
    kinds = getattr(config, "layer_types", None)
    if kinds is None:
        used = window if getattr(config, "use_sliding_window", True) else None
        return {"full_attention" if used is None else "sliding_attention": used}
    known = {"full_attention": None, "sliding_attention": window}
    if any(kind not in known for kind in kinds):
        return {}
    return {kind: known[kind] for kind in sorted(set(kinds))}


def cache_argument(model: Any) -> str:
    """The name under which `model` takes its cache."""
    # transformers renamed this argument in 5.2x and will refuse the old name.
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"


def additive_masks(model: Any, visible: torch.Tensor, distances: torch.Tensor) -> Any:
    """What `model` adds to its attention, or one for each layer type where layers differ.

    `visible` tells which keys each query may see, and `distances` is how many tokens before it they
    stand, both of shape (rows, queries, keys). A mask has shape (rows, 1, queries, keys).
    """
    import torch

    def additive(allowed: torch.Tensor) -> torch.Tensor:
        mask = torch.zeros(allowed.shape, dtype=model.dtype)
        mask.masked_fill_(~allowed, torch.finfo(model.dtype).min)
        return mask[:, None].to(model.device)

    windows = attention_windows(model.config.get_text_config())
    masks = {
        kind: additive(visible if window is None else visible & (distances < window))
        for kind, window in windows.items()
    }
    return next(iter(masks.values())) if len(masks) == 1 else masks
