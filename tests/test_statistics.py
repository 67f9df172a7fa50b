from __future__ import annotations

import itertools
import math
import random
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_failgain.statistics import DRAWS, ClusterBootstrap, Estimate, holm
from strategies import quick

# Few draws where the number of them is not what is tested.
FEW = 200

numbers = st.floats(-1e3, 1e3)
clustered = st.lists(st.tuples(numbers, st.integers(0, 5)), min_size=1, max_size=20)


def split(pairs: Sequence[tuple[float, int]]) -> tuple[list[float], list[int]]:
    return [value for value, _ in pairs], [cluster for _, cluster in pairs]


def slow_means(
    values: Sequence[float], clusters: Sequence[Hashable], draws: int = 3_000
) -> list[float]:
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
    return means


def slow_interval(
    values: Sequence[float], clusters: Sequence[Hashable], draws: int = 3_000
) -> tuple[float, float]:
    low, high = np.quantile(slow_means(values, clusters, draws), (0.025, 0.975))
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


def at_zero_or_one(ones: int, cases: int) -> list[float]:
    return [1.0] * ones + [0.0] * (cases - ones)


def binomial_share(n: int, k: int, least: int, most: int) -> float:
    """The probability of `least` to `most` successes in n draws, at k/n each."""
    return math.fsum(
        math.comb(n, j) * (k / n) ** j * (1 - k / n) ** (n - j) for j in range(least, most + 1)
    )


# Harness and metric, mean, interval in 24ths, d_z and p: the published rows on rollouts whose
# values are 0 or 1, 24 tasks with one rollout each.
PUBLISHED = [
    ("abstract solved", 0.3333333333333333, (4, 13), 0.6922186552431728, 0.0001),
    ("verbatim solved", 0.4166666666666667, (5, 15), 0.8273595406616218, 0.0001),
    ("verbatim+instr solved", 0.5833333333333334, (9, 19), 1.1583033569262704, 0.0001),
    ("abstract stuck", 0.08333333333333333, (0, 5), 0.2951630263451236, 0.251),
    ("abstract+ban stuck", 0.041666666666666664, (0, 3), 0.20412414523193148, 0.5272),
    ("drop stuck", 0.6666666666666666, (11, 20), 1.3844373104863457, 0.0001),
    ("verbatim stuck", 0.2916666666666667, (3, 11), 0.6281781937772554, 0.0001),
    ("verbatim+ban stuck", 0.125, (0, 6), 0.37000643495047747, 0.0856),
    ("verbatim+instr stuck", 0.16666666666666666, (1, 8), 0.4377975178854565, 0.0288),
]


@pytest.mark.parametrize(("row", "mean", "ends", "d_z", "p"), PUBLISHED)
def test_effects_are_the_published_ones(
    row: str, mean: float, ends: tuple[int, int], d_z: float, p: float
) -> None:
    ones = round(24 * mean)
    effect = ClusterBootstrap.over(range(24)).effect(at_zero_or_one(ones, 24))
    assert effect.value == pytest.approx(mean, abs=1e-12)
    assert effect.n == 24
    assert effect.d_z == pytest.approx(d_z, abs=1e-9)
    assert effect.p == pytest.approx(p, abs=0.02)
    if DRAWS * binomial_share(24, ones, 0, 0) < 0.1:
        assert effect.p == p == 0.0001
    # At most 11 of 24 are 97.47 % of all draws at a mean of 7, so that chance chooses 11 or 12.
    highs = (11, 12) if row == "verbatim stuck" else (ends[1],)
    assert 24 * effect.low == pytest.approx(ends[0], abs=1e-9)
    assert any(24 * effect.high == pytest.approx(high, abs=1e-9) for high in highs)


@pytest.mark.parametrize(("n", "k"), [(24, 1), (24, 2), (24, 3), (17, 2), (31, 3), (7, 2), (49, 1)])
def test_p_of_zeros_and_ones_is_that_of_the_binomial_law(n: int, k: int) -> None:
    expected = 2 * min(binomial_share(n, k, 0, 0), binomial_share(n, k, 2 * k, n))
    for unit in (1.0, 0.1, -1 / 3, 1e-7, 1e5):
        values = [unit * value for value in at_zero_or_one(k, n)]
        p = ClusterBootstrap.over(range(n)).effect(values).p
        assert p == pytest.approx(expected, abs=5 * 2 * math.sqrt(0.25 / DRAWS))


@pytest.mark.parametrize(
    "tenths", [(-2, -2, -1, 3, 3), (-5, 1, 1, 1, 3), (-3, -3, 0, 1, 2), (-2, -1, 0, 2, 4)]
)
def test_draws_at_an_end_count_in_spite_of_rounding(tenths: tuple[int, ...]) -> None:
    # Tenths are no floats, and their sums come out on either side of an end.
    mean = Fraction(sum(tenths), 5)
    centred = [Fraction(sum(draw), 5) - mean for draw in itertools.product(tenths, repeat=5)]
    below = sum(draw <= -abs(mean) for draw in centred) / len(centred)
    above = sum(draw >= abs(mean) for draw in centred) / len(centred)
    for unit in (0.1, 0.7, -1 / 3):
        p = ClusterBootstrap.over(range(5)).effect([unit * value for value in tenths]).p
        assert p == pytest.approx(min(1.0, 2 * min(below, above)), abs=0.02)


@pytest.mark.parametrize("seed", range(6))
def test_p_and_d_z_are_those_of_the_published_procedure(seed: int) -> None:
    values, clusters = uneven_clusters(seed)
    # Moved to where p is neither the least nor 1.
    values = [value - math.fsum(values) / len(values) + 0.1 * (seed - 2.5) for value in values]
    effect = ClusterBootstrap.over(clusters).effect(values)
    mean = math.fsum(values) / len(values)
    centred = [draw - mean for draw in slow_means(values, clusters)]
    shares = [
        sum(draw <= -abs(mean) for draw in centred) / len(centred),
        sum(draw >= abs(mean) for draw in centred) / len(centred),
    ]
    share = min(shares)
    error = math.sqrt(share * (1 - share) * (1 / len(centred) + 1 / DRAWS))
    assert share > 0.001
    assert effect.p == pytest.approx(min(1.0, 2 * share), abs=2 * 5 * error)
    assert effect.value == pytest.approx(mean)
    squares = math.fsum((value - mean) ** 2 for value in values)
    assert effect.d_z == pytest.approx(mean / math.sqrt(squares / (len(values) - 1)))


def test_p_takes_the_smaller_of_two_unlike_shares() -> None:
    # Draws that lean to one side, so that the two shares differ by more than chance.
    values = np.random.default_rng(1).gamma(0.4, size=30) - 0.25
    mean = float(values.mean())
    centred = np.array(slow_means(values.tolist(), range(30))) - mean
    below, above = (centred <= -abs(mean)).mean(), (centred >= abs(mean)).mean()
    assert abs(below - above) > 0.02
    p = ClusterBootstrap.over(range(30)).effect(values).p
    assert p == pytest.approx(2 * min(below, above), abs=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_a_paired_difference_is_the_ordinary_bootstrap_of_pairs(seed: int) -> None:
    scipy_stats: Any = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(seed)
    left = rng.gamma(2.0, size=60)
    right = left + rng.normal(0.3, 1.0, size=60)
    theirs = scipy_stats.bootstrap(
        (left, right),
        lambda one, other, axis: one.mean(axis=axis) - other.mean(axis=axis),
        paired=True,
        vectorized=True,
        n_resamples=3_000,
        method="percentile",
        random_state=seed,
    ).confidence_interval
    effect = ClusterBootstrap.over(range(60)).effect(left - right)
    assert effect.value == pytest.approx(left.mean() - right.mean())
    assert_same_interval(effect.interval, (float(theirs.low), float(theirs.high)))


# Whole numbers, so that sums are exact and what is at an end stays there.
whole = st.lists(st.tuples(st.integers(-20, 20), st.integers(0, 5)), min_size=1, max_size=20)


def same(left: float, right: float) -> bool:
    return (math.isnan(left) and math.isnan(right)) or left == pytest.approx(right, abs=1e-9)


@quick
@given(pairs=clustered)
def test_an_effect_is_the_mean_with_its_interval(pairs: list[tuple[float, int]]) -> None:
    values, clusters = split(pairs)
    bootstrap = ClusterBootstrap.over(clusters, FEW)
    effect, mean = bootstrap.effect(values), bootstrap.mean(values)
    assert Estimate(effect.value, effect.low, effect.high, effect.n) == mean


@quick
@given(pairs=clustered)
def test_p_is_between_one_draw_and_all(pairs: list[tuple[float, int]]) -> None:
    values, clusters = split(pairs)
    assert 1 / FEW <= ClusterBootstrap.over(clusters, FEW).effect(values).p <= 1


@quick
@given(pairs=whole, scale=st.sampled_from([0.1, 1 / 3, 1e9, 1e-12, -1.0, -0.7]))
def test_neither_p_nor_d_z_has_a_unit_and_d_z_alone_has_a_sign(
    pairs: list[tuple[int, int]], scale: float
) -> None:
    values, clusters = split(pairs)
    bootstrap = ClusterBootstrap.over(clusters, FEW)
    plain = bootstrap.effect(values)
    scaled = bootstrap.effect([scale * value for value in values])
    assert scaled.p == plain.p
    assert same(scaled.d_z, math.copysign(1, scale) * plain.d_z)


@quick
@given(pairs=whole, shift=st.integers(-50, 50))
def test_shifting_the_values_shifts_the_effect(pairs: list[tuple[int, int]], shift: int) -> None:
    values, clusters = split(pairs)
    bootstrap = ClusterBootstrap.over(clusters, FEW)
    plain = bootstrap.effect(values)
    shifted = bootstrap.effect([value + shift for value in values])
    expected = [plain.value + shift, plain.low + shift, plain.high + shift]
    assert [shifted.value, shifted.low, shifted.high] == pytest.approx(expected, abs=1e-9)
    # The deviation stays: d_z moves as the mean does.
    assert same(shifted.d_z * plain.value, plain.d_z * shifted.value)


@quick
@given(pairs=whole, data=st.data())
def test_neither_the_order_of_cases_nor_of_clusters_moves_value_or_d_z(
    pairs: list[tuple[int, int]], data: st.DataObject
) -> None:
    one, other = (
        ClusterBootstrap.over(clusters, FEW).effect(values)
        for values, clusters in (split(pairs), split(data.draw(st.permutations(pairs))))
    )
    assert one.n == other.n
    assert one.value == pytest.approx(other.value)
    assert same(one.d_z, other.d_z)


def test_d_z_takes_no_account_of_clusters() -> None:
    values, clusters = uneven_clusters(1)
    one, other = (ClusterBootstrap.over(c).effect(values) for c in (clusters, range(len(values))))
    assert one.d_z == pytest.approx(other.d_z)
    assert one.interval != other.interval


def test_an_effect_leaves_out_cases_without_a_value() -> None:
    values, clusters = uneven_clusters(3)
    # Every other cluster loses all its cases, the others one.
    gone = set(sorted(set(clusters))[::2])
    kept = [i for i, cluster in enumerate(clusters) if cluster not in gone][1:]
    holes = [value if i in kept else math.nan for i, value in enumerate(values)]
    plain = ClusterBootstrap.over([clusters[i] for i in kept]).effect([values[i] for i in kept])
    assert ClusterBootstrap.over(clusters).effect(holes) == plain
    assert plain.n == len(kept)


def test_no_known_value_has_no_effect() -> None:
    for effect in (
        ClusterBootstrap.over([]).effect([]),
        ClusterBootstrap.over(["a", "b"]).effect([math.nan, math.inf]),
    ):
        assert unknown(effect)
        assert math.isnan(effect.p)
        assert math.isnan(effect.d_z)


@pytest.mark.parametrize("value", [0.1, -3.0, 1 / 3])
@pytest.mark.parametrize("cases", [1, 3, 10])
def test_equal_values_have_no_d_z_and_the_least_p(value: float, cases: int) -> None:
    effect = ClusterBootstrap.over(range(cases)).effect([value] * cases)
    assert math.isnan(effect.d_z)
    assert effect.p == 1 / DRAWS


def test_a_mean_of_zero_is_no_effect() -> None:
    bootstrap = ClusterBootstrap.over([1, 1, 2, 3])
    assert bootstrap.effect([0.0, 2.0, -3.0, 1.0]).p == pytest.approx(1, abs=0.02)
    nothing = bootstrap.effect([0.0] * 4)
    assert (nothing.value, nothing.interval, nothing.n, nothing.p) == (0.0, (0.0, 0.0), 4, 1.0)
    assert math.isnan(nothing.d_z)


p_values = st.lists(st.floats(0, 1) | st.sampled_from([0.0, 1e-4, 0.01, 0.5, 1.0]), max_size=6)


def closed_testing(p_values: Sequence[float]) -> list[float]:
    """Each hypothesis is rejected where every set that has it is, by Bonferroni within the set."""
    members = range(len(p_values))
    subsets = [s for size in members for s in itertools.combinations(members, size + 1)]
    return [
        max(min(1.0, len(s) * min(p_values[i] for i in s)) for s in subsets if member in s)
        for member in members
    ]


def test_holm_is_the_published_correction() -> None:
    assert holm([0.0001] * 9) == pytest.approx([0.0009] * 9, abs=1e-12)


@quick
@given(p_values=p_values)
def test_holm_is_closed_testing_with_bonferroni(p_values: list[float]) -> None:
    assert holm(p_values) == pytest.approx(closed_testing(p_values), abs=1e-15)


@quick
@given(p_values=p_values)
def test_holm_keeps_the_order_and_lowers_nothing(p_values: list[float]) -> None:
    corrected = holm(p_values)
    assert all(p <= c <= 1 for p, c in zip(p_values, corrected, strict=True))
    by_size = [c for _, c in sorted(zip(p_values, corrected, strict=True))]
    assert by_size == sorted(by_size)


@quick
@given(p_values=p_values, data=st.data())
def test_holm_counts_no_unknown_p(p_values: list[float], data: st.DataObject) -> None:
    holes = list(p_values)
    places = data.draw(st.lists(st.integers(0, len(p_values)), max_size=3))
    for place in places:
        holes.insert(place, math.nan)
    corrected = holm(holes)
    assert [c for c in corrected if not math.isnan(c)] == holm(p_values)
    assert [math.isnan(c) for c in corrected] == [math.isnan(p) for p in holes]
