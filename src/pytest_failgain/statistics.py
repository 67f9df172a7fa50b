"""Cluster bootstrap of means and of ratios of means.

Cases of one task are not independent, so whole tasks are resampled: each draw takes as many tasks
as there are, with replacement, and pools all their cases (as arXiv 2608.23651 does: 10,000 draws,
2.5 and 97.5 % quantiles). A task's share in a draw is a multinomial count, so all draws of all
quantities are one matrix product.

A mean against 0 has a p as well, from the same draws moved to where the mean is 0, and `holm`
corrects a family of them.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

DRAWS = 10_000
SEED = 20260808
_QUANTILES = (0.025, 0.975)
# What differs by less than this share of the largest value is equal: sums taken in another order.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Estimate:
    """A point estimate with its 95% interval, over `n` values. NaN where there are none."""

    value: float
    low: float
    high: float
    n: int

    @property
    def interval(self) -> tuple[float, float]:
        return (self.low, self.high)


@dataclass(frozen=True, slots=True)
class Effect(Estimate):
    """A mean with what tells it from 0: `p`, two-sided, and `d_z`, the mean in standard deviations.

    The deviation is that of the cases, whatever their clusters; `d_z` is NaN where it is 0 and for
    fewer than two cases.
    """

    p: float
    d_z: float


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A point estimate over `n` values with its draws, none where it has no interval."""

    point: float
    draws: NDArray[np.float64]
    n: int

    def estimate(self) -> Estimate:
        low, high = np.quantile(self.draws, _QUANTILES) if len(self.draws) else (math.nan, math.nan)
        return Estimate(self.point, float(low), float(high), self.n)


_NO_DRAWS = np.empty(0)


@dataclass(frozen=True, slots=True)
class ClusterBootstrap:
    """Draws over the clusters of a fixed set of cases.

    `members` has shape (cases,): the cluster of each. `weights` has shape (draws, clusters): how
    often each cluster was drawn.
    """

    members: NDArray[np.int64]
    weights: NDArray[np.float64]
    seed: int

    @classmethod
    def over(
        cls, clusters: Sequence[Hashable], draws: int = DRAWS, seed: int = SEED
    ) -> ClusterBootstrap:
        """Draws for cases whose clusters are `clusters`, the same for the same `seed`."""
        numbers = {cluster: index for index, cluster in enumerate(dict.fromkeys(clusters))}
        members = np.array([numbers[cluster] for cluster in clusters], dtype=np.int64)
        count = len(numbers)
        if count == 0:
            return cls(members, np.empty((draws, 0)), seed)
        rng = np.random.default_rng(seed)
        weights = rng.multinomial(count, np.full(count, 1 / count), size=draws)
        return cls(members, weights.astype(np.float64), seed)

    def mean(self, values: ArrayLike) -> Estimate:
        """Mean of `values`, shape (cases,). NaN marks a case without a value; it is left out."""
        return self._mean_draws(np.asarray(values, dtype=np.float64)).estimate()

    def effect(self, values: ArrayLike) -> Effect:
        """Mean of `values`, shape (cases,), in their unit, as in `mean`, tested against 0.

        The paired difference of two conditions is `effect(left - right)`: a case that lacks either
        is left out, and both are seen through the same draws.

        With the draws moved so that they lie about 0, p is twice the smaller of the shares of them
        at or below -|mean| and at or above |mean|, at least 1 / draws and at most 1 (arXiv
        2608.23651). The draws of a single cluster don't vary, so its p is the least there is, or 1
        for a mean of 0, and shows nothing.
        """
        array = np.asarray(values, dtype=np.float64)
        drawn = self._mean_draws(array)
        mean = drawn.estimate()
        known = array[np.isfinite(array)]
        if not len(known):
            return Effect(mean.value, mean.low, mean.high, 0, math.nan, math.nan)
        rounding = _ROUNDING * float(np.abs(known).max())
        # Values of 0 and 1 put many draws exactly at the ends, and these count.
        end = abs(drawn.point) - rounding
        centred = drawn.draws - drawn.point
        share = min((centred <= -end).mean(), (centred >= end).mean())
        p = min(1.0, max(2 * float(share), 1 / len(centred)))
        deviation = float(known.std(ddof=1)) if len(known) > 1 else 0.0
        d_z = drawn.point / deviation if deviation > rounding else math.nan
        return Effect(mean.value, mean.low, mean.high, mean.n, p, d_z)

    def ratio(self, numerators: ArrayLike, denominators: ArrayLike) -> Estimate:
        """Sum of `numerators` over sum of `denominators`, over the cases where both are finite.

        With equal counts that is the ratio of the two means. Where a draw's denominator has another
        sign than the whole's, or is 0, the ratio has no interval: its bounds are NaN.
        """
        tops = np.asarray(numerators, dtype=np.float64)
        return self._draws(tops, np.asarray(denominators, dtype=np.float64)).estimate()

    def _mean_draws(self, values: NDArray[np.float64]) -> _Drawn:
        return self._draws(values, np.where(np.isfinite(values), 1.0, np.nan))

    def _draws(self, top: NDArray[np.float64], bottom: NDArray[np.float64]) -> _Drawn:
        """Sum of `top` over sum of `bottom`, both of shape (cases,), in all cases and each draw."""
        known = np.isfinite(top) & np.isfinite(bottom)
        n = int(known.sum())
        if n == 0:
            return _Drawn(math.nan, _NO_DRAWS, 0)
        if len(np.unique(self.members[known])) < self.weights.shape[1]:
            # Clusters without any value are not drawn: they would only leave draws smaller.
            drawn = ClusterBootstrap.over(
                self.members[known].tolist(), len(self.weights), self.seed
            )
            return drawn._draws(top[known], bottom[known])
        tops = self._by_cluster(np.where(known, top, 0.0))
        bottoms = self._by_cluster(np.where(known, bottom, 0.0))
        whole = bottoms.sum()
        if whole == 0:
            return _Drawn(math.nan, _NO_DRAWS, n)
        point = float(tops.sum() / whole)
        drawn_bottoms = self._sums(bottoms)
        if (drawn_bottoms * whole <= 0).any():
            return _Drawn(point, _NO_DRAWS, n)
        return _Drawn(point, self._sums(tops) / drawn_bottoms, n)

    def _sums(self, clusters: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum of `clusters`, shape (clusters,), in each draw, shape (draws,)."""
        # Not a matrix product: that goes to threads, which wait for each other on a busy machine.
        sums: NDArray[np.float64] = np.einsum("dc,c->d", self.weights, clusters)
        return sums

    def _by_cluster(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        sums = np.zeros(self.weights.shape[1])
        np.add.at(sums, self.members, values)
        return sums


def holm(p_values: Sequence[float]) -> list[float]:
    """`p_values` of one family, corrected by Holm's step-down procedure, in the order given.

    The i-th smallest of m, from 0, is multiplied by m - i, is no less than the one before it, and
    at most 1. NaN stays NaN and is no member of the family.
    """
    members = [index for index, p in enumerate(p_values) if not math.isnan(p)]
    corrected = [math.nan] * len(p_values)
    least = 0.0
    for rank, index in enumerate(sorted(members, key=lambda index: p_values[index])):
        least = max(least, min(1.0, (len(members) - rank) * p_values[index]))
        corrected[index] = least
    return corrected
