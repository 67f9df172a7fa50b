"""Cluster bootstrap of means and of ratios of means.

Cases of one task are not independent, so whole tasks are resampled: each draw takes as many tasks
as there are, with replacement, and pools all their cases (METHOD of arXiv 2608.23651: 10,000 draws,
2.5 and 97.5 % quantiles). A task's share in a draw is a multinomial count, so all draws of all
quantities are one matrix product.
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
        array = np.asarray(values, dtype=np.float64)
        return self.ratio(array, np.where(np.isfinite(array), 1.0, np.nan))

    def ratio(self, numerators: ArrayLike, denominators: ArrayLike) -> Estimate:
        """Sum of `numerators` over sum of `denominators`, over the cases where both are finite.

        With equal counts that is the ratio of the two means. Where a draw's denominator has another
        sign than the whole's, or is 0, the ratio has no interval: its bounds are NaN.
        """
        top = np.asarray(numerators, dtype=np.float64)
        bottom = np.asarray(denominators, dtype=np.float64)
        known = np.isfinite(top) & np.isfinite(bottom)
        n = int(known.sum())
        if n == 0:
            return Estimate(math.nan, math.nan, math.nan, 0)
        if len(np.unique(self.members[known])) < self.weights.shape[1]:
            # Clusters without any value are not drawn: they would only leave draws smaller.
            drawn = ClusterBootstrap.over(
                self.members[known].tolist(), len(self.weights), self.seed
            )
            return drawn.ratio(top[known], bottom[known])
        tops = self._by_cluster(np.where(known, top, 0.0))
        bottoms = self._by_cluster(np.where(known, bottom, 0.0))
        whole = bottoms.sum()
        if whole == 0:
            return Estimate(math.nan, math.nan, math.nan, n)
        point = float(tops.sum() / whole)
        drawn_bottoms = self.weights @ bottoms
        if (drawn_bottoms * whole <= 0).any():
            return Estimate(point, math.nan, math.nan, n)
        low, high = np.quantile((self.weights @ tops) / drawn_bottoms, _QUANTILES)
        return Estimate(point, float(low), float(high), n)

    def _by_cluster(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        sums = np.zeros(self.weights.shape[1])
        np.add.at(sums, self.members, values)
        return sums
