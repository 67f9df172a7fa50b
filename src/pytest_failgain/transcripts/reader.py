"""What a reader of a transcript format must offer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pytest_failgain.transcripts.conversation import Conversation
from pytest_failgain.transcripts.document import Document


class TranscriptReader(Protocol):
    """Reads one format. `name` is what `format=` and notes call it."""

    @property
    def name(self) -> str: ...

    def recognises(self, document: Document) -> bool:
        """Whether the content is of this format. It never raises, whatever the content is."""
        ...

    def read(self, document: Document) -> Sequence[Conversation]:
        """The conversations in a document that is of this format.

        Raises:
            TranscriptError: when it is broken, saying where.
        """
        ...
