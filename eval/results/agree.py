"""`counterprior agree`: agreement of metrics with human annotators.

The published study and its exchanged columns are explained in `docs/agreement.md`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...human_labels import Label, check_labels, of_one_run, read_labels
from ...parsing import RowError, read_rows
from ..stats.agreement import reliability
from ..stats.correlation import Kind, correlation
from ..stats.intervals import LEVEL, NOTHING, Interval, wilson

WORDS = {"PASS": 1.0, "CORRECT": 1.0, "FAIL": 0.0, "WRONG": 0.0, "MISSING": 0.0}
"""Labels as words; `UNDECIDABLE` is no number and is counted apart."""
UNDECIDED = "UNDECIDABLE"
KINDS: tuple[Kind, ...] = ("spearman", "kendall", "pearson")
THRESHOLD = 0.5
_DRAWS = 10_000


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


def read_scores(path: Path) -> dict[str, dict[str, float]]:
    """Metric -> sample -> score, from rows with sample_id and one number a metric.

    A null score is missing. Raises RowError for a sample that occurs twice, a score that is not
    finite, and a file without any metric; columns that are no numbers are passed over.
    """
    scores: dict[str, dict[str, float]] = {}
    samples: set[str] = set()
    for number, row in read_rows(path):
        sample = row.get("sample_id")
        if not isinstance(sample, str) or not sample:
            raise RowError(
                f"{path}:{number}: sample_id: a non-empty text is needed", code="missing-field"
            )
        if sample in samples:
            raise RowError(
                f"{path}:{number}: sample_id: {sample!r} occurs twice", code="duplicate-id"
            )
        samples.add(sample)
        for name, value in row.items():
            score = _number(value, path.suffix == ".csv") if name != "sample_id" else None
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
    return scores


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
) -> dict[str, Any]:
    """One metric against the labels; intervals are Wilson's, the others by bootstrap (seed 0).

    kinds: of correlation, whose bootstrap takes most of the time.

    From `threshold` on the metric says yes; people do from a mean label of 0.5 on. `unscored` are
    labeled samples without a number, `undecided` scored ones that people could not decide; both are
    left out, never 0. Each of `estimates` has a `value` and an `interval`, None where undefined.
    """
    common = sorted(set(scores) & set(human))
    decided = [name for name in common if human[name] is not None]
    x = np.array([scores[name] for name in decided], dtype=float)
    y = np.array([human[name] for name in decided], dtype=float)
    yes, truth = x >= threshold, y >= 0.5
    counts = {
        "tp": int((yes & truth).sum()),
        "fp": int((yes & ~truth).sum()),
        "fn": int((~yes & truth).sum()),
        "tn": int((~yes & ~truth).sum()),
    }
    tp, fp, fn, tn = counts.values()
    shares = reliability(tp, fp, fn, tn)
    correlations = {kind: correlation(x, y, kind) for kind in kinds}
    estimates: dict[str, tuple[float, Interval]] = {
        **{
            kind: (coefficient.value, coefficient.interval)
            for kind, coefficient in correlations.items()
        },
        "precision": (shares.precision, wilson(tp, tp + fp)),
        "recall": (shares.recall, wilson(tp, tp + fn)),
        "specificity": (shares.specificity, wilson(tn, tn + fp)),
        "npv": (shares.npv, wilson(tn, tn + fn)),
        "accuracy": (shares.accuracy, wilson(tp + tn, shares.n)),
        "f1": (shares.f1, _f1_interval(np.array([tp, fp, fn, tn]))),
    }
    return {
        "metric": metric,
        "n": len(decided),
        "unscored": len(set(human) - set(scores)),
        "undecided": len(common) - len(decided),
        "threshold": threshold,
        "counts": counts,
        "estimates": {name: _estimate(*estimate) for name, estimate in estimates.items()},
    }


def _f1_interval(counts: NDArray[np.int64]) -> Interval:
    """Percentile bootstrap: F1 is no proportion of independent items."""
    n = int(counts.sum())
    if not n or not counts[:3].any():
        return NOTHING
    draws = np.random.default_rng(0).multinomial(n, counts / n, _DRAWS)
    denominator = 2 * draws[:, 0] + draws[:, 1] + draws[:, 2]
    f1 = 2 * draws[:, 0][denominator > 0] / denominator[denominator > 0]
    low, high = np.quantile(f1, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high))


def _estimate(value: float, interval: Interval) -> dict[str, Any]:
    defined = not (math.isnan(value) or math.isnan(interval.low))
    return {
        "value": None if math.isnan(value) else value,
        "interval": tuple(interval) if defined else None,
    }


def run_agree(
    scores: Path, labels: Path, metrics: Sequence[str] = (), threshold: float = THRESHOLD
) -> list[dict[str, Any]]:
    """One row per metric. Raises RowError for an unknown metric and labels of unknown samples."""
    columns = read_scores(scores)
    if unknown := [name for name in metrics if name not in columns]:
        raise RowError(
            f"{scores}: no metric {unknown[0]!r}: choose from {', '.join(columns)}",
            code="unknown-name",
        )
    human = human_scores(check_labels(read_labels(labels), set().union(*columns.values())))
    chosen = metrics or list(columns)
    return [agreement(name, columns[name], human, threshold) for name in chosen]
