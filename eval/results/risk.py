"""Are a judge's probabilities worth anything? Its error among the answers that it is surest of."""

from __future__ import annotations

from collections.abc import Sequence

from ..core import ORIGINAL, is_failure
from ..report.plots import Curve
from ..stats.abstention import risk_coverage
from .contents import RunContents


def risk_curves(runs: Sequence[RunContents]) -> list[Curve]:
    """A curve for every run, judge and question with both probabilities and people's labels."""
    images = {run.name: run.run.images() for run in runs}
    curves: list[Curve] = []
    for run in runs:
        for folder in run.run.judges():
            known: dict[str, dict[str, tuple[float, bool]]] = {}
            for record in folder.verdicts():
                case, question = record["case"], record["question"]
                made = images[run.name].get(case)
                if (
                    made is not None
                    and record["image"] == made.sha256
                    and record["probe"] == ORIGINAL
                    and (case, question) in run.told
                    and not is_failure(record["label"])
                    and record.get("probabilities")
                ):
                    right = record["label"] == run.told[case, question]
                    sure = float(record["probabilities"][record["label"]])
                    known.setdefault(question, {})[case] = (sure, right)
            for question, by_case in sorted(known.items()):
                confidence, correct = zip(*by_case.values(), strict=True)
                name = f"{run.name}, {folder.name}, {question}"
                curve = risk_coverage(confidence, correct)
                curves.append(Curve(name, len(curves), curve, len(by_case)))
    return curves
