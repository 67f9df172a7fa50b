"""What the header of a run says beside the settings."""

from __future__ import annotations

from pytest_failgain.errors import UsageError
from pytest_failgain.options import Settings


def containment_lines(settings: Settings) -> list[str]:
    """How programs are contained on this machine, where that is weak or a model's are allowed."""
    from pytest_failgain.environments.sandbox.containment import probe

    if settings.model is None and not settings.allow_code_execution:
        return []
    try:
        weak = probe()
    except UsageError as error:
        return [f"failgain: no programs can run here: {error}"]
    if weak:
        return [f"failgain: weak sandbox: a program that runs here can {'; '.join(weak)}"]
    if settings.allow_code_execution:
        return ["failgain: programs run contained: own processes, own files, no network, limits"]
    return []
