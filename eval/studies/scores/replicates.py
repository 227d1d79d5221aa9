"""`replicates:`: one condition in several trainings, e.g. organisms that differ in their seed.

The runs of a line are pooled, and intervals are for other training seeds and other entities. With
``less`` a line has the difference of two conditions, training by training and prompt by prompt.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ....errors import UsageError
from ...core import ALL, FAILURES, Outcome, Score, count_excluded
from ...methods.denoising import preview_step
from ...results.quality import ImageQuality
from ...stats.bootstrap import Array
from ...stats.clusters import cluster_interval
from ...stats.estimate import Estimate
from ...stats.intervals import folded
from ...stats.means import cluster_mean
from ...stats.replicates import over_replicates, page_trend
from ...suites import open_suite
from ...suites.columns import cluster_numbers
from ...suites.relations import IMAGE_SHARES, RelationsSuite, unjudged
from .scope import LabeledRun, ScoreInputs
from .switched import biased, followed_last, prior_of

EFFECTS = ("order_effect", "signed_index", "valid", "success", "settled", *IMAGE_SHARES)
SIZES = {"order_bias": "order_effect", "hom": "signed_index"}
"""Score that is the size of another -> that one."""
TESTED = {"order_effect": "order_bias", "signed_index": "hom"}
"""Score -> score of the suite that has its test."""
NAMES = (*EFFECTS, *SIZES)


@dataclass(frozen=True)
class Columns:
    """What a score is a function of, image by image."""

    values: Array
    """Shape (n, k); NaN for an image that has none in a column."""
    outcomes: Sequence[Outcome]
    """Shape (n,)."""
    ends: tuple[float, float]
    excluded: Mapping[str, int]

    def of(self, keep: Sequence[bool]) -> Columns:
        """Some of the images."""
        kept = [o for o, is_kept in zip(self.outcomes, keep, strict=True) if is_kept]
        return replace(self, values=self.values[np.array(keep, dtype=bool)], outcomes=kept)


def reads(name: str, generator: str) -> Sequence[str]:
    """Patterns of the rivals that a score needs: for `success` the run without the switch, for
    `settled` that without the preview and the previews of other steps."""
    base, _, method = generator.partition("+")
    if name == "settled":
        return [base, f"{base}+{method.rpartition('-')[0]}-*"]
    return [base] if name == "success" else []


def find(name: str, scope: ScoreInputs) -> Score | None:
    """Computes a score of one condition, or its difference to another, see `ScoreInputs.less`.

    `order_effect`, `order_bias` (its size), `signed_index`, `hom` (its size), `valid` (share of
    judged images that show both subjects), `success` (see `switched`) and `settled` (share of
    cases whose layout is the final one from this step of `preview` on), percent; `all_right` and
    `decided` of prompts that state relations (see `relations`). Of a line with several conditions:
    `page_trend` over them, in [-1, 1]. The p-value is that of the trend, or of one training's
    sign-flip test. Raises UsageError for a suite without a prior, or without relations.
    """
    if len({*scope.conditions}) > 1:
        return _trend(name, scope)
    runs = [columns_of(name, cell, scope) for cell in scope.cells]
    bases = [columns_of(name, cell, scope) for cell in scope.less]
    if not any(run.outcomes for run in runs) or len(bases) not in (0, len(runs)):
        return None
    sides, paired = (runs, bases) if bases else (runs, [None] * len(runs))
    pooled = _estimate(name, sides, bases)
    own = [_estimate(name, [a], [b] if b else []).value for a, b in zip(sides, paired, strict=True)]
    low, high = runs[0].ends
    ends = (low - high, high - low) if bases else (low, high)
    estimate = over_replicates(pooled, own, ends)
    if name in SIZES and not bases:
        estimate = replace(estimate, value=abs(estimate.value), interval=folded(estimate.interval))
    excluded: dict[str, int] = {}
    p_value = math.nan
    if len(runs) == 1 and not bases:  # the suite's test takes the training as it is
        tested = TESTED.get(name, name)
        scores = scope.cells[0].judged.result.scores
        own_test = (s.p_value for s in scores if s.name == tested and s.group == ALL)
        p_value = next(own_test, math.nan)
    for run in runs:
        for label, count in run.excluded.items():
            excluded[label] = excluded.get(label, 0) + count
    return Score.of(
        estimate.scaled(100),
        name=f"replicates:{name}",
        unit="%",
        n=sum(_counted(run) for run in runs),
        p_value=p_value,
        excluded=dict(sorted(excluded.items())),
    )


def mean_quality(qualities: Sequence[ImageQuality], bases: Sequence[ImageQuality]) -> Score | None:
    """The mean of a scorer's scores over replicates, or of their differences to `bases`, which are
    paired in order and by case; None without a score."""
    own: list[dict[str, float]] = []
    for place, quality in enumerate(qualities):
        base = bases[place].values if bases else None
        own.append(
            {
                case: value - (base[case] if base is not None else 0.0)
                for case, value in quality.values.items()
                if base is None or case in base
            }
        )
    values = [value for of_run in own for value in of_run.values()]
    if not values:
        return None
    clusters = [q.clusters[c] for q, of_run in zip(qualities, own, strict=True) for c in of_run]
    means = [float(np.mean([*of_run.values()])) if of_run else math.nan for of_run in own]
    estimate = over_replicates(cluster_mean(values, clusters), means, (-math.inf, math.inf))
    facts = {"marks": qualities[0].score.marks, "excluded": qualities[0].score.excluded}
    return Score.of(estimate, name=qualities[0].scorer, unit="1", n=len(values), **facts)


def _trend(name: str, scope: ScoreInputs) -> Score | None:
    """Of the conditions, in the order of the line."""
    by_condition: dict[int, list[float]] = {}
    for condition, cell in zip(scope.conditions, scope.cells, strict=True):
        value = _estimate(name, [columns_of(name, cell, scope)], []).value
        by_condition.setdefault(condition, []).append(value)
    lengths = {len(values) for values in by_condition.values()}
    if len(by_condition) < 2 or len(lengths) > 1:
        return None
    trend = page_trend(np.array([*by_condition.values()]).T)
    return Score.of(trend, name=f"replicates:{name}", unit="1", p_value=trend.p_value)


def columns_of(name: str, cell: LabeledRun, scope: ScoreInputs) -> Columns:
    """The images of one cell as a score counts them."""
    suite = open_suite(cell.suite)
    if name in IMAGE_SHARES:
        if not isinstance(suite, RelationsSuite):
            raise UsageError(
                f"{name} is a score of prompts that state relations, {suite.name} has none",
                code="unsupported",
            )
        shares = np.array([IMAGE_SHARES[name](outcome) for outcome in cell.outcomes])
        excluded = count_excluded(map(unjudged, cell.outcomes), ("",))
        return Columns(shares[:, None], list(cell.outcomes), (0.0, 1.0), excluded)
    question, prior = prior_of(suite)
    worth = suite.worths[question]
    outcomes = list(cell.outcomes)
    effect = SIZES.get(name, name)
    base = scope.rivals.get(cell.judged.name.partition("+")[0])
    if effect == "success":
        chosen = {c.id for c in biased(base.outcomes, question, prior)} if base else set()
        outcomes = [o for o in outcomes if o.case.id in chosen]
    labels = [o.label(question) for o in outcomes]
    signs = worth.of_labels(labels)
    excluded = count_excluded(labels, worth.values)
    if effect == "valid":
        judged = [label not in FAILURES for label in labels]
        shown = np.where(judged, ~np.isnan(signs), np.nan).astype(float)
        failures = {label: n for label, n in excluded.items() if label in FAILURES}
        return Columns(shown[:, None], outcomes, (0.0, 1.0), failures)
    if effect == "settled":
        later = [{o.case.id: o.label(question) for o in run} for run in _later(cell, scope)]
        final = {o.case.id: o.label(question) for o in base.outcomes} if base else {}
        reasons, same = [], []
        for case in (o.case.id for o in outcomes):
            seen = [labels.get(case, "missing") for labels in later]
            failed = [label for label in (final.get(case, "missing"), *seen) if label in FAILURES]
            unseen = [] if final.get(case) in worth.values else [final.get(case, "missing")]
            reasons.append(next(iter((*failed, *unseen)), ""))
            same.append(math.nan if reasons[-1] else float({*seen} == {final[case]}))
        excluded = count_excluded(reasons, ("",))
        return Columns(np.array(same)[:, None], outcomes, (0.0, 1.0), excluded)
    if effect == "success":
        share = (1 + followed_last(cell.judged) * signs) / 2
        return Columns(share[:, None], outcomes, (0.0, 1.0), excluded)
    columns = signs[:, None]
    if effect == "order_effect":
        variants = np.array([o.case.variant for o in outcomes], dtype=str)
        of_variant = np.stack([variants == v for v in suite.variants], axis=1)
        columns = np.where(of_variant, columns, np.nan)
    return Columns(columns, outcomes, worth.ends, excluded)


def _later(cell: LabeledRun, scope: ScoreInputs) -> Iterator[Sequence[Outcome]]:
    """Outcomes of this preview and of those of later steps of the same generator."""
    first, base = preview_step(cell.judged.result.run.generator), cell.judged.name.partition("+")[0]
    for name, rival in scope.rivals.items():
        step = preview_step(rival.judged.result.run.generator)
        if name.partition("+")[0] == base and step >= first:
            yield rival.outcomes


def _counted(columns: Columns) -> int:
    return int((~np.isnan(columns.values)).any(axis=1).sum())


def _estimate(name: str, runs: Sequence[Columns], bases: Sequence[Columns]) -> Estimate:
    """A score of pooled runs, less that of others; its interval is for other entities."""
    count = runs[0].values.shape[1]
    size: Callable[[Array], Array] = np.abs if name in SIZES and bases else np.asarray
    width = 2 * count if bases else count
    blocks = []
    for place, side in enumerate((runs, bases)):
        for run in side:
            block = np.full((len(run.values), width), np.nan)
            block[:, place * count : (place + 1) * count] = run.values
            blocks.append(block)

    def statistic(means: Array) -> Array:
        first = size(means[..., :count].mean(axis=-1, keepdims=True))
        if not bases:
            return np.asarray(first)
        return np.asarray(first - size(means[..., count:].mean(axis=-1, keepdims=True)))

    outcomes = [o for run in (*runs, *bases) for o in run.outcomes]
    values = np.concatenate(blocks)
    if np.isnan(values).all(axis=0).any():
        return Estimate(math.nan)
    plain = statistic if width > 1 else None
    (estimate,) = cluster_interval(values, cluster_numbers(outcomes), runs[0].ends, plain)
    return estimate
