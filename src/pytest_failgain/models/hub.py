"""Models from the model hub: what is on disk already, and what has to be downloaded."""

from __future__ import annotations

import contextlib
import logging
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pytest_failgain.errors import ModelError
from pytest_failgain.models import directory
from pytest_failgain.models.cache import require_room, writing_to
from pytest_failgain.progress import Progress, job

T = TypeVar("T")


class HubError(ModelError):
    """The hub can't be reached, or does not have what was asked for."""


@dataclass(frozen=True)
class Snapshot:
    """A model as it is at one commit of its hub repository."""

    path: Path
    commit: str


@dataclass(frozen=True)
class Hub:
    """The model hub: where downloads are kept and its address, None for what is configured.

    Whether it can be reached is decided by one request, which waits `answer_within` seconds for
    each step and `give_up_after` in all.
    """

    folder: Path | None = None
    endpoint: str | None = None
    answer_within: float = 5.0
    give_up_after: float = 8.0

    def cached(self, repo: str, revision: str | None) -> Snapshot | None:
        """The snapshot on disk, if it is complete. Uses no network.

        Raises:
            HubError: when `repo` can't be the id of a repository.
        """
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

        try:
            with _quiet():
                path = snapshot_download(
                    repo,
                    revision=revision,
                    cache_dir=self.folder,
                    local_files_only=True,
                    allow_patterns=list(directory.WANTED),
                    ignore_patterns=list(directory.UNWANTED),
                )
            directory.check(Path(path))
        except HFValidationError as error:
            raise HubError(
                f"{repo!r} is neither a directory here nor the id of a hub repository: check the "
                "spelling"
            ) from error
        except (LocalEntryNotFoundError, ModelError):
            return None
        return Snapshot(Path(path), Path(path).name)

    def download(self, repo: str, revision: str | None, progress: Progress) -> Snapshot:
        """Download a snapshot: configuration, tokenizer, templates and safetensors only.

        Raises:
            HubError: when the hub can't be reached, does not have the model, or not in safetensors.
            ModelError: when the disk is full or can't be written.
        """
        from huggingface_hub import constants, snapshot_download

        files = self._list(repo, revision)
        _require_usable(repo, files)
        folder = self.folder or Path(constants.HF_HUB_CACHE)
        size = sum(size for name, size in files.items() if _is_wanted(name))
        require_room(folder, size)
        with job(progress, f"downloading {repo}", size) as advance, _quiet():
            try:
                path = snapshot_download(
                    repo,
                    revision=revision,
                    cache_dir=self.folder,
                    endpoint=self.endpoint,
                    allow_patterns=list(directory.WANTED),
                    ignore_patterns=list(directory.UNWANTED),
                    tqdm_class=_bars_that_tell(advance),
                )
            except Exception as error:
                if _is_of_the_disk(error):
                    with writing_to(folder):
                        raise
                raise HubError(
                    f"downloading {repo} failed ({_in_brief(error)}): try again"
                ) from error
        directory.check(Path(path))
        return Snapshot(Path(path), Path(path).name)

    def _list(self, repo: str, revision: str | None) -> dict[str, int]:
        """Ask the hub for the names and sizes of a repository's files; so see if it answers."""
        from huggingface_hub import HfApi, constants
        from huggingface_hub.errors import (
            DisabledRepoError,
            GatedRepoError,
            HfHubHTTPError,
            RepositoryNotFoundError,
            RevisionNotFoundError,
        )

        endpoint = self.endpoint or constants.ENDPOINT
        try:
            with _quiet():
                info = _within(
                    self.give_up_after,
                    lambda: HfApi(endpoint=endpoint).model_info(
                        repo, revision=revision, timeout=self.answer_within, files_metadata=True
                    ),
                )
        except (GatedRepoError, DisabledRepoError) as error:
            raise HubError(
                f"access to {repo} is restricted: ask for it at {endpoint}/{repo}, then log in "
                "with `hf auth login`"
            ) from error
        except RepositoryNotFoundError as error:
            raise HubError(
                f"{repo} is neither a directory here nor a model on {endpoint}: check the "
                "spelling; if it is private, log in with `hf auth login`"
            ) from error
        except RevisionNotFoundError as error:
            raise HubError(
                f"{repo} has no revision {revision!r} on {endpoint}: give a branch, tag or commit"
            ) from error
        except HfHubHTTPError as error:
            raise HubError(
                f"{endpoint} answered HTTP {error.response.status_code} when asked for {repo}: try "
                "again later, or check HF_ENDPOINT"
            ) from error
        # The library's HTTP client has changed, and with it the errors of a failed connection. A
        # proxy's log-in page in place of an answer fails in yet another way.
        except Exception as error:
            raise HubError(
                f"the model hub {endpoint} can't be reached ({_in_brief(error)}): check the "
                "network, HF_ENDPOINT and the proxy settings"
            ) from error
        return {file.rfilename: file.size or 0 for file in info.siblings or ()}


def _is_wanted(name: str) -> bool:
    return directory.matches(name, directory.WANTED) and not directory.matches(
        name, directory.UNWANTED
    )


def _require_usable(repo: str, files: dict[str, int]) -> None:
    """Refuse, before anything is downloaded, a repository that can't be used."""
    if not any(_is_wanted(name) and name.endswith(".safetensors") for name in files):
        if any(directory.matches(name, directory.PICKLED) for name in files):
            raise HubError(
                f"{repo} has only pickled weights, which are refused because loading them can run "
                "any code: ask its authors for safetensors, or convert it"
            )
        if any(name.endswith(".gguf") for name in files):
            raise HubError(f"{repo} has only GGUF files: download one and give its path")
        raise HubError(f"{repo} has no weights in safetensors: give a repository with a model")
    if "config.json" not in files:
        raise HubError(f"{repo} has no config.json: give a repository with a whole model")
    if not any(directory.matches(name, directory.TOKENIZERS) for name in files):
        raise HubError(f"{repo} has no tokenizer: give a repository with a whole model")


def _is_of_the_disk(error: Exception) -> bool:
    """Whether an error is the operating system's, and not about a connection."""
    return (
        isinstance(error, OSError)
        and error.errno is not None
        and not isinstance(error, ConnectionError | TimeoutError)
    )


def _within(seconds: float, ask: Callable[[], T]) -> T:
    """What `ask` returns or raises, or a `TimeoutError`.

    An HTTP timeout counts from the start for each address of a host, and not at all while its name
    is looked up; on a network that swallows packets that adds up to minutes.
    """
    results: list[T] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            results.append(ask())
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="failgain-hub", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError(f"no answer within {seconds:.0f} s")
    return results[0]


def _bars_that_tell(advance: Callable[[int], None]) -> Any:
    """A class of progress bars that draw nothing and pass on how many bytes there are.

    The hub library makes several bars of the class, one or two of which count bytes: from the
    network and, where they differ, onto the disk. The bar that is furthest tells.
    """
    from huggingface_hub.utils.tqdm import tqdm

    lock, furthest = threading.Lock(), 0

    class Bar(tqdm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self.bytes_so_far = int(kwargs.get("initial") or 0)
            self.counts_bytes = kwargs.get("unit") == "B"
            super().__init__(*args, **{**kwargs, "disable": True})  # type: ignore[no-untyped-call]

        def update(self, n: float | None = 1) -> None:
            nonlocal furthest
            if not self.counts_bytes:
                return
            with lock:
                self.bytes_so_far += int(n or 0)
                furthest = max(furthest, self.bytes_so_far)
                advance(furthest)

    return Bar


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the hub library's remarks, on retries and log-in, from the terminal."""
    logger = logging.getLogger("huggingface_hub")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _in_brief(error: Exception) -> str:
    """An error's kind, and the first line of what it says."""
    first = next(iter(str(error).splitlines()), "").strip()
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
