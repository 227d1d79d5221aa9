"""Ranks of runs and ties between them: paired comparisons, adjusted for multiple testing."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np

from ..core import Cluster, Score, describe
from ..stats.bootstrap import Array
from ..stats.clusters import cluster_interval
from ..stats.comparison import (
    ALPHA,
    Comparison,
    adjust,
    pairwise_p_values,
    tied_groups,
    tied_letters,
)
from ..stats.estimate import Estimate
from ..stats.intervals import Interval
from ..suites.base import Headline, Items
from ..suites.scoring import factor_of
from .contents import RunContents
from .scoring import JudgedRun

_STEPS = 41
"""Values that are tried in place of missing ones: a magnitude is least between the ends."""


@dataclass(frozen=True)
class Standing:
    """One line of a leaderboard."""

    name: str
    """Unique in the leaderboard."""
    judged: JudgedRun
    score: Score
    groups: str
    """Letters of the tied groups that it is in; empty where its score is undefined."""
    best: int = 0
    """Best rank that the comparisons leave it, 1 + the runs that are surely better; 0 without a
    score."""
    worst: int = 0
    """Worst one: as many runs as there are with a score, less those that are surely worse."""

    @property
    def rank(self) -> str:
        """`2`, or `1-3` where it is tied; empty without a score."""
        tied = f"{self.best}-{self.worst}" if self.best < self.worst else str(self.best)
        return tied if self.best else ""


@dataclass(frozen=True)
class Leaderboard:
    """The runs of a suite under one judge, or under several with `across_judges`."""

    suite: str
    judge: str
    """In one line; empty where several judges are mixed."""
    headline: Headline
    standings: Sequence[Standing]
    """Best first, by their scores in the worst case of what was not scored; those with an undefined
    score last."""
    comparisons: Sequence[Comparison]
    """Every pair of those with a score."""

    @property
    def all_tied(self) -> bool:
        """Whether no run is surely better than another: then nobody is first."""
        return all(standing.best <= 1 for standing in self.standings)


def leaderboards(runs: Sequence[RunContents], across_judges: bool) -> list[Leaderboard]:
    """A leaderboard for every suite and judge; across judges, one for every suite."""
    by_judge: dict[tuple[str, str], list[JudgedRun]] = {}
    headlines = {run.suite.name: run.suite.headline for run in runs}
    for run in runs:
        for judged in run.judged:
            card = "" if across_judges else json.dumps(dict(judged.result.card.comparable))
            by_judge.setdefault((run.suite.name, card), []).append(judged)
    return [
        leaderboard(suite, headlines[suite], judged, bool(card))
        for (suite, card), judged in sorted(by_judge.items(), key=lambda item: item[0])
    ]


def leaderboard(
    suite: str, headline: Headline, judged: Sequence[JudgedRun], alike: bool = True
) -> Leaderboard:
    """The runs of a suite, by their names; alike: whether one judge judged all of them."""
    mixed = not alike and len({run.result.judge for run in judged}) > 1
    entries = {f"{run.name} · {run.result.judge}" if mixed else run.name: run for run in judged}
    scores = {name: run.whole[headline.score] for name, run in entries.items()}
    ranks = {
        name: _worst_case(headline, entries[name])
        for name, score in scores.items()
        if not math.isnan(score.value)
    }
    ranked = sorted(ranks, key=lambda name: (-ranks[name], name))
    comparisons = _compare(headline, {name: entries[name] for name in ranked}, scores)
    p_values = pairwise_p_values(comparisons)
    tied = tied_groups(ranks, p_values)
    above = dict.fromkeys(ranked, 0)
    below = dict.fromkeys(ranked, 0)
    for (first, second), p_value in p_values.items():
        if p_value < ALPHA:  # the first of a pair is the better one
            above[second] += 1
            below[first] += 1
    undefined = sorted(set(entries) - set(ranked))
    standings = [
        Standing(
            name,
            entries[name],
            score=scores[name],
            groups=tied_letters(tied, name),
            best=1 + above[name] if name in above else 0,
            worst=len(ranked) - below[name] if name in below else 0,
        )
        for name in [*ranked, *undefined]
    ]
    judge = "" if mixed else describe(judged[0].result.card.identity)
    return Leaderboard(suite, judge, headline, standings, comparisons)


def _compare(
    headline: Headline, entries: dict[str, JudgedRun], scores: dict[str, Score]
) -> list[Comparison]:
    """Each pair of runs on the items that both have a value for; the better run is the first."""
    items = {name: headline.items(run.outcomes) for name, run in entries.items()}
    return adjust(
        [
            Comparison.of(
                paired(items[first], items[second], headline).scaled(factor_of(scores[first].unit)),
                first=first,
                second=second,
            )
            for first, second in combinations(entries, 2)
        ]
    )


def _worst_case(headline: Headline, judged: JudgedRun) -> float:
    """Headline of a run whose unscored items would speak against it, larger for better."""
    items = headline.items(judged.outcomes)
    sign = 1 if headline.better == "higher" else -1
    values = np.array([items[key].values for key in sorted(items, key=str)])
    filled = _filled(values, headline, -sign)
    return sign * float(headline.score_of(filled.mean(axis=0))[..., 0])


def paired(first: Items, second: Items, headline: Headline) -> Estimate:
    """The difference of a headline's statistic over the items that both have; n is their number.

    The value leaves out of both what one of them lacks, so that they stand on the same items. The
    interval doesn't: it reaches from the worst case of what the first lacks to its best (Manski
    1990), with the sampling error of each. The p-value is that of the case worst for the run that
    is ahead, so that nobody gets ahead by images that can't be scored.
    """
    shared = sorted(first.keys() & second.keys(), key=str)
    if not shared:
        return Estimate(math.nan)
    a = np.array([first[key].values for key in shared]).reshape(len(shared), -1)
    b = np.array([second[key].values for key in shared]).reshape(len(shared), -1)
    clusters = [first[key].cluster for key in shared]
    gaps = np.isnan(a) | np.isnan(b)
    estimate = _difference(np.where(gaps, np.nan, a), np.where(gaps, np.nan, b), clusters, headline)
    estimate = replace(estimate, n=int((~gaps).all(axis=1).sum()) if a.shape[1] else 0)
    if not gaps.any() or math.isnan(estimate.value):
        return estimate
    least = _difference(_filled(a, headline, -1), _filled(b, headline, 1), clusters, headline)
    most = _difference(_filled(a, headline, 1), _filled(b, headline, -1), clusters, headline)
    p_value = 1.0
    if least.value > 0:
        p_value = least.p_value
    elif most.value < 0:
        p_value = most.p_value
    interval = Interval(least.interval.low, most.interval.high)
    return replace(estimate, interval=interval, p_value=p_value)


def _difference(a: Array, b: Array, clusters: Sequence[Cluster], headline: Headline) -> Estimate:
    """The difference of the statistic of two runs, each of shape (n, k), on the same items.

    Two effects have the same size if their difference or their sum is 0: the p-value of a
    difference of sizes is the larger one of both tests.
    """
    width = a.shape[1]

    def differences(means: Array) -> Array:
        first, second = means[..., :width], means[..., width:]
        columns = [headline.score_of(first) - headline.score_of(second)]
        if headline.is_size:
            effects = headline.statistic(first), headline.statistic(second)
            columns += [effects[0] - effects[1], effects[0] + effects[1]]
        return np.concatenate(columns, axis=-1)

    estimate, *tests = cluster_interval(np.hstack([a, b]), clusters, headline.ends, differences)
    if tests:
        return replace(estimate, p_value=max(test.p_value for test in tests))
    return estimate


def _filled(values: Array, headline: Headline, sign: int) -> Array:
    """Values of shape (n, k) with one number a column in place of each gap.

    The numbers that make the statistic as small (sign -1) or as large (1) as gaps can.
    """
    gaps = np.isnan(values)
    if not gaps.any():
        return values
    width = values.shape[1]
    steps = np.linspace(*headline.ends, _STEPS if width < 3 else 3)
    numbers = np.array(list(product(steps, repeat=width)))
    means = (np.nansum(values, axis=0) + gaps.sum(axis=0) * numbers) / len(values)
    statistics = sign * headline.score_of(means)[..., 0]
    return np.where(gaps, numbers[int(np.nanargmax(statistics))], values)
