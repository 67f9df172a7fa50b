"""`read_transcript`: from a log of any known format to failure cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pytest_failgain.errors import TranscriptError, UsageError
from pytest_failgain.nearest import did_you_mean
from pytest_failgain.trajectory import FailureCase, Trajectory
from pytest_failgain.transcripts.document import Document, Source, open_document
from pytest_failgain.transcripts.failures import IsFailure, find_failures
from pytest_failgain.transcripts.openai_chat import OpenAIChatReader
from pytest_failgain.transcripts.reader import TranscriptReader
from pytest_failgain.transcripts.recorded import AsRecorded, RecordedCase

# Asked in this order: what is more particular comes first.
READERS: tuple[TranscriptReader, ...] = (OpenAIChatReader(),)

NO_FAILURE = "no failure record in the transcript: there is nothing to measure"


@dataclass(frozen=True)
class ReadTranscript:
    """What a transcript says: the failures in it, and how it was read.

    `trajectories` are its conversations as a whole. `notes` tell what was decided while reading,
    each with the number of times.
    """

    format: str
    recorded: tuple[RecordedCase, ...]
    trajectories: tuple[Trajectory, ...]
    notes: tuple[str, ...]

    @cached_property
    def failures(self) -> tuple[FailureCase, ...]:
        """A failure case for each call that failed, in the order of the transcript."""
        return tuple(one.case for one in self.recorded)

    @property
    def as_recorded(self) -> AsRecorded:
        """The harness that wrote the transcript, replayed exactly as it was logged."""
        return AsRecorded(self.recorded)


def read_transcript(
    source: Source,
    format: str | None = None,
    *,
    is_failure: IsFailure | None = None,
    readers: Sequence[TranscriptReader] = (),
) -> ReadTranscript:
    """Read the log of an agent: a path, text, bytes, an open file, or parsed JSON.

    The format is told by the content unless `format` names it. Whether a call failed is told by the
    format's own mark where it has one, else by named heuristics (see `transcripts.heuristics`);
    `is_failure(call, result)` overrides both. `readers` are asked before the built-in ones.

        transcript = read_transcript("session.jsonl")
        failgain.measure(transcript.as_recorded, transcript.failures)

    Raises:
        TranscriptError: when the source can't be read, is of no known format, or is broken.
        UsageError: when there is no such format.
    """
    known = (*readers, *READERS)
    document = open_document(source)
    reader = _recognised(document, known) if format is None else _named(format, known)
    conversations = reader.read(document)
    findings = find_failures(document.name, conversations, is_failure)
    notes = [f"{note} ({times})" for note, times in findings.notes.items() if times]
    if document.broken_lines:
        notes.append(f"lines that are no JSON left out ({document.broken_lines})")
    if not findings.recorded:
        notes.append(NO_FAILURE)
    return ReadTranscript(
        reader.name, tuple(findings.recorded), tuple(findings.trajectories), tuple(notes)
    )


def _recognised(document: Document, readers: Sequence[TranscriptReader]) -> TranscriptReader:
    for reader in readers:
        if reader.recognises(document):
            return reader
    begins = " ".join(document.text[:60].split())
    raise TranscriptError(
        f"the transcript {document.name!r} is of no known format (it begins {begins!r}); there "
        f"are: {', '.join(reader.name for reader in readers)}. Name the format with format=…"
    )


def _named(format: str, readers: Sequence[TranscriptReader]) -> TranscriptReader:
    names = [reader.name for reader in readers]
    for reader in readers:
        if reader.name == format:
            return reader
    raise UsageError(
        f"there is no transcript format {format!r}; there are: {', '.join(names)}"
        f"{did_you_mean(format, names)}"
    )
