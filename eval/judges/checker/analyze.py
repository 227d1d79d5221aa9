"""Checker against people: confusion, kappa, risk and coverage, agreement among the annotators."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....human_labels import Label, by_annotator, check_labels, consensus, of_one_run
from ...stats.abstention import risk_coverage
from ...stats.agreement import (
    cohen_kappa,
    confusion,
    krippendorff_alpha,
    observed_agreement,
    reliability,
)
from ...stats.clusters import cluster_interval
from ...stats.estimate import share_of
from ...stats.intervals import Interval

DECIDED = ("PASS", "FAIL")
VERDICTS = (*DECIDED, "UNDECIDABLE")
ANSWERS = {"verdict": VERDICTS}
"""The one question that people answer about a checked image."""
_COUNTED = {"human_undecidable_excluded": False, "human_undecidable_counted": True}


def human_verdicts(labels: Sequence[Label], samples: Collection[str]) -> dict[str, str]:
    """Sample -> what most annotators say; UNDECIDABLE where they are split evenly.

    Raises RowError for a label of a sample that is not among `samples`, or that is no verdict, and
    for labels of two images of one sample.
    """
    decided = consensus(of_one_run(check_labels(labels, samples, ANSWERS)))
    return {sample: verdict or "UNDECIDABLE" for (sample, *_), verdict in decided.items()}


def analyze(
    checked: Sequence[Mapping[str, Any]],
    labels: Sequence[Label],
    weights: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Everything that labels of some samples say about a checker.

    checked: rows with sample_id, verdict_raw and conf; samples without a label are left out. Risk
        is given twice: with human UNDECIDABLE left out of the risk but kept in the coverage, as in
        the paper, and with it counted as an error of a checker that decided. Undefined numbers are
        None.
    weights: sample -> number of images it stands for, as `audit sample` drew it. An audit draws
        rare verdicts more often, so without weights, as published, all numbers describe the audit
        and not the run. With them `run` estimates the numbers of the whole run.
    Raises RowError for a label of an unknown sample, or that is no verdict.
    """
    human = human_verdicts(labels, {row["sample_id"] for row in checked})
    rows = [row for row in checked if row["sample_id"] in human]
    machine = [row["verdict_raw"] for row in rows]
    people = [human[row["sample_id"]] for row in rows]
    matrix = confusion(machine, people, VERDICTS)
    (tp, fp), (fn, tn) = matrix[0, :2].tolist(), matrix[1, :2].tolist()
    return {
        "labeled": len(rows),
        "confusion": {
            "rows": "checker",
            "columns": "human",
            "labels": list(VERDICTS),
            "counts": matrix.tolist(),
        },
        "kappa": _kappa("value", matrix),
        "decided_by_both": {
            name: number(value) for name, value in reliability(tp, fp, fn, tn)._asdict().items()
        },
        "risk": {name: _risk(machine, people, counted) for name, counted in _COUNTED.items()},
        "risk_coverage": {
            name: _curve(rows, people, counted) for name, counted in _COUNTED.items()
        },
        "annotators": among_annotators(labels),
        **({"run": _of_the_run(rows, people, weights)} if weights else {}),
    }


def _of_the_run(
    rows: Sequence[Mapping[str, Any]], people: Sequence[str], weights: Mapping[str, float]
) -> dict[str, Any]:
    """Weighted shares with their intervals over images."""
    weight = np.array([weights[row["sample_id"]] for row in rows])
    machine = np.array([row["verdict_raw"] for row in rows], dtype=object)
    human = np.array(people, dtype=object)
    decided, judged = np.isin(machine, DECIDED), np.isin(human, DECIDED)
    wrong = machine != human
    everything = np.ones(len(rows), bool)
    shares = {
        "coverage": (decided, everything),
        "human_pass": (human == "PASS", everything),
        "human_undecidable": (~judged, everything),
        "risk": (decided & judged & wrong, decided & judged),
        "risk_human_undecidable_counted": (decided & wrong, decided),
    }
    result: dict[str, Any] = {key: {"value": None, "interval": None} for key in shares}
    for name, (counted, of) in shares.items():
        if of.any():
            (estimate,) = cluster_interval(
                np.where(of, counted, np.nan), np.arange(len(rows)), (0, 1), weights=weight
            )
            result[name] = {
                "value": number(estimate.value),
                "interval": _interval(estimate.interval),
            }
    return result


def _risk(machine: Sequence[str], people: Sequence[str], counted: bool) -> dict[str, Any]:
    decided = [(m, p) for m, p in zip(machine, people, strict=True) if m in DECIDED]
    scored = [(m, p) for m, p in decided if counted or p in DECIDED]
    wrong = sum(m != p for m, p in scored)
    risk = share_of(wrong, len(scored))
    return {
        "coverage": len(decided) / len(machine) if machine else None,
        "evaluated": len(scored),
        "risk": number(risk.value),
        "interval": _interval(risk.interval),
        "warning": risk.warning,
    }


def _curve(
    rows: Sequence[Mapping[str, Any]], people: Sequence[str], counted: bool
) -> dict[str, Any]:
    """Risk where only verdicts with at least a confidence are kept, for every confidence there is.

    Coverage is of all labeled samples, as published: a verdict that people could not decide is
    covered, whether it is counted as an error or not.
    """
    decided = [
        (float(row["conf"]), row["verdict_raw"], person)
        for row, person in zip(rows, people, strict=True)
        if row["verdict_raw"] in DECIDED
    ]
    scores = np.array([score for score, _, _ in decided])
    undecided = np.full(len(rows) - len(decided), np.nan)
    covered = risk_coverage(np.r_[scores, undecided], np.zeros(len(rows), bool))
    scored = [d for d in decided if counted or d[2] in DECIDED]
    judged = risk_coverage([s for s, _, _ in scored], [m == p for _, m, p in scored])
    # Undefined where people decided none of the verdicts with at least this confidence.
    count_at = (judged.threshold >= covered.threshold[:, None]).sum(axis=1)
    risks = np.r_[math.nan, judged.risk][count_at]
    columns = (column.tolist() for column in (covered.threshold, covered.coverage, risks))
    points = [
        {"tau": tau, "coverage": coverage, "risk": number(risk)}
        for tau, coverage, risk in zip(*columns, strict=True)
    ]
    area = float(np.nansum(np.diff(covered.coverage, prepend=0.0) * risks)) if points else None
    return {"area": area, "points": points}


def among_annotators(labels: Sequence[Label]) -> dict[str, Any]:
    """Krippendorff's alpha over all annotators, and Cohen's kappa of every two."""
    table = by_annotator(labels)
    keys = sorted({label.about for label in labels})
    ratings = [[rated.get(key) for key in keys] for rated in table.values()]
    return {
        "labels": {name: len(rated) for name, rated in table.items()},
        "alpha": number(krippendorff_alpha(ratings)) if ratings else None,
        "pairs": [
            {"first": first, "second": second, **_pair(table[first], table[second])}
            for first, second in itertools.combinations(table, 2)
        ],
    }


def _pair(labels: Mapping[Any, str], other_labels: Mapping[Any, str]) -> dict[str, Any]:
    shared_keys = sorted(set(labels) & set(other_labels))
    ratings = [[rated[key] for key in shared_keys] for rated in (labels, other_labels)]
    matrix = confusion(ratings[0], ratings[1], sorted({*ratings[0], *ratings[1]}))
    return {"n": len(shared_keys), **_kappa("kappa", matrix)}


def _kappa(name: str, matrix: NDArray[np.int64]) -> dict[str, Any]:
    """Cohen's kappa by a name, its interval and warning, and the share of equal labels."""
    kappa = cohen_kappa(matrix)
    plain = kappa.to_json()
    return {
        name: plain["value"],
        "interval": plain["interval"],
        "agreement": number(observed_agreement(matrix)),
        "warning": kappa.warning,
    }


def number(value: float) -> float | None:
    """A number as JSON holds it: None where it is undefined."""
    return None if math.isnan(value) else float(value)


def _interval(ends: Interval) -> list[float] | None:
    return None if math.isnan(ends.low) else [float(ends.low), float(ends.high)]
