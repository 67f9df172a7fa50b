"""Failed actions made unreachable in `model.generate`, whatever tokens they are written with.

Why not a grammar: llguidance 1.9 can say "a line that holds none of these strings", in masks that
take about 0.3 ms a token for one string and 0.4 ms for 20 with SmolLM2's 49,152 tokens, where those
here take half of that; xgrammar 0.2 knows strings that a free text excludes. But both would need
all spellings of a call, of which there are billions (arguments in any order, quotes, spacing,
escapes, JSON), and both forbid a string wherever it stands, not only as the whole of an action. So
what is forbidden stays one question about a text, `Block.forbids`, and this module asks it for the
few tokens that matter.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import torch
from transformers import LogitsProcessor

from pytest_failgain.blocking.block import Block
from pytest_failgain.blocking.call_ends import CallEnds, is_opening, undressed_once
from pytest_failgain.blocking.token_texts import (
    BROKEN,
    LineIndex,
    decoded,
    squeezed,
    token_texts,
)
from pytest_failgain.call_text import Call
from pytest_failgain.errors import UsageError
from pytest_failgain.replies import CALL_LINES, ReplyStyle, read_call


class BlockedActions(LogitsProcessor):
    """Takes away every token that would complete one of some earlier failed actions.

    Pass it to `model.generate(..., logits_processor=[BlockedActions(tokenizer, actions)])`. The
    mask covers the whole vocabulary, so it holds for greedy decoding, sampling and beams, and for
    batches that are padded on the left: a reply is what stands behind the prompt's columns.

    `actions` are the failed actions' texts, read in `style`, and `match` is that of `Block`. In a
    style other than CALL_LINES every token is tried at every place that matters, which takes
    seconds with a large vocabulary.

    `prompt_length` is the number of columns before the reply. Without it, that is the length at the
    first call, and the processor serves one generation: a call that does not go on from the one
    before is an error, as decoding with drafts or a second `generate` would make. With it, nothing
    is remembered, and one processor serves any number of generations with prompts of this length.

    `max_new_tokens` is that of `generate`. An action that does not end itself, such as a name
    without a call, is forbidden where the reply ends: at a line break, at a stop token, and at the
    last position, which is known only from this. `stop_ids` are the tokens at which `generate`
    ends, by default the tokenizer's end of sequence alone: where the model knows others, pass
    `model.generation_config.eos_token_id`.

    Where nothing else is left, the stop tokens are let through, and `dead_ends` counts that.

    Raises:
        UsageError: when there is no such match, no stop token, or a length is not positive; and in
            a call, when the reply can't be told from its prompt.
    """

    def __init__(
        self,
        tokenizer: Any,
        actions: Iterable[str],
        *,
        match: str = "canonical",
        style: ReplyStyle = CALL_LINES,
        prompt_length: int | None = None,
        max_new_tokens: int | None = None,
        stop_ids: int | Iterable[int] | None = None,
    ) -> None:
        for name, length in (("prompt_length", prompt_length), ("max_new_tokens", max_new_tokens)):
            if length is not None and length < 1:
                raise UsageError(f"{name} is {length}; it must be 1 at least")
        self.block = Block(
            actions if isinstance(actions, str) else tuple(actions), style, match=match
        )
        self.dead_ends = 0
        self._tokenizer = tokenizer
        self._stops = _stop_ids(tokenizer, stop_ids)
        self._given_length = prompt_length
        self._most = max_new_tokens
        self._before: torch.Tensor | None = None
        self._prompt_length = prompt_length
        self._search: _Search | None = None

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """The scores, shape (rows, vocabulary), with -inf for what is forbidden."""
        if not self.block:
            return scores
        start = self._reply_start(input_ids)
        if self._search is None or self._search.size != scores.shape[-1]:
            self._search = _Search(self.block, self._tokenizer, self._stops, scores.shape[-1])
        last = self._most is not None and input_ids.shape[1] - start + 1 >= self._most
        masked = scores
        for row, reply in enumerate(input_ids[:, start:].tolist()):
            if forbidden := self._search.forbidden(reply, last=last):
                masked = masked.clone() if masked is scores else masked
                self._mask(masked[row], forbidden)
        return masked

    def _mask(self, scores: torch.Tensor, forbidden: Collection[int]) -> None:
        kept = {stop: scores[stop].item() for stop in self._stops if stop < len(scores)}
        scores[torch.tensor(sorted(forbidden), device=scores.device)] = -torch.inf
        if torch.isneginf(scores).all():
            self.dead_ends += 1
            for stop, score in kept.items():
                # Another processor may have taken the stop token away, too.
                scores[stop] = max(score, torch.finfo(scores.dtype).min)

    def _reply_start(self, input_ids: torch.Tensor) -> int:
        """The first column of the replies."""
        length = input_ids.shape[1]
        if self._given_length is None:
            if self._before is None:
                self._prompt_length = length
            elif not self._goes_on(input_ids):
                raise UsageError(
                    "this call does not go on from the one before, so the reply can't be told from "
                    "the prompt; make new BlockedActions for every generation, or pass "
                    "prompt_length, and stop_ids if generate ends at others"
                )
            self._before = input_ids.clone()
        start = self._prompt_length
        if start is None or length < start:
            raise UsageError(f"prompt_length is {start}, but there are only {length} tokens")
        return start

    def _goes_on(self, input_ids: torch.Tensor) -> bool:
        """Whether every row is a row of the call before and one token, and not all have ended."""
        before, now = self._before, input_ids[:, :-1]
        if before is None or before.shape[1] != now.shape[1]:
            return False
        if not torch.equal(before, now):
            # Beams take one another's place.
            rows, known = (set(map(tuple, ids.tolist())) for ids in (now, before))
            if not rows <= known:
                return False
        replies = input_ids[:, self._prompt_length :].tolist()
        return any(self._stops.isdisjoint(reply) for reply in replies)


def _stop_ids(tokenizer: Any, given: int | Iterable[int] | None) -> frozenset[int]:
    if given is None:
        given = () if tokenizer.eos_token_id is None else tokenizer.eos_token_id
    stops = frozenset([given] if isinstance(given, int) else given or ())
    if not stops:
        raise UsageError("there is no token to stop at; pass stop_ids")
    return stops


class _Search:
    """Finds what `block` forbids behind a reply, of the first `size` tokens."""

    def __init__(self, block: Block, tokenizer: Any, stops: frozenset[int], size: int) -> None:
        self.size = size
        self._block = block
        self._tokenizer = tokenizer
        self._stops = tuple(stop for stop in stops if stop < size)
        self._texts = token_texts(tokenizer, size)
        self._known_style = block.style is CALL_LINES
        calls, ended, whole = _sorted_actions(block)
        self._calls = CallEnds(calls, self._texts)
        # Texts that are forbidden where the reply ends, and as soon as they are written.
        self._ended = frozenset(map(squeezed, ended))
        self._whole = frozenset(map(squeezed, whole))

    def forbidden(self, reply: Sequence[int], *, last: bool) -> set[int]:
        """The tokens that must not follow the tokens `reply`; `last` says that none follows them.

        It is what trying all tokens gives, of which the most are ruled out without being tried.
        """
        text = decoded(self._tokenizer, reply)
        repeats = self._block.repeats(text)
        found = set(self._stops) if repeats else set()
        verdicts: dict[str, bool] = {}
        settled = self._known_style and not is_opening(_last_line(text))
        for token in self._candidates(reply, text, last=last, repeats=repeats):
            after = self._after(reply, text, token)
            # A line says the same whatever stands behind it, and many tokens finish it.
            key = _first_lines(after, text) if settled else after
            if key not in verdicts:
                verdicts[key] = self._block.forbids(after, over=last)
            if verdicts[key]:
                found.add(token)
        return found

    def _after(self, reply: Sequence[int], text: str, token: int) -> str:
        """The text of the reply with one more token, `text` being that of the reply."""
        added = self._texts.texts[token]
        # Only here may a token's text depend on its neighbours: where a tokenizer drops the space
        # of a first token, and where bytes come together to a character.
        if not reply or text.endswith(BROKEN) or BROKEN in added:
            return decoded(self._tokenizer, [*reply, token])
        return text + added

    def _candidates(
        self, reply: Sequence[int], text: str, *, last: bool, repeats: bool
    ) -> Collection[int]:
        """The tokens that have to be tried; all others are allowed for sure."""
        style = self._block.style
        if not self._known_style:
            # Without a sign of its own that an action is over, only the reply's end forbids one.
            matters = last or style.one_line or style.self_ending
            return range(self.size) if matters else ()
        if repeats and self._block.forbids(text):
            # Only behind a dead end.
            return range(self.size)
        if style.is_over(text):
            return ()
        found = {*self._calls.candidates(text), *self._finishing(text, last)}
        if last or text.endswith(BROKEN):
            found.update(self._broken(text, last=last))
        return found

    def _finishing(self, text: str, last: bool) -> Iterator[int]:
        """The tokens that may finish a text that is forbidden as it is written."""
        if self._ended:
            yield from _finishing(
                self._ended, text, self._texts.by_line if last else self._texts.line_enders
            )
        if self._whole:
            yield from _finishing(self._whole, text, self._texts.by_line)

    def _broken(self, text: str, *, last: bool) -> Sequence[int]:
        """The tokens of bytes that may turn the text's broken end into something that matters."""
        # White space of several bytes would bare an action that stands before it.
        bared = self._block.repeats(text.rstrip(BROKEN))
        every = last or bared or not all(map(str.isascii, self._whole))
        return self._texts.broken if every else self._texts.broken_signs


def _sorted_actions(block: Block) -> tuple[list[Call], set[str], set[str]]:
    """The calls among the block's actions, and the texts: those forbidden at an end, and at once.

    Another spelling of a call counts only where the block says so; else it is a text.
    """
    calls: list[Call] = []
    ended: set[str] = set()
    whole: set[str] = set()
    for action in filter(None, map(block.style.action, block.actions)):
        call = read_call(action)
        if call is None:
            ended.add(action)
        elif block.match == "canonical":
            calls.append(call)
        else:
            whole.add(action)
    return calls, ended, whole


def _finishing(wanted: Iterable[str], text: str, index: LineIndex) -> Iterator[int]:
    """The tokens of `index` behind which the reply's line may say one of the `wanted` texts."""
    line = _last_line(text)
    if is_opening(line):
        written = squeezed(text)
        for one in wanted:
            yield from index.finishing(one, written)
            yield from index.holding(one)
    else:
        written = squeezed(undressed_once(line))
        for one in wanted:
            yield from index.completing(one, written)


def _last_line(text: str) -> str:
    return text.rpartition("\n")[2]


def _first_lines(text: str, known: str) -> str:
    """`text` up to the end of the line in which `known` ends, for what is settled in there."""
    end = text.find("\n", len(known))
    return text if end < 0 else f"{text[:end].rstrip()}\n"
