"""What runs changed against a base run, in bias and in image quality, on the same cases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import UsageError
from ..core import Score, without_nan
from ..engine.run import Run, RunError
from ..stats.comparison import Comparison, adjust
from ..stats.estimate import interval_text, value_text
from ..stats.means import cluster_mean
from ..suites import open_suite
from ..suites.scoring import factor_of
from .contents import RunContents
from .leaderboard import paired
from .names import short_names
from .quality import ImageQuality, read_quality
from .scoring import JudgedRun, ScoreSettings, score_runs


@dataclass(frozen=True, kw_only=True)
class QualityChange(Comparison):
    """A score of a run less that of the base run, on the cases that both have; its p-value is
    adjusted over all runs under one scorer."""

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

    def to_json(self) -> dict[str, Any]:
        """Plain values; NaN as None."""
        plain: dict[str, Any] = without_nan(
            {
                "run": self.first,
                "scorer": self.scorer,
                "score": self.score,
                "kind": self.kind,
                "better": self.better,
                "unit": self.unit,
                "before": self.before,
                "after": self.after,
                "difference": self.value,
                "interval": self.interval,
                "p_value": self.p_value,
                "adjusted": self.adjusted,
                "n": self.n,
            }
        )
        return plain


COLUMNS = ("run", "what", "by", "before", "after", "difference", "95 %", "p", "Holm", "pairs")
NUMBERS = COLUMNS[3:]
"""Those that stand on the right."""


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

    @property
    def title(self) -> str:
        """Above the table of changes."""
        return f"{self.suite}: against {self.base}, on the cases that both have"

    def rows(self) -> list[tuple[str, ...]]:
        """The changes as text, a tuple of `COLUMNS` each."""
        return [
            (
                one.first,
                f"{one.score} ({one.better} is better)" if one.kind == "bias" else "quality",
                one.scorer,
                *(value_text(v, one.unit) for v in (one.before, one.after, one.value)),
                interval_text(one.interval, one.unit),
                *(value_text(p, "1", "-") for p in (one.p_value, one.adjusted)),
                f"{one.n:,}",
            )
            for one in self.changes
        ]

    def to_json(self) -> dict[str, Any]:
        """Plain values; NaN as None."""
        plain: dict[str, Any] = without_nan(vars(self))
        return plain


def compare_quality(
    base_run: str, base: ImageQuality, others: Mapping[str, ImageQuality]
) -> list[QualityChange]:
    """Each run's scores less the base's, paired by case. others: by the run's name."""
    changes = []
    for name, other in others.items():
        shared = [case for case in base.values if case in other.values]
        difference = cluster_mean(
            np.array([other.values[case] - base.values[case] for case in shared]),
            [base.clusters[case] for case in shared],
        )
        changes.append(
            QualityChange.of(
                difference,
                first=name,
                second=base_run,
                scorer=base.scorer,
                score="mean",
                kind="quality",
                better="higher",
                unit="1",
                before=base.score.value,
                after=other.score.value,
            )
        )
    return adjust(changes)


def compare_bias(
    base_run: str, base: JudgedRun, others: Mapping[str, JudgedRun]
) -> list[QualityChange]:
    """Each run's headline score less the base's, on the items that both have a value for."""
    headline = open_suite(base.result.run.suite).headline
    before, items = base.whole[headline.score], headline.items(base.outcomes)
    changes = []
    for name, other in others.items():
        after = other.whole[headline.score]
        difference = paired(headline.items(other.outcomes), items, headline)
        changes.append(
            QualityChange.of(
                difference.scaled(factor_of(before.unit)),
                first=name,
                second=base_run,
                scorer=base.result.judge,
                score=headline.score,
                kind="bias",
                better=headline.better,
                unit=before.unit,
                before=before.value,
                after=after.value,
            )
        )
    return adjust(changes)


def quality_report(roots: Sequence[Path], settings: ScoreSettings) -> QualityReport:
    """Scores of each run, its headline under each judge first, and changes against the first run.

    Runs without a judge have quality alone. Raises RunError for runs of different rows, or judged
    differently, unless `across_judges`.
    """
    resolved = [root.resolve() for root in roots]
    if len(set(resolved)) < len(roots):
        raise UsageError("a run is given twice", code="duplicate-id")
    runs = {name: Run.open(root) for name, root in zip(short_names(resolved), roots, strict=True)}
    check_alike(runs)
    qualities = {name: read_quality(run) for name, run in runs.items()}
    return quality_report_of(
        _judged(runs, settings), qualities, next(iter(runs.values())).header.suite
    )


def reported_quality(runs: Sequence[RunContents]) -> list[QualityReport]:
    """Bias and quality of the runs of one suite, as a report has them; nothing where nobody scored.

    One for every base, see `RunContents`.
    """
    if not any(run.quality for run in runs):
        return []
    names = {run.name for run in runs}
    groups: dict[str, list[RunContents]] = {}
    for run in runs:
        base = run.base or runs[0].name
        if base in names:
            groups.setdefault(base, []).append(run)
    found = []
    for base, members in groups.items():
        members.sort(key=lambda run: run.name != base)
        judged = {run.name: {one.result.judge: one for one in run.judged} for run in members}
        quality = {run.name: run.quality for run in members}
        found.append(quality_report_of(judged, quality, runs[0].suite.name))
    return found


def quality_report_of(
    judged: Mapping[str, Mapping[str, JudgedRun]],
    qualities: Mapping[str, Sequence[ImageQuality]],
    suite: str,
) -> QualityReport:
    """Bias and quality of runs on one suite, the first of which is the base.

    judged: run -> judge -> result; qualities: run -> what each scorer says. Raises RunError where
    two runs were scored by different versions of a scorer.
    """
    base, *others = judged
    headline = open_suite(suite).headline.score
    shown = {
        name: [
            *(replace(j.whole[headline], name=f"{headline} by {who}") for who, j in parts.items()),
            *(quality.score for quality in qualities[name]),
        ]
        for name, parts in judged.items()
    }
    changes: list[QualityChange] = []
    for who, first in judged[base].items():
        changes += compare_bias(base, first, _runs_judged_by(judged, others, who))
    for scored in qualities[base]:
        alike = {name: _of_the_same(scored, name, qualities[name]) for name in others}
        changes += compare_quality(base, scored, {n: q for n, q in alike.items() if q})
    return QualityReport(suite, base, shown, changes)


def _runs_judged_by(
    found: Mapping[str, Mapping[str, Any]], names: Iterable[str], who: str
) -> dict[str, Any]:
    return {name: found[name][who] for name in names if who in found[name]}


def _of_the_same(
    base: ImageQuality, name: str, others: Sequence[ImageQuality]
) -> ImageQuality | None:
    """What the same scorer says of another run; None where nobody like it scored that."""
    for other in others:
        if other.identity == base.identity:
            return other
    for other in others:
        if other.scorer == base.scorer:
            changed = sorted(
                key
                for key in base.identity.keys() | other.identity.keys()
                if base.identity.get(key) != other.identity.get(key)
            )
            raise RunError(
                f"{name} was scored by another {base.scorer} ({', '.join(changed)}): score both "
                f"runs with the same one",
                code="different-rows",
            )
    return None


def check_alike(runs: Mapping[str, Run]) -> None:
    """Raises RunError for runs of different rows. runs: by name."""
    base, *others = runs
    first = runs[base].header
    for name in others:
        header = runs[name].header
        if (header.suite, header.rows_sha256) != (first.suite, first.rows_sha256):
            raise RunError(
                f"{name} and {base} are of different rows: they can't be compared",
                code="different-rows",
            )


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
