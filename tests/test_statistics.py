from __future__ import annotations

import itertools
import math
import random
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_failgain.statistics import DRAWS, ClusterBootstrap, Estimate
from strategies import quick

# Few draws where the number of them is not what is tested.
FEW = 200

numbers = st.floats(-1e3, 1e3)
clustered = st.lists(st.tuples(numbers, st.integers(0, 5)), min_size=1, max_size=20)


def split(pairs: Sequence[tuple[float, int]]) -> tuple[list[float], list[int]]:
    return [value for value, _ in pairs], [cluster for _, cluster in pairs]


def slow_interval(
    values: Sequence[float], clusters: Sequence[Hashable], draws: int = 3_000
) -> tuple[float, float]:
    """The published procedure, word for word and one draw at a time."""
    members: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        if math.isfinite(value):
            members.setdefault(cluster, []).append(value)
    names = list(members)
    choose = random.Random(5).choices
    means = []
    for _ in range(draws):
        pooled = [value for name in choose(names, k=len(names)) for value in members[name]]
        means.append(math.fsum(pooled) / len(pooled))
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)


def assert_same_interval(
    ours: tuple[float, float], theirs: tuple[float, float], *, draws: int = 3_000
) -> None:
    """Equal but for the chance in two sets of draws, five standard errors of it."""
    # A 2.5 % quantile of normal draws is off by sqrt(.025 * .975 / draws) / density, and the
    # density there is 0.0584 per standard deviation, of which an interval has 3.92.
    deviation = (theirs[1] - theirs[0]) / 3.92
    error = math.sqrt(0.025 * 0.975 * (1 / draws + 1 / DRAWS)) / 0.0584 * deviation
    assert ours == pytest.approx(theirs, abs=5 * error)


def uneven_clusters(seed: int) -> tuple[list[float], list[str]]:
    """Values in 20 clusters of 1 to 8, with a part that is the cluster's own."""
    rng = np.random.default_rng(seed)
    values: list[float] = []
    clusters: list[str] = []
    for cluster in range(20):
        size = int(rng.integers(1, 9))
        values += (rng.normal(size=size) + rng.normal() + 0.2 * size).tolist()
        clusters += [f"task{cluster}"] * size
    order = rng.permutation(len(values))
    return [values[i] for i in order], [clusters[i] for i in order]


@pytest.mark.parametrize("seed", range(6))
def test_the_interval_of_a_mean_is_that_of_the_published_procedure(seed: int) -> None:
    values, clusters = uneven_clusters(seed)
    estimate = ClusterBootstrap.over(clusters).mean(values)
    assert estimate.value == pytest.approx(math.fsum(values) / len(values))
    assert_same_interval(estimate.interval, slow_interval(values, clusters))


def test_whole_clusters_are_drawn_and_their_cases_pooled() -> None:
    # The comparison above is sharp enough to tell other procedures from the published one.
    values, clusters = uneven_clusters(0)
    interval = ClusterBootstrap.over(clusters).mean(values).interval
    by_case = slow_interval(values, range(len(values)))
    names = sorted(set(clusters))
    means = [
        float(np.mean([v for v, c in zip(values, clusters, strict=True) if c == name]))
        for name in names
    ]
    mean_of_means = slow_interval(means, names)
    for other in (by_case, mean_of_means):
        with pytest.raises(AssertionError):
            assert_same_interval(interval, other)


def test_cases_without_a_value_are_left_out_of_every_draw() -> None:
    values, clusters = uneven_clusters(3)
    values = [math.nan if i % 4 == 0 else value for i, value in enumerate(values)]
    known = [value for value in values if math.isfinite(value)]
    estimate = ClusterBootstrap.over(clusters).mean(values)
    assert estimate.n == len(known) < len(values)
    assert estimate.value == pytest.approx(math.fsum(known) / len(known))
    assert_same_interval(estimate.interval, slow_interval(values, clusters))


@pytest.mark.parametrize("seed", range(3))
def test_with_one_case_a_cluster_it_is_the_ordinary_bootstrap(seed: int) -> None:
    scipy_stats: Any = pytest.importorskip("scipy.stats")
    values = np.random.default_rng(seed).gamma(2.0, size=60)
    theirs = scipy_stats.bootstrap(
        (values,), np.mean, n_resamples=3_000, method="percentile", random_state=seed
    ).confidence_interval
    estimate = ClusterBootstrap.over(range(60)).mean(values)
    assert_same_interval(estimate.interval, (float(theirs.low), float(theirs.high)))


@pytest.mark.parametrize("seed", range(3))
def test_a_ratio_is_the_ordinary_bootstrap_of_a_paired_statistic(seed: int) -> None:
    scipy_stats: Any = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(seed)
    bottoms = rng.gamma(9.0, size=60)
    tops = 0.7 * bottoms + rng.normal(size=60)
    theirs = scipy_stats.bootstrap(
        (tops, bottoms),
        lambda top, bottom, axis: top.mean(axis=axis) / bottom.mean(axis=axis),
        paired=True,
        vectorized=True,
        n_resamples=3_000,
        method="percentile",
        random_state=seed,
    ).confidence_interval
    estimate = ClusterBootstrap.over(range(60)).ratio(tops, bottoms)
    assert estimate.value == pytest.approx(tops.mean() / bottoms.mean())
    assert_same_interval(estimate.interval, (float(theirs.low), float(theirs.high)))


def test_few_clusters_give_the_quantiles_of_all_possible_draws() -> None:
    clusters = ["a", "b", "b", "c"]
    values = [-1.0, 0.0, 4.0, 9.0]
    members = {"a": [-1.0], "b": [0.0, 4.0], "c": [9.0]}
    possible = [
        float(np.mean([value for name in draw for value in members[name]]))
        for draw in itertools.product("abc", repeat=3)
    ]
    # Each extreme is one draw in 27, which is more than 2.5 %.
    assert ClusterBootstrap.over(clusters).mean(values).interval == (min(possible), max(possible))


def binomial_quantile(n: int, k: int, share: float) -> int:
    """The least j for which at most j of n draws succeed with this probability, at k/n each."""
    p, below = k / n, 0.0
    for j in range(n + 1):
        below += math.comb(n, j) * p**j * (1 - p) ** (n - j)
        if below >= share:
            return j
    return n


# Chosen so that the number next to an end is one more or less at 3 % or at 2 %.
@pytest.mark.parametrize(("n", "k"), [(10, 3), (14, 7), (17, 13), (13, 9), (17, 5), (20, 17)])
def test_the_interval_ends_at_2_and_a_half_percent(n: int, k: int) -> None:
    estimate = ClusterBootstrap.over(range(n)).mean([1.0] * k + [0.0] * (n - k))
    ends = [binomial_quantile(n, k, share) / n for share in (0.025, 0.975)]
    assert list(estimate.interval) == pytest.approx(ends)


@quick
@given(pairs=clustered, seed=st.integers(0, 3))
def test_one_seed_gives_one_interval(pairs: list[tuple[float, int]], seed: int) -> None:
    values, clusters = split(pairs)
    one, other = (ClusterBootstrap.over(clusters, FEW, seed).mean(values) for _ in range(2))
    assert one == other


def test_another_seed_gives_other_draws() -> None:
    values, clusters = uneven_clusters(1)
    one, other = (ClusterBootstrap.over(clusters, seed=seed).mean(values) for seed in (1, 2))
    assert one.value == other.value
    assert one.interval != other.interval


def test_two_quantities_are_seen_through_the_same_draws() -> None:
    values, clusters = uneven_clusters(2)
    bootstrap = ClusterBootstrap.over(clusters)
    low, high = bootstrap.mean(values).interval
    doubled = bootstrap.mean([2 * value for value in values])
    assert doubled.interval == pytest.approx((2 * low, 2 * high))


@quick
@given(pairs=clustered, scale=st.floats(-5, 5), shift=numbers)
def test_scaling_and_shifting_the_values_scales_and_shifts_the_estimate(
    pairs: list[tuple[float, int]], scale: float, shift: float
) -> None:
    values, clusters = split(pairs)
    bootstrap = ClusterBootstrap.over(clusters, FEW)
    plain = bootstrap.mean(values)
    changed = bootstrap.mean([scale * value + shift for value in values])
    expected = [scale * x + shift for x in (plain.value, plain.low, plain.high)]
    if scale < 0:
        expected[1:] = reversed(expected[1:])
    assert [changed.value, changed.low, changed.high] == pytest.approx(expected, abs=1e-8)


@quick
@given(pairs=clustered, data=st.data())
def test_the_order_of_cases_does_not_move_the_mean(
    pairs: list[tuple[float, int]], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(pairs))
    one, other = (
        ClusterBootstrap.over(clusters, FEW).mean(values)
        for values, clusters in (split(pairs), split(shuffled))
    )
    assert one.n == other.n
    assert one.value == pytest.approx(other.value, abs=1e-9)


@quick
@given(pairs=clustered, names=st.permutations(["a", "b", "c", "d", "e", "f"]))
def test_the_names_of_clusters_do_not_matter(
    pairs: list[tuple[float, int]], names: list[str]
) -> None:
    values, clusters = split(pairs)
    one = ClusterBootstrap.over(clusters, FEW).mean(values)
    other = ClusterBootstrap.over([names[cluster] for cluster in clusters], FEW).mean(values)
    assert one == other


@quick
@given(pairs=clustered)
def test_an_interval_is_in_order_and_lies_among_the_values(
    pairs: list[tuple[float, int]],
) -> None:
    values, clusters = split(pairs)
    estimate = ClusterBootstrap.over(clusters, FEW).mean(values)
    rounding = 1e-9
    assert min(values) - rounding <= estimate.low <= estimate.high <= max(values) + rounding


@quick
@given(pairs=clustered, data=st.data())
def test_cases_without_a_value_change_nothing_within_their_clusters(
    pairs: list[tuple[float, int]], data: st.DataObject
) -> None:
    values, clusters = split(pairs)
    extra = data.draw(st.lists(st.sampled_from(clusters), max_size=5))
    unknown = data.draw(st.sampled_from([math.nan, math.inf, -math.inf]))
    plain = ClusterBootstrap.over(clusters, FEW).mean(values)
    padded = ClusterBootstrap.over([*clusters, *extra], FEW).mean(
        [*values, *[unknown] * len(extra)]
    )
    assert padded == plain


@quick
@given(values=st.lists(numbers, min_size=1, max_size=10))
def test_one_cluster_has_no_spread(values: list[float]) -> None:
    estimate = ClusterBootstrap.over(["task"] * len(values)).mean(values)
    assert estimate.interval == pytest.approx((estimate.value, estimate.value), abs=1e-9)


@quick
@given(value=numbers, clusters=st.lists(st.integers(0, 5), min_size=1, max_size=12))
def test_equal_values_have_no_spread(value: float, clusters: list[int]) -> None:
    estimate = ClusterBootstrap.over(clusters, FEW).mean([value] * len(clusters))
    assert [*estimate.interval, estimate.value] == pytest.approx([value] * 3)


def test_zeros_stay_exactly_zero() -> None:
    assert ClusterBootstrap.over([1, 1, 2, 3]).mean([0.0] * 4) == Estimate(0.0, 0.0, 0.0, 4)


def unknown(estimate: Estimate) -> bool:
    return estimate.n == 0 and all(map(math.isnan, (estimate.value, *estimate.interval)))


def test_no_case_has_no_estimate() -> None:
    bootstrap = ClusterBootstrap.over([])
    assert unknown(bootstrap.mean([]))
    assert unknown(bootstrap.ratio([], []))


def test_no_known_value_has_no_estimate() -> None:
    bootstrap = ClusterBootstrap.over(["a", "b", "b"])
    assert unknown(bootstrap.mean([math.nan] * 3))
    assert unknown(bootstrap.ratio([1.0, math.nan, math.nan], [math.nan, 2.0, math.nan]))


def test_clusters_without_any_value_leave_an_estimate_of_the_others() -> None:
    estimate = ClusterBootstrap.over(["a", "b", "c"]).mean([5.0, math.nan, math.nan])
    assert estimate == Estimate(5.0, 5.0, 5.0, 1)


@quick
@given(
    triples=st.lists(
        st.tuples(numbers, st.floats(0.5, 10), st.integers(0, 5)), min_size=1, max_size=20
    )
)
def test_a_ratio_is_the_ratio_of_the_means(triples: list[tuple[float, float, int]]) -> None:
    tops, bottoms, clusters = map(list, zip(*triples, strict=True))
    bootstrap = ClusterBootstrap.over(clusters, FEW)
    ratio = bootstrap.ratio(tops, bottoms)
    expected = bootstrap.mean(tops).value / bootstrap.mean(bottoms).value
    assert ratio.value == pytest.approx(expected, abs=1e-9)
    assert ratio.n == len(triples)


def test_a_ratio_takes_only_the_cases_that_have_both_parts() -> None:
    bootstrap = ClusterBootstrap.over(["a", "b", "c"])
    ratio = bootstrap.ratio([6.0, 100.0, math.nan], [3.0, math.nan, 100.0])
    assert ratio == Estimate(2.0, 2.0, 2.0, 1)


def test_the_ratio_of_proportional_parts_has_no_spread() -> None:
    values, clusters = uneven_clusters(4)
    bottoms = [abs(value) + 1 for value in values]
    ratio = ClusterBootstrap.over(clusters).ratio([bottom / 4 for bottom in bottoms], bottoms)
    assert [ratio.value, *ratio.interval] == pytest.approx([0.25] * 3)


def test_a_ratio_over_nothing_has_no_interval() -> None:
    ratio = ClusterBootstrap.over(["a", "b"]).ratio([1.0, 2.0], [0.0, 0.0])
    assert not math.isfinite(ratio.value)
    assert all(map(math.isnan, ratio.interval))
