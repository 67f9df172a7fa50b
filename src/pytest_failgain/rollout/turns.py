"""One rollout as plain data: what the model said, turn by turn, and what came of it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

# The task was solved; the model said nothing more; the steps were used up; so was the context.
OUTCOMES = ("solved", "quit", "limit", "full")


@dataclass(frozen=True, slots=True)
class Turn:
    """A reply of the model.

    `action` is what was read from `reply`, "" where it holds none, and `meaning` is equal for
    actions that differ only in how they are written. `writing` is one of `protocol.WRITINGS`, or
    "empty". `ended` and the counts of tokens are those of `protocol.Reply`.
    """

    reply: str
    action: str
    meaning: Hashable
    failed: bool
    error_family: str | None
    writing: str
    ended: str
    n_tokens: int
    n_decoded: int
    prompt_tokens: int
    blocked: int


@dataclass(frozen=True, slots=True)
class Rollout:
    """The turns of one task, and how they ended: `outcome` is one of `OUTCOMES`.

    `place` is the task's place among all, `sample` the number of the draw. `given` is the failed
    action that a primed rollout starts behind, and `given_meaning` what it does.
    """

    task_id: str
    place: int
    sample: int
    turns: tuple[Turn, ...]
    outcome: str
    given: str | None = None
    given_meaning: Hashable = None

    @property
    def key(self) -> Hashable:
        """What tells this rollout from the others of its harness."""
        return self.place, self.sample
