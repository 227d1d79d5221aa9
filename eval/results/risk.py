"""Risk-coverage curves: a judge's error among the answers that it is surest of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..core import ORIGINAL
from ..stats.abstention import RiskCoverage, risk_coverage
from .contents import RunContents


@dataclass(frozen=True)
class Curve:
    """A judge's error among the answers that it is surest of."""

    name: str
    """Run, judge and question."""
    series: int
    curve: RiskCoverage
    n: int


def risk_curves(runs: Sequence[RunContents]) -> list[Curve]:
    """A curve for every run, judge and question with both probabilities and human labels."""
    curves: list[Curve] = []
    for run in runs:
        for judged in run.judged if run.labels else ():
            by_question: dict[str, list[tuple[float, bool]]] = {}
            for answered in judged.log.present(run.present):
                if answered.frame is not None:  # people label a clip as a whole
                    continue
                label = run.labels.get((answered.case, answered.question))
                sure = answered.verdict.share(answered.verdict.label)
                if label is not None and sure is not None and answered.probe == ORIGINAL:
                    right = answered.verdict.label == label
                    by_question.setdefault(answered.question, []).append((sure, right))
            for question, pairs in sorted(by_question.items()):
                confidence, correct = zip(*pairs, strict=True)
                name = f"{run.name}, {judged.result.judge}, {question}"
                curve = risk_coverage(confidence, correct)
                curves.append(Curve(name, len(curves), curve, len(pairs)))
    return curves
