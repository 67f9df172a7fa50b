"""Why a call can fail, apart from what the database itself refuses."""

from __future__ import annotations


class DeskError(Exception):
    """Base of the errors below."""


class CallSyntaxError(DeskError):
    """The reply is not one call with plain values."""


class UnknownToolError(DeskError):
    """There is no such tool."""


class ArgumentError(DeskError):
    """An argument is missing, unexpected or of the wrong type."""


class UnknownPartError(DeskError):
    """There is no such part."""


class UnknownOrderError(DeskError):
    """There is no such order."""


class OrderStateError(DeskError):
    """The order is past changing."""


class StatusError(DeskError):
    """Orders have no such status."""


class DateError(DeskError):
    """A date is not written YYYY-MM-DD."""


class PackError(DeskError):
    """A quantity is not a whole number of packs."""
