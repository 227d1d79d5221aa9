"""`score`: what a run's verdicts say of its generator, with everything that qualifies it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .cases import Outcome
from .judge_card import SIGN, JudgeCard, judge_card
from .judges.human import read_labels
from .judging import outcomes
from .runs import JudgeFolder, Run, RunError, RunHeader, write_atomically
from .scores import Score
from .stats.correction import ppi
from .suites import open_suite
from .suites.correctness import RIGHT

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

    def to_json(self) -> dict[str, Any]:
        plain: dict[str, Any] = without_nan(
            {
                "run": self.run.__dict__,
                "folder": self.folder,
                "judge": self.judge,
                "cases": self.cases,
                "card": self.card.to_json(),
                "scores": [score.to_json() for score in self.scores],
            }
        )
        return plain


def score_run(root: Path, labels: Path | None = None) -> list[Result]:
    """The result of every judge of a run, also written into the run.

    Raises RunError where nobody has judged it, ValueError for bad labels.
    """
    run = Run.open(root)
    told = read_labels(labels) if labels else {}
    results = [_score(run, folder, told) for folder in run.judges()]
    if not results:
        raise RunError(f"{root}: nobody has judged it; run `counterprior judge {root} --judge ...`")
    write_atomically(root / SCORES, results_json(results) + "\n")
    return results


def results_json(results: Sequence[Result]) -> str:
    """Results for a machine; undefined numbers are null."""
    return json.dumps([result.to_json() for result in results], indent=2, sort_keys=True)


def score_runs(roots: Sequence[Path], labels: Path | None, across_judges: bool) -> list[Result]:
    """The results of several runs, which must have been judged alike to stand in one table.

    Raises RunError where their judges, prompts or rows differ, unless `across_judges`.
    """
    results = [result for root in roots for result in score_run(root, labels)]
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


def _score(run: Run, folder: JudgeFolder, told: Mapping[tuple[str, str], str]) -> Result:
    suite = open_suite(run.header.suite, folder.identity.get("persona", "standard"))
    judged = outcomes(run, folder)
    newest = {record["key"]: record for record in folder.verdicts()}
    present = {image.sha256 for image in run.images().values()}
    records = [record for record in newest.values() if record["image"] in present]
    card = judge_card(folder.identity, suite.prompts, records, told)
    scores = suite.score(sorted(judged, key=lambda outcome: outcome.case.id))
    corrected = _corrected(judged, told) if told else []
    return Result(run.header, str(run.root), folder.name, card, [*scores, *corrected], len(judged))


def _corrected(judged: Sequence[Outcome], told: Mapping[tuple[str, str], str]) -> list[Score]:
    """Rates with the judge's errors taken out, by people's labels of a random part of the run."""
    scores = []
    for question in sorted({key[1] for key in told}):
        labels = {outcome.label(question) for outcome in judged}
        if labels & RIGHT.keys():
            for variant in sorted({outcome.case.variant for outcome in judged}):
                part = [outcome for outcome in judged if outcome.case.variant == variant]
                name = f"accuracy_{variant}_corrected"
                scores += _corrected_mean(part, question, told, RIGHT, name)
        else:
            scores += _corrected_mean(judged, question, told, SIGN, "signed_index_corrected")
    return scores


def _corrected_mean(
    judged: Sequence[Outcome],
    question: str,
    told: Mapping[tuple[str, str], str],
    values: Mapping[str, float],
    name: str,
) -> list[Score]:
    """PPI++ over what both the judge and, where asked, people find valid."""
    pairs: list[tuple[float, float]] = []
    rest: list[float] = []
    invalid, disputed = 0, 0
    for outcome in judged:
        said = values.get(outcome.label(question))
        label = told.get((outcome.case.id, question))
        true = None if label is None else values.get(label)
        if label is None and said is None:
            invalid += 1
        elif label is None and said is not None:
            rest.append(said)
        elif said is not None and true is not None:
            pairs.append((said, true))
        else:
            disputed += 1
    if len(pairs) < 2:
        return []
    given = np.array(pairs)
    ends = (min(values.values()), max(values.values()))
    found = ppi(rest, given[:, 0], given[:, 1], ends)
    return [
        Score(
            name,
            100 * found.value,
            found.interval.scaled(100),
            len(rest) + len(pairs),
            "%",
            {"labelled_not_valid_for_both": disputed, "not_valid": invalid},
        )
    ]


def without_nan(value: Any) -> Any:
    """Plain values with None where a number is undefined: JSON has no NaN."""
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, Mapping):
        return {name: without_nan(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(item) for item in value]
    return value
