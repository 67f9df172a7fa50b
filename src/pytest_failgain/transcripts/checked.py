"""Readers that are not ours, held to what every reader promises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pytest_failgain.errors import ExtensionError, FailgainError
from pytest_failgain.extension_checks import kind_of, named_things, said
from pytest_failgain.transcripts.conversation import Conversation
from pytest_failgain.transcripts.document import Document
from pytest_failgain.transcripts.reader import TranscriptReader

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class CheckedReader:
    """`reader`, whose faults become errors that name it."""

    reader: TranscriptReader

    @property
    def name(self) -> str:
        return self.reader.name

    def recognises(self, document: Document) -> bool:
        """Whether the content is of the reader's format.

        Raises:
            ExtensionError: when the reader raises.
        """
        return bool(self._asked("recognises", self.reader.recognises, document))

    def read(self, document: Document) -> Sequence[Conversation]:
        """The conversations in the document.

        Raises:
            TranscriptError: when the reader says that it is broken.
            ExtensionError: when the reader raises anything else, or returns anything else.
        """
        found = self._asked("read", self.reader.read, document)
        return self._conversations(found)

    def _asked(self, method: str, ask: Callable[[Document], _T], document: Document) -> _T:
        try:
            return ask(document)
        except FailgainError:
            raise
        except Exception as error:
            raise ExtensionError(
                f"{self._label}: {method}() raised for the transcript {document.name!r}: "
                f"{said(error)}; let recognises() return False for what is of another format, and "
                "read() raise TranscriptError for what is broken"
            ) from error

    def _conversations(self, found: object) -> list[Conversation]:
        if not isinstance(found, Sequence) or isinstance(found, str | bytes):
            given = kind_of(found)
        else:
            others = [kind_of(one) for one in found if not isinstance(one, Conversation)]
            if not others:
                return list(found)
            given = f"a sequence with {others[0]} in it"
        raise ExtensionError(
            f"{self._label}: read() returned {given}; it must return a list of Conversations"
        )

    @property
    def _label(self) -> str:
        kind = type(self.reader)
        return f"the transcript reader {self.name!r} ({kind.__module__}.{kind.__qualname__})"


def checked(readers: Sequence[TranscriptReader]) -> tuple[CheckedReader, ...]:
    """`readers`, each of them checked whenever it is asked.

    Raises:
        ExtensionError: when one is no reader, or has a name that is taken.
    """
    named = named_things("readers", readers, "read_transcript(readers=…)")
    return tuple(map(CheckedReader, named.values()))
