"""Choice of a judge: judges against people, pooled over generators and metrics, and by image.

OTS-Bench chooses its judge by Cohen's kappa on three classes, pooled over six metrics: whether the
first or left subject, the other, or neither (its Tables 3 and 13). CF-World looks at the difference
of the judge's score and people's for every image, here with limits of agreement (Bland and Altman).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...errors import DataError
from ...human_labels import draw_note, read_labels
from ..core import ORIGINAL, Outcome, Verdict
from ..engine.run import Run, RunHeader
from ..stats.bootstrap import Array
from ..stats.intervals import normal_quantile
from ..stats.means import cluster_mean
from ..suites import open_suite
from .judge_card import HumanAgreement, Labels
from .scoring import JudgedRun, believed_outcomes, check_same_rows, labels_of_run

CLOSE = 0.125
"""Difference of scores in [0, 1] that CF-World calls small."""
BINS = 8
"""Bins of the histogram on each side of 0."""
POOLED = "all"
CODES = ("invalid", "first", "other")
"""The classes that the labels of all metrics are mapped to."""


class LabelPair(NamedTuple):
    """The labels of one image by people and by a judge, for one question."""

    metric: str
    """Suite, question and variant."""
    run: str
    """Folder of the run."""
    people: str
    judge: str
    codes: tuple[str, str]
    """The same two as classes of `CODES`."""


class OutcomesOfRun(NamedTuple):
    """The outcomes of one run under one judge that labels are compared with."""

    suite: str
    folder: str
    """Folder of the run."""
    outcomes: Sequence[Outcome]

    @classmethod
    def of(cls, judged: JudgedRun) -> OutcomesOfRun:
        """All of a run that was scored."""
        return cls(judged.result.run.suite, judged.result.folder, judged.outcomes)


def judge_selection(
    roots: Sequence[Path], labels: Path, judges: Sequence[str] = ()
) -> dict[str, Any]:
    """Judge -> confusions by metric, by run and pooled, and the differences of scores by image.

    labels: human labels of images of any of the runs. Raises DataError if none is of these runs
    or can't be read, and RunError for runs without verdicts and for runs of other rows.
    """
    human_labels, several = read_labels(labels), len(roots) > 1
    by_judge, labels_by_run = dict[str, list[OutcomesOfRun]](), dict[str, Labels]()
    headers: dict[str, RunHeader] = {}
    for root in roots:
        run = Run.open(root).held()
        logs = run.chosen_judges(judges)
        of_people = labels_of_run(run, human_labels, several)
        labeled = {case for case, _ in of_people}
        cases = [case for case in run.cases() if case.id in labeled]
        for log in logs:
            outcomes = believed_outcomes(run, log, cases=cases)
            of_run = OutcomesOfRun(run.header.suite, str(run.root), outcomes)
            by_judge.setdefault(log.name, []).append(of_run)
        labels_by_run[str(root)] = of_people
        headers[str(run.root)] = run.header
    first: dict[str, str] = {}
    for folder, header in headers.items():
        other = first.setdefault(header.suite, folder)
        check_same_rows(folder, header, other, headers[other])
    if not any(labels_by_run.values()):
        raise DataError(f"{labels}: no label is of an image of these runs", code="nothing-to-do")
    note = draw_note(labels)
    return {
        judge: {
            "confusions": [
                _confusion_json(name, agreement)
                for name, agreement in _confusions(_compared(runs, labels_by_run))
            ],
            "scores": score_differences(runs, labels_by_run),
            "notes": [note] if note else [],
        }
        for judge, runs in by_judge.items()
    }


def _compared(
    runs: Sequence[OutcomesOfRun], labels_by_run: Mapping[str, Labels]
) -> list[LabelPair]:
    compared = []
    for of_run in runs:
        suite, people = open_suite(of_run.suite), labels_by_run[of_run.folder]
        for outcome in of_run.outcomes:
            for question, worth in suite.worths.items():
                label = people.get((outcome.case.id, question))
                verdict = outcome.verdict(question)
                if label is None or verdict.failed:
                    continue
                metric = f"{suite.name}/{question}/{outcome.case.variant}"
                order = sorted(worth.values, key=lambda name: -worth.values[name])
                codes = tuple(
                    CODES[1 + min(order.index(x), 1)] if x in order else CODES[0]
                    for x in (label, verdict.label)
                )
                compared.append(
                    LabelPair(metric, of_run.folder, label, verdict.label, (codes[0], codes[1]))
                )
    return compared


def _confusions(pairs: Sequence[LabelPair]) -> list[tuple[str, HumanAgreement]]:
    """(Name, confusion): pooled, then each metric with its own labels, then each run, pooled."""
    confusions = [(POOLED, HumanAgreement.of_pairs([pair.codes for pair in pairs], CODES))]
    for metric in sorted({pair.metric for pair in pairs}):
        labels = [(p.people, p.judge) for p in pairs if p.metric == metric]
        confusions.append((metric, HumanAgreement.of_pairs(labels)))
    for run in sorted({pair.run for pair in pairs}):
        codes = [p.codes for p in pairs if p.run == run]
        confusions.append((run, HumanAgreement.of_pairs(codes, CODES)))
    return confusions


def _confusion_json(name: str, agreement: HumanAgreement) -> dict[str, Any]:
    """A metric's, run's or the pooled matrix with what follows from it."""
    kappa = agreement.kappa
    return {
        "name": name,
        **vars(agreement),
        "kappa": kappa.value,
        "interval": tuple(kappa.interval),
        "agreement": agreement.observed,
        "n": kappa.n,
        "warning": kappa.warning,
    }


def score_differences(
    runs: Sequence[OutcomesOfRun], labels_by_run: Mapping[str, Labels]
) -> dict[str, Any] | None:
    """The judge's score less people's, of images that both have a score in [0, 1] for.

    The sign is that of CF-World, Figure 5: a positive mean is a judge that is too generous.

    labels_by_run: folder of a run -> labels. None for suites that don't score single images.
    """
    gaps, clusters = [], []
    for of_run in runs:
        suite, people = open_suite(of_run.suite), labels_by_run[of_run.folder]
        human_verdicts: dict[str, dict[tuple[str, str], Verdict]] = {}
        for (case, question), label in people.items():
            human_verdicts.setdefault(case, {})[question, ORIGINAL] = Verdict(label)
        for outcome in of_run.outcomes:
            if outcome.case.id not in human_verdicts:
                continue
            theirs = suite.correctness(Outcome(outcome.case, human_verdicts[outcome.case.id]))
            gap = suite.correctness(outcome) - theirs
            if not math.isnan(gap):
                gaps.append(gap)
                clusters.append(outcome.case.clusters[0])
    return agreement_limits(np.array(gaps), clusters) if gaps else None


def agreement_limits(gaps: Array, clusters: Sequence[str]) -> dict[str, Any]:
    """Summary of differences in [-1, 1], shape (n,): bias, limits of agreement, histogram.

    The limits are mean +- 1.96 standard deviations (Bland and Altman 1986): 95 % of the differences
    lie between them where they are normal. Each has a standard error of sqrt(3 / n) deviations. NaN
    for a single difference.
    """
    mean = cluster_mean(gaps, list(clusters))
    n = len(gaps)
    deviation = float(np.std(gaps, ddof=1)) if n > 1 else math.nan
    z = normal_quantile(0.95)
    edges = np.linspace(-1, 1, 2 * BINS + 1)
    # The differences of 0 or 1 scores are whole: a bin is centered on each edge but the outer ones.
    places = np.clip(np.round((gaps + 1) * BINS).astype(int), 0, 2 * BINS)
    counts = Counter(places.tolist())
    return {
        "n": n,
        "mean": mean.value,
        "interval": list(mean.interval),
        "deviation": deviation,
        "limits": [mean.value - z * deviation, mean.value + z * deviation],
        "limits_error": math.sqrt(3 / n) * deviation,
        "within_0.125": float(np.mean(np.abs(gaps) <= CLOSE + 1e-9)),
        "people_higher": float(np.mean(gaps < 0)),
        "judge_higher": float(np.mean(gaps > 0)),
        "histogram": [[float(edge), counts[place]] for place, edge in enumerate(edges)],
    }
