"""What a scorer has to know of a model before it computes anything, kept on disk."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

from pytest_failgain.atomic import write_atomically
from pytest_failgain.scoring.template_tokenizer import TemplateTokenizer

_FORMAT = 1
_MOST_FILES = 20  # of some megabytes each

# Another version of one of these may load another tokenizer, or run the model in another way.
_MADE_WITH = ("transformers", "tokenizers", "torch")


class ModelFacts(Protocol):
    """What decides how a model's prompts are written and its scores are explained.

    `plain_reason` says why token trees can't be used for it, and `plain_reply_reason` why replies
    can't share what they begin with; None where they can. `context_limit` is in tokens.
    """

    @property
    def template_tokenizer(self) -> TemplateTokenizer: ...

    @property
    def context_limit(self) -> int | None: ...

    @property
    def n_parameters(self) -> int: ...

    @property
    def plain_reason(self) -> str | None: ...

    @property
    def plain_reply_reason(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class KeptFacts:
    """The facts of a model that is not loaded; see `ModelFacts`."""

    template_tokenizer: TemplateTokenizer
    context_limit: int | None
    n_parameters: int
    plain_reason: str | None
    plain_reply_reason: str | None


@dataclass(frozen=True, slots=True)
class FactsFile:
    """The facts of one model in one dtype on one kind of device, in the folder `folder`.

    `model` names all three. A file that is not what was written for them, with the libraries that
    are installed, counts as none. `warn` is told when it can't be written.
    """

    folder: Path
    model: str
    warn: Callable[[str], None]

    @property
    def path(self) -> Path:
        name = hashlib.sha256(self.model.encode()).hexdigest()[:32]
        return self.folder / f"{name}.json"

    def read(self) -> KeptFacts | None:
        """The facts, or None where they are not known."""
        try:
            checksum, content = self.path.read_bytes().split(b"\n", 1)
            if hashlib.sha256(content).hexdigest().encode() != checksum:
                return None
            kept = json.loads(content)
            if kept["of"] != self._of():
                return None
            tokenizer = TemplateTokenizer(**kept["tokenizer"])
            return KeptFacts(template_tokenizer=tokenizer, **kept["facts"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, facts: ModelFacts) -> None:
        """Keep the facts, in place of those that may be there."""
        kept = {
            "of": self._of(),
            "facts": {
                "context_limit": facts.context_limit,
                "n_parameters": facts.n_parameters,
                "plain_reason": facts.plain_reason,
                "plain_reply_reason": facts.plain_reply_reason,
            },
            "tokenizer": asdict(facts.template_tokenizer),
        }
        content = json.dumps(kept).encode()
        checksum = hashlib.sha256(content).hexdigest().encode()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self.path, checksum + b"\n" + content)
            self._make_room()
        except OSError as error:
            self.warn(
                f"what is known of the model can't be kept at {self.path} "
                f"({error.strerror or error}): it is loaded again by the next run; free the disk, "
                "or make the folder writable"
            )

    def _make_room(self) -> None:
        """Let the oldest files go: whoever measures each checkpoint of a training has many."""
        # Another process may do the same at the same time; the next one to write goes on.
        with contextlib.suppress(OSError):
            files = sorted(self.folder.glob("*.json"), key=lambda file: file.stat().st_mtime_ns)
            for file in files[:-_MOST_FILES]:
                file.unlink()

    def _of(self) -> dict[str, Any]:
        return {
            "format": _FORMAT,
            "model": self.model,
            "made_with": {name: _version(name) for name in _MADE_WITH},
        }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
