"""Score of a cell while it fills, with an interval that holds at every moment.

Runs of studies have their cases cluster by cluster in a random order. The clusters from the first
on whose images are all made and judged, or failed, are a random sample of all, whatever is finished
out of turn beyond them. On these the headline has a confidence sequence: with probability 0.95 it
holds at all moments at once, so that one may look, and stop, whenever one likes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..core import ALL, Case, Outcome, Score
from ..engine.data import random_rank
from ..engine.run import Run
from ..results.scoring import believed_outcomes
from ..stats.bootstrap import Array
from ..stats.intervals import LEVEL, NOTHING, Interval
from ..stats.sequential import confidence_sequence
from ..store.verdicts import VerdictLog
from ..suites import SUITES, open_suite
from ..suites.base import Headline, Items
from ..suites.scoring import factor_of

_STEPS = (201, 41, 15)
"""Values of each mean that are tried for the ends of a statistic of 1, 2 or more means."""


def running_score(
    run: Run, log: VerdictLog, present: Mapping[str, str], answered: set[str]
) -> Score | None:
    """The headline of the clusters that are done, with its always-valid interval; None where the
    run's cases are in no random order, or no cluster is done.

    run: held. present: case -> digest of its image; answered: cases with an answer.
    """
    clusters = _clusters(run.cases())
    if clusters is None:
        return None
    images = run.images()

    def is_done(case: Case) -> bool:
        return case.id in images and (case.id not in present or case.id in answered)

    done = list(itertools.takewhile(lambda of_cluster: all(map(is_done, of_cluster)), clusters))
    if not done:
        return None
    suite = open_suite(run.header.suite, log.identity.get("persona", "standard"))
    cases = [case for of_cluster in done for case in of_cluster]
    outcomes = believed_outcomes(run, log, cases=cases)
    by_id = {outcome.case.id: outcome for outcome in outcomes}
    groups = [[by_id[case.id] for case in of_cluster if case.id in by_id] for of_cluster in done]
    planned = [[Outcome(case, {}, "missing") for case in of_cluster] for of_cluster in clusters]
    largest = max(len(suite.headline.items(of_cluster)) for of_cluster in planned)
    stripped = [replace(o, case=replace(o.case, groups={})) for o in outcomes]
    if SUITES[suite.name].scores_by_group:
        stripped = list(outcomes)
    scores = [
        score
        for score in (suite.score(stripped) if outcomes else [])
        if (score.name, score.group) == (suite.headline.score, ALL)
    ]
    if not scores:
        return None
    interval = always_valid_interval(suite.headline, groups, largest)
    return replace(
        scores[0],
        interval=interval.scaled(factor_of(scores[0].unit)),
        clusters=sum(map(bool, groups)),
        wide=NOTHING,
        bounds=NOTHING,
        p_value=math.nan,
        error=math.nan,
        warning="",
    )


def always_valid_interval(
    headline: Headline, groups: Sequence[Sequence[Outcome]], largest: int
) -> Interval:
    """Confidence sequence of the headline's statistic, in the unit of its items; NOTHING without
    items.

    groups: the outcomes of whole clusters, in random order. largest: items of the largest cluster
    of all that are planned. What is excluded may be anything: the interval reaches from its worst
    case to its best.
    """
    of_groups = [headline.items(group) for group in groups]
    tables = [_values(items) for items in of_groups if items]  # all of a group may be excluded
    if not tables:
        return NOTHING
    low, high = headline.ends
    middle, half = (high + low) / 2, (high - low) / 2
    number = tables[0].shape[1]
    weights = np.array([len(table) / largest for table in tables])
    ends = []
    for column in range(number):
        sides = []
        for filled in (low, high):
            values = [
                float(np.where(np.isnan(t[:, column]), filled, t[:, column]).mean()) for t in tables
            ]
            scaled = np.clip((np.array(values) - middle) / half, -1, 1)
            sides.append(confidence_sequence(scaled, 1 - (1 - LEVEL) / number, weights))
        ends.append((middle + half * sides[0].low, middle + half * sides[1].high))
    steps = _STEPS[min(number, len(_STEPS)) - 1]
    means = np.array(list(itertools.product(*(np.linspace(*end, steps) for end in ends))))
    with np.errstate(all="ignore"):
        statistics = np.ravel(headline.score_of(means))
    if np.isnan(statistics).all():
        return NOTHING
    return Interval(float(np.nanmin(statistics)), float(np.nanmax(statistics)))


def _values(items: Items) -> Array:
    """Shape (items, k): values of the items of one cluster, at least one."""
    return np.array([item.values for item in items.values()], dtype=float).reshape(len(items), -1)


def _clusters(cases: Iterable[Case]) -> list[list[Case]] | None:
    """The cases of each cluster, in their order; None unless that is the random one."""
    groups = [
        list(of_cluster)
        for _, of_cluster in itertools.groupby(cases, lambda case: case.clusters[0])
    ]
    ranks = [random_rank(of_cluster[0].clusters[0]) for of_cluster in groups]
    in_order = all(a < b for a, b in itertools.pairwise(ranks))
    return groups if in_order and groups else None
