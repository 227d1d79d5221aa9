"""`counterprior audit analyze`: agreement of metrics with human annotators.

The published study and its exchanged columns are explained in `docs/agreement.md`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...human_labels import Label, check_labels, of_one_run, read_some_labels
from ...parsing import RowError, read_rows
from ..stats.clusters import cluster_interval
from ..stats.correlation import Kind, correlation
from ..stats.estimate import Estimate
from ..stats.intervals import Interval

WORDS = {"PASS": 1.0, "CORRECT": 1.0, "FAIL": 0.0, "WRONG": 0.0, "MISSING": 0.0}
"""Labels as words; `UNDECIDABLE` is no number and is counted apart."""
UNDECIDED = "UNDECIDABLE"
KINDS: tuple[Kind, ...] = ("spearman", "kendall", "pearson")
THRESHOLD = 0.5
CLUSTERS = ("cluster", "prompt_id", "prompt")
"""Columns that name what samples share, the first that a file has."""


@dataclass(frozen=True)
class MetricScores:
    """Numbers of several metrics for the same samples."""

    by_metric: Mapping[str, Mapping[str, float]]
    """Metric -> sample -> score; a missing score is left out."""
    samples: frozenset[str]
    """Every sample of the file, also those without a score."""
    column: str = ""
    """The column that names clusters; empty if samples count as independent."""
    cluster_of: Mapping[str, str] = field(default_factory=dict)
    """Sample -> cluster; empty without a column."""


def human_scores(labels: Sequence[Label]) -> dict[str, float | None]:
    """Sample -> mean of its labels in [0, 1]; None where nobody decided.

    Labels are numbers in [0, 1] or `WORDS`. Raises RowError for other labels, and for labels of
    more than one question or of two images of a sample.
    """
    values_by_sample: dict[str, list[float]] = {}
    question = labels[0].question if labels else ""
    for label in of_one_run(labels):
        if label.question != question:
            questions = f"{label.question!r} and {question!r}"
            raise RowError(
                f"{label.place}: question: {questions}: pass the labels of one question only",
                code="conflicting-options",
            )
        value = _score(label)
        values_by_sample.setdefault(label.case, []).extend([] if value is None else [value])
    return {
        name: float(np.mean(values)) if values else None
        for name, values in values_by_sample.items()
    }


def _score(label: Label) -> float | None:
    word = label.label.upper()
    if word == UNDECIDED:
        return None
    try:
        value = WORDS[word] if word in WORDS else float(word)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        accepted = ", ".join([*WORDS, UNDECIDED])
        problem = f"{label.label!r}: write a number in [0, 1] or one of {accepted}"
        raise RowError(f"{label.place}: label: {problem}", code="bad-value")
    return value


def read_scores(path: Path, column: str = "") -> MetricScores:
    """Reads rows with sample_id and one number a metric.

    column: names the cluster of each sample; one of `CLUSTERS` if empty. A null score is missing.
    Raises RowError for a sample that occurs twice, a score that is not finite, a row without a
    cluster, and a file without any metric; columns that are no numbers are passed over.
    """
    scores: dict[str, dict[str, float]] = {}
    rows: dict[str, tuple[int, dict[str, Any]]] = {}
    for number, row in read_rows(path):
        sample = row.get("sample_id")
        if not isinstance(sample, str) or not sample:
            raise RowError(
                f"{path}:{number}: sample_id: a non-empty text is needed", code="missing-field"
            )
        if sample in rows:
            raise RowError(
                f"{path}:{number}: sample_id: {sample!r} occurs twice", code="duplicate-id"
            )
        rows[sample] = number, row
    names = {name for _, row in rows.values() for name in row}
    if column and column not in names:
        raise RowError(
            f"{path}: no column {column!r} that names clusters: choose from "
            f"{', '.join(sorted(names - {'sample_id'})) or 'none'}",
            code="missing-column",
        )
    needed = bool(column)
    column = column or next((name for name in CLUSTERS if name in names), "")
    cluster_of = {}
    for sample, (number, row) in rows.items():
        if column:
            missing = row.get(column) in (None, "")
            if missing and needed:
                raise RowError(
                    f"{path}:{number}: {column}: every sample needs a cluster",
                    code="missing-field",
                )
            cluster_of[sample] = sample if missing else str(row[column])
        for name, value in row.items():
            known_column = name in ("sample_id", column)
            score = None if known_column else _number(value, path.suffix == ".csv")
            if score is None:
                continue
            if not math.isfinite(score):
                raise RowError(
                    f"{path}:{number}: {name}: {score} is not a score: write null "
                    f"for a missing score",
                    code="not-a-number",
                )
            scores.setdefault(name, {})[sample] = score
    if not scores:
        raise RowError(f"{path}: no column of numbers beside sample_id", code="missing-column")
    return MetricScores(scores, frozenset(rows), column, cluster_of)


def _number(value: object, textual: bool) -> float | None:
    if not isinstance(value, (int, float, str) if textual else (int, float)):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def agreement(
    metric: str,
    scores: Mapping[str, float],
    human: Mapping[str, float | None],
    threshold: float = THRESHOLD,
    kinds: Sequence[Kind] = KINDS,
    cluster_of: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """One metric against the labels; intervals are over clusters.

    kinds: of correlation, whose jackknife takes most of the time. cluster_of: sample -> cluster,
    e.g. its prompt; each sample is its own if empty.

    From `threshold` on the metric says yes; people do from a mean label of 0.5 on. `unscored` are
    labeled samples without a number, `undecided` scored ones that people could not decide; both are
    left out, never 0. Each of `estimates` has a `value` and an `interval`, None where undefined,
    and `n`, the samples that it is of. `yes` are the shares of samples that people and the metric
    pass: precision, NPV, accuracy and F1 hold for samples with these shares.
    """
    common = sorted(set(scores) & set(human))
    decided = [name for name in common if human[name] is not None]
    x = np.array([scores[name] for name in decided], dtype=float)
    y = np.array([human[name] for name in decided], dtype=float)
    clusters = np.array([(cluster_of or {}).get(name, name) for name in decided], dtype=str)
    yes, truth = x >= threshold, y >= 0.5
    counts = {
        "tp": int((yes & truth).sum()),
        "fp": int((yes & ~truth).sum()),
        "fn": int((~yes & truth).sum()),
        "tn": int((~yes & ~truth).sum()),
    }
    right = yes == truth
    considered = {
        "precision": yes,
        "recall": truth,
        "specificity": ~truth,
        "npv": ~yes,
        "accuracy": np.ones(len(x), dtype=bool),
        "f1": yes | truth,
    }
    columns = np.stack([np.where(of, right, np.nan) for of in considered.values()], axis=1)
    estimates = cluster_interval(columns, clusters, (0, 1))
    shares: dict[str, Estimate] = dict(zip(considered, estimates, strict=True))
    # Right of those that either passes is Jaccard's index J, and F1 = 2 J / (1 + J).
    jaccard = shares["f1"]
    shares["f1"] = Estimate(
        2 * jaccard.value / (1 + jaccard.value),
        Interval(*(2 * end / (1 + end) for end in jaccard.interval)),
        n=jaccard.n,
    )
    correlations = {kind: correlation(x, y, kind, clusters) for kind in kinds}
    return {
        "metric": metric,
        "n": len(decided),
        "clusters": len(set(clusters.tolist())),
        "unscored": len(set(human) - set(scores)),
        "undecided": len(common) - len(decided),
        "threshold": threshold,
        "counts": counts,
        "yes": {
            "people": float(truth.mean()) if len(x) else None,
            "metric": float(yes.mean()) if len(x) else None,
        },
        "estimates": {
            name: estimate.to_json() | {"n": estimate.n}
            for name, estimate in (*correlations.items(), *shares.items())
        },
        "warnings": sorted(
            {f"{kind}: {e.warning}" for kind, e in correlations.items() if e.warning}
        ),
    }


def run_agree(
    scores: Path,
    labels: Path,
    metrics: Sequence[str] = (),
    threshold: float = THRESHOLD,
    clusters: str = "",
) -> list[dict[str, Any]]:
    """One row per metric. clusters: column of SCORES that names the cluster of a sample.

    Raises RowError for an unknown metric and labels of unknown samples.
    """
    read = read_scores(scores, clusters)
    if unknown := [name for name in metrics if name not in read.by_metric]:
        raise RowError(
            f"{scores}: no metric {unknown[0]!r}: choose from {', '.join(read.by_metric)}",
            code="unknown-name",
        )
    human = human_scores(check_labels(read_some_labels(labels), read.samples))
    return [
        agreement(name, read.by_metric[name], human, threshold, cluster_of=read.cluster_of)
        | {"clustered_by": read.column or None}
        for name in metrics or list(read.by_metric)
    ]
