"""From a model's files to a scorer."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_failgain.choices import DTYPES
from pytest_failgain.errors import ModelError
from pytest_failgain.models import ModelFiles, default_cache_dir, resolve
from pytest_failgain.progress import Progress
from pytest_failgain.scoring import reply_store, score_store
from pytest_failgain.scoring.local import LocalScorer
from pytest_failgain.scoring.model_facts import FactsFile, ModelFacts
from pytest_failgain.scoring.protocol import ModelIdentity
from pytest_failgain.scoring.rendering import check_prompt_format
from pytest_failgain.threads import thread_count

if TYPE_CHECKING:
    from pytest_failgain.scoring.loaded_model import LoadedModel

_log = logging.getLogger(__name__)


def load_scorer(
    spec: str,
    *,
    revision: str | None = None,
    dtype: str = "float32",
    device: str = "cpu",
    threads: int | None = None,
    cache_dir: Path | None = None,
    offline: bool = False,
    fold_system: bool = False,
    prompt_format: str = "template",
    keep_scores: bool = True,
    scores_in: Path | None = None,
    progress: Progress | None = None,
    warn: Callable[[str], None] | None = None,
) -> LocalScorer:
    """The scorer for a model's name, hub id, directory or .gguf file.

    `threads` is for the whole process; None takes the usable cores, shared between xdist's workers.
    `fold_system` and `prompt_format` are those of `Renderer`. With `keep_scores`, what was scored
    or written before is read from the folder `scores_in` (None: the cache folder) and what is new
    goes there, and the model is loaded only when something new has to be computed; `warn` is told
    when that folder is no use.

    Raises:
        UsageError: when there is no such prompt format.
        ModelError: when the model can't be found, fetched, converted or loaded.
    """
    check_prompt_format(prompt_format)  # before minutes go into fetching a model
    _check_dtype(dtype)
    # Converting a model imports torch as well.
    with _waiting_quietly():
        files = resolve(
            spec, revision=revision, cache_dir=cache_dir, offline=offline, progress=progress
        )
    load = cache(partial(load_model, files, dtype=dtype, device=device, threads=threads))
    identity = _identity(files, dtype, device)
    if not keep_scores:
        return LocalScorer(load(), load, identity, fold_system, prompt_format)
    cache_folder, warn = cache_dir or default_cache_dir(), warn or _log.warning
    # What else could move a number: the device's arithmetic, by its kind.
    model = f"{files.fingerprint} {dtype} {device.partition(':')[0]}"
    folder = scores_in or cache_folder
    scores = folder / f"scores-{score_store.FORMAT}.sqlite3"
    replies = folder / f"replies-{reply_store.FORMAT}.sqlite3"
    return LocalScorer(
        _facts(FactsFile(cache_folder / "facts", model, warn), load),
        load,
        identity,
        fold_system,
        prompt_format,
        known=score_store.ScoreStore(scores, model, warn=warn),
        known_replies=reply_store.ReplyStore(replies, model, warn=warn),
    )


def _facts(kept: FactsFile, load: Callable[[], LoadedModel]) -> ModelFacts:
    facts = kept.read()
    if facts is not None:
        return facts
    loaded = load()
    kept.write(loaded)
    return loaded


def load_files(
    files: ModelFiles,
    *,
    dtype: str = "float32",
    device: str = "cpu",
    threads: int | None = None,
    fold_system: bool = False,
    prompt_format: str = "template",
) -> LocalScorer:
    """The scorer for files that are on this disk, which keeps nothing. See `load_scorer`."""
    loaded = load_model(files, dtype=dtype, device=device, threads=threads)
    identity = _identity(files, dtype, device)
    return LocalScorer(loaded, lambda: loaded, identity, fold_system, prompt_format)


def load_model(
    files: ModelFiles,
    *,
    dtype: str = "float32",
    device: str = "cpu",
    threads: int | None = None,
) -> LoadedModel:
    """The model in files that are on this disk.

    Raises:
        ModelError: when it can't be loaded, or not in this way.
    """
    from pytest_failgain.scoring.loaded_model import LoadedModel

    _check_dtype(dtype)
    try:
        with _waiting_quietly():
            import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
        from transformers.utils import logging as transformers_logging
    except ImportError as error:
        raise ModelError(
            f"running {files.name} in this process needs the 'local' extra ({error}): "
            "pip install 'pytest-failgain[local]'"
        ) from error
    torch.set_num_threads(threads or thread_count())
    model: Any
    try:
        with _without_bars(transformers_logging):
            tokenizer = AutoTokenizer.from_pretrained(
                files.path, local_files_only=True, trust_remote_code=False
            )
            model = AutoModelForCausalLM.from_pretrained(
                files.path,
                dtype=getattr(torch, dtype),
                use_safetensors=True,
                local_files_only=True,
                trust_remote_code=False,
            )
    except Exception as error:  # a damaged or foreign model fails in many ways
        reason = " ".join(str(error).split())
        raise ModelError(
            f"{files.name} at {files.path} can't be loaded: {type(error).__name__}: {reason[:300]}"
            "; check that it is a causal language model whose download is whole"
        ) from error
    try:
        model = model.to(device).eval()
    except Exception as error:  # each kind of device fails in its own way
        reason = " ".join(str(error).split())
        raise ModelError(
            f"the device {device!r} can't be used: {reason[:200]}; give one such as cpu or cuda:0"
        ) from error
    if not getattr(tokenizer, "is_fast", False):
        raise ModelError(
            f"{files.name} has no fast tokenizer (tokenizer.json), so its tokens can't be "
            "matched with the action's text; convert the tokenizer to tokenizer.json"
        )
    return LoadedModel(model, tokenizer)


def _check_dtype(dtype: str) -> None:
    if dtype not in DTYPES:
        raise ModelError(f"there is no dtype {dtype!r} here; take one of {', '.join(DTYPES)}")


def _identity(files: ModelFiles, dtype: str, device: str) -> ModelIdentity:
    return ModelIdentity(
        name=files.name,
        source=files.source,
        revision=files.revision,
        fingerprint=files.fingerprint,
        dtype=dtype,
        device=device,
    )


@contextmanager
def _waiting_quietly() -> Iterator[None]:
    """Let the threads of a torch that is first imported in here sleep while they wait.

    By default they spin. Where another process wants one of the cores, the spinning thread keeps
    the other from its work: we saw scoring nine times slower with two threads than with one. OpenMP
    reads this when it is loaded, and never again.
    """
    name = "OMP_WAIT_POLICY"
    if "torch" in sys.modules or name in os.environ:
        yield
        return
    os.environ[name] = "PASSIVE"
    try:
        yield
    finally:
        del os.environ[name]


@contextmanager
def _without_bars(logs: Any) -> Iterator[None]:
    """Loading takes two seconds: transformers' bars would only tear up pytest's own lines."""
    shown = logs.is_progress_bar_enabled()
    logs.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logs.enable_progress_bar()
