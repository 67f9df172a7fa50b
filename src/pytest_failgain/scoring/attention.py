"""What has to be known of a model's attention to give it masks and caches of our own."""

from __future__ import annotations

import inspect
from typing import Any


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
