"""Image quality beside bias: scores of each run, and what a method changed on the same cases."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import UsageError
from ..core import Score, without_nan
from ..engine.quality import ScoredPair, ScoreLog, scorers_of
from ..engine.run import Run, RunError
from ..stats.comparison import holm
from ..stats.intervals import Interval
from ..stats.means import cluster_mean
from ..suites import open_suite
from ..suites.scores import factor_of
from .contents import short_names
from .leaderboard import paired
from .scoring import JudgedRun, ScoreSettings, score_runs

NOT_SCORED = "not_scored"
"""Images that no scorer was asked about yet."""


@dataclass(frozen=True)
class ImageQuality:
    """What one scorer says of one run."""

    scorer: str
    """In a few words; unique in the run."""
    identity: Mapping[str, str]
    score: Score
    """The mean over images, with what has no score by reason."""
    values: Mapping[str, float]
    """Case -> score."""
    clusters: Mapping[str, str]
    """Case -> its narrowest cluster."""


@dataclass(frozen=True)
class QualityChange:
    """A score of a run against the same score of the base run, on the cases that both have."""

    run: str
    """Name of the run."""
    scorer: str
    """The scorer, or the judge whose headline score it is."""
    score: str
    """Name of the score."""
    kind: str
    """`bias` or `quality`."""
    better: str
    """`higher` or `lower`."""
    unit: str
    before: float
    """The base run's, over everything that it has."""
    after: float
    """The run's, over everything that it has."""
    difference: float
    """After - before, on the shared cases."""
    interval: Interval
    """95 %, over clusters."""
    p_value: float
    """Two-sided."""
    adjusted: float
    """The same after Holm, over all runs under this scorer."""
    n: int
    """Shared cases."""


@dataclass(frozen=True)
class QualityReport:
    """Runs on one suite, the first of which is the base."""

    suite: str
    base: str
    """Name of the base run: as much of its path as tells the runs apart."""
    runs: Mapping[str, Sequence[Score]]
    """Name -> bias first, then quality."""
    changes: Sequence[QualityChange]
    """Against the base."""

    def to_json(self) -> dict[str, Any]:
        """Plain values; NaN as None."""
        plain: dict[str, Any] = without_nan(asdict(self))
        return plain


def read_quality(run: Run) -> list[ImageQuality]:
    """What every scorer of a run says, by name; empty where nobody scored it."""
    logs, cases = scorers_of(run), run.cases()
    names = _unique(logs)
    images = run.images()
    found = []
    for log in logs:
        scored = log.of_cases(run, cases)
        values = {case: one.value for case, one in scored.items() if not one.error}
        excluded = Counter(
            _reason(scored.get(case.id), images[case.id].status if case.id in images else "missing")
            for case in cases
            if case.id not in values
        )
        clusters = {case.id: case.clusters[0] for case in cases}
        mean = cluster_mean(list(values.values()), [clusters[case] for case in values])
        score = Score(
            name=names[log.root],
            value=mean.value,
            interval=mean.interval,
            n=len(values),
            unit="1",
            excluded=dict(sorted(excluded.items())),
        )
        identity = dict(log.identity)
        found.append(ImageQuality(score.name, identity, score, values=values, clusters=clusters))
    return found


def _reason(scored: ScoredPair | None, status: str) -> str:
    """Why a case has no score."""
    if status != "made":
        return status
    return NOT_SCORED if scored is None else "error"


def _unique(logs: Sequence[ScoreLog]) -> dict[Path, str]:
    """Folder -> name; with the folder's own where two scorers are described alike."""
    counts = Counter(log.name for log in logs)
    return {
        log.root: log.name if counts[log.name] == 1 else f"{log.name} ({log.root.name})"
        for log in logs
    }


def compare_quality(base: ImageQuality, others: Mapping[str, ImageQuality]) -> list[QualityChange]:
    """Each run's scores less the base's, paired by case. others: by the run's name."""
    changes = []
    for name, other in others.items():
        shared = [case for case in base.values if case in other.values]
        found = cluster_mean(
            np.array([other.values[case] - base.values[case] for case in shared]),
            [base.clusters[case] for case in shared],
        )
        changes.append(
            QualityChange(
                run=name,
                scorer=base.scorer,
                score="mean",
                kind="quality",
                better="higher",
                unit="1",
                before=base.score.value,
                after=other.score.value,
                difference=found.value,
                interval=found.interval,
                p_value=found.p_value,
                adjusted=math.nan,
                n=len(shared),
            )
        )
    return adjusted(changes)


def compare_bias(base: JudgedRun, others: Mapping[str, JudgedRun]) -> list[QualityChange]:
    """Each run's headline score less the base's, on the items that both have a value for."""
    headline = open_suite(base.result.run.suite).headline
    before, items = base.whole[headline.score], headline.items(base.outcomes)
    changes = []
    for name, other in others.items():
        after = other.whole[headline.score]
        found, n = paired(headline.items(other.outcomes), items, headline)
        factor = factor_of(before.unit)
        changes.append(
            QualityChange(
                run=name,
                scorer=base.result.judge,
                score=headline.score,
                kind="bias",
                better=headline.better,
                unit=before.unit,
                before=before.value,
                after=after.value,
                difference=factor * found.value,
                interval=found.interval.scaled(factor),
                p_value=found.p_value,
                adjusted=math.nan,
                n=n,
            )
        )
    return adjusted(changes)


def adjusted(changes: Sequence[QualityChange]) -> list[QualityChange]:
    """The changes with their p-values after Holm."""
    p_values = iter(holm([c.p_value for c in changes if not math.isnan(c.p_value)]))
    return [c if math.isnan(c.p_value) else replace(c, adjusted=next(p_values)) for c in changes]


def quality_report(roots: Sequence[Path], settings: ScoreSettings) -> QualityReport:
    """Scores of each run, its headline under each judge first, and changes against the first run.

    Runs without a judge have quality alone. Raises RunError for runs of different rows, or judged
    differently, unless `across_judges`.
    """
    resolved = [root.resolve() for root in roots]
    if len(set(resolved)) < len(roots):
        raise UsageError("a run is given twice")
    runs = {name: Run.open(root) for name, root in zip(short_names(resolved), roots, strict=True)}
    base, *others = runs
    _check_alike(runs)
    judged = _judged(runs, settings)
    qualities = {name: {q.scorer: q for q in read_quality(run)} for name, run in runs.items()}
    headline = open_suite(runs[base].header.suite).headline.score
    shown = {
        name: [
            *(replace(j.whole[headline], name=f"{headline} by {who}") for who, j in parts.items()),
            *(quality.score for quality in qualities[name].values()),
        ]
        for name, parts in judged.items()
    }
    changes: list[QualityChange] = []
    for who, first in judged[base].items():
        changes += compare_bias(first, _having(judged, others, who))
    for who, scored in qualities[base].items():
        changes += compare_quality(scored, _having(qualities, others, who))
    return QualityReport(runs[base].header.suite, base, shown, changes)


def _having(
    found: Mapping[str, Mapping[str, Any]], names: Iterable[str], who: str
) -> dict[str, Any]:
    return {name: found[name][who] for name in names if who in found[name]}


def _check_alike(runs: Mapping[str, Run]) -> None:
    base, *others = runs
    first = runs[base].header
    for name in others:
        header = runs[name].header
        if (header.suite, header.rows_sha256) != (first.suite, first.rows_sha256):
            raise RunError(f"{name} and {base} are of different rows: they can't be compared")


def _judged(runs: Mapping[str, Run], settings: ScoreSettings) -> dict[str, dict[str, JudgedRun]]:
    """Run -> judge -> result; nothing where nobody judged."""
    found: dict[str, dict[str, JudgedRun]] = {name: {} for name in runs}
    judged = {
        str(run.root): name
        for name, run in runs.items()
        if settings.judges or any(not judge.is_empty for judge in run.judges())
    }
    for one in score_runs([Path(root) for root in judged], settings) if judged else ():
        found[judged[one.result.folder]][one.result.judge] = one
    return found
