"""Statistics: against published figures, other libraries, and their own guarantees."""

import itertools
import math
import random
import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from refusals import raises
from scipy import stats as scipy_stats

from counterprior.eval.stats import comparison
from counterprior.eval.stats.abstention import risk_coverage
from counterprior.eval.stats.agreement import (
    cohen_kappa,
    confusion,
    krippendorff_alpha,
    observed_agreement,
)
from counterprior.eval.stats.bootstrap import cluster_bootstrap, first_places, numbered
from counterprior.eval.stats.comparison import (
    false_discovery,
    holm,
    mcnemar,
    paired_items,
    sign_flip,
    tied_groups,
)
from counterprior.eval.stats.correction import NOT_CORRECTED, _ratio, ppi, rogan_gladen
from counterprior.eval.stats.correlation import correlation
from counterprior.eval.stats.intervals import NOTHING, folded, normal_quantile, wilson
from counterprior.eval.stats.sequential import confidence_sequence


def test_kappa_has_the_error_of_the_formula() -> None:
    # Fleiss, Cohen and Everitt's variance, worked out for OTS-Bench Table 13, Qwen3-VL-8B.
    published = np.array([[224, 11, 4], [94, 1475, 30], [35, 56, 471]])
    low, high = cohen_kappa(published - 2 / 9).interval
    assert (high - low) / 2 / 1.959964 == pytest.approx(0.0116278, abs=1e-7)


def test_kappa_by_the_bootstrap_is_alike() -> None:
    matrix = np.array([[40, 9, 3], [6, 55, 8], [2, 11, 30]])
    rows, columns = np.nonzero(matrix)
    pairs = np.repeat(np.stack([rows, columns], axis=1), matrix[rows, columns], axis=0)
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(2_000):
        drawn = pairs[rng.integers(0, len(pairs), len(pairs))]
        counts = np.zeros((3, 3))
        np.add.at(counts, (drawn[:, 0], drawn[:, 1]), 1)
        draws.append(cohen_kappa(counts).value)
    low, high = cohen_kappa(matrix).interval
    assert np.std(draws) == pytest.approx((high - low) / 2 / 1.96, rel=0.05)


def test_kappa_of_nothing_or_of_one_label_is_undefined() -> None:
    assert math.isnan(cohen_kappa([[0, 0], [0, 0]]).value)
    assert math.isnan(cohen_kappa([[7, 0], [0, 0]]).value)
    assert observed_agreement([[7, 0], [0, 0]]) == 1
    with pytest.raises(ValueError, match="a confusion matrix is square"):
        cohen_kappa([[1, 2, 3]])


def test_confusion_rejects_a_label_nobody_declared() -> None:
    assert confusion(["a", "b", "b"], ["a", "a", "b"], ["a", "b"]).tolist() == [[1, 0], [1, 1]]
    with pytest.raises(ValueError, match="'c'"):
        confusion(["a"], ["c"], ["a", "b"])
    with pytest.raises(ValueError):
        confusion(["a"], [], ["a"])


@pytest.mark.parametrize("wrong", [0.02, 0.1])
def test_kappa_holds_where_raters_hardly_disagree(wrong: float) -> None:
    """The plain large-sample interval covers 0.45 and 0.87."""
    rng = np.random.default_rng(0)
    chance = np.array([[1 - wrong, wrong], [wrong, 1 - wrong]]).ravel() / 2
    drawn = rng.multinomial(30, chance, size=500).reshape(-1, 2, 2)
    assert np.mean([1 - 2 * wrong in cohen_kappa(one).interval for one in drawn]) > 0.92


def test_kappa_of_few_items_for_each_label_has_a_warning() -> None:
    assert "fewer than 20 items" in cohen_kappa([[18, 2], [1, 18]]).warning
    assert not cohen_kappa([[18, 2], [2, 18]]).warning
    assert cohen_kappa([[18, 2, 0], [2, 18, 0], [0, 0, 19]]).warning


def test_krippendorff_alpha_of_the_textbook() -> None:
    # Krippendorff 2011, "Computing Krippendorff's alpha-reliability", example C: nominal .743.
    a = "1 2 3 3 2 1 4 1 2 . . .".split()
    b = "1 2 3 3 2 2 4 1 2 5 . 3".split()
    c = ". 3 3 3 2 3 4 2 2 5 1 .".split()
    d = "1 2 3 3 2 4 4 1 2 5 1 .".split()
    raters = [[None if label == "." else label for label in rater] for rater in (a, b, c, d)]
    assert krippendorff_alpha(raters) == pytest.approx(0.743, abs=5e-4)
    shuffled = raters[::-1]
    assert krippendorff_alpha(shuffled) == pytest.approx(krippendorff_alpha(raters))
    assert math.isnan(krippendorff_alpha([["x", None], [None, "x"]]))


def test_alpha_of_four_raters_is_summed_item_by_item() -> None:
    rng = random.Random(5)
    raters = [[rng.choice(["a", "b", "c", None]) for _ in range(200)] for _ in range(4)]
    counts = np.zeros((3, 3))
    for item in zip(*raters, strict=True):
        labels = [label for label in item if label is not None]
        for first, second in itertools.permutations(range(len(labels)), 2):
            pair = "abc".index(labels[first]), "abc".index(labels[second])
            counts[pair] += 1 / (len(labels) - 1)
    totals, n = counts.sum(axis=0), counts.sum()
    apart = 1 - np.eye(3)
    expected = 1 - (n - 1) * (counts * apart).sum() / (np.outer(totals, totals) * apart).sum()
    assert krippendorff_alpha(raters) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(ValueError, match="lengths"):
        krippendorff_alpha([["a", "b"], ["a"]])


@example([-70, 57, 60] * 20, "i1")
@given(st.lists(st.integers(-128, 127), min_size=1, max_size=60), st.sampled_from(["i1", "i8"]))
def test_numbers_are_places_among_those_that_occur(values: list[int], kind: str) -> None:
    names = np.array(values, dtype=kind)
    _, first, expected = np.unique(names, return_index=True, return_inverse=True)
    assert numbered(names).tolist() == expected.tolist()
    assert first_places(numbered(names)).tolist() == first.tolist()
    assert numbered(names * np.int64(10**9)).tolist() == expected.tolist(), "far apart"


def test_signs_are_flipped_alike_whatever_was_tested_before() -> None:
    rng = np.random.default_rng(1)
    few, many = np.arange(20), np.arange(60)
    values = rng.normal(0.3, 1, 60)
    fresh = sign_flip(values[:20], few)
    larger = sign_flip(values, many)
    assert sign_flip(values[:20], few) == fresh
    assert sign_flip(values, many) == larger
    flips = np.random.default_rng(0).integers(0, 2, size=(10_000, 20), dtype=np.int8)
    totals = np.abs((2.0 * flips - 1) @ np.abs(values[:20]))
    assert fresh.null * 20 == pytest.approx(totals.mean(), rel=1e-3)


def test_flips_of_many_clusters_are_never_all_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "_KEPT", 1_000_000)
    values = np.random.default_rng(1).normal(0, 1, 1_000)
    tracemalloc.start()
    in_pieces = sign_flip(values, np.arange(1_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000  # all of them are 10 MB
    flips = np.random.default_rng(0).integers(0, 2, size=(10_000, 1_000), dtype=np.int8)
    totals = np.abs(2 * np.einsum("dg,g->d", flips, np.abs(values)) - np.abs(values).sum())
    assert in_pieces.null * 1_000 == pytest.approx(np.append(totals, abs(values.sum())).mean())


@given(st.integers(1, 400), st.data())
def test_wilson_is_scipys(n: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, n))
    expected = scipy_stats.binomtest(successes, n).proportion_ci(0.95, method="wilson")
    low, high = wilson(successes, n)
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_an_interval_holds_a_share_of_none_and_of_all() -> None:
    assert all(0.0 in wilson(0, n) and 1.0 in wilson(n, n) for n in range(1, 200))


def test_intervals_of_nothing_say_nothing() -> None:
    assert wilson(0, 0) is NOTHING
    with pytest.raises(ValueError, match="5 successes of 4"):
        wilson(5, 4)
    with raises("out-of-range", "95"):
        normal_quantile(95)


def test_folding_an_interval_across_zero_starts_at_zero() -> None:
    assert folded(type(NOTHING)(-3, 5)) == (0, 5)
    assert folded(type(NOTHING)(-7, 5)) == (0, 7)
    assert folded(type(NOTHING)(-7, -5)) == (5, 7)


def test_the_bootstrap_is_the_plain_loop() -> None:
    rng = np.random.default_rng(3)
    clusters = rng.integers(0, 40, 600)
    values = rng.normal(clusters[:, None] / 20, 1, (600, 2))
    values[rng.random((600, 2)) < 0.1] = np.nan
    found = cluster_bootstrap(values, clusters, lambda m: m[..., :1] - m[..., 1:], 4_000, seed=5)
    estimate = np.nanmean(values[:, 0]) - np.nanmean(values[:, 1])
    assert found.estimate[0] == pytest.approx(estimate)
    members = [np.flatnonzero(clusters == c) for c in np.unique(clusters)]
    drawn = []
    for _ in range(4_000):
        items = np.concatenate([members[i] for i in rng.integers(0, len(members), len(members))])
        drawn.append(np.nanmean(values[items, 0]) - np.nanmean(values[items, 1]))
    low, high = found.interval()
    assert (low, high) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])), abs=0.02)


def test_the_bootstrap_does_not_depend_on_the_order_of_clusters_names() -> None:
    values, clusters = [1.0, 2.0, 5.0, 3.0], ["a", "b", "c", "a"]
    one = cluster_bootstrap(values, clusters, resamples=500)
    assert np.array_equal(one.draws, cluster_bootstrap(values, clusters, resamples=500).draws)
    assert not np.array_equal(
        one.draws, cluster_bootstrap(values, clusters, resamples=500, seed=1).draws
    )


def test_two_way_clusters_widen_the_interval() -> None:
    rng = np.random.default_rng(0)
    first, second = (
        np.array(side) for side in zip(*itertools.combinations(range(25), 2), strict=True)
    )
    taste = rng.normal(0, 1, 25)
    values = taste[first] - taste[second] + rng.normal(0, 1, len(first))
    alone = cluster_bootstrap(values, np.arange(len(first)), resamples=2_000).interval()
    both = cluster_bootstrap(values, np.stack([first, second], axis=1), resamples=2_000).interval()
    assert both.high - both.low > 2 * (alone.high - alone.low)


def test_undefined_statistics_stay_undefined() -> None:
    nothing = cluster_bootstrap([math.nan, math.nan], [0, 1], resamples=100)
    assert math.isnan(nothing.estimate[0])
    assert nothing.interval() is NOTHING
    with pytest.raises(ValueError, match="do not fit"):
        cluster_bootstrap([1.0, 2.0], [0])
    with pytest.raises(ValueError, match="one or two clusters"):
        cluster_bootstrap([1.0], [[0, 0, 0]])


def test_mcnemar_counts_only_the_discordant() -> None:
    assert mcnemar(0, 0) == 1
    assert mcnemar(9, 1) == pytest.approx(22 / 1024)
    assert mcnemar(1, 9) == mcnemar(9, 1)


def test_false_discovery_is_the_textbooks_and_bounds_the_share_of_false_ones() -> None:
    # Benjamini and Hochberg (1995), their example of 15 tests: 4 are found at 5 %.
    published = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459]
    published += [0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0]
    assert sum(q <= 0.05 for q in false_discovery(published)) == 4
    assert false_discovery([]) == [] and false_discovery([0.2, math.nan])[0] == 0.2
    rng = np.random.default_rng(0)
    shares, naive = [], []
    for _ in range(400):  # 16 groups without an effect, 4 with one; all share a reference
        z = 0.5 * rng.normal() + np.sqrt(0.75) * rng.normal(size=20)
        z[:4] += 4
        p = scipy_stats.norm.sf(np.abs(z)) * 2
        for found, kept in ((np.array(false_discovery(p)) <= 0.05, shares), (p <= 0.05, naive)):
            kept.append(found[4:].sum() / max(1, found.sum()))
    assert np.mean(shares) < 0.05 < np.mean(naive)


def test_holm_is_the_textbooks() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.randoms())
def test_holm_does_not_depend_on_the_order(p_values: list[float], rng: random.Random) -> None:
    order = list(range(len(p_values)))
    rng.shuffle(order)
    shuffled = holm([p_values[i] for i in order])
    assert shuffled == pytest.approx([holm(p_values)[i] for i in order])
    assert all(a >= p for a, p in zip(holm(p_values), p_values, strict=True))


def test_tied_groups_overlap_where_neighbors_tie() -> None:
    scores = {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.2}
    p = {("a", "b"): 0.3, ("a", "c"): 0.01, ("b", "c"): 0.4}
    p |= {(name, "d"): 0.001 for name in "abc"}
    assert tied_groups(scores, p) == [["a", "b"], ["b", "c"], ["d"]]


def test_a_perfect_judge_needs_no_correction() -> None:
    found = rogan_gladen(60, 100, 500, 500, 500, 500)
    assert found.value == pytest.approx(0.6)
    assert 0.6 in found.interval
    assert rogan_gladen(60, 100, 50, 100, 50, 100) == NOT_CORRECTED


def test_correction_undoes_the_judges_errors() -> None:
    # OTS-Bench Table 13, InternVL3-8B: 2 % of 1 and 28 % of 2 are told wrongly; the truth is half.
    found = rogan_gladen(
        round(1_000 * (0.5 * 0.9787 + 0.5 * 0.2831)), 1_000, 1_471, 1_503, 390, 544
    )
    assert found.value == pytest.approx(0.5, abs=0.005)


def simulated_coverage(runs: int) -> dict[str, float]:
    """How often raw, Rogan-Gladen and PPI++ intervals hold the truth under an erring judge."""
    rng = np.random.default_rng(0)
    sensitivity, specificity, truth, labeled, n = 0.975, 0.89, 0.5, 400, 1_530
    hits = {"raw": 0, "rogan_gladen": 0, "ppi": 0}
    for _ in range(runs):
        y = rng.random(n) < truth
        judged = np.where(y, rng.random(n) < sensitivity, rng.random(n) >= specificity)
        hits["raw"] += truth in wilson(int(judged.sum()), n)
        found = ppi(judged[labeled:], judged[:labeled], y[:labeled], (0, 1))
        hits["ppi"] += truth in found.interval
        card_y = rng.random(1_200) < 0.7
        card = np.where(card_y, rng.random(1_200) < sensitivity, rng.random(1_200) >= specificity)
        corrected = rogan_gladen(
            positives=int(judged.sum()),
            n=n,
            true_positives=int((card & card_y).sum()),
            positive_n=int(card_y.sum()),
            true_negatives=int((~card & ~card_y).sum()),
            negative_n=int((~card_y).sum()),
        )
        hits["rogan_gladen"] += truth in corrected.interval
    return {name: hit / runs for name, hit in hits.items()}


def test_corrected_intervals_hold_the_truth_where_raw_ones_do_not() -> None:
    found = simulated_coverage(400)
    assert found["raw"] < 0.2
    assert found["ppi"] > 0.92
    assert found["rogan_gladen"] > 0.92


@pytest.mark.lane
def test_coverage_is_nominal() -> None:
    found = simulated_coverage(10_000)
    assert 0.94 < found["ppi"] < 0.96
    assert 0.935 < found["rogan_gladen"] < 0.97


def test_ppi_ignores_a_judge_that_guesses() -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(200) < 0.3).astype(float)
    guess = (rng.random(5_200) < 0.5).astype(float)
    found = ppi(guess[200:], guess[:200], y, (0, 1))
    shared = _ratio(guess[200:], guess[:200], y)
    assert np.ptp(shared.judged) < 0.2  # the weight of the judge
    assert found.value == pytest.approx(y.mean(), abs=0.03)
    assert ppi([], [1.0], [1.0], (0, 1)) == NOT_CORRECTED


def test_ppi_holds_for_ten_labels_of_a_judge_that_errs() -> None:
    """Without the half items and Student's t it covers 0.87."""
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(600):
        y = (rng.random(310) < 0.7).astype(float)
        judged = np.where((y == 1) & (rng.random(310) < 0.3), 0.0, y)
        hits += 0.7 in ppi(judged[10:], judged[:10], y[:10], (0, 1)).interval
    assert 0.91 < hits / 600 < 0.98


@pytest.mark.parametrize("clusters", [5, 15])
def test_ppi_holds_in_few_clusters_of_their_own_rates(clusters: int) -> None:
    """Without Student's t and Wilson's shape it covers 0.73 and 0.81."""
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(400):
        member = rng.permutation(np.arange(600) % clusters)
        rate = 1 / (1 + np.exp(-(3.03 + 1.5 * rng.normal(size=clusters))))
        y = (rng.random(600) < rate[member]).astype(float)
        judged = np.where(rng.random(600) < 0.05, 1 - y, y)
        hits += 0.9 in ppi(judged[300:], judged[:300], y[:300], (0, 1), member).interval
    assert 0.88 < hits / 400 < 0.99


@pytest.mark.parametrize(("rarer", "warned"), [(0, False), (1, True), (4, True), (5, False)])
def test_ppi_warns_of_few_labels_of_the_rarer_value(rarer: int, warned: bool) -> None:
    """At a rate of 0.02 intervals over clusters hold the truth in 0.88."""
    y = np.zeros(400)
    y[:rarer] = 1
    pairs = np.arange(400) // 2
    judged = np.where(pairs % 10 == 7, 1.0, y)  # errs on both of a pair
    for sign in (0, 1):
        estimate = ppi(
            abs(sign - judged[100:]), abs(sign - judged[:100]), abs(sign - y[:100]), (0, 1), pairs
        )
        assert bool(estimate.warning) is warned
    assert not ppi(judged[100:], judged[:100], y[:100], (0, 1)).warning


def test_ppi_of_signs_is_that_of_shares() -> None:
    y, g, f = [1, 0, 1, 1, 0], [1, 0, 1, 0, 0], [1, 1, 0, 0, 1, 1]
    shares = ppi(f, g, y, (0, 1))
    signs = ppi(*(2 * np.array(side) - 1 for side in (f, g, y)), (-1, 1))
    assert signs.value == pytest.approx(2 * shares.value - 1)
    assert signs.interval.low == pytest.approx(2 * shares.interval.low - 1)


def test_ppi_with_everything_labeled_is_the_mean() -> None:
    found = ppi([], [1, 0, 1, 1], [1, 0, 0, 1], (0, 1))
    assert found.value == 0.5


def test_ppi_of_items_that_go_together_is_wider() -> None:
    rng = np.random.default_rng(0)
    hits = {"independent": 0, "clustered": 0}
    for _ in range(400):
        clusters = np.repeat(np.arange(150), 8)
        y = (rng.random(1_200) < np.repeat(rng.beta(0.5, 0.5, 150), 8)).astype(float)
        judged = np.where(rng.random(1_200) < 0.9, y, 1 - y)
        order = rng.permutation(1_200)
        y, judged, clusters = y[order], judged[order], clusters[order]
        parts = judged[300:], judged[:300], y[:300], (0.0, 1.0)
        hits["independent"] += 0.5 in ppi(*parts).interval
        hits["clustered"] += 0.5 in ppi(*parts, clusters=clusters).interval
    assert hits["independent"] < 340 < 370 < hits["clustered"]
    alone = ppi(*parts, clusters=np.arange(1_200)).interval
    assert alone.low == pytest.approx(ppi(*parts).interval.low, abs=1e-3)
    assert ppi(*parts, clusters=np.zeros(1_200)).interval == (0, 1)


def test_a_perfect_record_still_has_a_width() -> None:
    ones = [1.0] * 30
    low, high = ppi(ones, ones, ones, (0, 1)).interval
    assert 0.85 < low < 0.97 and high == 1


def test_risk_falls_where_confidence_means_something() -> None:
    curve = risk_coverage([0.9, 0.8, 0.7, 0.6, math.nan], [True, True, False, False, True])
    assert curve.coverage.tolist() == [0.2, 0.4, 0.6, 0.8]
    assert curve.risk.tolist() == pytest.approx([0, 0, 1 / 3, 0.5])
    assert curve.area == pytest.approx(0.2 * (1 / 3 + 0.5))
    tied = risk_coverage([0.5, 0.5], [True, False])
    assert tied.coverage.tolist() == [1.0] and tied.risk.tolist() == [0.5]
    assert math.isnan(risk_coverage([], []).area)


@pytest.mark.parametrize("kind", ["pearson", "spearman", "kendall"])
def test_correlation_leaves_out_gaps_on_both_sides(kind: str) -> None:
    x = [1.0, 2.0, math.nan, 3.0, 4.0, 5.0]
    y = [1.0, 3.0, 9.0, 2.0, math.nan, 5.0]
    found = correlation(x, y, kind)
    assert found.n == 4
    assert found.value in found.interval
    assert found.value == pytest.approx(correlation([*x[:2], 3.0, 5.0], [1, 3, 2, 5], kind).value)
    assert math.isnan(correlation([1, 1, 1], [1, 2, 3], kind).value)


@pytest.mark.parametrize(
    ("difference", "discordance", "items"), [(0.1, 0.2, 150), (0.05, 0.2, 621), (0.028, 0.1, 994)]
)
def test_planned_numbers_of_items(difference: float, discordance: float, items: int) -> None:
    assert paired_items(difference, discordance) == items
    with raises("out-of-range", "0.2"):
        paired_items(0.3, 0.2)


@pytest.mark.parametrize("clusters", [8, 40])
def test_flipped_signs_give_the_chance_level_of_clusters(clusters: int) -> None:
    # Four images of a pair that always agree count as one: the null of as many fair coins.
    signs = np.repeat(np.where(np.arange(clusters) % 2, 1.0, -1.0), 4)
    test = sign_flip(signs, np.repeat(np.arange(clusters), 4))
    coins = np.abs(2 * np.random.default_rng(0).binomial(clusters, 0.5, 100_000) - clusters)
    assert test.null == pytest.approx(coins.mean() / clusters, rel=0.02)
    assert test.p_value == 1


def test_flipped_signs_of_few_clusters_are_exact() -> None:
    assert sign_flip([1.0] * 6, range(6)).p_value == pytest.approx(2 / 2**6)
    assert sign_flip([1.0, 1.0, -1.0, math.nan], [0, 0, 1, 2]).p_value == pytest.approx(1)
    assert math.isnan(sign_flip([math.nan], [0]).p_value)


def test_flipped_signs_reject_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    member = np.repeat(np.arange(30), 8)
    rejected = 0
    for _ in range(400):
        layout = np.where(rng.random(30) < 0.5, 1.0, -1.0)[member]
        p = sign_flip(np.where(rng.random(240) < 0.1, np.nan, layout), member, draws=400).p_value
        rejected += p <= 0.05
    assert 0.02 <= rejected / 400 <= 0.08


def test_a_weighted_sequence_is_of_all_items_and_holds_at_all_times() -> None:
    """Clusters of 1 or 9 items; the large ones are worth 0.6 and the small ones -0.8."""
    rng = np.random.default_rng(4)
    truth = (9 * 0.6 - 0.8) / 10
    outside = {True: 0, False: 0}
    for _ in range(60):
        large = rng.random(120) < 0.5
        values = np.where(large, 0.6, -0.8) + rng.uniform(-0.2, 0.2, 120)
        weights = np.where(large, 1.0, 1 / 9)
        for weighted in outside:
            looks = (
                confidence_sequence(values[:n], weights=weights[:n] if weighted else None)
                for n in (10, 40, 120)
            )
            outside[weighted] += any(truth not in look for look in looks)
    assert outside[True] <= scipy_stats.binom.ppf(0.999, 60, 0.05)
    assert outside[False] == 60
    assert confidence_sequence(values, weights=weights).low > 0
    alike = confidence_sequence(values, weights=np.ones(120))
    assert alike == confidence_sequence(values)
    with pytest.raises(ValueError, match=r"weight 2.0 is outside \[0, 1\]"):
        confidence_sequence([0.5], weights=[2.0])


def test_correction_holds_for_other_members_of_pairs() -> None:
    """Entities, each of many pairs, differ in what is true of them: pairs alone do not show it."""
    rng = np.random.default_rng(0)
    by_pair = by_member = 0
    for _ in range(120):
        effects = rng.normal(0, 1, 25)
        pairs = np.array([rng.choice(25, 2, replace=False) for _ in range(240)])
        truth = rng.random(240) < 1 / (1 + np.exp(-effects[pairs].sum(axis=1)))
        judged = np.where(rng.random(240) < 0.1, ~truth, truth).astype(float)
        parts = judged[80:], judged[:80], truth[:80].astype(float), (0.0, 1.0)
        by_pair += 0.5 in ppi(*parts, clusters=np.arange(240)).interval
        by_member += 0.5 in ppi(*parts, clusters=pairs).interval
    assert by_pair < 102 and by_member >= 110
