"""`counterprior audit analyze`: human ratings of image quality, run against run.

An item's rating is the mean over its annotators. Runs are compared on the same cases: a mean
difference with an interval over clusters, and a rank or sign test over clusters, since images of
one pair of entities are alike.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from ...errors import DataError, UsageError
from ...human_labels import SAMPLE
from ...parsing import RowError
from ..stats.bootstrap import Array
from ..stats.clusters import cluster_interval
from ..stats.comparison import holm, mcnemar
from ..stats.intervals import Interval
from .clicks import Clicks, agreement, read_clicks
from .forms import ReviewForm
from .sampling import LabelingSample, SampledItem

SIDES = {"left": 1.0, "same": 0.0, "right": -1.0}
"""Preferred side of two images -> preference for the left one."""


def analyze_ratings(folder: Path) -> dict[str, Any]:
    """Statistics of the labels in a folder of `audit serve`. Undefined numbers are None.

    Raises UsageError for a folder without a sample of runs or without labels, RowError for a label
    of an item that was not drawn.
    """
    path = folder / SAMPLE
    if not path.is_file():
        raise UsageError(
            f"{folder} has no {SAMPLE}: label with `counterprior audit serve RUN... --kind quality "
            f"--out {folder}` first",
            code="no-such-file",
        )
    sample = LabelingSample.read(path)
    if not sample.form.blind:
        raise UsageError(
            f"{path} is a sample for {sample.kind}, not for ratings", code="wrong-type"
        )
    everyone = {
        file.stem: read_clicks(file, sample.form) for file in sorted(folder.glob("*.jsonl"))
    }
    items = {item.id: item for item in sample.items}
    for who, clicks in everyone.items():
        if unknown := sorted(set(clicks) - set(items)):
            raise RowError(
                f"{folder / who}.jsonl: item {unknown[0]!r} is not in the sample",
                code="unknown-reference",
            )
    if not any(everyone.values()):
        raise DataError(f"{folder}: nobody has labeled anything yet", code="nothing-to-do")
    show = _rated if sample.kind == "quality" else _compared
    return {
        "kind": sample.kind,
        "items": len(items),
        "labels": {who: len(clicks) for who, clicks in everyone.items()},
        "alpha": agreement(everyone, sample.form),
        **show(sample, items, everyone),
    }


def _numbers(form: ReviewForm, name: str, item: str, everyone: Mapping[str, Clicks]) -> list[float]:
    """The annotators' values of a field of an item."""
    values = (clicks[item][name] for clicks in everyone.values() if name in clicks.get(item, {}))
    return [SIDES[value] if value in SIDES else float(value) for value in values]


def _rated(
    sample: LabelingSample, items: Mapping[str, SampledItem], everyone: Mapping[str, Clicks]
) -> dict[str, Any]:
    """Mean ratings of each run, and of every two runs the difference on the same cases."""
    fields: dict[str, Any] = {}
    for field in sample.form.fields:
        ends = float(field.options[0][0]), float(field.options[-1][0])
        means: dict[str, dict[str, float]] = {name: {} for name in sample.names}
        clusters = {item.case: item.cluster for item in items.values()}
        for item in items.values():
            if numbers := _numbers(sample.form, field.name, item.id, everyone):
                means[item.runs[0]][item.case] = fmean(numbers)
        pairs = [
            _difference(first, second, means, clusters, ends)
            for first, second in combinations(sample.names, 2)
        ]
        fields[field.name] = {
            "runs": {run: _mean(ratings, clusters, ends) for run, ratings in means.items()},
            "pairs": _with_holm(pairs),
        }
    return {"fields": fields}


def _mean(
    values: Mapping[str, float], clusters: Mapping[str, str], ends: tuple[float, float]
) -> dict[str, Any]:
    if not values:
        return {"mean": None, "interval": None, "n": 0}
    (estimate,) = cluster_interval(list(values.values()), [clusters[case] for case in values], ends)
    return {"mean": estimate.value, "interval": list(estimate.interval), "n": len(values)}


def _difference(
    first: str,
    second: str,
    means: Mapping[str, Mapping[str, float]],
    clusters: Mapping[str, str],
    ends: tuple[float, float],
) -> dict[str, Any]:
    """Second - first on the cases that both have a rating of."""
    shared = [case for case in means[first] if case in means[second]]
    gaps = np.array([means[second][case] - means[first][case] for case in shared])
    span = ends[1] - ends[0]
    return {
        "first": first,
        "second": second,
        **_shift("difference", gaps, [clusters[case] for case in shared], (-span, span)),
    }


def _shift(
    name: str, values: Array, clusters: Sequence[str], ends: tuple[float, float]
) -> dict[str, Any]:
    """A mean with its interval, Wilcoxon's test of the clusters' means, and their signs."""
    if not len(values):
        return {name: None, "interval": None, "p_value": None, "n": 0, "clusters": 0}
    (estimate,) = cluster_interval(values, clusters, ends)
    members = np.unique(np.asarray(clusters), return_inverse=True)[1]
    means = np.bincount(members, weights=values) / np.bincount(members)
    above, below = int((means > 0).sum()), int((means < 0).sum())
    return {
        name: estimate.value,
        "interval": list(estimate.interval) if not math.isnan(estimate.interval.low) else None,
        "p_value": signed_rank(means),
        "sign_test": mcnemar(above, below),
        "clusters_above": above,
        "clusters_below": below,
        "n": len(values),
        "clusters": len(means),
    }


def signed_rank(values: Array) -> float:
    """Two-sided p-value of Wilcoxon's signed-rank test against 0, of independent values (n,).

    Exact up to 50 values without ties and zeros; 1 where all are 0.
    """
    from scipy.stats import wilcoxon

    if not np.any(values):
        return 1.0
    return float(wilcoxon(values).pvalue)


def _compared(
    sample: LabelingSample, items: Mapping[str, SampledItem], everyone: Mapping[str, Clicks]
) -> dict[str, Any]:
    """For every two runs, how often each is preferred, regardless of its side."""
    fields: dict[str, Any] = {}
    for field in sample.form.fields:
        pairs = []
        for first, second in combinations(sample.names, 2):
            wins: dict[str, float] = {}
            sides: list[float] = []
            clusters: list[str] = []
            for item in items.values():
                numbers = _numbers(sample.form, field.name, item.id, everyone)
                if set(item.runs) != {first, second} or not numbers:
                    continue
                left = fmean(numbers)
                wins[item.id] = left if item.runs[0] == second else -left
                sides.append(left)
                clusters.append(item.cluster)
            values = np.array(list(wins.values()))
            pairs.append(
                {
                    "first": first,
                    "second": second,
                    "first_better": int((values < 0).sum()),
                    "even": int((values == 0).sum()),
                    "second_better": int((values > 0).sum()),
                    **_shift("preference", values, clusters, (-1.0, 1.0)),
                    "left_preferred": fmean(sides) if sides else None,
                }
            )
        fields[field.name] = {"pairs": _with_holm(pairs)}
    return {"fields": fields}


def _with_holm(pairs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The pairs with their p-values after Holm."""
    defined = [pair for pair in pairs if pair["p_value"] is not None]
    for pair, value in zip(defined, holm([pair["p_value"] for pair in defined]), strict=True):
        pair["adjusted"] = value
    return pairs


def interval_of(pair: Mapping[str, Any]) -> Interval:
    """The interval of a mean or of a pair."""
    ends = pair["interval"]
    return Interval(math.nan, math.nan) if ends is None else Interval(*ends)
