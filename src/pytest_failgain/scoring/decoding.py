"""Replies of one model, written together.

What a batch of prompts shares at its beginning is read once and kept; of the rest of a prompt only
what the last batch did not hold already is read. So a step of a rollout pays for the tokens that it
adds. The replies are those that each prompt would get alone, up to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_failgain.errors import ScoringError
from pytest_failgain.scoring.attention import attention_windows
from pytest_failgain.scoring.protocol import Sampling
from pytest_failgain.scoring.shared_rows import (
    PlainRows,
    Prefix,
    Rows,
    SharedRows,
    shared_attention,
)
from pytest_failgain.scoring.token_tree import Tokens, common_prefix
from pytest_failgain.scoring.writing import BRANCHES, Writing

if TYPE_CHECKING:
    import torch

# Rows under way together, and the memory that they may take; one row at least.
_ROWS_AT_ONCE = 32
_BYTES_AT_ONCE = 2**31
_TOKENS_AT_ONCE = 512
_PREFIXES_KEPT = 4
# What rows of the last call may take until the next.
_BYTES_KEPT = 2**31
_ROOM_TO_WRITE = 64
_NOTHING = Prefix((), [])
# An exponential draw is 0 once in eight million times, which would be endless luck for a token.
_LEAST_DRAW = np.float32(2.0**-25)


@dataclass(frozen=True, slots=True)
class Task:
    """A reply to be written after the tokens of `prompt`, drawn by `sampling` or greedy."""

    prompt: tuple[int, ...]
    writing: Writing
    sampling: Sampling | None = None


@dataclass(slots=True)
class _Batch:
    """Replies that are written together: `at` has the task at each place of `rows`.

    `own` is what each task's prompt has behind the prefix.
    """

    tasks: Sequence[Task]
    own: Sequence[list[int]]
    rows: Rows
    at: list[int]


@dataclass(slots=True)
class BatchDecoder:
    """Writes replies with one causal language model.

    `plain_reason` says why rows can't share what is kept of the model, in which case every step
    reads its whole text again, slowly, and gives the same replies. `tokens` counts those that went
    through the model.
    """

    model: Any
    tokens: int = field(default=0, init=False)
    plain_reason: str | None = field(default=None, init=False)
    _prefixes: list[Prefix] = field(default_factory=list, init=False)
    _kept: list[Rows] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.plain_reason = self._why_plain()

    def write(self, tasks: Sequence[Task]) -> None:
        """Write all replies to their end. No prompt may be empty.

        Raises:
            ScoringError: when the model gives numbers that are none.
        """
        import torch

        if not tasks:
            return
        known, self._kept = self._kept, []
        attention = nullcontext() if self.plain_reason else shared_attention(self.model)
        with attention, torch.inference_mode():
            groups = [
                (self._prefix(shared), sorted((tasks[index] for index in members), key=_by_length))
                for shared, members in _alike([task.prompt for task in tasks])
            ]
            for prefix, members in groups:
                before = [rows for rows in known if rows.prefix is prefix]
                known = [rows for rows in known if rows.prefix is not prefix]
                while members:
                    count = _rows_at_once(members, prefix)
                    batch = self._begun(members[:count], prefix, before)
                    members = members[count:]
                    if not members:
                        # Two generations of rows take twice the memory: no longer than need be.
                        before.clear()
                    self._finish(batch)
                    self._keep(batch.rows)

    def _keep(self, rows: Rows) -> None:
        self._kept.append(rows)
        while self._kept and sum(kept.bytes for kept in self._kept) > _BYTES_KEPT:
            del self._kept[0]

    def _prefix(self, shared: tuple[int, ...]) -> Prefix:
        """A prefix of `shared` that is long enough: one used before, if there is such."""
        if not shared:
            return _NOTHING
        fitting = [one for one in self._prefixes if shared[: len(one.tokens)] == one.tokens]
        # The longest, so that it is the same one at the next step, with the rows behind it.
        known = max(fitting, key=lambda one: len(one.tokens), default=_NOTHING)
        if len(known.tokens) >= len(shared) / 2:
            self._prefixes = [*(one for one in self._prefixes if one is not known), known]
            return known
        # Another prefix may begin alike, as where an instruction ends the system prompt.
        begun = [known.cut(common_prefix(known.tokens, shared)) for known in self._prefixes]
        base = max(begun, key=lambda known: len(known.tokens), default=_NOTHING)
        prefix = base
        if len(base.tokens) < len(shared):
            rows = self._rows(base, 1)
            self._absorb(rows, [shared[len(base.tokens) :]])
            prefix = rows.as_prefix()
        self._prefixes = [*self._prefixes[1 - _PREFIXES_KEPT :], prefix]
        return prefix

    def _begun(self, tasks: Sequence[Task], prefix: Prefix, before: Sequence[Rows]) -> _Batch:
        """Read what each prompt has behind the prefix, but for the last token."""
        own = [list(task.prompt[len(prefix.tokens) :]) for task in tasks]
        rows = self._rows(prefix, len(tasks), max(map(len, own)) + _ROOM_TO_WRITE)
        known = [_longest_known(tokens, before) for tokens in own]
        missing = [
            len(tokens) - (source[2] if source else 0)
            for tokens, source in zip(own, known, strict=True)
        ]
        # Those with most to read stand first, so that the others need not be filled up.
        at = sorted(range(len(own)), key=missing.__getitem__, reverse=True)
        for place, index in enumerate(at):
            if (source := known[index]) is not None:
                rows.take_over(place, *source)
        begun = zip(at, rows.tokens, strict=True)
        self._absorb(rows, [own[index][len(row) : -1] for index, row in begun])
        return _Batch(tasks, own, rows, at)

    def _finish(self, batch: _Batch) -> None:
        """Write the replies of a batch."""
        tasks, own, rows, at = batch.tasks, batch.own, batch.rows, batch.at
        feed = [own[index][-1] for index in at]
        active = len(tasks)  # so many are under way, and come first
        while active:
            logits = rows.step(feed[:active])
            self.tokens += active
            running = [tasks[index] for index in at[:active]]
            _take(logits.float(), running)
            for place in reversed(range(active)):
                if running[place].writing.ended:
                    active -= 1
                    rows.swap(place, active)
                    for order in (at, feed):
                        order[place], order[active] = order[active], order[place]
            added: list[Tokens] = []
            for place in range(active):
                writing = tasks[at[place]].writing
                wanted = [*own[at[place]], *writing.tokens]
                kept = common_prefix(tuple(rows.tokens[place]), tuple(wanted[:-1]))
                rows.cut(place, kept)
                added.append(wanted[kept:-1])
                feed[place] = wanted[-1]
            self._absorb(rows, added)

    def _rows(self, prefix: Prefix, count: int, room: int = 0) -> Rows:
        kind = PlainRows if self.plain_reason else SharedRows
        return kind(self.model, prefix, count, room)

    def _absorb(self, rows: Rows, added: Sequence[Tokens]) -> None:
        """Put `added` behind the rows, a part at a time, so that memory stays bounded."""
        self.tokens += sum(map(len, added))
        while any(added):
            # The last rows may have nothing to come.
            count = max(index for index, tokens in enumerate(added) if tokens) + 1
            length = max(1, _TOKENS_AT_ONCE // count)
            rows.absorb([tokens[:length] for tokens in added[:count]])
            added = [tokens[length:] for tokens in added]

    def _why_plain(self) -> str | None:
        """None if rows behind a shared prefix give what plain passes give, found by trying."""
        config = self.model.config.get_text_config()
        if not attention_windows(config):
            kinds = ", ".join(sorted(set(config.layer_types)))
            return f"its layers ({kinds}) can't share a prefix"
        tokens = [index % (config.vocab_size - 1) for index in range(3, 15)]
        try:
            with shared_attention(self.model):
                first = SharedRows(self.model, _NOTHING, 1)
                first.absorb([tokens[:4]])
                rows = SharedRows(self.model, first.as_prefix(), 2)
                rows.absorb([tokens[4:9], tokens[6:8]])
                shared = rows.step([tokens[10], tokens[11]])
        except Exception as error:  # any architecture may refuse in its own way
            return f"it refuses a shared prefix ({type(error).__name__}: {error})"
        plain = PlainRows(self.model, Prefix(tuple(tokens[:4]), []), 2)
        plain.absorb([tokens[4:9], tokens[6:8]])
        expected = plain.step([tokens[10], tokens[11]])
        gap = float((shared.log_softmax(-1) - expected.log_softmax(-1)).abs().max())
        allowed = 1e-3 if str(self.model.dtype) == "torch.float32" else 0.5
        if not gap <= allowed and bool(expected.isfinite().all()):
            return f"a shared prefix changes its numbers by {gap:.2g} nats"
        return None


def _take(logits: torch.Tensor, tasks: Sequence[Task]) -> None:
    """Give each task's writing its row of `logits`, shape (tasks, vocabulary)."""
    import torch

    for row, task in zip(logits, tasks, strict=True):
        if task.sampling is not None:
            row /= task.sampling.temperature
    searching = [place for place, task in enumerate(tasks) if task.writing.searches]
    others: dict[int, list[tuple[int, float]]] = {}
    if searching:
        logprobs = logits[searching].log_softmax(-1)
        drawn = logprobs
        if any(tasks[place].sampling for place in searching):
            # The order is that of the draw, the log-probabilities are the model's own.
            drawn = logprobs.clone()
            _add_noise(drawn, [tasks[place] for place in searching])
        tokens = drawn.topk(min(BRANCHES, drawn.shape[-1])).indices
        found = zip(searching, tokens.tolist(), logprobs.gather(-1, tokens).tolist(), strict=True)
        for place, ids, values in found:
            others[place] = list(zip(ids, values, strict=True))
    _add_noise(logits, tasks)
    best = logits.argmax(dim=-1)
    values = logits.gather(-1, best[:, None])
    if not bool(torch.isfinite(values).all()):
        raise ScoringError(
            "the model gave logits that are no numbers, so there is no next token: try "
            "--failgain-dtype float32, or check the model's weights"
        )
    for place, (task, token) in enumerate(zip(tasks, best.tolist(), strict=True)):
        task.writing.take(logits[place], token, others.get(place, ()))


def _add_noise(logits: torch.Tensor, tasks: Sequence[Task]) -> None:
    """Make the argmax of a sampled row a draw from its softmax (Gumbel noise)."""
    import torch

    for row, task in zip(logits, tasks, strict=True):
        if task.sampling is not None:
            noise = _gumbel(task.sampling.key, len(task.writing.tokens), row.shape[-1])
            row += torch.from_numpy(noise).to(row.device)


def _gumbel(key: str, place: int, count: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Standard Gumbel noise, shape (count,), that only depends on `key` and `place`."""
    seed = int.from_bytes(blake2b(f"{key} {place}".encode(), digest_size=16).digest(), "big")
    exponential = np.random.default_rng(seed).standard_exponential(count, dtype=np.float32)
    noise: np.ndarray[Any, np.dtype[np.float32]] = -np.log(np.maximum(exponential, _LEAST_DRAW))
    return noise


def _by_length(task: Task) -> int:
    return -len(task.prompt)


def _rows_at_once(tasks: Sequence[Task], prefix: Prefix) -> int:
    """How many of `tasks`, the longest first, may be under way together."""
    room = len(tasks[0].prompt) - len(prefix.tokens) + _ROOM_TO_WRITE
    row_bytes = max(1.0, prefix.token_bytes * room)
    return max(1, min(len(tasks), _ROWS_AT_ONCE, int(_BYTES_AT_ONCE / row_bytes)))


def _alike(prompts: Sequence[tuple[int, ...]]) -> Iterator[tuple[tuple[int, ...], list[int]]]:
    """The prompts in groups that begin alike: what each group shares, and its members.

    What is shared leaves a token of every prompt over, since something has to be read for a reply.
    """
    order = sorted(range(len(prompts)), key=prompts.__getitem__)
    shared = [common_prefix(prompts[one], prompts[other]) for one, other in pairwise(order)]
    # A group is worth it where its members share far more with one another than with the others.
    least = median(shared) / 2 if shared else 0
    ends = [place + 1 for place, length in enumerate(shared) if length < least]
    for start, end in pairwise([0, *ends, len(order)]):
        group = order[start:end]
        shortest = min(len(prompts[index]) for index in group)
        common = common_prefix(prompts[group[0]], prompts[group[-1]])
        yield prompts[group[0]][: min(common, shortest - 1)], group


def _longest_known(tokens: Sequence[int], before: Sequence[Rows]) -> tuple[Rows, int, int] | None:
    """Where most of `tokens` but the last stands already: rows, place, length."""
    wanted = tuple(tokens[:-1])
    options = (
        (common_prefix(tuple(row), wanted), rows, place)
        for rows in before
        for place, row in enumerate(rows.tokens)
    )
    length, rows, place = max(options, key=lambda option: option[0], default=(0, None, 0))
    return (rows, place, length) if rows is not None and length else None
