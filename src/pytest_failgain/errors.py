"""The errors that users meet: each says what was wrong, with which value, and what to do."""

from __future__ import annotations


class FailgainError(Exception):
    """Base of every error that this package raises on purpose."""


class UsageError(FailgainError):
    """An option, a name or an argument is not one that exists or fits."""


class MissingPackageError(UsageError, ImportError):
    """A package that only some uses need is not installed."""


class CaseError(FailgainError):
    """A failure case, or a file of them, is not usable."""


class HarnessError(FailgainError):
    """A harness raised, returned the wrong thing, changed its input, or is not deterministic."""


class NotRecordedError(HarnessError):
    """A harness that replays what was recorded is asked for what never was."""


class ExtensionError(FailgainError):
    """What a conftest or another plugin adds is not usable, or fails."""


class TranscriptError(FailgainError):
    """A transcript can't be read: it is of no known format, or broken."""


class ModelError(FailgainError):
    """A model can't be found, fetched, converted or loaded."""


class ScoringError(FailgainError):
    """A prompt can't be rendered for the model, or the model returned impossible numbers."""
