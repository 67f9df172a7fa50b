"""One reply while it is written: which token comes next, and when it is over."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from pytest_failgain.blocking.block import Block
from pytest_failgain.replies import ReplyStyle
from pytest_failgain.scoring.vocabulary import Vocabulary

if TYPE_CHECKING:
    import torch

# So often a search goes back before it only masks.
TRIES = 10
# So many tokens are tried where a reply is cut. Whatever stands behind some programs, such as words
# behind a closed fence, they stay the same, and each of a vocabulary would take seconds.
_TRIED_AT_LAST = 1000
# How many tokens of each place a search may take in another's stead.
BRANCHES = 8

Candidate = tuple[int, float]


class _Branch(NamedTuple):
    """A way not taken: `cost` is the negative log-probability (nats) of all of it."""

    cost: float
    before: tuple[int, ...]
    token: int


class Writing:
    """A reply under way in `style`, of at most `max_tokens` tokens.

    `tokens` are its tokens so far, and `ended` is "" until it is over (see `protocol.Reply`).
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        style: ReplyStyle,
        max_tokens: int,
        block: Block | None = None,
        tries: int = TRIES,
    ) -> None:
        self._vocabulary = vocabulary
        self._style = style
        self._max_tokens = max_tokens
        self._block = block if block else None
        self._tries = tries
        self._branches: list[_Branch] = []
        self._cost = 0.0
        self.tokens: list[int] = []
        self.ended = ""
        self.blocked = 0
        self.n_decoded = 0

    @property
    def searches(self) -> bool:
        """Whether `take` wants to know the other candidates."""
        return self._block is not None and self._block.way == "searched"

    @property
    def text(self) -> str:
        """The reply so far; nothing where it came to a dead end at a blocked action."""
        text = self._vocabulary.text(self.tokens)
        void = self.ended == "dead end" and self._block is not None and self._block.repeats(text)
        return "" if void else text

    def take(self, scores: torch.Tensor, best: int, others: Sequence[Candidate] = ()) -> None:
        """Choose the next token, or end.

        `scores` has shape (vocabulary,) and is changed; `best` is its argmax. `others` are the best
        tokens at this place with their log-probabilities (nats), where `searches` wants them.
        """
        self.n_decoded += 1
        # Not the first of them: that is another one than the best where two are as likely.
        self._remember([other for other in others if other[0] != best])
        if not self._is_forbidden(self.tokens, best):
            self._cost -= next((logprob for token, logprob in others if token == best), 0.0)
            self._put(best)
            return
        self.blocked += 1
        if not self._goes_back():
            self._put(self._masked(scores, best))

    def _put(self, token: int | None) -> None:
        if token is None:
            self.ended = "dead end"
        elif token in self._vocabulary.stops:
            self.ended = "stop"
        else:
            self.tokens.append(token)
            if token in self._vocabulary.may_end and self._style.is_over(self.text):
                self.ended = "line"
            elif len(self.tokens) >= self._max_tokens:
                self.ended = "length"

    def _remember(self, others: Sequence[Candidate]) -> None:
        before = tuple(self.tokens)
        for token, logprob in others:
            if logprob > -inf:
                heapq.heappush(self._branches, _Branch(self._cost - logprob, before, token))

    def _goes_back(self) -> bool:
        """Take the likeliest way not taken so far that is not forbidden; False if there is none."""
        while self._tries and self._branches:
            branch = heapq.heappop(self._branches)
            if not self._is_forbidden(branch.before, branch.token):
                self._tries -= 1
                self.tokens, self._cost = list(branch.before), branch.cost
                self._put(branch.token)
                return True
        return False

    def _masked(self, scores: torch.Tensor, token: int) -> int | None:
        """The best token that is not forbidden; None where all are, as far as they are tried."""
        last = len(self.tokens) + 1 >= self._max_tokens
        for _ in range(_TRIED_AT_LAST if last else len(scores)):
            scores[token] = -inf
            token = int(scores.argmax())
            if scores[token] == -inf:
                return None
            if not self._is_forbidden(self.tokens, token):
                return token
        return None

    def _is_forbidden(self, before: Sequence[int], token: int) -> bool:
        if self._block is None:
            return False
        if token in self._vocabulary.stops:
            return self._block.forbids(self._vocabulary.text(before), over=True)
        last = len(before) + 1 >= self._max_tokens
        if not last and token not in self._vocabulary.may_end:
            return False
        return self._block.forbids(self._vocabulary.text([*before, token]), over=last)
