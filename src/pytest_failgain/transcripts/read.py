"""`read_transcript`: from a log of any known format to failure cases."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pytest_failgain.errors import TranscriptError, UsageError
from pytest_failgain.nearest import did_you_mean
from pytest_failgain.trajectory import FailureCase, Trajectory
from pytest_failgain.transcripts.aider import AiderReader
from pytest_failgain.transcripts.anthropic import AnthropicReader
from pytest_failgain.transcripts.atif import ATIFReader
from pytest_failgain.transcripts.autogpt import AutoGPTReader
from pytest_failgain.transcripts.checked import checked
from pytest_failgain.transcripts.claude_code import ClaudeCodeReader
from pytest_failgain.transcripts.cline import ClineReader
from pytest_failgain.transcripts.codex import CodexReader
from pytest_failgain.transcripts.document import Document, Source, open_document
from pytest_failgain.transcripts.failures import IsFailure, find_failures
from pytest_failgain.transcripts.found import Failures
from pytest_failgain.transcripts.gemini_cli import GeminiCLIReader
from pytest_failgain.transcripts.inspect_ai import InspectAIReader
from pytest_failgain.transcripts.langchain import LangChainReader
from pytest_failgain.transcripts.mini_swe_agent import MiniSWEAgentReader
from pytest_failgain.transcripts.openai_chat import OpenAIChatReader
from pytest_failgain.transcripts.openai_responses import OpenAIResponsesReader
from pytest_failgain.transcripts.otel import OTelReader
from pytest_failgain.transcripts.pi import PiReader
from pytest_failgain.transcripts.pydantic_ai import PydanticAIReader
from pytest_failgain.transcripts.react import ReActReader
from pytest_failgain.transcripts.reader import TranscriptReader
from pytest_failgain.transcripts.recorded import AsRecorded, Recorded
from pytest_failgain.transcripts.smolagents import SmolagentsReader
from pytest_failgain.transcripts.swe_agent import SWEAgentReader

# Asked in this order: what is more particular comes first.
READERS: tuple[TranscriptReader, ...] = (
    AiderReader(),
    ClaudeCodeReader(),
    CodexReader(),
    PiReader(),
    LangChainReader(),
    ATIFReader(),
    SmolagentsReader(),
    PydanticAIReader(),
    InspectAIReader(),
    OTelReader(),
    GeminiCLIReader(),
    SWEAgentReader(),
    MiniSWEAgentReader(),
    ClineReader(),
    AutoGPTReader(),
    ReActReader(),
    OpenAIResponsesReader(),
    AnthropicReader(),
    OpenAIChatReader(),
)

NO_FAILURE = "no failure record in the transcript: there is nothing to measure"


@dataclass(frozen=True)
class ReadTranscript:
    """What a transcript says: the failures in it, and how it was read.

    `trajectories` are its conversations as a whole. `notes` tell what was decided while reading,
    each with the number of times.
    """

    format: str
    recorded: tuple[Recorded, ...]
    trajectories: tuple[Trajectory, ...]
    notes: tuple[str, ...]

    @property
    def failures(self) -> Sequence[FailureCase]:
        """A failure case for each call that failed, in the order of the transcript."""
        return Failures(self.recorded)

    @cached_property
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
        ExtensionError: when one of `readers` is no reader, or fails.
    """
    known = (*checked(readers), *READERS)
    document = open_document(source)
    reader = _recognised(document, known) if format is None else _named(format, known)
    conversations = reader.read(document)
    if not any(conversation.turns for conversation in conversations):
        raise TranscriptError(
            f"the transcript {document.name!r} holds no conversation in the format "
            f"{reader.name!r} (it begins {_begins(document)})"
        )
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
    raise TranscriptError(
        f"the transcript {document.name!r} is of no known format (it begins {_begins(document)}); "
        f"there are: {', '.join(reader.name for reader in readers)}. Name the format with format=…"
    )


def _begins(document: Document) -> str:
    if document.text:
        return repr(" ".join(document.text[:60].split()))
    return reprlib.repr(document.entries[0]) if document.entries else "with nothing"


def _named(format: str, readers: Sequence[TranscriptReader]) -> TranscriptReader:
    names = [reader.name for reader in readers]
    for reader in readers:
        if reader.name == format:
            return reader
    raise UsageError(
        f"there is no transcript format {format!r}; there are: {', '.join(names)}"
        f"{did_you_mean(format, names)}"
    )
