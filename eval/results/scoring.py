"""`score`: what a run's verdicts say of its generator, with everything that qualifies it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...labels import labels_of_images, read_labels, single_labels
from ...storage import write_whole
from ..core import ORIGINAL, Outcome, is_failure
from ..engine.judging import outcomes
from ..engine.run import JudgeFolder, Run, RunError, RunHeader
from ..stats.agreement import krippendorff_alpha
from ..suites import open_suite
from ..suites.scores import Score
from .corrected import Labels, corrected_by_card, corrected_by_labels, read_cards
from .judge_card import JudgeCard, judge_card

SCORES = "scores.json"


@dataclass(frozen=True)
class Result:
    """The scores of one run under one judge."""

    run: RunHeader
    """What was run."""
    folder: str
    """Where."""
    judge: str
    """Name of the judge's folder."""
    card: JudgeCard
    """Who judged, and how it behaved."""
    scores: Sequence[Score]
    """All of them, the whole config first."""
    cases: int
    """Pictures that were wanted."""
    alpha: Mapping[str, float]
    """Question -> Krippendorff's alpha of all judges of the run, and people where there are labels;
    only where two or more answered it."""

    def to_json(self) -> dict[str, Any]:
        plain: dict[str, Any] = without_nan(
            {
                "run": self.run.__dict__,
                "folder": self.folder,
                "judge": self.judge,
                "cases": self.cases,
                "alpha": dict(self.alpha),
                "card": self.card.to_json(),
                "scores": [score.to_json() for score in self.scores],
            }
        )
        return plain


def score_run(
    root: Path, labels: Path | None = None, card: Path | None = None, several: bool = False
) -> list[Result]:
    """The result of every judge of a run, also written into the run.

    labels: people's, of some of its cases. card: scores.json of another run, whose labels say how
    the same judge errs. several: whether the labels are of several runs. Raises RunError where
    nobody has judged it, ValueError for bad labels and for a card of none of its judges.
    """
    run = Run.open(root)
    told = run_labels(run, labels, several)
    folders = list(run.judges())
    if not folders:
        raise RunError(f"{root}: nobody has judged it; run `counterprior judge {root} --judge ...`")
    judged = {folder.name: outcomes(run, folder) for folder in folders}
    alpha = _alpha(list(judged.values()), told)
    results = [_score(run, folder, judged[folder.name], told, alpha) for folder in folders]
    if card is not None:
        results = [_with_card(result, judged[result.judge], card) for result in results]
    write_whole(root / SCORES, results_json(results) + "\n")
    return results


def run_labels(run: Run, labels: Path | None, several: bool) -> Labels:
    """What people said of the pictures of a run. Raises RowError as `labels` does."""
    pictures = {case: image.sha256 for case, image in run.images().items()}
    given = read_labels(labels) if labels else []
    return single_labels(labels_of_images(given, pictures, several))


def results_json(results: Sequence[Result]) -> str:
    """Results for a machine; undefined numbers are null."""
    return json.dumps([result.to_json() for result in results], indent=2, sort_keys=True)


def score_runs(
    roots: Sequence[Path], labels: Path | None, across_judges: bool, card: Path | None = None
) -> list[Result]:
    """The results of several runs, which must have been judged alike to stand in one table.

    Raises RunError where their judges, prompts or rows differ, unless `across_judges`.
    """
    several = len(roots) > 1
    results = [result for root in roots for result in score_run(root, labels, card, several)]
    if not across_judges:
        check_comparable(results)
    return results


def check_comparable(results: Sequence[Result]) -> None:
    """Raises RunError where two runs of one suite have other rows, or not the same judges."""
    first: dict[str, tuple[Result, list[str]]] = {}
    for folder in dict.fromkeys(result.folder for result in results):
        part = [result for result in results if result.folder == folder]
        run = part[0].run
        judges = sorted(json.dumps(dict(r.card.comparable), sort_keys=True) for r in part)
        other, expected = first.setdefault(run.suite, (part[0], judges))
        if run.rows_sha256 != other.run.rows_sha256:
            raise RunError(f"{folder} and {other.folder} are of different rows")
        if judges != expected:
            theirs = [r.judge for r in results if r.folder == other.folder]
            raise RunError(
                f"{folder} was judged by {' and '.join(r.judge for r in part)} and {other.folder} "
                f"by {' and '.join(theirs)}: their scores can't be compared. Judge them alike, or "
                f"say --across-judges"
            )


def _score(
    run: Run, folder: JudgeFolder, judged: Sequence[Outcome], told: Labels,
    alpha: Mapping[str, float],
) -> Result:  # fmt: skip
    suite = open_suite(run.header.suite, folder.identity.get("persona", "standard"))
    newest = {record["key"]: record for record in folder.verdicts()}
    present = {image.sha256 for image in run.images().values()}
    records = [record for record in newest.values() if record["image"] in present]
    card = judge_card(folder.identity, suite.prompts, records, told)
    scores = suite.score(sorted(judged, key=lambda outcome: outcome.case.id))
    scores += corrected_by_labels(judged, told)
    return Result(run.header, str(run.root), folder.name, card, scores, len(judged), alpha)


def _with_card(result: Result, judged: Sequence[Outcome], path: Path) -> Result:
    """The result with scores corrected by the card of the same judge, with the same prompts."""
    for comparable, agreement in read_cards(path):
        if comparable == result.card.comparable:
            return replace(result, scores=[*result.scores, *corrected_by_card(judged, agreement)])
    raise ValueError(f"{path}: no card of {result.judge} with the prompts of {result.folder}")


def _alpha(judged: Sequence[Sequence[Outcome]], told: Labels) -> dict[str, float]:
    """Question -> alpha over all cases; an answer that is a failure counts as none."""
    raters = [
        {(outcome.case.id, question): label
         for outcome in outcomes
         for (question, probe), label in outcome.labels.items()
         if probe == ORIGINAL and question and not is_failure(label)}
        for outcomes in judged
    ]  # fmt: skip
    raters += [dict(told)]
    found = {}
    for question in sorted({key[1] for rater in raters for key in rater}):
        parts = [{k: v for k, v in rater.items() if k[1] == question} for rater in raters]
        parts = [part for part in parts if part]
        if len(parts) > 1:
            keys = sorted(set().union(*parts))
            found[question] = krippendorff_alpha([[part.get(k) for k in keys] for part in parts])
    return found


def without_nan(value: Any) -> Any:
    """Plain values with None where a number is undefined: JSON has no NaN."""
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, Mapping):
        return {name: without_nan(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(item) for item in value]
    return value
